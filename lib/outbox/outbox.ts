import { type Clock, toTimestamp } from '../clock.ts'
import { busyError } from '../errors.ts'
import { type Document, DuplicateKeyError, type Filter, type Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { nameFailure } from './failure.ts'
import { createInspection } from './inspection.ts'

const MINUTE = 60_000

/** Milliseconds that a claim lasts: longer than an attempt with all its overhead. */
const LEASE = 5 * MINUTE

/** Milliseconds that a count of records is cached. Records added since are counted in memory. */
const COUNT_INTERVAL = 1_000

/** Cached counts. */
const COUNTS = 1_000

/** Milliseconds between two polls for due deliveries. A poll also finds the deliveries of processes that have ended. */
const POLL_INTERVAL = 15_000

/** Milliseconds that `close` waits for attempts. Aborted attempts are repeated when their lease expires. */
const CLOSE_LIMIT = 4_000

/** The fields of every stored delivery. */
export interface Delivery extends Document {
  /** `done` only for kinds that keep delivered records (`keepsDone`). */
  state: 'due' | 'failed' | 'done'
  /** The time of the next attempt. During an attempt, the end of its lease. */
  due_at: string
  /** Incremented by every claim: of two processes that read the same number, only one succeeds. */
  claim: number
  attempts: number
  /** The time after which the delivery serves no purpose. No attempt is made after it. */
  ends_at: string
  created_at: string
  expired_at: string
  /** Only on failed ones: the reason, in codes. */
  failure?: string
}

/** One kind of delivery. Each kind has its own collection and slots, so that no kind waits for another. */
export interface OutboxKind<T extends Delivery> {
  collection: string
  /** The name of a delivery in error messages. */
  name: string
  /** Concurrent deliveries of this process. */
  slots: number
  /** The most due deliveries, and the most failed ones, that are stored. */
  capacity: number
  /** Due deliveries that this process queues in memory. */
  lookahead: number
  /** Limits for each value of a declared key, so that one slow receiver leaves room for others. */
  lanes?: { key: string & keyof T, slots: number, capacity: number }
  /** Milliseconds from each failed attempt to the next. */
  retries: readonly number[]
  /** Whether delivered records stay until they expire, so that accepting the same one again causes no second delivery. */
  keepsDone: boolean
  /** Makes one attempt: resolves when it is delivered. */
  perform (record: T, signal: AbortSignal): Promise<void>
  /** Whether the error is permanent: a retry would fail too. */
  isFinal (error: unknown): boolean
  /** Milliseconds that the receiver asked to wait. */
  readDelay? (error: unknown): number | undefined
  /** The new end of a failed delivery that an operator retries. Absent: it keeps its end. */
  renew? (time: number): Pick<Delivery, 'ends_at' | 'expired_at'>
}

export interface OutboxParts<T extends Delivery> {
  store: Store
  now: Clock
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  onFailed: (record: T, failure: string) => void
  timers?: Timers | undefined
}

/** A queued delivery, with the fields that a claim needs. */
interface Ready { id: string, claim: number, lane: string }

/**
 * A durable outbox. Each delivery is a record, which any process on the same store may claim by one conditional update. A claim
 * that is not finished within its lease can be taken again, so delivery is at least once.
 */
export function createOutbox<T extends Delivery> (kind: OutboxKind<T>, { store, now, onError, onFailed, timers = TIMERS }: OutboxParts<T>) {
  const { slots, capacity, lookahead, lanes, retries } = kind
  const deliveries = store.collection<T>(kind.collection)
  const ready = new Map<string, Ready[]>()
  /** The ids of deliveries that this process has queued or in flight. */
  const queued = new Set<string>()
  const busy = new Map<string, number>()
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()
  const counted = new Map<string, { at: number, count: number }>()
  let poll: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let closed = false

  const toLane = (record: T) => lanes === undefined ? '' : String(record[lanes.key])

  /** Counts the records in this state, of one lane or of all, and adds one to the cached count. Reads the store once a second at most. */
  async function countIn (state: Delivery['state'], lane?: string): Promise<number> {
    const time = timers.now()
    const key = `${state} ${lane ?? ''}`
    let entry = counted.get(key)
    if (entry === undefined || time - entry.at > COUNT_INTERVAL) {
      const equal = { state, ...(lane !== undefined && lanes !== undefined && { [lanes.key]: lane }) }
      entry = { at: time, count: await deliveries.count({ equal }) }
      if (counted.size >= COUNTS) counted.clear()
      counted.set(key, entry)
    }
    return entry.count++
  }

  /** @throws ErrBusy */
  async function checkRoom (lane: string): Promise<void> {
    const isFull = await countIn('due') >= capacity || (lanes !== undefined && await countIn('due', lane) >= lanes.capacity)
    if (isFull) throw busyError(`${kind.name}s`, retries[0])
  }

  const ofClaim = (claim: number): Filter => ({ equal: { claim } })

  async function fail (record: T, failure: string): Promise<void> {
    const { id, claim } = record
    const isKept = await countIn('failed') < capacity
    const ended = isKept
      ? await deliveries.update(id, { set: { state: 'failed', failure } }, ofClaim(claim)) !== null
      : await deliveries.delete(id, ofClaim(claim))
    if (ended) onFailed(record, failure)
  }

  async function postpone (record: T, failure: string, asked = 0): Promise<void> {
    const { id, claim, attempts, ends_at } = record
    const delay = retries[attempts - 1]
    const due_at = toTimestamp(now() + Math.max(delay ?? 0, asked))
    if (delay === undefined || due_at > ends_at) await fail(record, failure)
    else await deliveries.update(id, { set: { due_at } }, ofClaim(claim))
  }

  async function deliver ({ id, claim }: Ready): Promise<void> {
    const lease = toTimestamp(now() + LEASE)
    const record = await deliveries.update(id, { set: { due_at: lease }, increment: { claim: 1, attempts: 1 } }, { equal: { claim, state: 'due' } })
    // Another process has claimed it.
    if (record === null) return
    if (record.ends_at <= toTimestamp(now())) return await fail(record, 'EXPIRED')
    if (record.attempts > retries.length + 1) return await fail(record, 'INTERRUPTED')
    try {
      await kind.perform(record, stopping.signal)
    } catch (error) {
      // Another process repeats it when the lease expires.
      if (stopping.signal.aborted) return
      if (kind.isFinal(error)) return await fail(record, nameFailure(error))
      return await postpone(record, nameFailure(error), kind.readDelay?.(error))
    }
    if (kind.keepsDone) await deliveries.update(id, { set: { state: 'done' } }, ofClaim(record.claim))
    else await deliveries.delete(id, ofClaim(record.claim))
  }

  /** Takes the first delivery of the least recently served lane that has a free slot. */
  function takeNext (): Ready | undefined {
    for (const [lane, queue] of ready) {
      if (lanes !== undefined && (busy.get(lane) ?? 0) >= lanes.slots) continue
      ready.delete(lane)
      const next = queue.shift()
      if (queue.length > 0) ready.set(lane, queue)
      return next
    }
    return undefined
  }

  function fill (): void {
    while (running.size < slots) {
      const next = takeNext()
      if (next === undefined) return
      busy.set(next.lane, (busy.get(next.lane) ?? 0) + 1)
      const work = deliver(next).catch((error: unknown) => {
        if (!closed) onError(error)
      }).finally(() => {
        const others = busy.get(next.lane)! - 1
        if (others > 0) busy.set(next.lane, others)
        else busy.delete(next.lane)
        running.delete(work)
        queued.delete(next.id)
        fill()
      })
      running.add(work)
    }
  }

  function add (record: T): void {
    if (closed || queued.has(record.id)) return
    queued.add(record.id)
    const lane = toLane(record)
    const queue = ready.get(lane) ?? []
    queue.push({ id: record.id, claim: record.claim, lane })
    ready.set(lane, queue)
  }

  /** Queues and starts due deliveries. @returns whether any was due */
  async function look (): Promise<boolean> {
    const due = { equal: { state: 'due' }, before: { due_at: toTimestamp(now() + 1) } }
    let any = false
    for await (const batch of deliveries.list({ filter: due, sort: [{ key: 'due_at', direction: 'asc' }] })) {
      batch.forEach(add)
      any ||= batch.length > 0
      fill()
      // Enough to send until the next poll: memory does not grow with the number of due deliveries.
      if (queued.size - running.size >= lookahead) break
    }
    return any
  }

  /** Resolves when this process has no delivery in flight. */
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

  function release (record: T): void {
    add(record)
    fill()
  }

  return {
    ...createInspection({ ...kind, deliveries, now }),

    /**
     * Accepts a delivery. It is durable when this resolves.
     * @returns false when a delivery with its id exists
     * @throws ErrBusy when too many are due
     */
    async accept (record: T): Promise<boolean> {
      await checkRoom(toLane(record))
      try {
        await deliveries.insert(record)
      } catch (error) {
        if (error instanceof DuplicateKeyError && error.field === 'id') return false
        throw error
      }
      return true
    },

    /** Delivers it as soon as a slot is free. */
    release,

    /** Delivers until `close`, polling for due deliveries of all processes. */
    start (): void {
      watch()
    },

    settle,

    /** Delivers everything due, including deliveries that become due meanwhile. */
    async flush (): Promise<void> {
      do {
        fill()
        await settle()
      } while (await look())
    },

    /** Stops. Aborts attempts that take too long; another process repeats them when their lease expires. */
    async close (): Promise<void> {
      closed = true
      timers.clear(poll)
      ready.clear()
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
