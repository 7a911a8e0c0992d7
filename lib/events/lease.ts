import { type Clock, toTimestamp } from '../clock.ts'
import { randomText } from '../ids.ts'
import { type Collection, type Document, DuplicateKeyError, type Store } from '../store/port.ts'

/** The only document of the collection `feed`. */
export const FEED_ID = 'feed'

/** Milliseconds that a lease lasts, and after which its holder renews it. */
const LEASE = 10_000
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

/**
 * The right to publish, which one process has at a time. A process that was suspended may believe that it still has the lease.
 * Then the numbers of the events decide, since each number is used once.
 */
export function createLease ({ store, now }: { store: Store, now: Clock }) {
  const feeds = store.collection<FeedRecord>('feed')
  let held: { claim: number, renew_at: number } | undefined

  const extend = () => ({ leased_until: toTimestamp(now() + LEASE) })
  const keep = (end: End | undefined): End | {} => end === undefined ? {} : { last: end.last, time: end.time }

  return {
    /**
     * Takes or renews the lease.
     * @param end the end of the feed, if known
     * @returns `new` when this process did not have it, false when another one has it
     */
    async hold (end: End | undefined): Promise<'new' | 'held' | false> {
      const time = now()
      if (held !== undefined && time < held.renew_at) return 'held'
      if (held !== undefined) {
        const { claim } = held
        held = await feeds.update(FEED_ID, { set: { ...extend(), ...keep(end) } }, { equal: { claim } }) === null ? undefined : { claim, renew_at: time + RENEWAL }
        if (held !== undefined) return 'held'
      }
      const { claim, leased_until } = await readFeedRecord(feeds)
      if (leased_until > toTimestamp(time)) return false
      if (await feeds.update(FEED_ID, { set: extend(), increment: { claim: 1 } }, { equal: { claim } }) === null) return false
      held = { claim: claim + 1, renew_at: time + RENEWAL }
      return 'new'
    },

    /** Releases the lease, so that another process need not wait until it expires. */
    async release (end: End | undefined): Promise<void> {
      if (held === undefined) return
      const { claim } = held
      held = undefined
      await feeds.update(FEED_ID, { set: { leased_until: toTimestamp(0), ...keep(end) } }, { equal: { claim } })
    },

    /** Makes the next `hold` renew the lease in the store. */
    doubt (): void {
      if (held !== undefined) held.renew_at = Number.NEGATIVE_INFINITY
    }
  }
}
