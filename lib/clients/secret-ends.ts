import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import type { Notice, Notices } from '../notice.ts'
import type { Happening } from '../events/types.ts'
import { readSome } from '../lists/first.ts'
import type { ClientRecord, NamedSecret } from '../records/client.ts'
import type { TokenRecord } from '../records/token.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import type { Timers } from '../timers.ts'
import type { CredentialUses } from '../tokens/uses.ts'
import { LINKS, PERSONAL, type PersonalRule, checkValidity } from '../tokens/validity.ts'
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

/** Records that are read at once, and failed ones that are kept. The numbers of secrets and tokens that a client may have bound the others. */
const LOOKAHEAD = 1_000
const CAPACITY = 10_000

const RETRIES = [1, 5, 30, 120, 360].map((minutes) => minutes * MINUTE)

/** A secret or token that expires, under its id. It is due at the next notice, and at last when that ends. */
export interface SecretEndRecord extends WorkRecord {
  client_id: string
  /** Whose last uses name it. Absent: the client's. */
  holder?: string
  /** When it expires. */
  until: string
}

/** What has an end: a secret, or a token with a name. */
type Ending = Pick<NamedSecret, 'id' | 'created_at' | 'expires_at'>

/** What such a mail says: the last characters, and a time. */
type About = { last4: string, time: string }

type OwnerNotice = 'secret-expiring' | 'service-token-added' | 'service-token-expiring'

/** Administrators who get an email about a service token. */
const ADMINISTRATORS = 20

interface EndParts extends Pick<Base, 'store' | 'now' | 'recorder' | 'report'> {
  notices: Pick<Notices, 'write'>
  uses: Pick<CredentialUses, 'forget'>
  /** Absent: there are no personal access tokens. */
  showPersonal?: PersonalRule | undefined
  onGivenUp?: () => void
  timers?: Timers | undefined
}

/** The time of the next notice of a secret that ends then, or of its end. Undefined after it. */
function findNext (until: string, time: number): string | undefined {
  const end = Date.parse(until)
  const next = [...NOTICES.map((before) => end - before), end].find((at) => at > time)
  return next === undefined ? undefined : toTimestamp(next)
}

const findSecret = (client: ClientRecord | null, id: string): NamedSecret | undefined => client?.secrets?.find((secret) => secret.id === id)

/**
 * Tells the present owner of a client, by a mail and an event, before one of its secrets or service tokens ends; of a token also the
 * administrators; and a person before one of their personal access tokens does. Each of them is one piece of work. Its own record decides
 * whether it still exists: what is left here of one that was removed causes no notice.
 */
export function createSecretEnds ({ store, now, recorder, notices, uses, showPersonal, report, onGivenUp, timers }: EndParts) {
  const onError = report('mail')
  const clients = store.collection<ClientRecord>('clients')
  const users = store.collection<UserRecord>('users')
  const tokens = store.collection<TokenRecord>('access_tokens')
  const records = store.collection<SecretEndRecord>('secret_ends')

  /** The mails to those of these people who can act. The name of a secret may be somebody else's text, so it is left out. */
  async function writeTo (kind: OwnerNotice, people: (UserRecord | null)[], client: string, { last4, time }: About): Promise<Notice[]> {
    const found = new Map(people.flatMap((user) => user !== null && isActive(user, toTimestamp(now())) ? [[user.id, user]] : []))
    const mails = await Promise.all([...found.values()].map(async (user) => await notices.write(kind, user, { of: client, time, values: { client, last4 } })))
    return mails.flat()
  }

  /** The mails about a service token, to the owner of its client and to administrators. */
  async function writeToOwners (kind: OwnerNotice, user_id: string, client: string, about: About): Promise<Notice[]> {
    const administrators = await readSome(users, { filter: { equal: { administers: true } }, limit: ADMINISTRATORS })
    return await writeTo(kind, [await users.get(user_id), ...administrators], client, about)
  }

  /** The event and the mails about a secret that the client still has, or a token that is valid. */
  async function describe (
    { id, client_id, until }: SecretEndRecord, client: ClientRecord | null
  ): Promise<{ happening: Happening, mails: Notice[] } | undefined> {
    const secret = findSecret(client, id)
    if (secret !== undefined) {
      const user_id = client?.userId
      const mails = user_id === undefined ? [] : await writeTo('secret-expiring', [await users.get(user_id)], client_id, { last4: secret.last4, time: until })
      return { happening: { type: 'client.secret_expiring', id: client_id, user_id: user_id ?? null }, mails }
    }
    const valid = checkValidity(await tokens.getLinked(id, LINKS.access_tokens), toTimestamp(now()), showPersonal)
    if (valid === null) return undefined
    const { kind, user_id, last4 = '' } = valid.record
    if (kind === PERSONAL) {
      const mails = valid.user === null ? [] : await notices.write('personal-token-expiring', valid.user, { time: until, values: { last4 } })
      return { happening: { type: 'token.personal_expiring', id, user_id, client_id }, mails }
    }
    const mails = await writeToOwners('service-token-expiring', user_id, client_id, { last4, time: until })
    return { happening: { type: 'token.service_expiring', id, user_id, client_id }, mails }
  }

  async function perform (record: SecretEndRecord): Promise<void> {
    const { id, claim, until, client_id, holder = client_id } = record
    const client = await clients.get(client_id)
    const next = findNext(until, now())
    const found = next === undefined ? undefined : await describe(record, client)
    // A token that is refused now may work again: while the option is off, or its person has expired.
    const isKept = found !== undefined || await tokens.get(id) !== null
    if (next === undefined || !isKept) {
      // An expired secret stays in the list of its client, with its last use.
      if (findSecret(client, id) === undefined) await uses.forget(holder, id)
      return
    }
    // An attempt that ends between these writes is repeated.
    if (found !== undefined) await recorder.insert(found.happening, found.mails, `secret_ends/${id}/${next}`)
    // With another claim, so that the end of this attempt does not remove the record.
    await records.update(id, { set: { ...toDue(Date.parse(next), now()), attempts: 0 }, unset: ['leased'], increment: { claim: 1 } }, { equal: { claim } })
  }

  function onFailed ({ client_id }: SecretEndRecord, failure: string): void {
    onGivenUp?.()
    onError(new Error(`nobody was told that a secret or token of client ${client_id} expires: ${failure}`))
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
    /** Notes a secret or token that is to be added. @param holder whose last uses name it, if not the client's */
    async add (client_id: string, { id, created_at, expires_at: until }: Ending, holder?: string): Promise<void> {
      if (until === undefined) return
      const kept = toTimestamp(Date.parse(until) + KEPT)
      await queue.keep({
        id,
        client_id,
        ...(holder !== undefined && { holder }),
        until,
        state: 'due',
        due_at: findNext(until, Date.parse(created_at)) ?? until,
        claim: 0,
        attempts: 0,
        created_at,
        ends_at: kept,
        expired_at: kept
      })
    },

    /** Forgets what was removed. */
    async forget (ids: readonly string[]): Promise<void> {
      await Promise.all(ids.map(async (id) => await records.delete(id)))
    },

    /** How many secrets and tokens end soon. An index counts them. */
    count: async (): Promise<number> => await records.count({
      since: { until: toTimestamp(now()) }, before: { until: toTimestamp(now() + SOON) }
    }, { urgent: true }),

    writeToOwners,
    start: queue.start,
    flush: queue.flush,
    close: queue.close,
    work: queue
  }
}

export type SecretEnds = ReturnType<typeof createSecretEnds>
