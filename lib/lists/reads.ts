import { FairQueue } from '../fair-queue.ts'
import type { Store } from '../store/port.ts'

/** Reads at once. SQLite has one thread for counts and one for lists: a few reads keep it busy, and no more need be in it. */
const SLOTS: Record<string, number> = { sqlite: 8 }
const MANY = 64

/** Reads that may wait, milliseconds they may wait, and milliseconds one takes until they are measured. */
const LIMITS = { places: 10_000, maxWait: 10_000, duration: 1 }

/**
 * The reads of a collection that may scan it whole. They take turns by caller, and are dropped when nobody waits for them: the
 * store would still do each of them.
 */
export function createReads ({ engine }: Pick<Store, 'engine'>): { counts: FairQueue, pages: FairQueue } {
  const slots = SLOTS[engine] ?? MANY
  return { counts: new FairQueue({ what: 'counts', slots, ...LIMITS }), pages: new FairQueue({ what: 'lists', slots, ...LIMITS }) }
}
