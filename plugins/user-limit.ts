import { IdentityError } from '../lib/errors.ts'
import type { Counter } from '../lib/throttling/counter.ts'

const MINUTE = 60_000

/** Counts an action of a user. Throws ErrLimit above the limit. */
export type UserLimit = (user_id: string) => Promise<void>

/**
 * Limits how often a user may do something.
 * @param kind of the actions, for the counter
 * @param perMinute false: no limit
 */
export function createUserLimit (kind: 'write' | 'password', perMinute: number | false, counter: Counter): UserLimit {
  if (perMinute === false) return async () => {}
  return async function limit (user_id) {
    const { current, ttl } = await counter.count(kind, user_id, MINUTE)
    if (current <= perMinute) return
    const seconds = Math.max(1, Math.ceil(ttl / 1000))
    throw new IdentityError('ErrLimit', `too many changes, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
  }
}
