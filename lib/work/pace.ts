import { TIMERS, type Timers } from '../timers.ts'

/** Milliseconds after which work stands still. The longest attempt, that of a mail, takes a minute. */
export const STALL = 90_000

/**
 * How a process goes on with one kind of work. It stands still when the process has neither ended an attempt nor found that nothing is to
 * do for a while: what is due then waits for the process, and not for its receivers.
 */
export class Pace {
  readonly #timers: Timers
  /** Undefined until the process begins to do this kind of work. */
  #last: number | undefined

  constructor (timers: Timers = TIMERS) {
    this.#timers = timers
  }

  /** To be called at the start, after each attempt, and whenever nothing is to do. */
  note (): void {
    this.#last = this.#timers.now()
  }

  /** To be called when the process stops. */
  end (): void {
    this.#last = undefined
  }

  /** Undefined where the process does not do this kind of work. */
  get isStalled (): boolean | undefined {
    return this.#last === undefined ? undefined : this.#timers.now() - this.#last >= STALL
  }
}
