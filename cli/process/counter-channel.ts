import type { Count, Counter } from '../../lib/sign-in/counter.ts'
import { busyError } from '../../lib/errors.ts'

/** One end of the channel between a process and one that it forked. */
export interface Channel {
  send (message: object, done: (error: Error | null) => void): unknown
  on (event: 'message', listener: (message: unknown) => void): unknown
}

/** What is asked, and what is answered; `identity` tells both from what else the channel carries. */
interface Question { identity: 'count', id: number, kind: string, key: string, window: number }
interface Answer extends Count { identity: 'counted', id: number }

/** Attempts that may wait for their count. */
const WAITING = 10_000
/** Milliseconds one count may take. */
const PATIENCE = 2000

/** Whether a message of the channel is one of ours, of this kind. */
export function isOf<T extends { identity: string }> (message: unknown, identity: T['identity']): message is T {
  return typeof message === 'object' && message !== null && (message as { identity?: unknown }).identity === identity
}

const tooMany = () => busyError('attempts that are to be counted')

/** A counter whose counts are at the other end: those of all the processes that ask there. */
export function createDistantCounter (channel: Channel, { patience = PATIENCE }: { patience?: number } = {}): Counter {
  const waiting = new Map<number, PromiseWithResolvers<Count>>()
  let last = 0
  channel.on('message', (message) => {
    if (isOf<Answer>(message, 'counted')) waiting.get(message.id)?.resolve({ current: message.current, ttl: message.ttl })
  })
  return {
    async count (kind, key, window) {
      if (waiting.size >= WAITING) throw tooMany()
      const id = ++last
      const answer = Promise.withResolvers<Count>()
      waiting.set(id, answer)
      const timer = setTimeout(() => answer.reject(tooMany()), patience)
      try {
        const question: Question = { identity: 'count', id, kind, key, window }
        channel.send(question, (error) => { if (error !== null) answer.reject(tooMany()) })
        return await answer.promise
      } finally {
        clearTimeout(timer)
        waiting.delete(id)
      }
    }
  }
}

/** Counts for a process at the other end. One that has gone needs no answer. */
export function answerCounts (channel: Channel, counter: Counter): void {
  channel.on('message', async (message) => {
    if (!isOf<Question>(message, 'count')) return
    const { id, kind, key, window } = message
    const answer: Answer = { identity: 'counted', id, ...await counter.count(kind, key, window) }
    channel.send(answer, () => {})
  })
}
