import { storeError } from '../../errors.ts'
import { TIMERS, type Timers } from '../../timers.ts'
import { toPortError } from './errors.ts'

/** A call in flight. */
export interface Call {
  /** Set once the caller was answered: work not started by then must not start. */
  answered: boolean
}

/**
 * Waits for work at most `timeout` milliseconds. The driver bounds the steps of a call (server selection, connecting, an
 * answer) and may retry; since 7.x nothing bounds the call as a whole, as its timeoutMS has no effect.
 */
export async function within<T> (timeout: number, work: () => Promise<T>, timers: Timers = TIMERS): Promise<T> {
  const { promise: expiry, reject } = Promise.withResolvers<never>()
  const timer = timers.set(() => reject(new Error(`no answer within ${timeout} ms`)), timeout)
  try {
    return await Promise.race([work(), expiry])
  } finally {
    timers.clear(timer)
  }
}

export interface BoundedCallsOptions {
  /** Called whenever the server answered a call. */
  onAnswer?: () => void
  /** Called before a call starts. Throws when no server can answer it. */
  admit?: () => void
  timers?: Timers
}

/** The calls of an open store to its server: each has a deadline and rejects with an error of the port; close() waits for all. */
export class BoundedCalls {
  /** Milliseconds. */
  readonly timeout: number
  readonly #onAnswer: () => void
  readonly #admit: () => void
  readonly #timers: Timers
  /** Rejects a call in flight. */
  readonly #inFlight = new Set<(error: Error) => void>()
  #closed = false
  readonly #drained = Promise.withResolvers<void>()

  constructor (timeout: number, { onAnswer = () => {}, admit = () => {}, timers = TIMERS }: BoundedCallsOptions = {}) {
    this.timeout = timeout
    this.#onAnswer = onAnswer
    this.#admit = admit
    this.#timers = timers
  }

  /**
   * @param work starts at once
   * @param unique the unique keys that a change names, see toPortError
   */
  async run<T> (work: (call: Call) => Promise<T>, unique?: string[]): Promise<T> {
    if (this.#closed) throw storeError(new Error('the store is closed'))
    const call: Call = { answered: false }
    const { promise: failure, reject } = Promise.withResolvers<never>()
    this.#inFlight.add(reject)
    try {
      this.#admit()
      const value = await this.within(() => Promise.race([work(call), failure]))
      this.#onAnswer()
      return value
    } catch (error) {
      throw toPortError(error, unique)
    } finally {
      call.answered = true
      this.#inFlight.delete(reject)
      this.#settle()
    }
  }

  /** Waits no longer than a call may take. */
  within<T> (work: () => Promise<T>): Promise<T> {
    return within(this.timeout, work, this.#timers)
  }

  /** Fails the calls in flight. A write among them may still happen. */
  fail (error: Error): void {
    for (const reject of this.#inFlight) reject(error)
  }

  /** Refuses new calls and waits for those in flight. */
  async close (): Promise<void> {
    this.#closed = true
    this.#settle()
    await this.#drained.promise
  }

  #settle (): void {
    if (this.#closed && this.#inFlight.size === 0) this.#drained.resolve()
  }
}
