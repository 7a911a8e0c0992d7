import { statSync } from 'node:fs'

/** Milliseconds between two checks of the log. */
const INTERVAL = 1_000
const MIB = 2 ** 20

export interface LogLimitOptions {
  /** The database file. */
  path: string
  /** MiB. */
  limit: number
  /** Ends the oldest list of this process; false when it reads none. */
  endOldest: () => boolean
  onWarning: (message: string) => void
}

/**
 * Bounds the write-ahead log. SQLite cannot reuse it while a list reads an older snapshot, so a slow list makes it grow with
 * every write. While it grows beyond the limit, the oldest list is ended each second. Every process of the service does this
 * for its own lists; the reader of another program is only reported.
 */
export class LogLimit {
  readonly #options: LogLimitOptions
  readonly #timer: NodeJS.Timeout
  #last = 0
  #isReported = false

  constructor (options: LogLimitOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.check(), INTERVAL).unref()
  }

  /** @param size bytes of the log; for tests */
  check (size = statSync(`${this.#options.path}-wal`, { throwIfNoEntry: false })?.size ?? 0): void {
    const { path, limit, endOldest, onWarning } = this.#options
    const isGrowing = size > this.#last
    this.#last = size
    if (size <= limit * MIB) {
      this.#isReported = false
      return
    }
    // After the reader has ended, the log keeps its size until the next write.
    if (!isGrowing) return
    const state = `the write-ahead log of ${path} has ${Math.round(size / MIB)} MiB, more than walLimit`
    if (endOldest()) onWarning(`${state}: the oldest list was ended`)
    else if (!this.#isReported) {
      this.#isReported = true
      onWarning(`${state}: another process holds a snapshot`)
    }
  }

  close (): void {
    clearInterval(this.#timer)
  }
}
