import type { UserRecord } from '../records/user.ts'
import { PASSWORD } from '../way.ts'
import type { WayActor } from '../ways/ways.ts'
import type { AccountContext } from './context.ts'
import { ENDED_BY_EPOCH } from '../tickets/tickets.ts'

/** Lets people who have another way in give up their password. */
export function createPasswordRemoval (context: AccountContext) {
  const { users, ways, tickets, notices, onError } = context

  return {
    /** Whether a user has a password, and may remove it now. */
    async mayRemovePassword (user_id: string): Promise<boolean> {
      const user = await users.get(user_id)
      return user !== null && Boolean(user.password) && await ways.mayRemove(user, PASSWORD)
    },

    /**
     * Removes the password. All sessions, tokens and links end. A mail tells the person.
     * @returns the user's record, with the epoch for a sign-in that follows
     * @throws WayError `last` unless a way in remains, and `unknown` without a password; ErrUnknown when the session that asks has ended
     */
    async removePassword (actor: WayActor): Promise<UserRecord> {
      const { user_id } = actor
      const written = await ways.remove(actor, PASSWORD, {
        toRecorded: async (record) => ({
          happened: [{ type: 'user.password_removed', id: user_id }],
          notices: await notices.write('password-removed', record)
        })
      })
      await tickets.removeOf(user_id, ENDED_BY_EPOCH).catch(onError)
      return written
    }
  }
}
