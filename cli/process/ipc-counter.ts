import { busyError } from '../../lib/errors.ts'
import type { Count, Counter } from '../../lib/throttling/counter.ts'

/** One end of the IPC channel between the primary process and a worker. */
export interface Channel {
  send (message: object, done: (error: Error | null) => void): unknown
  on (event: 'message', listener: (message: unknown) => void): unknown
}

interface Question { identity: 'count', id: number, kind: string, key: string, window: number }
interface Answer extends Count { identity: 'counted', id: number }

/** Milliseconds for one answer. */
const TIMEOUT = 2000

function isMessage<T extends { identity: string }> (message: unknown, identity: T['identity']): message is T {
  return typeof message === 'object' && message !== null && (message as { identity?: unknown }).identity === identity
}

/** A counter that asks the process at the other end, so that all workers count together. */
export function createIpcCounter (channel: Channel, { timeout = TIMEOUT }: { timeout?: number } = {}): Counter {
  const pending = new Map<number, PromiseWithResolvers<Count>>()
  let lastId = 0
  channel.on('message', (message) => {
    if (isMessage<Answer>(message, 'counted')) pending.get(message.id)?.resolve({ current: message.current, ttl: message.ttl })
  })
  return {
    async count (kind, key, window) {
      const id = ++lastId
      const answer = Promise.withResolvers<Count>()
      pending.set(id, answer)
      const fail = () => answer.reject(busyError('attempts to be counted'))
      const timer = setTimeout(fail, timeout)
      try {
        channel.send({ identity: 'count', id, kind, key, window } satisfies Question, (error) => { if (error !== null) fail() })
        return await answer.promise
      } finally {
        clearTimeout(timer)
        pending.delete(id)
      }
    }
  }
}

/** Answers the counter at the other end of the channel. */
export function answerCounts (channel: Channel, counter: Counter): void {
  async function answer ({ id, kind, key, window }: Question): Promise<void> {
    const count = await counter.count(kind, key, window)
    // A worker that has exited needs no answer.
    channel.send({ identity: 'counted', id, ...count } satisfies Answer, () => {})
  }
  channel.on('message', (message) => { if (isMessage<Question>(message, 'count')) void answer(message) })
}
