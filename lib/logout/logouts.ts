import type { Base } from '../base.ts'
import type { Authorizations } from '../browsers/record.ts'
import { readFirst } from '../lists/first.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Handlers } from '../events/publish.ts'
import { ENDS_SESSIONS, type EventRecord } from '../events/types.ts'
import type { OutboundFetch } from '../outbound/fetcher.ts'
import { type ClientRecord, isVouchedFor } from '../records/client.ts'
import type { UserRecord } from '../records/user.ts'
import type { Timers } from '../timers.ts'
import type { Outages } from '../work/outage.ts'
import { createQueue } from '../work/queue.ts'
import { type SignLogout, createAttempt, isFinal } from './attempt.ts'
import { createReader } from './find-ended.ts'
import { type LogoutRecord, nameLogout } from './record.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Milliseconds from each failed attempt to the next. A receiver that is down for an hour is still notified. */
const RETRIES = [15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR]

/** Milliseconds that delivery is attempted. A retry by an operator starts this period again. */
const LIFE = 2 * HOUR

/** Milliseconds that a delivery is stored after that, so that no client is notified twice of the same end. */
const KEPT = 24 * HOUR

/**
 * Concurrent deliveries of this process: to all clients, to clients that the operator vouches for and to no others, and of one lane. A
 * lane is a client that the operator vouches for, or all other clients of one owner. A receiver that hangs leaves slots for the others.
 */
const SLOTS = 8
const RESERVED = 4
const SLOTS_OF_LANE = 2

/** The most due deliveries, of all clients and of one lane. */
const CAPACITY = 10_000
const CAPACITY_OF_LANE = 1_000

/** Milliseconds that a delivery waits for the process that made the change, which should accept the same delivery first. */
const GRACE = 10 * SECOND

const toEnd = (time: number) => ({ ends_at: toTimestamp(time + LIFE), expired_at: toTimestamp(time + LIFE + KEPT) })

interface LogoutParts extends Pick<Base, 'store' | 'now' | 'report'> {
  recorder: Pick<Base['recorder'], 'insert'>
  authorizations: Pick<Authorizations, 'list'>
  fetch: OutboundFetch
  /** Notes whether the apps accept logout tokens. */
  outages?: Pick<Outages, 'of'> | undefined
  onFailed: (delivery: Pick<LogoutRecord, 'id' | 'client_id' | 'user_id' | 'attempts'> & { failure: string }) => void
  timers?: Timers | undefined
}

/**
 * OpenID Connect Back-Channel Logout 1.0: notifies the clients that a user signed in to when the user's sessions end. The
 * notifications are durable before the records that name the clients are removed. No caller waits for a receiver.
 */
export function createLogouts ({ store, now, recorder, report, authorizations, fetch, outages, onFailed, timers }: LogoutParts) {
  const clients = store.collection<ClientRecord>('clients')
  const users = store.collection<UserRecord>('users')
  const records = store.collection<LogoutRecord>('logouts')
  const reader = createReader(store, authorizations)
  let attempt: ReturnType<typeof createAttempt> | undefined

  const queue = createQueue<LogoutRecord>({
    collection: 'logouts',
    name: 'logout',
    slots: SLOTS,
    capacity: CAPACITY,
    lookahead: CAPACITY,
    reserved: RESERVED,
    isUrgent: ({ owner }) => owner === undefined,
    lanes: { keys: ['owner', 'client_id'], slots: SLOTS_OF_LANE, capacity: CAPACITY_OF_LANE },
    nameReceiver: ({ client_id }) => client_id,
    retries: RETRIES,
    toDone: () => ({}),
    perform: async (record, signal) => await attempt!(record, signal),
    isFinal,
    renew: toEnd
  }, {
    store,
    now,
    onError: report('logouts'),
    timers,
    onFailed: ({ id, client_id, user_id, attempts }, failure) => onFailed({ id, client_id, user_id, attempts, failure })
  })

  /** Whether any client receives logout tokens: one look-up in an index. */
  async function hasReceivers (): Promise<boolean> {
    return await readFirst(clients, { filter: { equal: { backchannel: true } }, urgent: true }) !== undefined
  }

  /** The lane of a client that receives logout tokens, null for any other. */
  async function findReceiver (client_id: string): Promise<Pick<LogoutRecord, 'owner'> | null> {
    const client = await clients.get(client_id)
    if (client?.backchannelLogoutUri === undefined || client.disabled_at !== undefined) return null
    return isVouchedFor(client) ? {} : { owner: client.userId ?? '' }
  }

  async function accept (id: string, fields: Pick<LogoutRecord, 'user_id' | 'client_id' | 'owner' | 'uids' | 'more' | 'epoch'>, delay = 0): Promise<void> {
    const time = now()
    const record: LogoutRecord = {
      id,
      ...fields,
      state: 'due',
      due_at: toTimestamp(time + delay),
      claim: 0,
      attempts: 0,
      created_at: toTimestamp(time),
      ...toEnd(time)
    }
    try {
      const isNew = await queue.accept(record)
      if (delay > 0) return
      // An earlier call may have accepted it with a delay: it becomes due now.
      if (!isNew && await records.update(id, { set: { due_at: record.due_at } }, { equal: { claim: 0, state: 'due' } }) === null) return
    } catch (error) {
      if (!(error instanceof IdentityError) || error.code !== 'ErrBusy') throw error
      // Receivers that do not answer must not prevent a sign-out.
      onFailed({ id, client_id: record.client_id, user_id: record.user_id, attempts: 0, failure: 'BUSY' })
      return
    }
    if (attempt !== undefined) queue.release(record)
  }

  /**
   * Notifies clients of the end of a user's sessions of earlier epochs. Any process may call this any number of times for an
   * epoch: each client is notified once of each.
   * @param epoch the user's epoch after the change that ended them. Absent: the user was deleted, and all sessions have ended
   * @param atOnce set by the caller that made the change, once it knows which sessions go on. Other calls leave it time for that
   */
  async function enqueueForUser (user_id: string, epoch?: number, { atOnce = false } = {}): Promise<void> {
    if (!await hasReceivers()) return
    const receivers = new Map<string, Pick<LogoutRecord, 'owner'> | null>()
    for (const { client_id, user_epoch, uids, more } of await reader.ofUser(user_id, epoch)) {
      if (!receivers.has(client_id)) receivers.set(client_id, await findReceiver(client_id))
      const receiver = receivers.get(client_id)
      if (receiver == null) continue
      // The id names the change that ended the session: a later change that finds the session again makes no second delivery.
      const ended = user_epoch + 1
      const fields = { user_id, client_id, ...receiver, uids: [...uids], ...(more && { more }), epoch: ended }
      await accept(nameLogout('user', user_id, ended, client_id), fields, atOnce ? 0 : GRACE)
    }
  }

  /**
   * A process may have died after the change that ended a user's sessions and before it stored the notifications. This stores the missing
   * ones.
   */
  async function makeUp ({ user }: Pick<EventRecord, 'user'>): Promise<void> {
    if (user !== undefined) await enqueueForUser(user, (await users.get(user))?.epoch)
  }

  return {
    /**
     * Notifies clients of the end of a sign-in session, which the caller removes afterwards.
     * @param client_id the only client at which it ends. Absent: it ends at all clients
     */
    async enqueueForSession (uid: string, client_id?: string): Promise<void> {
      if (!await hasReceivers()) return
      const found = await reader.ofSession(uid)
      if (found === null) return
      for (const [id, grant_id] of found.clients) {
        const receiver = client_id === undefined || id === client_id ? await findReceiver(id) : null
        if (receiver === null) continue
        // The user may sign in to one client again in the same session. That sign-in has an end of its own.
        const name = client_id === undefined ? nameLogout('session', uid, id) : nameLogout('session', uid, id, grant_id)
        await accept(name, { user_id: found.user_id, client_id: id, ...receiver, uids: [uid] })
      }
    },

    enqueueForUser,

    /** What follows the events that end the sessions of a user. */
    handlers: Object.fromEntries([...ENDS_SESSIONS].map((type) => [type, makeUp])) as Handlers,

    /**
     * Delivers from now on the notifications that this process accepts.
     * @param sign signs logout tokens. It is not called before one is due
     */
    attach (sign: SignLogout): void {
      attempt = createAttempt({ reader, sign, fetch, outages })
    },

    /** Delivers until `close`, polling for due deliveries of all processes. */
    start: queue.start,

    list: queue.list,
    countFailed: queue.countFailed,
    findStall: queue.findStall,
    pace: queue.pace,

    /**
     * Sends an undeliverable logout token again. Delivery is attempted for two more hours.
     * @throws ErrNotFound
     */
    async retry (id: string): Promise<void> {
      const record = await queue.retry(id)
      const { user_id, client_id } = record
      await recorder.insert({ type: 'logout.retried', id, user_id, client_id })
      if (attempt !== undefined) queue.release(record)
    },

    settle: queue.settle,

    /** Delivers everything due, if this process can sign (see `attach`). */
    async flush (): Promise<void> {
      if (attempt !== undefined) await queue.flush()
    },

    close: queue.close
  }
}

export type Logouts = ReturnType<typeof createLogouts>
