import { scan } from '../store/scan.ts'
import type { Store } from '../store/port.ts'
import type { SignInSessionRecord } from './record.ts'

/**
 * The sign-in sessions of browsers. The browser's uid names one, and not the id of its record: two tabs that sign in at once have two
 * records with one uid, and a request of one tab may give its record another id.
 */
export function createBrowsers (store: Store) {
  const sessions = store.collection<SignInSessionRecord>('sign_in_sessions')
  const readAt = (uid: string) => scan(sessions, { equal: { uid } }, { urgent: true })

  return {
    /** The records of a user's sessions. */
    readOf: (user_id: string) => scan(sessions, { equal: { user_id } }, { urgent: true }),

    /** The records of the sessions that came of a session at another provider. */
    readOfUpstream: (upstream_sid: string) => scan(sessions, { equal: { upstream_sid } }, { urgent: true }),

    /** The records of one session. */
    readAt,

    /** The user of a session, and when they last signed in there. */
    async findSignIn (uid: string): Promise<{ user_id: string, since: string } | undefined> {
      let found: { user_id: string, since: string } | undefined
      for await (const batch of readAt(uid)) {
        for (const { user_id, created_at, signed_in_at: since = created_at } of batch) {
          if (user_id !== undefined && (found === undefined || since > found.since)) found = { user_id, since }
        }
      }
      return found
    },

    async isSignedIn (user_id: string, uid: string): Promise<boolean> {
      for await (const batch of readAt(uid)) if (batch.some((record) => record.user_id === user_id)) return true
      return false
    },

    /** Moves a session to the user's new epoch. One that was revoked earlier stays revoked. */
    async keep (uid: string, user_epoch: number): Promise<void> {
      for await (const batch of readAt(uid)) {
        for (const record of batch) if (record.user_epoch === user_epoch - 1) await sessions.update(record.id, { set: { user_epoch } })
      }
    },

    /** Notes a use of the console. */
    async noteConsole (uid: string, console_at: string): Promise<void> {
      for await (const batch of readAt(uid)) for (const { id } of batch) await sessions.update(id, { set: { console_at } })
    },

    /** Deletes a session. `endSignIn` of lib/tokens/ends.ts ends it, with all that is bound to it. */
    async delete (uid: string): Promise<void> {
      for await (const batch of readAt(uid)) for (const { id } of batch) await sessions.delete(id)
    }
  }
}
