import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { IdentityError, busyError } from '../errors.ts'
import { generateId } from '../ids.ts'
import type { Document, Json, Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { type Mail, type Message, SEND_TIMEOUT, isFinal, nameFailure } from './port.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Milliseconds for which a claim lasts: longer than an attempt with everything around it. */
const LEASE = 5 * MINUTE

/** Milliseconds from each failed attempt to the next. */
const RETRIES = [1, 5, 30, 120, 360].map((minutes) => minutes * MINUTE)

/** Mails that this process sends at once. */
const SLOTS = 4

/** Mails that may be due, and failed ones that are kept. */
const CAPACITY = 10_000

/** Milliseconds for which a counted number of records is taken for true, beside those added since. */
const COUNT_INTERVAL = 1_000

/** Milliseconds between two looks for what other processes have left. */
const POLL_INTERVAL = 15_000

/** Milliseconds for which a failed mail is kept for the operator. */
const KEPT = 7 * DAY

/** Milliseconds that `close` waits for attempts. Those that it cuts off are made again when their lease is over. */
const CLOSE_LIMIT = 4_000

/** What a mail is about, as plain data: it becomes a message when the mail is sent. */
export interface Job {
  kind: string
  [field: string]: Json
}

/** A message without what the outbox adds; null when there is nobody to send it to. */
export type Draft = Pick<Message, 'to' | 'subject' | 'text' | 'html'> | null

export interface DeliveryRecord extends Document {
  /** What the mail is about: the kind of its job. */
  kind: string
  state: 'due' | 'failed'
  /** The next attempt; while one is made, the end of its lease. */
  due_at: string
  /** Incremented by every claim: of two processes that have read the same number, one claims. */
  claim: number
  attempts: number
  /** The end of what the mail is about, such as the life of its link: no attempt is made after it. */
  ends_at: string
  created_at: string
  expired_at: string
  /** The job, or the message that it became, as JSON. */
  sealed: string
  /** On failed ones: why, in codes. */
  failure?: string
}

type Content = { job: Job } | { draft: Draft }

export interface OutboxParts {
  store: Store
  now: Clock
  box: SecretBox
  mail: Mail
  /** The host of Message-IDs. */
  host: () => string
  /** Turns a job into a message. It is called again only when the process ended before its result was stored. */
  compose: (job: Job) => Promise<Draft>
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  onFailed: (delivery: Pick<DeliveryRecord, 'id' | 'kind' | 'attempts'> & { failure: string }) => void
  timers?: Timers
}

/**
 * The durable outbox: what is to be sent is a record, which any process that serves the same store may claim by one
 * conditional update. A claim that was not finished within its lease is given again, so every mail is sent at least once; a
 * crash between the server's answer and the deletion of the record makes one duplicate, with the same Message-ID.
 */
export function createOutbox ({ store, now, box, mail, host, compose, onError, onFailed, timers = TIMERS }: OutboxParts) {
  const deliveries = store.collection<DeliveryRecord>('deliveries')
  const ready: Pick<DeliveryRecord, 'id' | 'claim'>[] = []
  const known = new Set<string>()
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()
  const counted = new Map<string, { at: number, count: number }>()
  let poll: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let closed = false

  const context = (id: string) => `delivery ${id}`
  const seal = (id: string, content: Content) => box.seal(JSON.stringify(content), context(id))
  const open = ({ id, sealed }: DeliveryRecord) => JSON.parse(box.open(sealed, context(id))) as Content

  /** Counts the records in this state, and adds one. The store is asked once a second at most. */
  async function countIn (state: DeliveryRecord['state']): Promise<number> {
    const time = timers.now()
    let entry = counted.get(state)
    if (entry === undefined || time - entry.at > COUNT_INTERVAL) {
      entry = { at: time, count: await deliveries.count({ equal: { state } }) }
      counted.set(state, entry)
    }
    return entry.count++
  }

  async function fail (record: DeliveryRecord, failure: string): Promise<void> {
    const { id, kind, attempts, claim } = record
    const isKept = await countIn('failed') < CAPACITY
    const ended = isKept
      ? await deliveries.update(id, { set: { state: 'failed', failure } }, { equal: { claim } }) !== null
      : await deliveries.delete(id, { equal: { claim } })
    if (ended) onFailed({ id, kind, attempts, failure })
  }

  async function postpone (record: DeliveryRecord, failure: string): Promise<void> {
    const { id, claim, attempts, ends_at } = record
    const delay = RETRIES[attempts - 1]
    const due_at = toTimestamp(now() + (delay ?? 0))
    if (delay === undefined || due_at > ends_at) await fail(record, failure)
    else await deliveries.update(id, { set: { due_at } }, { equal: { claim } })
  }

  async function attempt (draft: NonNullable<Draft>, id: string): Promise<void> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(SEND_TIMEOUT)])
    const { promise, reject } = Promise.withResolvers<never>()
    const abort = () => reject(signal.reason as Error)
    signal.addEventListener('abort', abort)
    try {
      // A `send` of the host's may ignore the signal.
      await Promise.race([mail.send({ ...draft, id: `<${id}@${host()}>`, ...(mail.from !== undefined && { from: mail.from }) }, { signal }), promise])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  async function deliver ({ id, claim }: Pick<DeliveryRecord, 'id' | 'claim'>): Promise<void> {
    const lease = toTimestamp(now() + LEASE)
    const record = await deliveries.update(id, { set: { due_at: lease }, increment: { claim: 1, attempts: 1 } }, { equal: { claim, state: 'due' } })
    // Another process was faster.
    if (record === null) return
    if (record.ends_at <= toTimestamp(now())) return await fail(record, 'EXPIRED')
    if (record.attempts > RETRIES.length + 1) return await fail(record, 'INTERRUPTED')
    let content: Content
    try {
      content = open(record)
    } catch {
      return await fail(record, 'UNREADABLE')
    }
    try {
      if ('job' in content) {
        const draft = await compose(content.job)
        content = { draft }
        if (await deliveries.update(id, { set: { sealed: seal(id, content) } }, { equal: { claim: record.claim } }) === null) return
      }
      if (content.draft !== null) await attempt(content.draft, id)
    } catch (error) {
      // The lease runs out.
      if (stopping.signal.aborted) return
      if (error instanceof IdentityError && error.code !== 'ErrDb') onError(new Error('a mail could not be composed', { cause: error }))
      return await (isFinal(error) ? fail : postpone)(record, nameFailure(error))
    }
    await deliveries.delete(id, { equal: { claim: record.claim } })
  }

  function fill (): void {
    while (running.size < SLOTS) {
      const next = ready.shift()
      if (next === undefined) return
      const work = deliver(next).catch((error: unknown) => {
        if (!closed) onError(error)
      }).finally(() => {
        running.delete(work)
        known.delete(next.id)
        fill()
      })
      running.add(work)
    }
  }

  function add ({ id, claim }: Pick<DeliveryRecord, 'id' | 'claim'>): void {
    if (known.has(id)) return
    known.add(id)
    ready.push({ id, claim })
  }

  /** Takes what is due. @returns whether there was anything */
  async function look (): Promise<boolean> {
    const due = { equal: { state: 'due' }, before: { due_at: toTimestamp(now() + 1) } }
    let any = false
    for await (const batch of deliveries.list({ filter: due, sort: [{ key: 'due_at', direction: 'asc' }] })) {
      batch.forEach(add)
      any ||= batch.length > 0
      fill()
      // As many as are sent until the next look, so that memory does not grow with what is due.
      if (ready.length >= CAPACITY / 10) break
    }
    return any
  }

  /** Resolves when this process sends nothing. */
  async function settle (): Promise<void> {
    while (running.size > 0) await Promise.all(running)
  }

  function watch (): void {
    if (closed) return
    looking = look().then(() => {}, onError).finally(() => {
      if (closed) return
      poll = timers.set(watch, POLL_INTERVAL)
      poll.unref?.()
    })
  }

  return {
    /**
     * Accepts a mail: when this resolves it is durable, and this process begins to send it.
     * @param life milliseconds after which the mail is of no use
     * @param options.waits the mail is due in a minute: whoever calls `release` sends it now, and a process that ends before
     *   that leaves it to `compose` to find out whether it still is of use
     * @throws ErrBusy when too many are due
     */
    async enqueue (job: Job, life: number, { waits = false } = {}): Promise<{ release: () => void }> {
      if (await countIn('due') >= CAPACITY) throw busyError('mails', RETRIES[0])
      const time = now()
      const id = generateId(time)
      const ends_at = toTimestamp(time + life)
      const record: DeliveryRecord = {
        id,
        kind: job.kind,
        state: 'due',
        due_at: toTimestamp(waits ? time + MINUTE : time),
        claim: 0,
        attempts: 0,
        ends_at,
        created_at: toTimestamp(time),
        expired_at: toTimestamp(time + life + KEPT),
        sealed: seal(id, { job })
      }
      await deliveries.insert(record)
      const release = () => {
        add(record)
        fill()
      }
      if (!waits) release()
      return { release }
    },

    /** Begins to look for what is due, whatever process accepted it, and goes on until `close`. */
    start (): void {
      watch()
    },

    settle,

    /** Sends whatever is due, and what becomes due by that. */
    async flush (): Promise<void> {
      do {
        fill()
        await settle()
      } while (await look())
    },

    /** The mails that failed for good, or all that wait, the earliest first. */
    async * list (state: DeliveryRecord['state']): AsyncIterable<(DeliveryRecord & { to?: string })[]> {
      for await (const batch of deliveries.list({ filter: { equal: { state } }, sort: [{ key: 'due_at', direction: 'asc' }] })) {
        yield batch.map((record) => {
          try {
            const content = open(record)
            const to = 'draft' in content ? content.draft?.to : undefined
            return { ...record, ...(to !== undefined && { to }) }
          } catch {
            return record
          }
        })
      }
    },

    /**
     * Makes a failed mail due again.
     * @throws ErrNotFound; ErrParam when what it is about has ended
     */
    async retry (id: string): Promise<void> {
      const record = await deliveries.get(id)
      if (record?.state !== 'failed') throw new IdentityError('ErrNotFound', 'id: no such failed mail')
      if (record.ends_at <= toTimestamp(now())) throw new IdentityError('ErrParam', 'id: the link in this mail has expired')
      const again = await deliveries.update(id, { set: { state: 'due', attempts: 0, due_at: toTimestamp(now()) }, unset: ['failure'] }, { equal: { claim: record.claim, state: 'failed' } })
      if (again === null) throw new IdentityError('ErrNotFound', 'id: no such failed mail')
      add(again)
      fill()
    },

    /** Stops. Attempts that take too long are cut off, and made again by another process when their lease is over. */
    async close (): Promise<void> {
      closed = true
      timers.clear(poll)
      ready.length = 0
      await looking
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, CLOSE_LIMIT)
      await Promise.race([settle(), promise])
      clearTimeout(timer)
      stopping.abort()
      await settle()
    }
  }
}

export type Outbox = ReturnType<typeof createOutbox>
