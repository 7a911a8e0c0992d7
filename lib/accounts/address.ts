import { paramError } from '../errors.ts'
import { findMailbox } from '../records/user.ts'
import { toVerified } from '../users/addresses.ts'
import { createAddressChanges, requireAddressed, writeAddress } from './change-address.ts'
import { type AccountContext, requireOutbox } from './context.ts'
import { requireLive } from './live.ts'
import { checkOwnMail } from './mail-limits.ts'
import { type Link, PURPOSES, type TicketRecord, ticketError } from '../tickets/tickets.ts'

/** A link about an address, for display. */
export type AddressLink =
  | { purpose: 'verify', address?: string | undefined }
  /** `account` names the account that asked for the change, and `ticket` the link in a browser's progress. */
  | { purpose: 'change', address: string, user_id: string, account: string, ticket: string }

/** Verifies and changes the address of an account. */
export function createAddresses (context: AccountContext) {
  const { users, requireUser, tickets, now, recorder, onError } = context
  const { changeAddress, suggestAddress, completeChange } = createAddressChanges(context)

  async function verify (ticket: TicketRecord): Promise<void> {
    const { user_id, address } = requireAddressed(ticket)
    await writeAddress(context, user_id, 'user.verified', (record) => {
      const current = requireLive(ticket, record, now)
      // The first of two concurrent uses sets this field, which spends the ticket.
      if (current.email_verified_at !== undefined) throw ticketError()
      return { set: toVerified(current, address, 'mail', now) }
    })
  }

  return {
    changeAddress,
    suggestAddress,

    /**
     * Sends a link that verifies the user's mailbox.
     * @throws ErrParam when there is nothing to verify, ErrLimit, ErrNotFound without mail
     */
    async sendVerification (user_id: string, language = 'en'): Promise<void> {
      const outbox = requireOutbox(context)
      const user = await requireUser(user_id)
      const mailbox = findMailbox(user)
      if (mailbox === undefined) throw paramError('email', 'the account has no address')
      if (user.email_verified_at !== undefined) throw paramError('email', 'is verified already')
      await checkOwnMail(context, user_id, mailbox)
      await outbox.enqueue({ kind: 'verify', user_id, epoch: user.epoch, language }, PURPOSES.verify.life)
      await recorder.insert({ type: 'user.verification_requested', id: user_id })
    },

    /**
     * Reads a link about an address, without spending it.
     * @throws ErrTicket
     */
    async inspectAddressLink (link: Link): Promise<AddressLink> {
      const ticket = await tickets.require(link, 'verify', 'change')
      const { id: user_id, account } = requireLive(ticket, await users.get(ticket.user_id ?? ''), now)
      if (ticket.purpose === 'verify') return { purpose: 'verify', address: ticket.address }
      return { purpose: 'change', address: requireAddressed(ticket).address, user_id, account, ticket: ticket.id }
    },

    /**
     * Verifies the mailbox that the link was mailed to: the user's own, or the new one.
     * @param user_id the signed-in user, which a link of a change needs
     * @throws ErrTicket; ErrUnknown and ErrPerm for a change without its user, which spend nothing
     */
    async verifyAddress (link: Link, user_id?: string): Promise<void> {
      const ticket = await tickets.require(link, 'verify', 'change')
      await (ticket.purpose === 'verify' ? verify(ticket) : completeChange(ticket, user_id))
      await tickets.remove(ticket.id).catch(onError)
    }
  }
}
