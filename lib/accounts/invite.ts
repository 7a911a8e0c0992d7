import { checkAccount, checkRoles } from '../checks.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import { checkName } from '../names.ts'
import { type UserRecord, createUserRecord, findMailbox } from '../records/user.ts'
import { checkUnrestricted } from '../restricted.ts'
import type { Actor, Roles } from '../roles.ts'
import { toTimestamp } from '../clock.ts'
import { findByName } from '../users/addresses.ts'
import { type AccountContext, requireLink, requireOutbox } from './context.ts'
import { checkStaffMail } from './mail-limits.ts'
import { NO_PASSWORD } from '../users/passwords.ts'
import { type ReturnTo, copyReturnTo } from './return-to.ts'
import { PURPOSES, toHolder } from '../tickets/tickets.ts'

/** Who makes an invitation. A client that acts for itself is not the user who owns it. */
const toInviter = ({ isUser, client_id, user_id }: Actor): string => isUser === false && client_id !== undefined ? client_id : user_id

export interface Invitation extends Partial<ReturnTo> {
  account: string
  name?: string
  /** Only an administrator gives roles. */
  roles?: Roles
  language?: string
}

/** Invites people: administrators and managers do. */
export function createInvitations (context: AccountContext) {
  const { users, requireUser, insertUser, changeUser, tickets, outbox, notices, now, ways } = context

  const existsError = () => new IdentityError('USER_EXIST', 'account: a user with this account exists')

  /**
   * The user who was invited before and has not accepted; null for a new account.
   * @throws USER_EXIST for any other user, ErrPerm for one whom another person invited
   */
  async function findInvited (account: string, actor: Actor): Promise<UserRecord | null> {
    const found = await findByName(users, account)
    if (found === null) return null
    if (found.invited_at === undefined || found.account !== account) throw existsError()
    // Another link replaces the one that the other person has handed over.
    if (!actor.isAdmin && found.invited_by !== toInviter(actor)) throw permError('account', 'only an admin may invite again whom another person invited')
    return found
  }

  return {
    /**
     * Creates a user without a password, and a link with which they choose one. The link is mailed. Without mail, or for an account
     * that is not an address, it is returned, and the caller passes it on.
     * @throws ErrParam, ErrPerm, USER_EXIST, ErrLimit, ErrBusy
     */
    async inviteUser (invitation: Invitation, actor: Actor): Promise<{ user_id: string, link?: string }> {
      checkUnrestricted(actor)
      if (invitation.roles !== undefined && !actor.isAdmin) throw permError('roles', 'only an admin may give roles with an invitation')
      const writeLink = requireLink(context)
      const account = checkAccount(invitation.account)
      const { name = '', roles = {}, language = 'en' } = invitation
      const returnTo = copyReturnTo(invitation)
      const invited = await findInvited(account, actor)
      const user = invited ?? createUserRecord(now(), {
        account,
        roles: checkRoles(roles),
        password: NO_PASSWORD,
        name: checkName('name', name),
        info: {},
        invited_at: toTimestamp(now()),
        invited_by: toInviter(actor),
        language: invitation.language
      }, actor.isAdmin)
      const mails = invited === null ? await notices.write('invite', user, { epoch: user.epoch, language, ...returnTo }) : []
      // An invitation that is repeated changes nothing: it is mailed by the process that is asked.
      const isMailed = invited === null ? mails.length > 0 : outbox !== undefined
      const mailbox = isMailed ? findMailbox(user) : undefined
      // Before anything is written: a refused invitation creates no user.
      if (mailbox !== undefined) await checkStaffMail(context, mailbox)
      // The caller could use the link themselves.
      else if (!actor.isAdmin && Object.keys(user.roles).length > 0) throw permError('account', 'only an admin may see the link of a user with roles')
      if (invited === null) {
        await insertUser(user, { type: 'user.invited', id: user.id, granted: Object.keys(user.roles) }, existsError, mails)
      } else if (mailbox !== undefined) {
        await outbox?.enqueue({ kind: 'invite', user_id: user.id, epoch: user.epoch, language, ...returnTo }, PURPOSES.invite.life)
      }
      if (mailbox !== undefined) return { user_id: user.id }
      const token = await tickets.issue({ purpose: 'invite', ...toHolder(user), mailed: false, ...returnTo })
      return { user_id: user.id, link: writeLink('invite', token) }
    },

    /**
     * Mails an invitation to somebody whom an import has brought in, and who cannot sign in yet.
     * @returns false for somebody without an address
     * @throws ErrNotFound, ErrParam for anybody else, ErrLimit, ErrBusy
     */
    async inviteImported (user_id: string, actor: Actor, language = 'en'): Promise<boolean> {
      const mails = requireOutbox(context)
      requireLink(context)
      const { epoch, ...user } = await requireUser(user_id)
      const mailbox = findMailbox(user)
      if (mailbox === undefined) return false
      await checkStaffMail(context, mailbox)
      await mails.checkRoom()
      await changeUser(user_id, async (record) => {
        if (record.imported_source === undefined || record.password || record.epoch !== epoch || await ways.hasWayIn(record)) {
          throw paramError('userId', 'is not somebody who was imported without a sign-in method')
        }
        return {
          set: { invited_at: toTimestamp(now()), invited_by: toInviter(actor) },
          happened: [{ type: 'user.invited', id: user_id }],
          notices: await notices.write('invite', record, { epoch, language })
        }
      })
      return true
    }
  }
}
