import { parseTimestamp } from '../lib/clock.ts'

/** A clock that stands still until it is moved, so that a test decides what time does. */
export interface TestClock {
  /** Milliseconds since the epoch; what the service reads. */
  now (): number
  /** Moves by so many milliseconds; a negative number moves back. */
  advance (milliseconds: number): void
  /** Moves to a time: a Date, milliseconds since the epoch, or an RFC 3339 text. Throws TypeError when it is none. */
  set (time: Date | number | string): void
  /** Moves to where it began: the time it was made with, or, when it was made with none, the present. */
  reset (): void
}

function toMilliseconds (time: Date | number | string): number {
  const milliseconds = typeof time === 'string' ? Date.parse(parseTimestamp(time) ?? '') : Number(time)
  // The range of Date: what lies outside it has no ISO form.
  if (Number.isNaN(new Date(milliseconds).getTime())) throw new TypeError('a time is a Date, milliseconds or RFC 3339 text')
  return milliseconds
}

/** @param start where it begins, and goes back to at a reset; absent: the present */
export function createTestClock (start?: Date | number | string): TestClock {
  const begin = () => (start === undefined ? Date.now() : toMilliseconds(start))
  let time = begin()
  return {
    now: () => time,
    advance (milliseconds) { time = toMilliseconds(time + milliseconds) },
    set (to) { time = toMilliseconds(to) },
    reset () { time = begin() }
  }
}
