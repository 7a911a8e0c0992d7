import { toTimestamp } from '../clock.ts'

/** What an app asks of the time of a sign-in (OpenID Connect Core, 3.1.2.1). */
export interface Freshness {
  /** When it has asked: ISO 8601. */
  asked_at: string
  /** `max_age`: seconds. 0 for `prompt=login`, which asks for a sign-in after the request. */
  maxAge: number
}

/** Seconds by which the clock of another provider may be behind ours. */
const SKEW = 60

/**
 * The time since when a proof meets what an app asks: in whole seconds, as other providers say it, and by their clocks. A sign-in after the
 * request is recent, however long the person takes.
 * @param isBased whether the sign-in adds to a session that was recent at the time of the request
 */
export function toSince ({ asked_at, maxAge }: Freshness, now: number, isBased = false): string {
  const asked = Date.parse(asked_at)
  const start = isBased ? asked - maxAge * 1000 : Math.min(asked, now - maxAge * 1000)
  return toTimestamp((Math.floor(start / 1000) - SKEW) * 1000)
}

/** Seconds by which a proof is older than it may be; 0 for one that is not. */
export const findDelay = (at: number, since: string): number => Math.max(0, Math.ceil((Date.parse(since) - at) / 1000))
