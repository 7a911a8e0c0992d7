import { type Clock, toTimestamp } from '../clock.ts'
import { busyError } from '../errors.ts'
import { type Document, DuplicateKeyError, type Filter, type Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { nameFailure } from './failure.ts'
import { createInspection } from './inspection.ts'

const MINUTE = 60_000

/** Milliseconds for which a claim lasts: longer than an attempt with everything around it. */
const LEASE = 5 * MINUTE

/** Milliseconds for which a counted number of records is taken for true, beside those added since. */
const COUNT_INTERVAL = 1_000

/** Counted numbers that are remembered. */
const COUNTS = 1_000

/** Milliseconds between two looks for what other processes have left. */
const POLL_INTERVAL = 15_000

/** Milliseconds that `close` waits for attempts. Those that it cuts off are made again when their lease is over. */
const CLOSE_LIMIT = 4_000

/** What every stored delivery has. */
export interface Delivery extends Document {
  /** `done` only where delivered records are kept. */
  state: 'due' | 'failed' | 'done'
  /** The next attempt; while one is made, the end of its lease. */
  due_at: string
  /** Incremented by every claim: of two processes that have read the same number, one claims. */
  claim: number
  attempts: number
  /** The end of what the delivery is about: no attempt is made after it. */
  ends_at: string
  created_at: string
  expired_at: string
  /** On failed ones: why, in codes. */
  failure?: string
}

/** How one kind of deliveries is made. Each kind has a collection and slots of its own, so that none waits for another. */
export interface OutboxKind<T extends Delivery> {
  collection: string
  /** What a delivery is, for errors. */
  name: string
  /** Deliveries that this process makes at once. */
  slots: number
  /** Deliveries that may be due, and failed ones that are kept. */
  capacity: number
  /** Due deliveries that this process knows of at once. */
  lookahead: number
  /** Bounds for each value of a declared key, so that one slow receiver leaves room for others. */
  lanes?: { key: string & keyof T, slots: number, capacity: number }
  /** Milliseconds from each failed attempt to the next. */
  retries: readonly number[]
  /** Whether delivered records stay until they expire: accepting one again is then no second delivery. */
  keepsDone: boolean
  /** Makes one attempt: resolves when it is delivered. */
  perform (record: T, signal: AbortSignal): Promise<void>
  /** Whether another attempt would end the same way. */
  isFinal (error: unknown): boolean
  /** Milliseconds that the receiver asked to wait. */
  readDelay? (error: unknown): number | undefined
  /** The end of a failed one that an operator has made again. Absent: it keeps its end. */
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

/** What this process needs to know to claim a delivery. */
interface Ready { id: string, claim: number, lane: string }

/**
 * A durable outbox: what is to be delivered is a record, which any process that serves the same store may claim by one
 * conditional update. A claim that was not finished within its lease is given again, so every delivery is made at least once.
 */
export function createOutbox<T extends Delivery> (kind: OutboxKind<T>, { store, now, onError, onFailed, timers = TIMERS }: OutboxParts<T>) {
  const { slots, capacity, lookahead, lanes, retries } = kind
  const deliveries = store.collection<T>(kind.collection)
  const ready = new Map<string, Ready[]>()
  const known = new Set<string>()
  const busy = new Map<string, number>()
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()
  const counted = new Map<string, { at: number, count: number }>()
  let poll: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let closed = false

  const toLane = (record: T) => lanes === undefined ? '' : String(record[lanes.key])

  /** Counts the records in this state, of one lane or of all, and adds one. The store is asked once a second at most. */
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
    // Another process was faster.
    if (record === null) return
    if (record.ends_at <= toTimestamp(now())) return await fail(record, 'EXPIRED')
    if (record.attempts > retries.length + 1) return await fail(record, 'INTERRUPTED')
    try {
      await kind.perform(record, stopping.signal)
    } catch (error) {
      // The lease runs out.
      if (stopping.signal.aborted) return
      if (kind.isFinal(error)) return await fail(record, nameFailure(error))
      return await postpone(record, nameFailure(error), kind.readDelay?.(error))
    }
    if (kind.keepsDone) await deliveries.update(id, { set: { state: 'done' } }, ofClaim(record.claim))
    else await deliveries.delete(id, ofClaim(record.claim))
  }

  /** Takes the first of the lane that was not served for longest, and has room. */
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
        known.delete(next.id)
        fill()
      })
      running.add(work)
    }
  }

  function add (record: T): void {
    if (closed || known.has(record.id)) return
    known.add(record.id)
    const lane = toLane(record)
    const queue = ready.get(lane) ?? []
    queue.push({ id: record.id, claim: record.claim, lane })
    ready.set(lane, queue)
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
      if (known.size - running.size >= lookahead) break
    }
    return any
  }

  /** Resolves when this process delivers nothing. */
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
     * Accepts a delivery: when this resolves it is durable.
     * @returns false when there is one with its id
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

    /** Begins to look for what is due, whatever process accepted it, and goes on until `close`. */
    start (): void {
      watch()
    },

    settle,

    /** Delivers whatever is due, and what becomes due by that. */
    async flush (): Promise<void> {
      do {
        fill()
        await settle()
      } while (await look())
    },

    /** Stops. Attempts that take too long are cut off, and made again by another process when their lease is over. */
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
