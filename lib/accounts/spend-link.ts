import { type Clock, toTimestamp } from '../clock.ts'
import type { Happening } from '../events/types.ts'
import { copyReturnTo, type ReturnTo } from './return-to.ts'
import type { Language } from '../pages/texts/language.ts'
import type { UserRecord } from '../records.ts'
import type { Json } from '../store/port.ts'
import { isTaken, toVerified } from '../users/addresses.ts'
import type { AccountContext } from './context.ts'
import { type TicketRecord, ticketError } from './tickets.ts'

/** The user of a link that was spent. */
export interface Spent<Purpose> extends Partial<ReturnTo> {
  user_id: string
  /** The user's epoch, for a sign-in that follows immediately. */
  epoch: number
  account: string
  purpose: Purpose
}

/** What a link for the first or another way to sign in changes of its user, beside this way. */
export interface SpentFields {
  set: { [field: string]: Json }
  unset: string[]
  increment: { epoch: number }
  happened: Happening[]
}

/**
 * The change of the write that spends a link, and ends every session and every other link of the user. A mailed link proves the address.
 * @param user whom the link is still good for, see requireLive
 */
export function spendLink (ticket: TicketRecord, user: UserRecord, { language, now }: { language: Language | undefined, now: Clock }): SpentFields {
  const isProof = ticket.mailed && ticket.address !== undefined && ticket.former === undefined && user.email_verified_at === undefined
  const { addresses, ...proved }: { [field: string]: Json } = isProof ? toVerified(user, ticket.address!, now) : {}
  // Only what changes: of two unique fields in one write a store may not be able to say which has clashed.
  const isNew = addresses !== undefined && String(addresses) !== String(user.addresses)
  return {
    set: { ...(language !== undefined && user.language_chosen !== true && { language }), ...proved, ...(isNew && { addresses }) },
    unset: ['invited_at'],
    increment: { epoch: 1 },
    happened: isProof ? [{ type: 'user.verified', id: user.id }] : []
  }
}

/**
 * The fields of the account that a sign-up link makes. It does not exist before the person has proved that the mailbox is theirs.
 * @throws ErrTicket when it cannot be made any more
 */
export async function requireNewcomer ({ users, now }: Pick<AccountContext, 'users' | 'now'>, { address }: TicketRecord, isSignUpOn: boolean) {
  if (address === undefined || !isSignUpOn || await isTaken(users, address)) throw ticketError()
  return { account: address, email: address, email_verified_at: toTimestamp(now()), roles: {}, info: {} }
}

export const toSpent = <Purpose>(ticket: TicketRecord & { purpose: Purpose }, { id, epoch, account }: UserRecord): Spent<Purpose> => (
  { user_id: id, epoch, account, purpose: ticket.purpose, ...copyReturnTo(ticket) })
