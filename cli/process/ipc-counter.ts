import { busyError } from '../../lib/errors.ts'
import type { OpenCounter } from '../../lib/throttling/counter.ts'

/** One end of the IPC channel between the primary process and a worker. */
export interface Channel {
  send (message: object, done: (error: Error | null) => void): unknown
  on (event: 'message', listener: (message: unknown) => void): unknown
}

type Call = keyof OpenCounter

interface Question<C extends Call = Call> { identity: 'count', id: number, call: C, given: Parameters<OpenCounter[C]> }
interface Answer { identity: 'counted', id: number, answer: unknown }

/** Milliseconds for one answer. */
const TIMEOUT = 2000

function isMessage<T extends { identity: string }> (message: unknown, identity: T['identity']): message is T {
  return typeof message === 'object' && message !== null && (message as { identity?: unknown }).identity === identity
}

/** A counter that asks the process at the other end, so that all workers count together. */
export function createIpcCounter (channel: Channel, { timeout = TIMEOUT }: { timeout?: number } = {}): OpenCounter {
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  let lastId = 0
  channel.on('message', (message) => {
    if (isMessage<Answer>(message, 'counted')) pending.get(message.id)?.resolve(message.answer)
  })

  async function ask<C extends Call> (call: C, given: Parameters<OpenCounter[C]>): Promise<Awaited<ReturnType<OpenCounter[C]>>> {
    const id = ++lastId
    const answer = Promise.withResolvers<unknown>()
    pending.set(id, answer)
    const fail = () => answer.reject(busyError('attempts to be counted'))
    const timer = setTimeout(fail, timeout)
    try {
      channel.send({ identity: 'count', id, call, given } satisfies Question<C>, (error) => { if (error !== null) fail() })
      return await answer.promise as Awaited<ReturnType<OpenCounter[C]>>
    } finally {
      clearTimeout(timer)
      pending.delete(id)
    }
  }

  return {
    // The channel carries JSON, which has no undefined.
    count: async (kind, key, window, of) => await ask('count', of === undefined ? [kind, key, window] : [kind, key, window, of]),
    read: async (accounts) => await ask('read', [accounts]),
    open: async (accounts) => await ask('open', [accounts])
  }
}

/** Answers the counter at the other end of the channel. */
export function answerCounts (channel: Channel, counter: OpenCounter): void {
  const calls: { [C in Call]: (...given: Parameters<OpenCounter[C]>) => Promise<unknown> } = counter
  async function answer<C extends Call> ({ id, call, given }: Question<C>): Promise<void> {
    const answer = await calls[call](...given)
    // A worker that has exited needs no answer.
    channel.send({ identity: 'counted', id, answer } satisfies Answer, () => {})
  }
  channel.on('message', (message) => { if (isMessage<Question>(message, 'count')) void answer(message) })
}
