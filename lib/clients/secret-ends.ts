import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import type { Notice, Notices } from '../notice.ts'
import type { ClientRecord, NamedSecret } from '../records/client.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import type { Timers } from '../timers.ts'
import { createQueue } from '../work/queue.ts'
import { type WorkRecord, toDue } from '../work/record.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Milliseconds before a secret expires. The owner of its client is told at each of these times. */
const NOTICES = [14 * DAY, 3 * DAY]

/** Secrets that end within this time are counted for the operator. */
const SOON = Math.max(...NOTICES)

/** The most milliseconds for which a record outlives its secret. */
const KEPT = 30 * DAY

/** Milliseconds between two looks for due records. Nobody waits for them. */
const POLL = MINUTE

/** Notices that this process sends at once. */
const SLOTS = 4

/** Records that are read at once, and failed ones that are kept. Every client has five secrets at most, which bounds the others. */
const LOOKAHEAD = 1_000
const CAPACITY = 10_000

const RETRIES = [1, 5, 30, 120, 360].map((minutes) => minutes * MINUTE)

/** A secret that expires, under its id. It is due at the next notice, and at last when the secret ends. */
export interface SecretEndRecord extends WorkRecord {
  client_id: string
  /** When the secret expires. */
  until: string
}

interface EndParts extends Pick<Base, 'store' | 'now' | 'recorder' | 'report'> {
  notices: Pick<Notices, 'write'>
  onGivenUp?: () => void
  timers?: Timers | undefined
}

/** The time of the next notice of a secret that ends then, or of its end. Undefined after it. */
function findNext (until: string, time: number): string | undefined {
  const end = Date.parse(until)
  const next = [...NOTICES.map((before) => end - before), end].find((at) => at > time)
  return next === undefined ? undefined : toTimestamp(next)
}

/**
 * Tells the present owner of a client, by a mail and an event, before one of its secrets ends. Each expiring secret is one piece of work.
 * The record of the client decides whether the secret still exists: what is left here of a removed secret causes no notice.
 */
export function createSecretEnds ({ store, now, recorder, notices, report, onGivenUp, timers }: EndParts) {
  const onError = report('mail')
  const clients = store.collection<ClientRecord>('clients')
  const users = store.collection<UserRecord>('users')
  const records = store.collection<SecretEndRecord>('secret_ends')

  /** The mail to the owner of a client about one of its secrets. Its name may be somebody else's text, so it is left out. */
  async function writeTo (user_id: string, client: string, { last4 }: NamedSecret, until: string): Promise<Notice[]> {
    const owner = await users.get(user_id)
    if (owner === null || !isActive(owner, toTimestamp(now()))) return []
    return await notices.write('secret-expiring', owner, { of: client, time: until, values: { client, last4 } })
  }

  async function perform ({ id, claim, client_id, until }: SecretEndRecord): Promise<void> {
    const time = now()
    const client = await clients.get(client_id)
    const next = findNext(until, time)
    const secret = client?.secrets?.find((one) => one.id === id)
    if (next === undefined || secret === undefined) return
    const userId = client?.userId
    const mails = userId === undefined ? [] : await writeTo(userId, client_id, secret, until)
    // An attempt that ends between these writes is repeated.
    await recorder.insert({ type: 'client.secret_expiring', id: client_id, user_id: userId ?? null }, mails, `secret_ends/${id}/${next}`)
    // With another claim, so that the end of this attempt does not remove the record.
    await records.update(id, { set: { ...toDue(Date.parse(next), now()), attempts: 0 }, unset: ['leased'], increment: { claim: 1 } }, { equal: { claim } })
  }

  function onFailed ({ client_id }: SecretEndRecord, failure: string): void {
    onGivenUp?.()
    onError(new Error(`nobody was told that a secret of client ${client_id} expires: ${failure}`))
  }

  const queue = createQueue<SecretEndRecord>({
    collection: 'secret_ends',
    name: 'secret',
    slots: SLOTS,
    capacity: CAPACITY,
    lookahead: LOOKAHEAD,
    poll: POLL,
    retries: RETRIES,
    longest: Infinity,
    perform,
    isFinal: () => false
  }, { store, now, onError, timers, onFailed })

  return {
    /** Notes a secret that is to be added. */
    async add (client_id: string, { id, created_at, expires_at: until }: NamedSecret): Promise<void> {
      if (until === undefined) return
      const kept = toTimestamp(Date.parse(until) + KEPT)
      await queue.keep({
        id, client_id, until, state: 'due', due_at: findNext(until, Date.parse(created_at))!, claim: 0, attempts: 0, created_at, ends_at: kept, expired_at: kept
      })
    },

    /** Forgets secrets that were removed. */
    async forget (ids: readonly string[]): Promise<void> {
      await Promise.all(ids.map(async (id) => await records.delete(id)))
    },

    /** How many secrets end soon. An index counts them. */
    count: async (): Promise<number> => await records.count({
      since: { until: toTimestamp(now()) }, before: { until: toTimestamp(now() + SOON) }
    }, { urgent: true }),

    start: queue.start,
    flush: queue.flush,
    close: queue.close,
    work: queue
  }
}

export type SecretEnds = ReturnType<typeof createSecretEnds>
