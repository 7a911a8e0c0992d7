import { IdentityError } from '../errors.ts'
import type { Turn } from '../fair-queue.ts'
import { checkName } from '../names.ts'
import type { Language } from '../pages/texts/language.ts'
import type { UserRecord } from '../records/user.ts'
import { createUserRecord } from '../records/user.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { AccountContext } from './context.ts'
import { requireLive } from './live.ts'
import { type Spent, endIdentities, requireNewcomer, spendLink, toSpent } from './spend-link.ts'
import { ENDED_BY_EPOCH, type TicketRecord, ticketError } from '../tickets/tickets.ts'

/** The purposes of links that set a password. */
const PASSWORD_PURPOSES = ['reset', 'invite', 'sign-up'] as const
export type PasswordPurpose = typeof PASSWORD_PURPOSES[number]

export type PasswordSet = Spent<PasswordPurpose>

/** A link, read without spending it. */
export interface InspectedLink {
  purpose: PasswordPurpose
  account: string
  /** The id of its ticket. */
  ticket: string
  /** How many personal access tokens end with it. */
  endingTokens?: number | undefined
  /** What decides how the person may sign in after its use. */
  becomes: Pick<UserRecord, 'account' | 'email' | 'email_verified_at' | 'roles' | 'held_by'>
}

export interface SetPasswordOptions {
  /** The name of a new user. */
  name?: string | undefined
  /** The language that the request asks for, for later mails. */
  language?: Language | undefined
  /** In the queue of hashes. */
  turn?: Turn
  /** Of links that are good there. */
  purposes?: readonly PasswordPurpose[]
}

function inUseError (): IdentityError {
  return new IdentityError('ErrBusy', 'token: the link is being used by another request', { headers: { 'retry-after': '1' } })
}

/** Sets a password with the link of a reset, an invitation or a sign-up. */
export function createSetPassword (context: AccountContext, { isSignUpOn }: { isSignUpOn: boolean }) {
  const { users, insertUser, changeUser, passwords, checkNewPassword, openPassword, tickets, ways, notices, undos, now, onError } = context
  /** The ids of links whose password is being hashed. Only one use can succeed, so a second one would waste a hash. */
  const inUse = new Set<string>()

  async function signUp (
    ticket: TicketRecord, password: string, { name: typed = '', language = ticket.language, turn }: SetPasswordOptions
  ): Promise<UserRecord> {
    const fields = await requireNewcomer(context, ticket, isSignUpOn)
    const name = checkName('name', typed)
    await checkNewPassword(password, fields)
    const hashed = await passwords.hash(password, turn)
    const record = createUserRecord(now(), { ...fields, password: hashed, operator_password: false, name, language }, false)
    // The address may be taken meanwhile, by an invitation or by a second click on the link.
    await insertUser(record, { type: 'user.signed_up', id: record.id }, ticketError)
    await tickets.remove(ticket.id).catch(onError)
    return record
  }

  async function reset (ticket: TicketRecord, password: string, { language, turn }: SetPasswordOptions): Promise<UserRecord> {
    const user = requireLive(ticket, await users.get(ticket.user_id ?? ''), now)
    await checkNewPassword(password, user)
    const hashed = await passwords.hash(password, turn)
    let removed: string[] = []
    const written = await changeUser(user.id, async (record) => {
      const { set, unset, happened, ...spent } = spendLink(ticket, requireLive(ticket, record, now), { language, now })
      const ended = endIdentities(ticket, record)
      removed = ended.removed
      // One that an undo has ended is replaced, and not the first one.
      const isSet = ticket.purpose === 'reset' && record.password === undefined
      const undo = isSet
        ? await undos.write(record, { kind: 'password', mail: 'password-set', plain: 'password-changed', isAsked: false })
        : { set: {}, unset: [], notices: ticket.purpose === 'reset' ? await notices.write('password-changed', record) : [] }
      const unlinked = await Promise.all(removed.map(async () => await notices.write('identity-unlinked', record)))
      return {
        ...spent,
        set: { ...set, ...ended.set, ...undo.set, password: hashed, operator_password: false },
        unset: [...unset, ...ended.unset, ...undo.unset],
        happened: [{ type: 'user.password_reset', id: record.id }, ...happened, ...ended.happened],
        notices: [...undo.notices, ...unlinked.flat()]
      }
    }, { notFound: ticketError })
    await Promise.all([openPassword(user.id), tickets.removeOf(user.id, ENDED_BY_EPOCH), ways.drop(removed)]).catch(onError)
    return written
  }

  return {
    /**
     * Reads the purpose and the account of a link for a password, without spending the link.
     * @param purposes of links that are good there
     * @throws ErrTicket
     */
    async inspectLink (token: string, purposes: readonly PasswordPurpose[] = PASSWORD_PURPOSES): Promise<InspectedLink> {
      const ticket = await tickets.require(token, ...purposes)
      const { purpose, id } = ticket
      if (purpose === 'sign-up') {
        const becomes = await requireNewcomer(context, ticket, isSignUpOn)
        return { purpose, account: becomes.account, ticket: id, becomes }
      }
      const user = requireLive(ticket, await users.get(ticket.user_id ?? ''), now)
      const becomes = { ...user, ...spendLink(ticket, user, { language: undefined, now }).set }
      return { purpose, account: user.account, ticket: id, becomes, endingTokens: await context.countTokens?.(user) }
    },

    /**
     * Sets the password and spends the link with the same write.
     * @throws ErrTicket, ErrParam for a refused password or name: the link can then be used again, ErrBusy
     */
    async setPassword (token: string, password: string, options: SetPasswordOptions = {}): Promise<PasswordSet> {
      const id = hashToken(token)
      if (inUse.has(id)) throw inUseError()
      inUse.add(id)
      try {
        const { purposes = PASSWORD_PURPOSES } = options
        const ticket = await tickets.require(token, ...purposes)
        const user = ticket.purpose === 'sign-up' ? await signUp(ticket, password, options) : await reset(ticket, password, options)
        return toSpent(ticket, user)
      } finally {
        inUse.delete(id)
      }
    }
  }
}
