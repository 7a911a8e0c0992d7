import { TIMERS, type Timers } from '../../../../lib/timers.ts'

export interface SkippableTimers extends Timers {
  /** Runs at once every timer that is due within `milliseconds`. */
  skip (milliseconds: number): void
}

/** Real timers with a way to skip time: for tests in which a real server has to answer in between. */
export function createSkippableTimers (): SkippableTimers {
  const pending = new Map<NodeJS.Timeout, { run: () => void, due: number }>()
  let skipped = 0
  const now = () => TIMERS.now() + skipped
  const clear = (timer: NodeJS.Timeout | undefined) => {
    TIMERS.clear(timer)
    if (timer !== undefined) pending.delete(timer)
  }
  return {
    now,
    clear,
    set (run, delay) {
      const timer = TIMERS.set(() => {
        pending.delete(timer)
        run()
      }, delay)
      pending.set(timer, { run, due: now() + delay })
      return timer
    },
    skip (milliseconds) {
      skipped += milliseconds
      for (const [timer, { run, due }] of [...pending]) {
        if (due > now() || !pending.has(timer)) continue
        clear(timer)
        run()
      }
    }
  }
}
