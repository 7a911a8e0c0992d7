import { paramError } from '../errors.ts'
import { findMailbox } from '../records.ts'
import { listLiveChanges, toVerified } from '../users/addresses.ts'
import { NO_PASSWORD } from '../users/passwords.ts'
import { createAddressChanges, writeAddress } from './change-address.ts'
import { type AccountContext, requireOutbox } from './context.ts'
import { requireLive } from './live.ts'
import { keepWays } from './keep-ways.ts'
import { checkOwnMail } from './mail-limits.ts'
import { restoreAddress } from './restore-address.ts'
import { writeUndone } from './undone.ts'
import { ENDED_BY_EPOCH, type Link, PURPOSES, type TicketRecord, findNamed, ticketError } from './tickets.ts'

/** A link about an address, for display. */
export type AddressLink =
  | { purpose: 'verify', address?: string }
  /** `account` names the account that asked for the change, and `ticket` the link in a browser's progress. */
  | { purpose: 'change', address: string, user_id: string, account: string, ticket: string }
  | { purpose: 'undo' }

/** Verifies and changes the address of an account, and undoes changes. */
export function createAddresses (context: AccountContext) {
  const { users, requireUser, tickets, ways, now, recorder, onError } = context
  const { changeAddress, suggestAddress, completeChange } = createAddressChanges(context)

  async function verify (ticket: TicketRecord): Promise<void> {
    await writeAddress(context, ticket.user_id!, 'user.verified', (record) => {
      const current = requireLive(ticket, record, now)
      // The first of two concurrent uses sets this field, which spends the ticket.
      if (current.email_verified_at !== undefined) throw ticketError()
      return { set: toVerified(current, ticket.address!, 'mail', now) }
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
      const ticket = await tickets.require(link, 'verify', 'change', 'undo')
      const user = await users.get(ticket.user_id ?? '')
      if (ticket.purpose === 'undo') {
        if (user === null || !listLiveChanges(user, now()).some((one) => one.ticket === findNamed(ticket))) throw ticketError()
        return { purpose: 'undo' }
      }
      const { id: user_id, account } = requireLive(ticket, user, now)
      const { address } = ticket
      if (ticket.purpose === 'change') return { purpose: 'change', address: address!, user_id, account, ticket: ticket.id }
      return { purpose: 'verify', ...(address !== undefined && { address }) }
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
    },

    /**
     * Undoes a change of the address, all later changes, and the ways that were added since, because they are assumed to come from the same person. Ends the
     * password, which that person may know, all sessions and all links. The restored address gets a link for a new password, and
     * the address that loses the account gets a notice.
     * @throws ErrTicket
     */
    async undoChange (token: string): Promise<void> {
      const ticket = await tickets.require(token, 'undo')
      let removed: string[] = []
      const written = await writeAddress(context, ticket.user_id!, 'user.email_restored', async (record) => {
        const live = listLiveChanges(record, now())
        const index = live.findIndex((one) => one.ticket === findNamed(ticket))
        if (index < 0) throw ticketError()
        const { ways: kept = [] } = live[index]!
        const fields = keepWays(record, kept)
        const address = restoreAddress(record, live, index, context.findOnly)
        removed = fields.removed
        // No key is set that another user could have: a clash can only be that of the address.
        const set = { ...fields.set, ...address.set, password: NO_PASSWORD }
        const change = { set, unset: [...fields.unset, ...address.unset], increment: { epoch: 1 } }
        return {
          ...change,
          also: fields.removed.length === 0 ? [] : [{ type: 'factor.undone', id: record.id }],
          notices: await writeUndone(context, 'address-restored', record, change)
        }
      })
      await Promise.all([tickets.remove(ticket.id), tickets.removeOf(written.id, ENDED_BY_EPOCH), ways.drop(removed)]).catch(onError)
    }
  }
}
