import ajvFormats from 'ajv-formats/dist/formats.js'

/** Milliseconds since 1970-01-01T00:00:00Z. Passed in wherever time matters, so that tests control it. */
export type Clock = () => number

/** The format of every stored and sent time: ISO 8601, UTC, milliseconds. All have 24 characters, so they sort as text. */
export function toTimestamp (milliseconds: number): string {
  // Caches the text, because many requests fall into the same millisecond.
  if (milliseconds !== last.milliseconds) last = { milliseconds, text: new Date(milliseconds).toISOString() }
  return last.text
}

/** A stored time as seconds of the wall clock, which others read. The service's clock differs from it only in tests that move it. */
export function toEpoch (timestamp: string, now: Clock): number {
  return Math.floor((Date.parse(timestamp) - now() + Date.now()) / 1000)
}

/** The times of a record made at `start` (milliseconds since the epoch) that lives for `seconds`. */
export function toLifetime (start: number, seconds: number): { created_at: string, expired_at: string } {
  return { created_at: toTimestamp(start), expired_at: toTimestamp(start + seconds * 1000) }
}

let last = { milliseconds: Number.NaN, text: '' }

/** RFC 3339's grammar. The format below also accepts a space, and an offset without a colon. */
const GRAMMAR = /^\d{4}-\d\d-\d\dT\d\d:\d\d:(\d\d)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

/** Checks the ranges: month lengths, leap years, leap seconds. */
const dateTime = ajvFormats.fullFormats['date-time'] as { validate: (text: string) => boolean }

/**
 * Parses an RFC 3339 date-time. A leap second becomes the first instant after it.
 * @returns the stored form; null for any other text, and for a year outside 0000 to 9999 in UTC
 */
export function parseTimestamp (text: string): string | null {
  const upper = text.toUpperCase()
  const match = GRAMMAR.exec(upper)
  if (match === null || !dateTime.validate(upper)) return null
  const leap = match[1] === '60'
  const milliseconds = leap ? Date.parse(upper.replace(/:60(?:\.\d+)?/, ':59')) + 1000 : Date.parse(upper)
  if (Number.isNaN(milliseconds)) return null
  const timestamp = toTimestamp(milliseconds)
  return timestamp.length === 24 ? timestamp : null
}
