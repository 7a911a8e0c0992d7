import { CLOSE_LIMIT, waitForEnd } from './close.ts'
import { Slots } from './slots.ts'

/** Concurrent tasks; further ones wait. Two, so that a large removal neither blocks all smaller ones nor takes all write capacity. */
const TASKS = 2

interface BackgroundOptions {
  /** Receives failures: no caller waits for a task. */
  onError: (error: unknown) => void
  limit?: number
}

/** Runs tasks in the background, after the caller was answered. */
export class Background {
  readonly #onError: (error: unknown) => void
  readonly #limit: number
  readonly #slots = new Slots({ size: TASKS })
  #abandoned = false

  constructor ({ onError, limit = CLOSE_LIMIT }: BackgroundOptions) {
    this.#onError = onError
    this.#limit = limit
  }

  run (task: () => Promise<unknown>): void {
    this.#slots.run(task).catch((error: unknown) => {
      if (!this.#abandoned) this.#onError(error)
    })
  }

  /** Resolves when no task is left. */
  async settle (): Promise<void> {
    await this.#slots.settle()
  }

  /** Waits for the tasks up to the limit, because the process must exit. Then it drops waiting tasks, and reports no more failures. */
  async close (): Promise<void> {
    await waitForEnd(this.settle(), { limit: this.#limit })
    this.#abandoned = true
    this.#slots.drop()
  }
}
