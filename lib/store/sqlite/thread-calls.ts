import { StoreBusyError, deadlineError, storeError } from '../../errors.ts'
import type { Timers } from '../../timers.ts'
import { type Failure, fromFailure, toFailure } from './failure.ts'
import { Thread, type ThreadData } from './thread.ts'

/** Calls that may wait for the thread. */
const CALLS = 10_000

/** Memory limits of the thread (MiB). With more room, tens of MiB of texts would gather before they are collected. */
const HEAP = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 }

export interface ThreadCallsOptions {
  /** Milliseconds a call may take, waiting included. */
  timeout: number
  timers: Timers
  /** Called with each failure before the call is rejected. */
  onFailure?: ((failure: Failure) => void) | undefined
}

interface Pending<A> {
  resolve: (answer: A) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/** A call as the thread receives it. It answers with `{ id, answer }` or `{ id, failure }`. */
export type Call<Q> = Q & { id: number }
export type Reply<A> = { id: number, answer: A } | { id: number, failure: Failure }

/** Calls to a worker thread, each with a deadline. */
export class ThreadCalls<Q extends object, A> {
  readonly #thread: Thread
  readonly #options: ThreadCallsOptions
  readonly #pending = new Map<number, Pending<A>>()
  #id = 0
  #closed = false

  constructor (file: URL, data: ThreadData, options: ThreadCallsOptions) {
    this.#options = options
    this.#thread = new Thread(file, data, {
      message: (reply) => this.#settle(reply as Reply<A>),
      death: (error) => this.#fail(error)
    }, HEAP)
  }

  /** @param until the caller's own deadline, in milliseconds since the epoch, which is no failure of the thread */
  call (question: Q, until = Infinity): Promise<A> {
    if (this.#closed) return Promise.reject(storeError(new Error('the store is closed')))
    if (this.#pending.size >= CALLS) return Promise.reject(new StoreBusyError('reads'))
    const { timeout, timers } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<A>()
    const id = ++this.#id
    const left = until - Date.now()
    const timer = left < timeout
      ? timers.set(() => this.#settle({ id, failure: toFailure(deadlineError()) }), left)
      : timers.set(() => this.#settle({ id, failure: { message: `a read took more than ${timeout} ms` } }), timeout)
    this.#pending.set(id, { resolve, reject, timer })
    this.#thread.post({ ...question, id } satisfies Call<Q>)
    return promise
  }

  /** Sends a message that has no answer. */
  post (question: Q): void {
    if (!this.#closed) this.#thread.post(question)
  }

  /** Ends the thread after it has answered its calls. */
  async close (): Promise<void> {
    this.#closed = true
    await this.#thread.end(this.#options.timeout)
  }

  #settle (reply: Reply<A>): void {
    const pending = this.#pending.get(reply.id)
    if (pending === undefined) return
    this.#pending.delete(reply.id)
    this.#options.timers.clear(pending.timer)
    if ('failure' in reply) {
      // An error of a known kind says nothing about the file.
      if (reply.failure.kind === undefined) this.#options.onFailure?.(reply.failure)
      pending.reject(fromFailure(reply.failure))
    } else {
      pending.resolve(reply.answer)
    }
  }

  #fail ({ message }: Error): void {
    for (const id of this.#pending.keys()) this.#settle({ id, failure: { message } })
  }
}
