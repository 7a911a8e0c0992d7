import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Turn } from '../fair-queue.ts'
import { checkName } from '../names.ts'
import type { Language } from '../pages/texts/language.ts'
import type { UserRecord } from '../records.ts'
import { createUserRecord } from '../records.ts'
import { hashToken } from '../crypto/random-token.ts'
import { isTaken, toVerified } from '../users/addresses.ts'
import { type AccountContext, notify } from './context.ts'
import { requireLive } from './live.ts'
import { type ReturnTo, copyReturnTo } from './return-to.ts'
import { ENDED_BY_EPOCH, type TicketRecord, ticketError } from './tickets.ts'

/** The purposes of links that set a password. */
const PASSWORD_PURPOSES = ['reset', 'invite', 'sign-up'] as const
export type PasswordPurpose = typeof PASSWORD_PURPOSES[number]

export interface PasswordSet extends Partial<ReturnTo> {
  user_id: string
  /** The user's epoch, for a sign-in that follows immediately. */
  epoch: number
  account: string
  purpose: PasswordPurpose
}

export interface SetPasswordOptions {
  /** The name of a new user. */
  name?: string
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
  const { users, insertUser, changeUser, passwords, checkNewPassword, openPassword, tickets, now, onError } = context
  /** The ids of links whose password is being hashed. Only one use can succeed, so a second one would waste a hash. */
  const inUse = new Set<string>()

  /** Creates the account. It does not exist before the person has proved that the mailbox is theirs. */
  async function signUp (ticket: TicketRecord, password: string, typed: string, language: Language | undefined, turn: Turn | undefined): Promise<UserRecord> {
    const { address } = ticket
    if (address === undefined || !isSignUpOn || await isTaken(users, address)) throw ticketError()
    const name = checkName('name', typed)
    await checkNewPassword(password, { account: address })
    const hashed = await passwords.hash(password, turn)
    const record = createUserRecord(now(), {
      account: address, email: address, email_verified_at: toTimestamp(now()), roles: {}, password: hashed, name, info: {}, ...(language !== undefined && { language })
    }, false)
    // The address may be taken meanwhile, by an invitation or by a second click on the link.
    await insertUser(record, { type: 'user.signed_up', id: record.id }, ticketError)
    await tickets.remove(ticket.id).catch(onError)
    return record
  }

  async function reset (ticket: TicketRecord, password: string, language: Language | undefined, turn: Turn | undefined): Promise<UserRecord> {
    const user = requireLive(ticket, await users.get(ticket.user_id ?? ''), now)
    await checkNewPassword(password, user)
    const hashed = await passwords.hash(password, turn)
    const written = await changeUser(user.id, (record) => {
      const current = requireLive(ticket, record, now)
      const isProof = ticket.mailed && ticket.address !== undefined && ticket.former === undefined && current.email_verified_at === undefined
      return {
        set: { password: hashed, ...(language !== undefined && current.language_chosen !== true && { language }), ...(isProof && toVerified(current, ticket.address!, now)) },
        unset: ['invited_at', 'operator_password'],
        // Spends the ticket, and ends every session and every other link of the user.
        increment: { epoch: 1 },
        happened: (['user.password_reset', ...(isProof ? ['user.verified'] as const : [])] as const).map((type) => ({ type, id: user.id }))
      }
    }, { notFound: ticketError })
    await Promise.all([openPassword(user.id), tickets.removeOf(user.id, ENDED_BY_EPOCH)]).catch(onError)
    if (ticket.purpose === 'reset') await notify(context, { kind: 'password-changed', user_id: user.id })
    return written
  }

  return {
    /**
     * Reads the purpose and the account of a link for a password, without spending the link.
     * @param purposes of links that are good there
     * @throws ErrTicket
     */
    async inspectLink (token: string, purposes: readonly PasswordPurpose[] = PASSWORD_PURPOSES): Promise<{ purpose: PasswordSet['purpose'], account: string }> {
      const ticket = await tickets.require(token, ...purposes)
      const { purpose } = ticket as { purpose: PasswordSet['purpose'] }
      if (purpose !== 'sign-up') return { purpose, account: requireLive(ticket, await users.get(ticket.user_id ?? ''), now).account }
      const { address } = ticket
      if (address === undefined || !isSignUpOn || await isTaken(users, address)) throw ticketError()
      return { purpose, account: address }
    },

    /**
     * Sets the password and spends the link with the same write.
     * @throws ErrTicket, ErrParam for a refused password or name: the link can then be used again, ErrBusy
     */
    async setPassword (token: string, password: string, { name = '', language, turn, purposes = PASSWORD_PURPOSES }: SetPasswordOptions = {}): Promise<PasswordSet> {
      const id = hashToken(token)
      if (inUse.has(id)) throw inUseError()
      inUse.add(id)
      try {
        const ticket = await tickets.require(token, ...purposes)
        const { purpose } = ticket as TicketRecord & { purpose: PasswordSet['purpose'] }
        const user = purpose === 'sign-up' ? await signUp(ticket, password, name, language ?? ticket.language, turn) : await reset(ticket, password, language, turn)
        return { user_id: user.id, epoch: user.epoch, account: user.account, purpose, ...copyReturnTo(ticket) }
      } finally {
        inUse.delete(id)
      }
    }
  }
}
