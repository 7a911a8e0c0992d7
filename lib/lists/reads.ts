import { FairQueue } from '../fair-queue.ts'
import type { Store } from '../store/port.ts'

/** Concurrent reads. SQLite has one thread for counts and one for lists, and a few reads are enough to keep each busy. */
const SLOTS: Record<string, number> = { sqlite: 8 }
const MANY = 64

/** Reads that may wait, the longest wait in milliseconds, and the estimated milliseconds per read until durations are measured. */
const LIMITS = { places: 10_000, maxWait: 10_000, duration: 1 }

/**
 * Queues for reads that may scan a whole collection. Callers take turns. A waiting read is dropped when its caller disconnects,
 * because the store does not notice that and would still execute it.
 */
export function createReads ({ engine }: Pick<Store, 'engine'>): { counts: FairQueue, pages: FairQueue } {
  const slots = SLOTS[engine] ?? MANY
  return { counts: new FairQueue({ what: 'counts', slots, ...LIMITS }), pages: new FairQueue({ what: 'lists', slots, ...LIMITS }) }
}
