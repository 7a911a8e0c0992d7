import { LRUCache } from 'lru-cache'
import type { TokenRecord } from '../records/token.ts'
import type { Valid } from './validity.ts'

/** The maximum number of tokens of which something is kept. */
const SIZE = 20_000

interface Entry<T> {
  value: T
  /** The stamp of the look-up that it was made from. */
  stamp: number
  /** The store's generation in which it was last known to be valid. */
  generation: number | undefined
  /** Milliseconds since 1970: the earliest expiry of the token, its grant and its user. */
  expires: number
}

/**
 * What was made of the look-ups of tokens, by token id: callers, and answers about them. An entry is valid while the store's generation or
 * the stamp of its look-up is unchanged, until the token, its grant or its user expires. A value that depends on anything else, such as the
 * issuer or the clock, has to compare that itself.
 */
export class DerivedCache<T> {
  readonly #entries = new LRUCache<string, Entry<T>>({ max: SIZE })

  /** The cached value, if nothing was written since its last look-up. */
  get (id: string, generation: number | undefined, time: number): T | undefined {
    if (generation === undefined) return undefined
    const entry = this.#entries.get(id)
    return entry !== undefined && entry.generation === generation && time < entry.expires ? entry.value : undefined
  }

  /** The cached value of a look-up with this stamp. The entry is then valid for this generation. */
  confirm (id: string, stamp: number, generation: number | undefined, time: number): T | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.stamp !== stamp || time >= entry.expires) return undefined
    entry.generation = generation
    return entry.value
  }

  set ({ record, user, grant }: Valid<TokenRecord>, stamp: number, generation: number | undefined, value: T): void {
    const times = [record.expired_at, user?.expired_at, grant?.expired_at].filter((time) => time !== undefined)
    this.#entries.set(record.id, { value, stamp, generation, expires: Math.min(...times.map((time) => Date.parse(time))) })
  }
}
