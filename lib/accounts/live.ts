import type { Clock } from '../clock.ts'
import { toTimestamp } from '../clock.ts'
import { type UserRecord, findMailbox, isActive } from '../records/user.ts'
import { type TicketRecord, ticketError } from '../tickets/tickets.ts'

/**
 * Returns the user of a ticket, if the ticket is still valid: the user is active, neither a new password nor a new role has ended
 * it, a first factor has not ended a change of address, and they still have the mailbox that it depends on.
 * @throws ErrTicket
 */
export function requireLive (ticket: TicketRecord, user: UserRecord | null, now: Clock): UserRecord {
  if (user === null || user.id !== ticket.user_id || user.epoch !== ticket.user_epoch || !isActive(user, toTimestamp(now()))) throw ticketError()
  if ((user.link_epoch ?? 0) !== (ticket.link_epoch ?? 0)) throw ticketError()
  // Whoever asked for the change has proved less than is asked now.
  if (ticket.purpose === 'change' && user.has_factor === true && ticket.has_factor !== true) throw ticketError()
  const mailbox = ticket.purpose === 'change' || ticket.former !== undefined ? ticket.former : ticket.mailed ? ticket.address : findMailbox(user)
  if ((findMailbox(user) ?? '') !== (mailbox ?? '')) throw ticketError()
  return user
}
