import { type Clock, toTimestamp } from '../clock.ts'

/**
 * oidc-provider counts whole seconds of the wall clock; records carry the service's own time. The two differ only
 * where a test moves the service's clock, and then what it kept ages with it.
 */
export interface Times {
  now (): number
  /** The times of a record that lives for so many seconds. */
  lifetime (seconds: number): { created_at: string, expired_at: string }
  /** A stored time as seconds of the wall clock. */
  toEpoch (timestamp: string): number
}

export function createTimes (now: Clock): Times {
  return {
    now,
    lifetime (seconds) {
      const start = now()
      return { created_at: toTimestamp(start), expired_at: toTimestamp(start + seconds * 1000) }
    },
    toEpoch: (timestamp) => Math.floor((Date.parse(timestamp) - now() + Date.now()) / 1000)
  }
}
