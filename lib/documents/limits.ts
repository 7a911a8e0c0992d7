import { Slots } from '../work/slots.ts'
import type { Counter } from '../throttling/counter.ts'
import { groupAddress } from '../throttling/networks.ts'
import { DocumentError } from './error.ts'

const MINUTE = 60_000

/** First fetches a minute: for one address, and of the documents of one host. */
const OF_ADDRESS = 10
const OF_HOST = 30

/** Concurrent fetches of each kind, those of one host, and calls that wait for one. */
const SLOTS = 8
const SLOTS_OF_HOST = 4
const WAITING = 32

/** Seconds after which a refused caller may come again. */
const AGAIN = 5

const createSlots = () => new Slots({ size: SLOTS, lane: SLOTS_OF_HOST, waiting: WAITING })

/** @throws DocumentError when too many wait */
async function run<T> (slots: Slots, host: string, work: () => Promise<T>): Promise<T> {
  if (slots.isFull) throw new DocumentError('busy', 'too many documents are being fetched', { retryAfter: AGAIN, state: 'down' })
  return await slots.run(work, { lane: host })
}

/**
 * Bounds what anybody can make this service fetch by a link. Later fetches have slots of their own, so that new documents do not keep
 * those that people use from being read again.
 */
export function createLimits (counter: Counter) {
  const [firsts, later] = [createSlots(), createSlots()]

  async function count (kind: string, key: string, most: number, reason: string): Promise<void> {
    const { current, ttl } = await counter.count(kind, key, MINUTE)
    if (current > most) throw new DocumentError('rate', reason, { retryAfter: Math.max(1, Math.ceil(ttl / 1000)), state: 'down' })
  }

  return {
    /** @throws DocumentError with `retryAfter` */
    async first<T> (url: URL, address: string, work: () => Promise<T>): Promise<T> {
      await count('document', groupAddress(address), OF_ADDRESS, `at most ${OF_ADDRESS} new documents a minute are fetched for one address`)
      await count('document-host', url.host, OF_HOST, `at most ${OF_HOST} new documents a minute are fetched from one host`)
      return await run(firsts, url.host, work)
    },

    again: async <T>(url: URL, work: () => Promise<T>): Promise<T> => await run(later, url.host, work)
  }
}

export type Limits = ReturnType<typeof createLimits>
