import { paramError } from '../errors.ts'
import { findMailbox } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import { type AccountContext, requireOutbox } from './context.ts'
import { checkTestMail } from './mail-limits.ts'

/** Milliseconds for which a test mail is attempted: whoever waits for it has given up by then. */
const LIFE = 60 * 60_000

export function createTestMail (context: AccountContext) {
  return {
    /**
     * Sends a test mail to the verified address of the actor, through the outbox as any other.
     * @returns the id of the mail
     * @throws ErrNotFound without mail, ErrParam without such an address, ErrLimit, ErrBusy
     */
    async sendOwnTest ({ user_id, isUser = true }: Pick<Actor, 'user_id' | 'isUser'>): Promise<string> {
      const outbox = requireOutbox(context)
      if (!isUser) throw paramError('token', 'must be that of a person: a client that acts for itself has no address')
      const user = await context.requireUser(user_id)
      if (user.email_verified_at === undefined || findMailbox(user) === undefined) throw paramError('email', 'you have no verified email address')
      await checkTestMail(context, user_id)
      return await outbox.enqueue({ kind: 'test', user_id }, LIFE)
    }
  }
}
