import { toTimestamp } from '../clock.ts'
import { IdentityError, permError } from '../errors.ts'
import type { Notice } from '../notice.ts'
import { type UserRecord, findMailbox, isActive } from '../records/user.ts'
import { checkUnrestricted } from '../restricted.ts'
import { type Actor, holdsRole } from '../roles.ts'
import { type AccountContext, requireLink } from './context.ts'
import { checkStaffMail } from './mail-limits.ts'
import { findLinkRefusal } from './support-links.ts'
import { PURPOSES, toHolder } from '../tickets/tickets.ts'
import { checkMayHelp } from '../users/people.ts'

/** Links for a new password, which administrators, managers and support staff ask for. */
export function createRecovery (context: AccountContext) {
  const { users, requireUser, tickets, outbox, now, roles: names, recorder, ways, notices, findOnly, writeSignInLink } = context

  /**
   * Support staff send links by mail only, to an address that is proved to be the person's, and not to their own mailbox; and to nobody whose
   * demanded second factor is missing, because the link and the first factor would then need nothing but the mailbox.
   * @throws ErrPerm
   */
  async function checkSupport (user: UserRecord, mailbox: string | undefined, actor: Actor): Promise<void> {
    checkMayHelp(names, user, actor)
    if (outbox === undefined) throw permError('userId', 'only an admin may recover a user where no email is sent')
    const refusal = await findLinkRefusal(context, user)
    if (refusal !== undefined) throw permError('userId', `only an admin may recover a user ${refusal}`)
    const own = await users.get(actor.user_id)
    if (own !== null && findMailbox(own)?.toLowerCase() === mailbox?.toLowerCase()) throw permError('userId', 'support staff get no link of another user')
  }

  /** @throws ErrPerm, ErrParam for a disabled or expired user */
  async function checkMayRecover (user: UserRecord, actor: Actor): Promise<void> {
    if (!actor.isAdmin && holdsRole(user.roles, names.admin)) throw permError('userId', 'only an admin may recover an admin')
    if (!isActive(user, toTimestamp(now()))) throw new IdentityError('ErrParam', 'userId: the user is disabled or has expired')
    const mailbox = findMailbox(user)
    if (actor.isSupport === true) await checkSupport(user, mailbox, actor)
    // A manager could use the link themselves, and so take over the account.
    const getsMail = outbox !== undefined && mailbox !== undefined
    if (!actor.isAdmin && !getsMail) throw permError('userId', 'only an admin may see the link of a user who gets no email')
  }

  /** The mail with the link that adds a second factor, again, where only that link adds the one which is demanded. */
  const writeEnrolMail = async (user: UserRecord): Promise<Notice[]> => (
    user.enrol_ticket !== undefined && ways.demandsFactor(user) ? await notices.write('factor-reset-link', user, { of: user.enrol_ticket }) : [])

  return {
    checkMayRecover,

    /**
     * Creates a link with which a user sets a new password. The link is mailed, and that for a second factor too, where one is demanded
     * and only its link adds it. Without mail, or for a user without an address, it is returned to an administrator, who passes it on. Only
     * the user learns the password.
     * @throws ErrNotFound, ErrPerm, ErrParam for a disabled or expired user, ErrLimit, ErrBusy
     */
    async recoverUser (user_id: string, actor: Actor, language = 'en'): Promise<{ sent: boolean, link?: string }> {
      checkUnrestricted(actor)
      const writeLink = requireLink(context)
      const user = await requireUser(user_id)
      await checkMayRecover(user, actor)
      await actor.confirm?.()
      const mailbox = findMailbox(user)
      const started = async (mails: Notice[] = []) => await recorder.insert({ type: 'user.recovery_started', id: user_id }, mails)
      if (outbox !== undefined && mailbox !== undefined) {
        await checkStaffMail(context, mailbox)
        const job = { kind: 'recovery', user_id, epoch: user.epoch, language, ...(actor.isSupport === true && { support: true }) }
        await outbox.enqueue(job, PURPOSES.reset.life)
        await started(await writeEnrolMail(user))
        return { sent: true }
      }
      // Where they sign in with one provider only, a password would sign nobody in.
      const link = findOnly?.(user) !== undefined && writeSignInLink !== undefined
        ? writeSignInLink()
        : writeLink('reset', await tickets.issue({ purpose: 'reset', ...toHolder(user), mailed: false }))
      await started()
      return { sent: false, link }
    }
  }
}
