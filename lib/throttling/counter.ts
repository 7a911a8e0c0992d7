import { LRUCache } from 'lru-cache'

/** The number of attempts in a window, including this one. */
export interface Count {
  current: number
  /** Milliseconds until the window ends and the count starts again. */
  ttl: number
}

/** The account whose limit it is, under which the count is found again. */
export interface CountedAccount {
  account: string
  /** The attempts in a window that are allowed. */
  most: number
}

/** Counts that refuse the next attempt at an account. */
export interface Refusing {
  kind: string
  /** Milliseconds until the last one of the kind ends. */
  ttl: number
}

/** Counts attempts. Rejects with ErrBusy when it cannot count, because an uncounted attempt is refused. */
export interface Counter {
  /**
   * @param kind the kind of attempt; one of few, each counted separately
   * @param key the user or address that makes the attempts, or the account that they target
   * @param window the length of the window in milliseconds, from the first attempt on
   * @param of the account that the attempts target
   */
  count (kind: string, key: string, window: number, of?: CountedAccount): Promise<Count>
  /** What refuses attempts at these accounts now, one for each kind. It counts nothing. Absent: the counts cannot be read. */
  read? (accounts: readonly string[]): Promise<Refusing[]>
  /** Ends the counts of these accounts. Resolves to what refused attempts. Absent: they end with their window only. */
  open? (accounts: readonly string[]): Promise<Refusing[]>
}

/** A counter whose counts can be read and ended. */
export type OpenCounter = Required<Counter>

/** Keys per kind. Beyond this the least recently used is evicted. */
const CAPACITY = 10_000

interface Entry {
  kind: string
  key: string
  current: number
  until: number
  of: CountedAccount | undefined
}

/** Finds counts by account. It holds a count as long as the cache does. */
class AccountIndex {
  readonly #entries = new Map<string, Set<Entry>>()

  add (entry: Entry): void {
    if (entry.of === undefined) return
    const { account } = entry.of
    const held = this.#entries.get(account) ?? new Set()
    this.#entries.set(account, held.add(entry))
  }

  remove (entry: Entry): void {
    if (entry.of === undefined) return
    const { account } = entry.of
    const held = this.#entries.get(account)
    if (held?.delete(entry) === true && held.size === 0) this.#entries.delete(account)
  }

  find (accounts: readonly string[]): Entry[] {
    return [...new Set(accounts)].flatMap((account) => [...this.#entries.get(account) ?? []])
  }
}

/** The counts that refuse the next attempt. Of each kind, only the one that ends last. */
function listRefusing (entries: readonly Entry[], time: number): Refusing[] {
  const ends = new Map<string, number>()
  for (const { kind, current, until, of } of entries) {
    if (of !== undefined && until > time && current >= of.most) ends.set(kind, Math.max(until - time, ends.get(kind) ?? 0))
  }
  return [...ends].map(([kind, ttl]) => ({ kind, ttl }))
}

/**
 * Counts in the memory of this process.
 * @param now milliseconds of a monotonic clock
 */
export function createCounter (now: () => number = () => performance.now()): OpenCounter {
  const kinds = new Map<string, LRUCache<string, Entry>>()
  const index = new AccountIndex()

  function requireKind (kind: string): LRUCache<string, Entry> {
    const known = kinds.get(kind)
    if (known !== undefined) return known
    const counts = new LRUCache<string, Entry>({ max: CAPACITY, dispose: (entry) => index.remove(entry) })
    kinds.set(kind, counts)
    return counts
  }

  return {
    async count (kind, key, window, of) {
      const counts = requireKind(kind)
      const time = now()
      let count = counts.get(key)
      if (count === undefined || count.until <= time) {
        count = { kind, key, current: 0, until: time + window, of }
        counts.set(key, count)
        index.add(count)
      }
      count.current++
      return { current: count.current, ttl: count.until - time }
    },

    read: async (accounts) => listRefusing(index.find(accounts), now()),

    async open (accounts) {
      const entries = index.find(accounts)
      for (const { kind, key } of entries) kinds.get(kind)?.delete(key)
      return listRefusing(entries, now())
    }
  }
}
