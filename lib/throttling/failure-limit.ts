import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { Slots } from '../work/slots.ts'
import type { Counter } from './counter.ts'
import { NETWORK, groupAddress, groupNetwork, isInNetwork } from './networks.ts'

const MINUTE = 60_000

/** Attempts of one network at one name that run at once. Those in flight are not counted yet. */
const AT_ONCE = 8

/** Networks that are remembered as refused. */
const CAPACITY = 10_000

interface FailureLimitOptions {
  counter: Counter
  now: Clock
  /** The kind of attempt, for the counter. */
  kind: string
  /** Failures a minute for one name and address (a /64 of IPv6). A /48 may have NETWORK times as many. */
  most: number
}

/**
 * Limits failed attempts at a name, such as a client or a host, for each network, so that nobody uses them up for another network. What
 * succeeds is not counted.
 */
export class FailureLimit {
  readonly #options: FailureLimitOptions
  /** By the key of the counter. An attempt that is not refused needs no answer of the counter, which may be another process. */
  readonly #refused = new LRUCache<string, { from: number, until: number }>({ max: CAPACITY })
  readonly #slots = new Slots({ size: Infinity, lane: AT_ONCE })

  constructor (options: FailureLimitOptions) {
    this.#options = options
  }

  /** Milliseconds until another attempt is possible: 0 for now. */
  findWait (name: string, address: string): number {
    const time = this.#options.now()
    const waits = this.#toKeys(name, address).map(({ key }) => {
      const { from = 0, until = 0 } = this.#refused.get(key) ?? {}
      // The clock may have been set back.
      return from <= time ? until - time : 0
    })
    return Math.max(0, ...waits)
  }

  /** Counts a failure. */
  async add (name: string, address: string): Promise<void> {
    for (const { key, most } of this.#toKeys(name, address)) {
      const { current, ttl } = await this.#options.counter.count(this.#options.kind, key, MINUTE)
      const from = this.#options.now()
      if (current >= most) this.#refused.set(key, { from, until: from + ttl })
    }
  }

  /**
   * Runs an attempt, which fails by null.
   * @param refuse makes the error above the limit
   */
  async run<T> (name: string, address: string, attempt: () => Promise<T | null>, refuse: (wait: number) => Error): Promise<T | null> {
    return await this.#slots.run(async () => {
      const wait = this.findWait(name, address)
      if (wait > 0) throw refuse(wait)
      const result = await attempt()
      if (result === null) await this.add(name, address)
      return result
    }, { lane: `${groupAddress(address)} ${name}` })
  }

  #toKeys (name: string, address: string): { key: string, most: number }[] {
    const { most } = this.#options
    const own = { key: `${groupAddress(address)} ${name}`, most }
    return isInNetwork(address) ? [own, { key: `${groupNetwork(address)} ${name}`, most: most * NETWORK }] : [own]
  }
}
