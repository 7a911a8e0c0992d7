import { TIMERS, type Timers } from '../timers.ts'

/** Milliseconds that a part of the service waits for its own work when it closes. Afterwards it aborts or drops the rest. */
export const CLOSE_LIMIT = 4_000

/** Resolves when the work has ended, and after the limit at the latest. */
export async function waitForEnd (work: Promise<unknown>, { limit = CLOSE_LIMIT, timers = TIMERS }: { limit?: number, timers?: Timers } = {}): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = timers.set(resolve, limit)
  try {
    await Promise.race([work, promise])
  } finally {
    timers.clear(timer)
  }
}
