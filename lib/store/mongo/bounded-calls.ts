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
export async function within<T> (timeout: number, work: () => Promise<T>): Promise<T> {
  const { promise: expiry, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(expired(timeout)), timeout)
  try {
    return await Promise.race([work(), expiry])
  } finally {
    clearTimeout(timer)
  }
}

function expired (timeout: number): Error {
  return new Error(`no answer within ${timeout} ms`)
}

interface Running extends Call {
  /** Of performance.now(). */
  deadline: number
  expire: () => void
}

/** Every call of an open store to its server: bounded in time, its errors the port's, and waited for at the end. */
export class Calls {
  /** Milliseconds. */
  readonly timeout: number
  /** In the order they came, which is that of their deadlines: one timer, for the oldest, is enough for all. */
  readonly #running = new Set<Running>()
  #timer: NodeJS.Timeout | null = null
  #closed: PromiseWithResolvers<void> | null = null

  constructor (timeout: number) {
    this.timeout = timeout
  }

  /**
   * @param work begins at once
   * @param unique the unique keys that a change names, see toPortError
   */
  run<T> (work: (call: Call) => Promise<T>, unique?: string[]): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== null) throw storeError(new Error('the store is closed'))
      const call: Running = { over: false, deadline: performance.now() + this.timeout, expire: () => fail(expired(this.timeout)) }
      const fail = (error: unknown) => {
        this.#end(call)
        reject(toPortError(error, unique))
      }
      this.#begin(call)
      try {
        work(call).then((value) => {
          this.#end(call)
          resolve(value)
        }, fail)
      } catch (error) {
        fail(error)
      }
    })
  }

  /** Refuses new calls and waits for those that run, which are bounded. */
  async close (): Promise<void> {
    this.#closed ??= Promise.withResolvers()
    if (this.#running.size === 0) this.#settle()
    await this.#closed.promise
  }

  #begin (call: Running): void {
    this.#running.add(call)
    if (this.#timer === null) this.#timer = setTimeout(this.#expire, this.timeout)
    else if (this.#running.size === 1) this.#timer.ref()
  }

  #end (call: Running): void {
    call.over = true
    // An idle timer is left to run out: the next call comes sooner than that, as a rule. It keeps no process alive.
    if (this.#running.delete(call) && this.#running.size === 0) this.#settle()
  }

  #settle (): void {
    this.#timer?.unref()
    if (this.#closed === null) return
    clearTimeout(this.#timer ?? undefined)
    this.#closed.resolve()
  }

  readonly #expire = (): void => {
    const now = performance.now()
    this.#timer = null
    for (const { deadline, expire } of this.#running) {
      if (deadline > now) {
        this.#timer = setTimeout(this.#expire, deadline - now)
        return
      }
      expire()
    }
  }
}
