import type { Clock } from '../clock.ts'
import { defined } from '../defined.ts'
import type { Happening } from '../events/types.ts'
import { copyReturnTo, type ReturnTo } from './return-to.ts'
import type { Language } from '../pages/texts/language.ts'
import type { UserField, UserRecord } from '../records/user.ts'
import { type AddressProof, proveAddress } from '../user-changes/address-proof.ts'
import { isTaken, toVerified } from '../users/addresses.ts'
import { showIdentity } from '../ways/identity.ts'
import type { AccountContext } from './context.ts'
import { keepWays } from './keep-ways.ts'
import { type TicketRecord, ticketError } from '../tickets/tickets.ts'

/** The user of a link that was spent. */
export interface Spent<Purpose> extends Partial<ReturnTo> {
  user_id: string
  /** The user's epoch, for a sign-in that follows immediately. */
  epoch: number
  account: string
  purpose: Purpose
  /** The mailbox that the link was mailed to. Absent on one that was shown to a caller. */
  mailbox?: string | undefined
}

/** What a link for the first or another way to sign in changes of its user, beside this way. */
export interface SpentFields {
  set: Partial<UserRecord>
  unset: UserField[]
  increment: { epoch: number }
  happened: Happening[]
}

/** The address whose first proof the use of a link is, if it is one. */
const findProved = ({ mailed, address, former }: TicketRecord, user: UserRecord): string | undefined =>
  mailed && former === undefined && user.email_verified_at === undefined ? address : undefined

/**
 * The change by which a link for a new password removes the identities of a user whose address was never proved. Whoever reads the mailbox now
 * has nothing to do with what somebody linked before: that may be a former owner, to whom the account would stay open.
 */
export function endIdentities (
  ticket: TicketRecord, user: UserRecord
): Pick<SpentFields, 'set' | 'unset' | 'happened'> & { removed: string[] } {
  const ways = Object.entries(user.ways ?? {})
  const isEnd = ticket.purpose === 'reset' && findProved(ticket, user) !== undefined
  const removed = isEnd ? ways.filter(([, { kind }]) => kind === 'upstream') : []
  if (removed.length === 0) return { set: {}, unset: [], happened: [], removed: [] }
  const { set, unset } = keepWays(user, ways.filter(([, { kind }]) => kind !== 'upstream').map(([id]) => id))
  const happened = removed.map(([, way]): Happening => ({ type: 'identity.unlinked', id: user.id, via: showIdentity(way) }))
  return { set, unset, happened, removed: removed.map(([id]) => id) }
}

/**
 * The change of the write that spends a link, and ends every session and every other link of the user. A mailed link proves the address.
 * @param user whom the link is still good for, see requireLive
 */
export function spendLink (
  ticket: TicketRecord, user: UserRecord, { language, now }: { language: Language | undefined, now: Clock }
): SpentFields {
  const address = findProved(ticket, user)
  const verified: AddressProof & { addresses?: string[] } = address === undefined ? {} : toVerified(user, address, 'mail', now)
  const { addresses, ...proof } = verified
  // Only what changes: of two unique fields in one write a store may not be able to say which has clashed.
  const isNew = addresses !== undefined && String(addresses) !== String(user.addresses)
  return {
    set: defined({ language: user.language_chosen === true ? undefined : language, ...proof, addresses: isNew ? addresses : undefined }),
    unset: ['invited_at'],
    increment: { epoch: 1 },
    happened: address !== undefined ? [{ type: 'user.verified', id: user.id }] : []
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

export function toSpent<Purpose> (ticket: TicketRecord & { purpose: Purpose }, { id, epoch, account }: UserRecord): Spent<Purpose> {
  const { purpose, mailed, address } = ticket
  return { user_id: id, epoch, account, purpose, mailbox: mailed ? address : undefined, ...copyReturnTo(ticket) }
}
