import type { Clock } from '../clock.ts'
import type { Happening } from '../events/types.ts'
import { copyReturnTo, type ReturnTo } from './return-to.ts'
import type { Language } from '../pages/texts/language.ts'
import type { UserRecord } from '../records.ts'
import type { Json } from '../store/port.ts'
import { proveAddress } from '../users/address-proof.ts'
import { isTaken, toVerified } from '../users/addresses.ts'
import { showIdentity } from '../ways/identity.ts'
import type { AccountContext } from './context.ts'
import { keepWays } from './keep-ways.ts'
import { type TicketRecord, ticketError } from './tickets.ts'

/** The user of a link that was spent. */
export interface Spent<Purpose> extends Partial<ReturnTo> {
  user_id: string
  /** The user's epoch, for a sign-in that follows immediately. */
  epoch: number
  account: string
  purpose: Purpose
  /** The mailbox that the link was mailed to. Absent on one that was shown to a caller. */
  mailbox?: string
}

/** What a link for the first or another way to sign in changes of its user, beside this way. */
export interface SpentFields {
  set: { [field: string]: Json }
  unset: string[]
  increment: { epoch: number }
  happened: Happening[]
}

/** Whether the use of a link is the first proof that the mailbox is the user's. */
const isFirstProof = (ticket: TicketRecord, user: UserRecord): boolean =>
  ticket.mailed && ticket.address !== undefined && ticket.former === undefined && user.email_verified_at === undefined

/**
 * The change by which a link for a new password removes the identities of a user whose address was never proved. Whoever reads the mailbox now
 * has nothing to do with what somebody linked before: that may be a former owner, to whom the account would stay open.
 */
export function endIdentities (ticket: TicketRecord, user: UserRecord): Pick<SpentFields, 'set' | 'unset' | 'happened'> & { removed: string[] } {
  const ways = Object.entries(user.ways ?? {})
  const removed = ticket.purpose === 'reset' && isFirstProof(ticket, user) ? ways.filter(([, { kind }]) => kind === 'upstream') : []
  if (removed.length === 0) return { set: {}, unset: [], happened: [], removed: [] }
  const { set, unset } = keepWays(user, ways.map(([id]) => id).filter((id) => !removed.some(([gone]) => gone === id)))
  return { set, unset, happened: removed.map(([, way]) => ({ type: 'identity.unlinked', id: user.id, via: showIdentity(way) })), removed: removed.map(([id]) => id) }
}

/**
 * The change of the write that spends a link, and ends every session and every other link of the user. A mailed link proves the address.
 * @param user whom the link is still good for, see requireLive
 */
export function spendLink (ticket: TicketRecord, user: UserRecord, { language, now }: { language: Language | undefined, now: Clock }): SpentFields {
  const isProof = isFirstProof(ticket, user)
  const { addresses, ...proved }: { [field: string]: Json } = isProof ? toVerified(user, ticket.address!, 'mail', now) : {}
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
  return { account: address, ...proveAddress(address, 'mail', now()), roles: {}, info: {} }
}

export const toSpent = <Purpose>(ticket: TicketRecord & { purpose: Purpose }, { id, epoch, account }: UserRecord): Spent<Purpose> => (
  { user_id: id, epoch, account, purpose: ticket.purpose, ...(ticket.mailed && ticket.address !== undefined && { mailbox: ticket.address }), ...copyReturnTo(ticket) })
