import { TIMERS, type Timers } from '../../lib/timers.ts'
import { waitUntil } from './wait.ts'

export interface TestTimers extends Timers {
  /** Advances the time, and runs the timers that are due. */
  advance (milliseconds: number): void
}

/** Timers that run only when a test advances them. Like real ones, they keep the process alive. */
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

/** Advances the time in steps until the work has ended: past every limit that it waits for. */
export async function advanceTo<T> (timers: TestTimers, what: string, work: Promise<T>, step = 1_000): Promise<T> {
  let isOver = false
  const end = () => { isOver = true }
  work.then(end, end)
  await waitUntil(what, () => {
    if (!isOver) timers.advance(step)
    return isOver
  })
  return await work
}

/**
 * Keeps the real timers of this delay from running until the test ends. For a time limit deep inside the service that a busy machine would
 * reach while the test holds up what is waited for.
 */
export function holdTimers (t: { teardown: (fn: () => unknown) => unknown }, milliseconds: number): void {
  const { set } = TIMERS
  TIMERS.set = (run, delay) => set(run, delay === milliseconds ? 2 ** 31 - 1 : delay)
  t.teardown(() => { TIMERS.set = set })
}
