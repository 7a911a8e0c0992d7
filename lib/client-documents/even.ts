import type { Timers } from '../timers.ts'
import { DocumentError } from './error.ts'

/** Milliseconds that a failed fetch takes: longer than any call, so that its time does not tell whether a port is open, closed or filtered. */
export const FAILS_AFTER = 3_000

/** Runs a fetch. What it tells of the host by a failure, it does not tell by its time. */
export async function failEvenly<T> (timers: Timers, fetch: () => Promise<T>): Promise<T> {
  const end = timers.now() + FAILS_AFTER
  try {
    return await fetch()
  } catch (error) {
    // Otherwise it was not the host that failed.
    if (error instanceof DocumentError && error.retryAfter === undefined) await new Promise<void>((resolve) => timers.set(resolve, end - timers.now()))
    throw error
  }
}
