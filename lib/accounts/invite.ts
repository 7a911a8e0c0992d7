import { checkAccount, checkRoles, checkText } from '../checks.ts'
import { IdentityError, permError } from '../errors.ts'
import { type Roles, type UserRecord, createUserRecord } from '../records.ts'
import { type Actor, holdsRole } from '../roles.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { toTimestamp } from '../clock.ts'
import { isActive } from '../tokens/validity.ts'
import { findByName, findMailbox } from '../users/addresses.ts'
import { checkMayMail } from './ask.ts'
import { type AccountContext, requireLink } from './context.ts'
import { PURPOSES } from './tickets.ts'

/** No password matches it. */
const NO_PASSWORD = ''

export interface Invitation {
  account: string
  name?: string
  /** Only an administrator gives roles. */
  roles?: Roles
  /** A URI that is registered by a client: the caller has checked it. */
  return_to?: string
  language?: string
}

/** What an administrator or a manager does for somebody else's account. */
export function createInvitations (context: AccountContext) {
  const { users, tickets, outbox, now, roles: names, recorder } = context

  /** The user that is invited: a new one, or one whose invitation was not accepted yet, who stays as they are. */
  async function findInvited (account: string, { name = '', roles = {} }: Invitation, actor: Actor): Promise<UserRecord> {
    const exists = () => new IdentityError('USER_EXIST', 'account: a user with this account exists')
    const former = await findByName(users, account)
    if (former !== null) {
      if (former.invited_at === undefined || former.account !== account) throw exists()
      return former
    }
    const record = createUserRecord(now(), {
      account, roles: checkRoles(roles), password: NO_PASSWORD, name: checkText('name', name), info: {}, invited_at: toTimestamp(now())
    }, actor.isAdmin)
    try {
      await users.insert({ ...record, ...recorder.attach(null, { type: 'user.invited', id: record.id, granted: Object.keys(roles) }) })
    } catch (error) {
      if (error instanceof DuplicateKeyError) throw exists()
      throw error
    }
    return record
  }

  return {
    /**
     * Makes a user without a password, and a link with which they choose one. It goes by mail; without mail, and to an account
     * that is no address, the answer has it, and whoever asked hands it over.
     * @throws ErrParam, ErrPerm, USER_EXIST, ErrLimit, ErrBusy
     */
    async inviteUser (invitation: Invitation, actor: Actor): Promise<{ user_id: string, link?: string }> {
      if (invitation.roles !== undefined && !actor.isAdmin) throw permError('roles', 'only an admin may give roles with an invitation')
      const writeLink = requireLink(context)
      const account = checkAccount(invitation.account)
      const { return_to, language = 'en' } = invitation
      const user = await findInvited(account, invitation, actor)
      const mailbox = findMailbox(user)
      if (outbox !== undefined && mailbox !== undefined) {
        await checkMayMail(context, mailbox)
        await outbox.enqueue({ kind: 'invite', user_id: user.id, epoch: user.epoch, language, ...(return_to !== undefined && { return_to }) }, PURPOSES.invite.life)
        return { user_id: user.id }
      }
      // Whoever sees the link may use it.
      if (!actor.isAdmin && Object.keys(user.roles).length > 0) throw permError('account', 'only an admin may see the link of a user with roles')
      const token = await tickets.issue({ purpose: 'invite', user_id: user.id, user_epoch: user.epoch, mailed: false, ...(return_to !== undefined && { return_to }) })
      return { user_id: user.id, link: writeLink('invite', token) }
    },

    /**
     * Has a user set a new password. The link goes by mail; without mail, and for a user without an address, an administrator
     * gets it to hand over. Nobody but the user learns the password.
     * @throws ErrNotFound, ErrPerm, ErrParam for a user who may not sign in, ErrLimit, ErrBusy
     */
    async recoverUser (user_id: string, actor: Actor, language = 'en'): Promise<{ sent: boolean, link?: string }> {
      const writeLink = requireLink(context)
      const user = await users.get(user_id)
      if (user === null) throw new IdentityError('ErrNotFound', 'userId: no such user')
      if (!actor.isAdmin && holdsRole(user.roles, names.admin)) throw permError('userId', 'only an admin may recover an admin')
      if (!isActive(user, toTimestamp(now()))) throw new IdentityError('ErrParam', 'userId: the user is disabled or has expired')
      const mailbox = findMailbox(user)
      const started = async () => await recorder.insert({ type: 'user.recovery_started', id: user_id })
      if (outbox !== undefined && mailbox !== undefined) {
        await checkMayMail(context, mailbox)
        await outbox.enqueue({ kind: 'recovery', user_id, epoch: user.epoch, language }, PURPOSES.reset.life)
        await started()
        return { sent: true }
      }
      // Whoever sees the link may use it: for a manager that would be the password of another.
      if (!actor.isAdmin) throw permError('userId', 'only an admin may see the link of a user who gets no mail')
      const token = await tickets.issue({ purpose: 'reset', user_id, user_epoch: user.epoch, mailed: false })
      await started()
      return { sent: false, link: writeLink('reset', token) }
    }
  }
}
