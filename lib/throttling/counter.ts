import { LRUCache } from 'lru-cache'

/** The number of attempts in a window, including this one. */
export interface Count {
  current: number
  /** Milliseconds until the window ends and the count starts again. */
  ttl: number
}

/** Counts attempts. Rejects with ErrBusy when it cannot count, because an uncounted attempt is refused. */
export interface Counter {
  /**
   * @param kind the kind of attempt; one of few, each counted separately
   * @param key the user or address that makes the attempts, or the account that they target
   * @param window the length of the window in milliseconds, from the first attempt on
   */
  count (kind: string, key: string, window: number): Promise<Count>
}

/** Keys per kind. Beyond this the least recently used is evicted. */
const CAPACITY = 10_000

/**
 * Counts in the memory of this process.
 * @param now milliseconds of a monotonic clock
 */
export function createCounter (now: () => number = () => performance.now()): Counter {
  const kinds = new Map<string, LRUCache<string, { current: number, until: number }>>()
  return {
    async count (kind, key, window) {
      let counts = kinds.get(kind)
      if (counts === undefined) kinds.set(kind, counts = new LRUCache({ max: CAPACITY }))
      const time = now()
      let count = counts.get(key)
      if (count === undefined || count.until <= time) counts.set(key, count = { current: 0, until: time + window })
      count.current++
      return { current: count.current, ttl: count.until - time }
    }
  }
}
