import type { Clock } from './clock.ts'
import type { Timers } from './timers.ts'

/** Milliseconds by which the clocks of two processes may differ. */
export const MOST_APART = 60_000

interface Deadline {
  at: string
  /** When it was written. Absent where that is not stored. */
  from?: string | undefined
  /** The most milliseconds from its writing to it. */
  longest: number
}

/**
 * Whether a stored deadline is still to come. A deadline does not count if it is further ahead than its kind allows, or was written in the
 * future: the clock of the process that wrote it was ahead, and the process may have died since.
 */
export function isAhead ({ at, from, longest }: Deadline, time: number): boolean {
  const ahead = Date.parse(at) - time
  return ahead > 0 && ahead <= longest + MOST_APART && (from === undefined || Date.parse(from) <= time + MOST_APART)
}

/** Leases of other processes that a process watches at once: more than all processes have. */
const WATCHED = 1_000

interface LeaseWatchParts {
  now: Clock
  timers: Pick<Timers, 'now'>
  /** Milliseconds that a lease lasts. Its holder renews it sooner. */
  lease: number
}

/**
 * Tells whether the holder of a lease has died. A living one renews it, so that its stored end changes: whether it does is measured by a
 * clock of this process that nobody sets. The stored end is a time of the holder's clock, which may differ from ours, or may have been set.
 */
export class LeaseWatch {
  readonly #parts: LeaseWatchParts
  /** The leases by their ids: their last state that was seen, and since when. */
  readonly #seen = new Map<string, { state: string, since: number }>()

  constructor (parts: LeaseWatchParts) {
    this.#parts = parts
  }

  /**
   * Whether a lease may be taken: it was released, or its holder has not renewed it for as long as it lasts.
   * @param claim the number of the claim, which each new holder increments
   * @param until the stored end
   */
  isOver ({ id, claim }: { id: string, claim: number }, until: string): boolean {
    const { now, timers, lease } = this.#parts
    // By any clock that differs by less than this.
    if (!(Date.parse(until) > now() - MOST_APART)) return true
    const [state, time, seen] = [`${claim} ${until}`, timers.now(), this.#seen.get(id)]
    if (seen?.state === state) return time - seen.since >= lease
    this.#seen.delete(id)
    if (this.#seen.size >= WATCHED) this.#seen.delete(this.#seen.keys().next().value!)
    this.#seen.set(id, { state, since: time })
    return false
  }
}
