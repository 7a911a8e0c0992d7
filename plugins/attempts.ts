import type { RateLimitPluginOptions, FastifyRateLimitStore } from '@fastify/rate-limit'
import type { Counter } from '../lib/throttling/counter.ts'

/**
 * A store for @fastify/rate-limit that counts with our counter, which several processes may share. A key is the kind of
 * attempt, a space, and the counter's key.
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
