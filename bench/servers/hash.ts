import { createServer } from 'node:http'
import { createPasswords } from '../../lib/users/passwords.ts'
import { COST, PASSWORD } from '../seed.ts'
import { serve } from './serve.ts'

// The bare hash of a sign-in: the service's own comparison, in the same worker threads, and nothing else.

const passwords = createPasswords({ cost: COST })
const stored = await passwords.hash(PASSWORD)

const calls = {
  /** Compares for some seconds, several at once. Resolves to the duration of each in milliseconds. */
  async compare ({ seconds, concurrency }: { seconds: number, concurrency: number }): Promise<number[]> {
    const times: number[] = []
    const until = performance.now() + seconds * 1000
    await Promise.all(Array.from({ length: concurrency }, async () => {
      while (performance.now() < until) {
        const start = performance.now()
        await passwords.verify(PASSWORD, stored)
        times.push(performance.now() - start)
      }
    }))
    return times
  }
}
export type HashCalls = typeof calls

await serve(createServer(), { calls })
