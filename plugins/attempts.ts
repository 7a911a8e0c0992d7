import type { RateLimitPluginOptions, FastifyRateLimitStore } from '@fastify/rate-limit'
import type { Counter } from '../lib/sign-in/counter.ts'

/**
 * Makes @fastify/rate-limit count with our counter, which may count for several processes. A key begins with the kind
 * of attempt and a space.
 */
export function countWith (counter: Counter): NonNullable<RateLimitPluginOptions['store']> {
  return class Store implements FastifyRateLimitStore {
    incr (key: string, done: Parameters<FastifyRateLimitStore['incr']>[1], window: number): void {
      const end = key.indexOf(' ')
      counter.count(key.slice(0, end), key.slice(end + 1), window).then((count) => done(null, count), done)
    }

    child (): FastifyRateLimitStore {
      return this
    }
  }
}
