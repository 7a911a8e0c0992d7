import { parseTimestamp } from '../lib/clock.ts'

/** A clock that does not advance by itself, so that a test controls the time. */
export interface TestClock {
  /** Milliseconds since 1970, as the service sees it. */
  now (): number
  /** Moves the clock forward; a negative number moves it back. */
  advance (milliseconds: number): void
  /**
   * Sets the clock to a Date, milliseconds since 1970, or an RFC 3339 text.
   * @throws TypeError for anything else
   */
  set (time: Date | number | string): void
  /** Sets the clock to the start time it was created with, or to the present if it was created without one. */
  reset (): void
}

function toMilliseconds (time: Date | number | string): number {
  const milliseconds = typeof time === 'string' ? Date.parse(parseTimestamp(time) ?? '') : Number(time)
  // A number outside the range of Date has no ISO form.
  if (Number.isNaN(new Date(milliseconds).getTime())) throw new TypeError('the time must be a Date, milliseconds or an RFC 3339 text')
  return milliseconds
}

/** @param start the initial time, and the time after a reset; absent: the present */
export function createTestClock (start?: Date | number | string): TestClock {
  const readStart = () => (start === undefined ? Date.now() : toMilliseconds(start))
  let time = readStart()
  return {
    now: () => time,
    advance (milliseconds) { time = toMilliseconds(time + milliseconds) },
    set (to) { time = toMilliseconds(to) },
    reset () { time = readStart() }
  }
}
