/** Milliseconds since 1970-01-01T00:00:00Z. Passed in wherever time matters, so that tests can move it. */
export type Clock = () => number

/** The ISO 8601 form of every stored and sent time: UTC, milliseconds, 24 characters, so that order is code point order. */
export function toTimestamp (milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
