import type { Clock } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Counter } from '../throttling/counter.ts'
import { FailureLimit } from '../throttling/failure-limit.ts'
import { NETWORK, groupAddress, groupNetwork, isInNetwork, toNetworkTurn } from '../throttling/networks.ts'
import type { Timers } from '../timers.ts'
import { DocumentError } from './error.ts'
import { Places } from './places.ts'
import type { Wanted } from './wanted.ts'

const MINUTE = 60_000

/** First fetches a minute for one address. A /48 of IPv6 has NETWORK times as many. */
const OF_ADDRESS = 10

/** First fetches a minute of one host that may fail, for one address. */
const FAILURES = 5

/** Seconds after which a refused caller may come again. */
const AGAIN = 5

interface LimitParts {
  counter: Counter
  now: Clock
  timers?: Timers
}

const rateError = (reason: string, wait: number) => new DocumentError('rate', reason, { retryAfter: Math.max(1, Math.ceil(wait / 1000)), state: 'down' })

/** @throws DocumentError when too many wait */
async function explainBusy<T> (work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    if (!(error instanceof IdentityError) || error.code !== 'ErrBusy') throw error
    throw new DocumentError('busy', 'too many documents are being fetched', { retryAfter: AGAIN, state: 'down' })
  })
}

/**
 * Bounds what anybody can make this service fetch by a link. Later fetches have places of their own, so that new documents do not keep
 * those that people use from being read again.
 */
export function createLimits ({ counter, ...parts }: LimitParts) {
  const [firsts, later] = [new Places(parts), new Places(parts)]
  const failures = new FailureLimit({ counter, now: parts.now, kind: 'document-host', most: FAILURES })

  async function count (key: string, most: number): Promise<void> {
    const { current, ttl } = await counter.count('document', key, MINUTE)
    if (current > most) throw rateError(`at most ${OF_ADDRESS} new documents a minute are fetched for one address`, ttl)
  }

  /** Counts a fetch that is about to begin. @throws DocumentError with `retryAfter` */
  async function admit (host: string, address: string): Promise<void> {
    const wait = failures.findWait(host, address)
    if (wait > 0) throw rateError(`at most ${FAILURES} new documents of one host that cannot be used are fetched a minute for one address`, wait)
    await count(groupAddress(address), OF_ADDRESS)
    if (isInNetwork(address)) await count(groupNetwork(address), OF_ADDRESS * NETWORK)
  }

  return {
    /**
     * Fetches a document for the first time, when it is the caller's turn, or joins the fetch of another one.
     * @param address of the browser whose link names the document
     * @throws DocumentError with `retryAfter`
     */
    async first<T> ({ host }: URL, address: string, wanted: Wanted<T>, fetch: () => Promise<T>): Promise<T> {
      const turn = { ...toNetworkTurn(address), signal: wanted.signal }
      return await explainBusy((async () => {
        await firsts.enter(host, turn, async () => {
          if (wanted.isBegun) return false
          await admit(host, address)
          return true
        })
        return await firsts.run(host, turn, async () => await wanted.join(async () => await fetch().catch(async (error: unknown) => {
          if (error instanceof DocumentError && error.retryAfter === undefined) await failures.add(host, address)
          throw error
        })))
      })())
    },

    /** @param address empty for the service itself */
    async again<T> ({ host }: URL, address: string, wanted: Wanted<T>, fetch: () => Promise<T>): Promise<T> {
      return await explainBusy(later.run(host, { ...toNetworkTurn(address), signal: wanted.signal }, async () => await wanted.join(fetch)))
    }
  }
}

export type Limits = ReturnType<typeof createLimits>
