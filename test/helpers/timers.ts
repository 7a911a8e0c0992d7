import type { Timers } from '../../lib/timers.ts'

export interface TestTimers extends Timers {
  /** Lets time pass, and runs what is due. */
  advance (milliseconds: number): void
}

/** Timers that stand still until a test advances them. They keep the process alive as real ones do. */
export function createTimers (): TestTimers {
  let now = 0
  const pending = new Map<NodeJS.Timeout, { run: () => void, due: number }>()
  const clear = (timer: NodeJS.Timeout | undefined) => {
    clearTimeout(timer)
    if (timer !== undefined) pending.delete(timer)
  }
  return {
    now: () => now,
    set (run, delay) {
      const timer = setTimeout(() => {}, 2 ** 31 - 1)
      pending.set(timer, { run, due: now + delay })
      return timer
    },
    clear,
    advance (milliseconds) {
      now += milliseconds
      for (const [timer, { run, due }] of pending) {
        if (due > now) continue
        clear(timer)
        run()
      }
    }
  }
}
