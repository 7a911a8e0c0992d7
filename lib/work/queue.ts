import { type Clock, toTimestamp } from '../clock.ts'
import { busyError } from '../errors.ts'
import { scan } from '../lists/scan.ts'
import { BATCH_SIZE, DuplicateKeyError, type Filter, type Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { waitForEnd } from './close.ts'
import { nameFailure } from './failure.ts'
import { createInspection } from './inspection.ts'
import { keepLease } from './lease.ts'
import type { WorkRecord } from './record.ts'
import { Slots } from './slots.ts'

/** Milliseconds that a claim lasts, and after which its holder renews it. After a kill, others take over when it has expired. */
const LEASE = 30_000
const RENEWAL = 10_000

/** Milliseconds that a count of records is cached. Records added since are counted in memory. */
const COUNT_INTERVAL = 1_000

/** Cached counts. */
const COUNTS = 1_000

/** Milliseconds between two polls for due work: that of commands, and of processes that have ended. */
const POLL_INTERVAL = 2_000

/** The same while more than a batch of work is due, because every poll reads all of it. */
const LONG_POLL_INTERVAL = 15_000

/** Receivers that timed out, of which this process keeps a note. */
const HELD = 10_000

/** What a kind of work limits by lane. */
export interface Lanes<T> {
  /** Declared keys. The first that the record has is its lane: what hangs there leaves room for the others. */
  keys: readonly (string & keyof T)[]
  /** Concurrent attempts of one lane in this process. */
  slots: number
  /** The most due records of one lane. */
  capacity: number
}

/** One kind of work. Each kind has its own collection and slots, so that no kind waits for another. */
export interface WorkKind<T extends WorkRecord> {
  collection: string
  /** The name of a record in error messages. */
  name: string
  /** Concurrent attempts of this process. */
  slots: number
  /** Slots of urgent records only. They also have half of the capacity to themselves. */
  reserved?: number
  isUrgent? (record: T): boolean
  /** The most due records, and the most failed ones, that are stored. */
  capacity: number
  /** Due records that this process queues in memory. */
  lookahead: number
  lanes?: Lanes<T>
  /** Milliseconds from each failed attempt to the next. */
  retries: readonly number[]
  /** Whether finished records stay until they expire, so that accepting the same one again causes no second attempt. */
  keepsDone: boolean
  /** Makes one attempt: resolves when the work is done. */
  perform (record: T, signal: AbortSignal): Promise<void>
  /** Whether the error is permanent: a retry would fail too. */
  isFinal (error: unknown): boolean
  /** The receiver of an attempt that timed out. The other attempts to it are put off too. */
  nameReceiver? (record: T): string
  /** Milliseconds that the receiver asked to wait. */
  readDelay? (error: unknown): number | undefined
  /** Milliseconds after which an attempt that `close` aborted is repeated, if its effect may have happened. 0 by default. */
  afterAbort?: number
  /** The new end of failed work that an operator retries. Absent: it keeps its end. */
  renew? (time: number): Pick<WorkRecord, 'ends_at' | 'expired_at'>
}

export interface QueueParts<T extends WorkRecord> {
  store: Store
  now: Clock
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  onFailed: (record: T, failure: string) => void
  timers?: Timers | undefined
}

/**
 * A durable queue. Each piece of work is a record, which any process on the same store may claim by one conditional update. A claim
 * that its holder does not renew expires and can be taken again, so work is done at least once.
 */
export function createQueue<T extends WorkRecord> (kind: WorkKind<T>, { store, now, onError, onFailed, timers = TIMERS }: QueueParts<T>) {
  const { capacity, lookahead, lanes, retries } = kind
  const records = store.collection<T>(kind.collection)
  const slots = new Slots({ size: kind.slots, ...(lanes && { lane: lanes.slots }), ...(kind.reserved !== undefined && { reserved: kind.reserved }) })
  /** The ids of records that this process has queued or in flight. */
  const queued = new Set<string>()
  /** Receivers that timed out, and until when they get no attempts. */
  const held = new Map<string, number>()
  const stopping = new AbortController()
  const counted = new Map<string, { at: number, count: number }>()
  let poll: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let closed = false

  const toLane = (record: T): { key: string, value: string } | undefined => {
    const key = lanes?.keys.find((name) => record[name] !== undefined)
    return key === undefined ? undefined : { key, value: String(record[key]) }
  }

  /** The count of the records that match, to which the caller adds those that it stores. Reads the store once a second at most. */
  async function findCount (equal: Record<string, string>): Promise<{ count: number }> {
    const time = timers.now()
    const key = JSON.stringify(equal)
    let entry = counted.get(key)
    if (entry === undefined || time - entry.at > COUNT_INTERVAL) {
      entry = { at: time, count: await records.count({ equal }) }
      if (counted.size >= COUNTS) counted.clear()
      counted.set(key, entry)
    }
    return entry
  }

  /**
   * Counts a record that is to be stored.
   * @throws ErrBusy
   */
  async function takeRoom (record: T): Promise<void> {
    const most = kind.isUrgent === undefined || kind.isUrgent(record) ? capacity : capacity / 2
    const rooms = [{ entry: await findCount({ state: 'due' }), most }]
    const lane = toLane(record)
    if (lanes !== undefined && lane !== undefined) {
      rooms.push({ entry: await findCount({ state: 'due', [lane.key]: lane.value }), most: lanes.capacity })
    }
    if (rooms.some(({ entry, most }) => entry.count >= most)) throw busyError(`${kind.name}s`, retries[0])
    for (const { entry } of rooms) entry.count++
  }

  const ofClaim = (claim: number): Filter => ({ equal: { claim } })

  async function fail (record: T, failure: string): Promise<void> {
    const { id, claim } = record
    const stored = await findCount({ state: 'failed' })
    const isKept = stored.count < capacity
    if (isKept) stored.count++
    const ended = isKept
      ? await records.update(id, { set: { state: 'failed', failure } }, ofClaim(claim)) !== null
      : await records.delete(id, ofClaim(claim))
    if (ended) onFailed(record, failure)
  }

  async function postpone (record: T, failure: string, asked = 0): Promise<void> {
    const { id, claim, attempts, ends_at } = record
    const delay = retries[attempts - 1]
    const time = now() + Math.max(delay ?? 0, asked)
    const due_at = toTimestamp(time)
    if (/TIME(D)?OUT/.test(failure)) hold(record, time)
    if (delay === undefined || due_at > ends_at) await fail(record, failure)
    else await records.update(id, { set: { due_at } }, ofClaim(claim))
  }

  function isHeld (record: T): boolean {
    const receiver = kind.nameReceiver?.(record)
    return receiver !== undefined && (held.get(receiver) ?? 0) > now()
  }

  /** Puts off all attempts to a receiver that timed out until the next one of this record. */
  function hold (record: T, until: number): void {
    const receiver = kind.nameReceiver?.(record)
    if (receiver === undefined) return
    if (held.size >= HELD) held.clear()
    held.set(receiver, until)
  }

  /** @returns the error of the attempt; undefined when it succeeded */
  async function attempt (record: T): Promise<{ error: unknown } | undefined> {
    const { id, claim } = record
    const release = keepLease(async () => await records.update(id, { set: { due_at: toTimestamp(now() + LEASE) } }, ofClaim(claim)), {
      timers, interval: RENEWAL, onError
    })
    try {
      await kind.perform(record, stopping.signal)
      return undefined
    } catch (error) {
      return { error }
    } finally {
      await release()
    }
  }

  async function deliver (read: T): Promise<void> {
    if (isHeld(read)) return
    const { id, claim } = read
    const lease = toTimestamp(now() + LEASE)
    const record = await records.update(id, { set: { due_at: lease }, increment: { claim: 1, attempts: 1 } }, { equal: { claim, state: 'due' } })
    // Another process has claimed it.
    if (record === null) return
    if (record.ends_at <= toTimestamp(now())) return await fail(record, 'EXPIRED')
    if (record.attempts > retries.length + 1) return await fail(record, 'INTERRUPTED')
    const failed = await attempt(record)
    if (failed === undefined) {
      if (kind.keepsDone) await records.update(id, { set: { state: 'done' } }, ofClaim(record.claim))
      else await records.delete(id, ofClaim(record.claim))
      return
    }
    if (stopping.signal.aborted) {
      // It does not count. The next process repeats it.
      const due_at = toTimestamp(now() + (kind.afterAbort ?? 0))
      await records.update(id, { set: { due_at }, increment: { attempts: -1 } }, ofClaim(record.claim))
      return
    }
    const { error } = failed
    const failure = nameFailure(error)
    if (kind.isFinal(error)) await fail(record, failure)
    else await postpone(record, failure, kind.readDelay?.(error))
  }

  /** Queues a record, unless this process has it already. @returns whether it did */
  function add (record: T): boolean {
    if (closed || queued.has(record.id) || isHeld(record)) return false
    queued.add(record.id)
    const lane = toLane(record)?.value
    slots.run(async () => await deliver(record), { ...(lane !== undefined && { lane }), urgent: kind.isUrgent?.(record) ?? true }).catch((error: unknown) => {
      if (!closed) onError(error)
    }).finally(() => queued.delete(record.id))
    return true
  }

  /** Queues due records. @returns how many were read, and whether any was queued */
  async function look (): Promise<{ count: number, any: boolean }> {
    const filter = { equal: { state: 'due' }, before: { due_at: toTimestamp(now() + 1) } }
    let [count, any] = [0, false]
    for await (const batch of scan(records, filter, 'due_at')) {
      for (const record of batch) any = add(record) || any
      count += batch.length
      // Enough until the next poll: memory does not grow with the number of due records.
      if (closed || queued.size - slots.running >= lookahead) break
    }
    return { count, any }
  }

  /** Resolves when this process has nothing in flight. */
  async function settle (): Promise<void> {
    await slots.settle()
  }

  function watch (): void {
    if (closed) return
    looking = look().catch((error: unknown) => {
      onError(error)
      return { count: 0 }
    }).then(({ count }) => {
      if (closed) return
      poll = timers.set(watch, count > BATCH_SIZE ? LONG_POLL_INTERVAL : POLL_INTERVAL)
      poll.unref?.()
    })
  }

  return {
    ...createInspection({ ...kind, records, now }),

    /**
     * Accepts work. It is durable when this resolves.
     * @returns false when a record with its id exists
     * @throws ErrBusy when too much is due
     */
    async accept (record: T): Promise<boolean> {
      await takeRoom(record)
      try {
        await records.insert(record)
      } catch (error) {
        if (error instanceof DuplicateKeyError && error.field === 'id') return false
        throw error
      }
      return true
    },

    /** Makes an attempt as soon as a slot is free. */
    release (record: T): void {
      add(record)
    },

    /** Works until `close`, polling for due records of all processes. */
    start (): void {
      watch()
    },

    settle,

    /** Does everything that is due, including what becomes due meanwhile. */
    async flush (): Promise<void> {
      do await settle()
      while ((await look()).any)
    },

    /** Stops. Aborts attempts that take too long; another process repeats them at once. */
    async close (): Promise<void> {
      closed = true
      timers.clear(poll)
      slots.drop()
      await looking
      await waitForEnd(settle())
      stopping.abort()
      await settle()
    }
  }
}
