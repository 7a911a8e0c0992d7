/** Concurrent tasks; further ones wait. Two, so that a large removal neither blocks all smaller ones nor takes all write capacity. */
const TASKS = 2
/** Milliseconds that `close` waits. Tasks that have not started by then are dropped. */
const LIMIT = 4_000

export interface BackgroundOptions {
  /** Receives failures: no caller waits for a task. */
  onError: (error: unknown) => void
  limit?: number
}

/** Runs tasks in the background, after the caller was answered. */
export class Background {
  readonly #onError: (error: unknown) => void
  readonly #limit: number
  readonly #waiting: (() => Promise<unknown>)[] = []
  readonly #idle: (() => void)[] = []
  #running = 0
  #abandoned = false

  constructor ({ onError, limit = LIMIT }: BackgroundOptions) {
    this.#onError = onError
    this.#limit = limit
  }

  run (task: () => Promise<unknown>): void {
    this.#waiting.push(task)
    this.#next()
  }

  /** Resolves when no task is left. */
  async settle (): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Waits for all tasks up to the limit, because the process must exit. Later failures are not reported. */
  async close (): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#limit)
    await Promise.race([this.settle(), promise])
    clearTimeout(timer)
    this.#abandoned = true
    this.#waiting.length = 0
  }

  #next (): void {
    if (this.#running === TASKS) return
    const task = this.#waiting.shift()
    if (task === undefined) {
      if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
      return
    }
    this.#running++
    this.#perform(task)
  }

  async #perform (task: () => Promise<unknown>): Promise<void> {
    try {
      await task()
    } catch (error) {
      if (!this.#abandoned) this.#onError(error)
    }
    this.#running--
    this.#next()
  }
}
