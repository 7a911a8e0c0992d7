/** The clock and timers of time limits. Tests replace them. */
export interface Timers {
  /** Milliseconds; never goes back. */
  now (): number
  set (run: () => void, delay: number): NodeJS.Timeout
  clear (timer: NodeJS.Timeout | undefined): void
}

export const TIMERS: Timers = {
  now: () => performance.now(),
  set: (run, delay) => setTimeout(run, delay),
  clear: (timer) => clearTimeout(timer)
}
