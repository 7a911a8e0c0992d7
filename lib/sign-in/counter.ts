import { LRUCache } from 'lru-cache'

/** How often something was tried in a window of time, this once included. */
export interface Count {
  current: number
  /** Milliseconds until the window ends and the count begins anew. */
  ttl: number
}

/** Counts attempts. Rejects with ErrBusy when it cannot: what is not counted is not allowed. */
export interface Counter {
  /**
   * @param kind of attempt: each kind is counted apart, and there are few of them
   * @param key who attempts, or upon whom
   * @param window milliseconds from the first attempt
   */
  count (kind: string, key: string, window: number): Promise<Count>
}

/** Keys of one kind that are kept; past it the one that was longest not counted is forgotten. */
const KEPT = 10_000

/**
 * Counts in the memory of this process.
 * @param now milliseconds of a clock that nobody sets
 */
export function createCounter (now: () => number = () => performance.now()): Counter {
  const kinds = new Map<string, LRUCache<string, { current: number, until: number }>>()
  return {
    async count (kind, key, window) {
      let counts = kinds.get(kind)
      if (counts === undefined) kinds.set(kind, counts = new LRUCache({ max: KEPT }))
      const time = now()
      let count = counts.get(key)
      if (count === undefined || count.until <= time) counts.set(key, count = { current: 0, until: time + window })
      count.current++
      return { current: count.current, ttl: count.until - time }
    }
  }
}
