import { type Clock, toTimestamp } from '../clock.ts'
import { LeaseWatch, MOST_APART, isAhead } from '../deadline.ts'
import { readFirst } from '../lists/first.ts'
import { scan } from '../store/scan.ts'
import { BATCH_SIZE, DuplicateKeyError, type Filter, type Scalar, type Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { createAttempts } from './attempts.ts'
import { waitForEnd } from './close.ts'
import { createInspection } from './inspection.ts'
import type { WorkKind } from './kind.ts'
import { LEASE } from './lease.ts'
import { Pace } from './pace.ts'
import { type WorkRecord, toDue } from './record.ts'
import { createRoom } from './room.ts'
import { Slots } from './slots.ts'

/** Milliseconds between two polls for due work: that of commands, and of processes that have ended. */
const POLL_INTERVAL = 2_000

/** The same while more than a batch of work is due, because every poll reads all of it. */
const LONG_POLL_INTERVAL = 15_000

export interface QueueParts<T extends WorkRecord> {
  store: Store
  now: Clock
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  onFailed: (record: T, failure: string) => void
  timers?: Timers | undefined
  random?: (() => number) | undefined
}

type Equal = Record<string, Scalar>

/**
 * A durable queue. Each piece of work is a record, which any process on the same store may claim by one conditional update. A claim
 * that its holder does not renew expires and can be taken again, so work is done at least once.
 */
export function createQueue<T extends WorkRecord> (
  kind: WorkKind<T>, { store, now, onError, onFailed, timers = TIMERS, random = Math.random }: QueueParts<T>
) {
  const { lookahead, lanes, poll: interval = POLL_INTERVAL, jitter = 0, lease = LEASE } = kind
  const { longest = Math.max(lease, ...kind.retries.map((delay) => delay * (1 + jitter))) } = kind
  const records = store.collection<T>(kind.collection)
  const slots = new Slots({ size: kind.slots, lane: lanes?.slots, reserved: kind.reserved })
  const pace = new Pace(timers)
  const leases = new LeaseWatch({ now, timers, lease })
  /** The ids of records that this process has queued or in flight. */
  const queued = new Set<string>()
  let poll: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let closed = false

  const toLane = (record: T): { key: string, value: string } | undefined => {
    const key = lanes?.keys.find((name) => record[name] !== undefined)
    return key === undefined ? undefined : { key, value: String(record[key]) }
  }
  const room = createRoom({ kind, records, timers, toLane })
  const { deliver, deliverFirst, stop } = createAttempts({ kind, records, room, pace, now, onError, onFailed, timers, random })

  async function run<R> (record: T, work: (record: T) => Promise<R>): Promise<R> {
    const lane = toLane(record)?.value
    return await slots.run(async () => await work(record), { lane, urgent: kind.isUrgent?.(record) ?? true })
  }

  /** Queues a record, unless this process has it already. @returns the end of its attempt */
  function add (record: T): Promise<void> | undefined {
    if (closed || queued.has(record.id) || kind.isHeld?.(record) === true) return
    queued.add(record.id)
    return run(record, deliver).finally(() => queued.delete(record.id))
  }

  /** Queues a record for which no caller waits. @returns whether it was queued */
  function release (record: T): boolean {
    const end = add(record)
    end?.catch((error: unknown) => { if (!closed) onError(error) })
    return end !== undefined
  }

  const isFull = () => closed || queued.size - slots.running >= lookahead

  /** Reads due records until enough are queued: memory does not grow with their number. */
  async function * readDue (equal: Equal): AsyncGenerator<T[]> {
    const filter = { equal: { ...equal, state: 'due' }, before: { due_at: toTimestamp(now() + 1) } }
    for await (const batch of scan(records, filter, { key: 'due_at', urgent: true })) {
      yield batch
      if (isFull()) return
    }
  }

  /**
   * What dead processes have left: attempts in flight, which are watched from their beginning, and records that wait too long because a clock
   * was ahead.
   */
  function listLeft (): [filter: Filter, key?: 'due_at' | 'set_at'][] {
    const time = now()
    const left: [Filter, ('due_at' | 'set_at')?][] = [
      [{ equal: { state: 'due', leased: true } }], [{ equal: { state: 'due' }, since: { set_at: toTimestamp(time + MOST_APART + 1) } }, 'set_at']
    ]
    // Those of earlier releases do not say when they were written.
    if (longest < Infinity) {
      left.push([{ equal: { state: 'due' }, since: { due_at: toTimestamp(time + longest + MOST_APART + 1) }, absent: ['set_at'] }, 'due_at'])
    }
    return left
  }

  /** Whether an attempt may begin: none is in flight in another process. */
  const isFree = (record: T): boolean => record.leased !== true || (!queued.has(record.id) && leases.isOver(record, record.due_at))

  /** Whether there is no work, of now or later: one read in place of those of `queueDue`. */
  async function isEmpty (): Promise<boolean> {
    return await readFirst(records, { filter: { equal: { state: 'due' } }, sort: [{ key: 'due_at', direction: 'asc' }], urgent: true }) === undefined
  }

  /** Queues due records, and what dead processes have left. @returns how many were due, and whether any was queued */
  async function queueDue (): Promise<{ count: number, any: boolean }> {
    let [count, any] = [0, false]
    const queue = (batch: T[]) => { for (const record of batch) any = (isFree(record) && release(record)) || any }
    for await (const batch of readDue({})) {
      queue(batch)
      count += batch.length
    }
    for (const [filter, key] of listLeft()) {
      if (isFull()) break
      for await (const batch of scan(records, filter, { key, urgent: true })) {
        queue(batch)
        if (isFull()) break
      }
    }
    return { count, any }
  }

  /** Looks for work, and queues it. */
  async function look (): Promise<{ count: number, any: boolean }> {
    const found = await isEmpty() ? { count: 0, any: false } : await queueDue()
    if (queued.size === 0) pace.note()
    return found
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
      poll = timers.set(watch, count > BATCH_SIZE ? Math.max(LONG_POLL_INTERVAL, interval) : interval)
      poll.unref?.()
    })
  }

  return {
    ...createInspection({ ...kind, records, now }),

    /** How this process goes on with the work. */
    pace,

    /**
     * Accepts work. It is durable when this resolves.
     * @returns false when a record with its id exists
     * @throws ErrBusy when too much is due
     */
    async accept (record: T): Promise<boolean> {
      await room.take(record)
      try {
        await records.insert({ ...record, set_at: toTimestamp(now()) })
      } catch (error) {
        if (error instanceof DuplicateKeyError && error.field === 'id') return false
        throw error
      }
      return true
    },

    /** @throws ErrBusy when too much is due to accept more */
    checkRoom: room.check,

    /** Makes the first attempt at work that is stored only after a failure. @returns whether it had an outcome */
    first: async (record: T): Promise<boolean> => await run(record, deliverFirst),

    /** Stores work that this process alone may attempt, and that is never refused. It replaces a record with its id. */
    async keep (record: T): Promise<void> {
      await records.put({ ...record, set_at: toTimestamp(now()) })
    },

    /** Makes an attempt as soon as a slot is free. Beyond `capacity` in memory, a poll finds the record later. */
    release: (record: T): void => { if (queued.size < kind.capacity) release(record) },

    /** Makes a record due that a dead process has left. The caller alone makes attempts at it now. */
    async free (record: T): Promise<void> {
      const { id, claim, due_at: at, set_at: from, leased } = record
      const time = now()
      if (leased !== true && (Date.parse(at) <= time || isAhead({ at, from, longest }, time))) return
      await records.update(id, { set: toDue(time, time), unset: ['leased'] }, { equal: { claim, state: 'due' } })
    },

    /** Queues matching records that are due, at most `most`. @returns the ends of their attempts, which the caller awaits */
    async take (equal: Equal, most = Infinity): Promise<Promise<void>[]> {
      const ends: Promise<void>[] = []
      for await (const batch of readDue(equal)) {
        for (const record of batch) {
          const end = ends.length < most ? add(record) : undefined
          if (end !== undefined) ends.push(end)
        }
        if (ends.length >= most) break
      }
      return ends
    },

    /** Makes matching records due that wait for a retry. */
    async hurry (equal: Equal): Promise<void> {
      const set = toDue(now(), now())
      for await (const batch of scan(records, { equal: { ...equal, state: 'due' } }, { key: 'due_at', urgent: true })) {
        await Promise.all(batch.map(async ({ id, claim }) => await records.update(id, { set }, { equal: { claim, state: 'due' } })))
      }
    },

    /** Works until `close`, polling for due records of all processes. */
    start (): void {
      pace.note()
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
      pace.end()
      timers.clear(poll)
      slots.drop()
      await looking
      await waitForEnd(settle(), { timers })
      stop()
      await settle()
    }
  }
}
