import { type Clock, toTimestamp } from '../clock.ts'
import { LeaseWatch, isAhead } from '../deadline.ts'
import { randomText } from '../ids.ts'
import { type Collection, type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import { claim, keepLease } from '../work/lease.ts'

/** The only document of the collection `feed`. */
export const FEED_ID = 'feed'

/** Milliseconds that a lease lasts, and after which its holder renews it. */
const LEASE = 8_000
const RENEWAL = 3_000

/** Characters of a generation. */
const GENERATION_LENGTH = 8

export function createGeneration (): string {
  return randomText(GENERATION_LENGTH)
}

/** The end of the feed: the number of the last event, and its time. */
export interface End {
  last: number
  time: string
}

/** The feed, and which process publishes in it. */
export interface FeedRecord extends Document {
  /** Cursors of another generation are refused: numbers may mean other events since a backup was restored. */
  generation: string
  /** Incremented with each new holder. */
  claim: number
  leased_until: string
  /** The number of the last event at the last renewal of the lease. All numbers up to it are used. */
  last: number
  /** Its time. Absent until the first renewal. */
  time?: string
}

/** Reads the feed's document. The first caller creates it. */
export async function readFeedRecord (feeds: Collection<FeedRecord>): Promise<FeedRecord> {
  for (;;) {
    const found = await feeds.get(FEED_ID)
    if (found !== null) return found
    try {
      await feeds.insert({ id: FEED_ID, generation: createGeneration(), claim: 0, leased_until: toTimestamp(0), last: 0 })
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
    }
  }
}

/** Whether a process has the lease: a service that runs on this store has it while there are events to publish. */
export async function isRelayed (store: Store, now: Clock): Promise<boolean> {
  const record = await store.collection<FeedRecord>('feed').get(FEED_ID)
  return record !== null && isAhead({ at: record.leased_until, longest: LEASE }, now())
}

interface LeaseParts {
  store: Store
  now: Clock
  timers: Timers
  onError: (error: unknown) => void
  /** The end of the feed, which is stored with each renewal; undefined while it is unknown. */
  getEnd: () => End | undefined
}

/**
 * The right to publish, which one process has at a time. A process that was suspended may believe that it still has the lease.
 * Then the numbers of the events decide, since each number is used once.
 */
export function createLease ({ store, now, timers, onError, getEnd }: LeaseParts) {
  const feeds = store.collection<FeedRecord>('feed')
  const leases = new LeaseWatch({ now, timers, lease: LEASE })
  let held: { claim: number, until: number, stop: () => Promise<void> } | undefined
  /** The end of the last release. */
  let releasing: Promise<unknown> = Promise.resolve()

  /** Stores the end of the lease. @returns whether this process still had it */
  async function write (claim: number, until: number): Promise<boolean> {
    const end = getEnd()
    const set = { leased_until: toTimestamp(until), ...(end !== undefined && { last: end.last, time: end.time }) }
    return await feeds.update(FEED_ID, { set }, { equal: { claim } }) !== null
  }

  async function renew (): Promise<boolean> {
    const current = held
    if (current === undefined) return false
    const until = now() + LEASE
    const isOurs = await write(current.claim, until)
    if (isOurs) current.until = until
    // Not awaited: it waits for the renewal in flight, which may be this one.
    else if (held === current) void drop()
    return isOurs
  }

  /** Ends the renewals. */
  async function drop (): Promise<void> {
    const stopped = held?.stop()
    held = undefined
    await stopped
  }

  return {
    /**
     * Takes the lease, or keeps it.
     * @returns `new` when this process did not have it, false when another one has it
     */
    async hold (): Promise<'new' | 'held' | false> {
      // Until it has ended, the lease looks like that of another process.
      await releasing
      const time = now()
      if (held !== undefined && (time < held.until || await renew())) return 'held'
      const record = await readFeedRecord(feeds)
      const until = time + LEASE
      if (!leases.isOver(record, record.leased_until)) return false
      const claimed = await claim(feeds, record, { set: { leased_until: toTimestamp(until) } })
      if (claimed === null) return false
      held = { claim: claimed.claim, until, stop: keepLease(renew, { timers, interval: RENEWAL, onError }) }
      return 'new'
    },

    /** Releases the lease, so that another process need not wait until it expires. */
    async release (): Promise<void> {
      if (held === undefined) {
        await releasing
        return
      }
      const { claim } = held
      const ended = drop().then(async () => await write(claim, 0))
      releasing = ended.catch(() => {})
      await ended
    },

    /** Makes the next `hold` ask the store. */
    doubt (): void {
      if (held !== undefined) held.until = Number.NEGATIVE_INFINITY
    }
  }
}
