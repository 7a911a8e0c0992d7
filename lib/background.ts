/** Tasks that run at once; others wait, so that a large removal does not hold up all smaller ones, nor take all writes. */
const TASKS = 2
/** Milliseconds that `close` waits. What is left then is done by nobody. */
const LIMIT = 4_000

export interface BackgroundOptions {
  /** Receives failures: no caller waits for a task. */
  onError: (error: unknown) => void
  limit?: number
}

/** Work that goes on after its caller was answered. */
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

  /** Waits for all tasks, but not for ever: the process must end. Tasks that fail after that are not reported. */
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
