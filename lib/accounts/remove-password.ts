import type { UserRecord } from '../records.ts'
import { PASSWORD } from '../way.ts'
import type { WayActor } from '../ways/ways.ts'
import type { AccountContext } from './context.ts'
import { createFactorMails } from './factor-mails.ts'
import { ENDED_BY_EPOCH } from './tickets.ts'

/** Lets people who have another way in give up their password. */
export function createPasswordRemoval (context: AccountContext) {
  const { requireUser, ways, tickets, onError } = context
  const { prepare } = createFactorMails(context)

  return {
    /**
     * Removes the password. All sessions, tokens and links end. The mail about it is stored before the change, and sent after it.
     * @returns the user's record, with the epoch for a sign-in that follows
     * @throws WayError `last` unless a way in remains, and `unknown` without a password; ErrUnknown when the session that asks has ended
     */
    async removePassword (actor: WayActor): Promise<UserRecord> {
      const { user_id } = actor
      const notice = await prepare('password-removed', await requireUser(user_id))
      const written = await ways.remove(actor, PASSWORD, { happened: [{ type: 'user.password_removed', id: user_id }] })
      notice?.release()
      await tickets.removeOf(user_id, ENDED_BY_EPOCH).catch(onError)
      return written
    }
  }
}
