import { storeError } from '../../errors.ts'
import { toPortError } from './errors.ts'

/** A call under way. */
export interface Call {
  /** Whether the caller has his answer: work that has not begun by then must not begin. */
  over: boolean
}

/**
 * Waits for work no longer than `timeout` milliseconds. The driver bounds each step of a call (finding a server, a
 * connection, an answer), and may retry, but since 7.x no longer a call as a whole: its timeoutMS has no effect.
 */
export async function within<T> (timeout: number, work: (call: Call) => Promise<T>): Promise<T> {
  const call: Call = { over: false }
  const { promise: expiry, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${timeout} ms`)), timeout)
  try {
    return await Promise.race([work(call), expiry])
  } finally {
    call.over = true
    clearTimeout(timer)
  }
}

/** Every call of an open store to its server: bounded in time, its errors the port's, and waited for at the end. */
export class Calls {
  /** Milliseconds. */
  readonly timeout: number
  readonly #running = new Set<Promise<unknown>>()
  #closed = false

  constructor (timeout: number) {
    this.timeout = timeout
  }

  /** @param unique the unique keys that a change names, see toPortError */
  async run<T> (work: (call: Call) => Promise<T>, unique?: string[]): Promise<T> {
    if (this.#closed) throw storeError(new Error('the store is closed'))
    const call = within(this.timeout, work)
    this.#running.add(call)
    try {
      return await call
    } catch (error) {
      throw toPortError(error, unique)
    } finally {
      this.#running.delete(call)
    }
  }

  /** Refuses new calls and waits for those that run, which are bounded. */
  async close (): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#running)
  }
}
