import { hash } from 'node:crypto'
import type { WorkRecord } from '../work/record.ts'

/** The notification of one client about one end: of a sign-in session, or of all sessions that a user had before an epoch. */
export interface LogoutRecord extends WorkRecord {
  user_id: string
  client_id: string
  /** The owner of a client that nobody vouches for; '' if nobody owns it either. Absent: the client has a lane of its own. */
  owner?: string
  /** The sign-in sessions that ended, at most MOST_SESSIONS of them. */
  uids: string[]
  /** Whether there were more. */
  more?: boolean
  /** The user's epoch: sessions from it on are still valid. Absent: only the named session ended. */
  epoch?: number
}

/** The most ended sessions that a delivery names. Each takes its own logout token while another session of the user goes on. */
export const MOST_SESSIONS = 10

/**
 * The `sid` of a sign-in session at a client (OpenID Connect Back-Channel Logout 1.0, 2.1). It is derived, so that two tabs that
 * sign in at once have the same one. It differs between clients, so that they cannot correlate their users by it.
 */
export function nameSid (uid: string, client_id: string): string {
  return hash('sha256', JSON.stringify(['sid', uid, client_id]), 'base64url')
}

/** The id of a delivery: the same for the same end and client, so that accepting it again makes no second delivery. */
export function nameLogout (...parts: (string | number)[]): string {
  return hash('sha256', JSON.stringify(['logout', ...parts]), 'base64url')
}
