import { toTimestamp } from './clock.ts'

const DAY = 24 * 60 * 60_000

/** How far the clocks of a zone are ahead of UTC at a time, in milliseconds. */
function findOffset (time: number, zone: string): number {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric'
  }).formatToParts(time)
  const read = (name: string) => Number(parts.find(({ type }) => type === name)?.value)
  return Date.UTC(read('year'), read('month') - 1, read('day'), read('hour'), read('minute'), read('second')) - Math.floor(time / 1000) * 1000
}

/**
 * The time at which a day begins in a zone. A text that is no day, such as a time, stays as it is.
 * @param text `2026-03-29`
 * @param days later
 */
export function findStartOfDay (text: string, zone: string, days = 0): string {
  const day = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(day) || !new Date(day).toISOString().startsWith(text)) return text
  const midnight = day + days * DAY
  // The clocks may change between the two. Where they skip midnight, the day begins with the change.
  const near = midnight - findOffset(midnight, zone)
  const candidates = [near, midnight - findOffset(near, zone)].sort((a, b) => a - b)
  return toTimestamp(candidates.find((time) => time + findOffset(time, zone) >= midnight) ?? near)
}
