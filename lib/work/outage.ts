import { TIMERS, type Timers } from '../timers.ts'

/** Milliseconds after the end of an outage in which the next failure is not told yet: a server that answers every other call writes two lines a minute. */
const QUIET = 60_000

/** What an outage was, when it has ended. */
export interface Ended {
  /** The calls that failed. */
  failures: number
  seconds: number
}

interface OutageParts {
  /** Called once for each outage, with its first failure. */
  onBegin: (error: unknown) => void
  /** Called once for each outage that was told, when a call succeeds again. */
  onEnd: (ended: Ended) => void
  quiet?: number
  timers?: Pick<Timers, 'now'>
}

/** An outage of something that the service calls: it is told when it begins and when it ends, whatever fails meanwhile. */
export class Outage {
  readonly #parts: OutageParts
  readonly #quiet: number
  readonly #timers: Pick<Timers, 'now'>
  #failures = 0
  #isTold = false
  #since = 0
  #endedAt = Number.NEGATIVE_INFINITY

  constructor ({ quiet = QUIET, timers = TIMERS, ...parts }: OutageParts) {
    this.#parts = { ...parts }
    this.#quiet = quiet
    this.#timers = timers
  }

  /** Whether the last call failed. */
  get isOn (): boolean { return this.#failures > 0 }

  /** Notes a call that failed. @returns whether it was told */
  fail (error: unknown): boolean {
    const time = this.#timers.now()
    if (this.#failures++ === 0) this.#since = time
    if (this.#isTold || time - this.#endedAt < this.#quiet) return false
    this.#isTold = true
    this.#parts.onBegin(error)
    return true
  }

  /** Notes a call that succeeded. */
  succeed (): void {
    if (this.#failures === 0) return
    const time = this.#timers.now()
    const ended = { failures: this.#failures, seconds: Math.round((time - this.#since) / 1000) }
    this.#failures = 0
    if (!this.#isTold) return
    this.#isTold = false
    this.#endedAt = time
    this.#parts.onEnd(ended)
  }
}
