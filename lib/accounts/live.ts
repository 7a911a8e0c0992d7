import type { Clock } from '../clock.ts'
import { toTimestamp } from '../clock.ts'
import type { UserRecord } from '../records.ts'
import type { Json } from '../store/port.ts'
import { isActive } from '../tokens/validity.ts'
import { findMailbox, listAddresses } from '../users/addresses.ts'
import { type TicketRecord, ticketError } from './tickets.ts'

/**
 * The user that a ticket is for, as long as it may be used: nothing has ended it since, and the mailbox that it went to is
 * still theirs.
 * @throws ErrTicket
 */
export function requireLive (ticket: TicketRecord, user: UserRecord | null, now: Clock): UserRecord {
  if (user === null || user.id !== ticket.user_id || user.epoch !== ticket.user_epoch || !isActive(user, toTimestamp(now()))) throw ticketError()
  const mailbox = ticket.purpose === 'change' ? ticket.former : ticket.mailed ? ticket.address : findMailbox(user)
  if (findMailbox(user) !== mailbox) throw ticketError()
  return user
}

/** The fields that record that the address is the user's. */
export function toVerified (user: Pick<UserRecord, 'account'>, address: string, now: Clock): { [field: string]: Json } {
  return { email: address, email_verified_at: toTimestamp(now()), addresses: listAddresses(user.account, address) }
}
