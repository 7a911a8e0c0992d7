import { hash } from 'node:crypto'
import type { Delivery } from '../outbox/outbox.ts'

/** One client that is to be told of one end: of a sign-in session, or of all that a user had before an epoch. */
export interface LogoutRecord extends Delivery {
  user_id: string
  client_id: string
  /** The sign-in sessions that ended, at most MOST_SESSIONS of them. */
  uids: string[]
  /** Whether there were more. */
  more?: boolean
  /** The user's epoch from which sessions go on. Absent: only the named session ended. */
  epoch?: number
}

/** Ended sessions that a delivery names. Each takes a logout token of its own while another session of the user goes on. */
export const MOST_SESSIONS = 10

/**
 * The `sid` of a sign-in session at a client (OpenID Connect Back-Channel Logout 1.0, 2.1). It is derived, so that two tabs
 * that sign in at once have one, and different at each client, so that clients cannot compare their users by it.
 */
export function nameSid (uid: string, client_id: string): string {
  return hash('sha256', JSON.stringify(['sid', uid, client_id]), 'base64url')
}

/** The id of a delivery: the same for the same end and client, so that accepting it again is no second one. */
export function nameLogout (...parts: (string | number)[]): string {
  return hash('sha256', JSON.stringify(['logout', ...parts]), 'base64url')
}
