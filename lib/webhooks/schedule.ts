const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Milliseconds from each failed attempt to the next (Standard Webhooks 1.0): ten attempts within 76 hours. */
export const RETRIES = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]

/** The share by which a delay may be longer, so that events that failed together are not retried together. */
export const JITTER = 0.1

/** Concurrent deliveries of one webhook. */
export const AT_ONCE = 4

/** Failures in a row after which a receiver counts as down: one attempt at a time is made, with a pause after each. */
export const DOWN_AFTER = 10
const FIRST_PAUSE = 5 * SECOND
const LAST_PAUSE = 5 * MINUTE

/** A webhook is disabled after this many milliseconds in which all attempts failed, and this many attempts. */
export const GIVE_UP_AFTER = 5 * DAY
export const GIVE_UP_FAILURES = 10

/** Milliseconds that a receiver may ask us to wait. */
export const MOST_RETRY_AFTER = DAY

/** Milliseconds after a failure in which no attempt is made for the webhook. */
export function toPause (failures: number, retryAfter = 0): number {
  const pause = failures < DOWN_AFTER ? 0 : Math.min(FIRST_PAUSE * 2 ** Math.min(failures - DOWN_AFTER, 20), LAST_PAUSE)
  return Math.max(pause, Math.min(retryAfter, MOST_RETRY_AFTER))
}
