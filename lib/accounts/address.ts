import { toTimestamp } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { EventType } from '../events/types.ts'
import type { AddressChange, UserRecord } from '../records.ts'
import { type Change, DuplicateKeyError } from '../store/port.ts'
import { createToken, hashToken } from '../tokens/tokens.ts'
import { findMailbox, isTaken, listAddresses } from '../users/addresses.ts'
import { checkAddress, checkMayMail } from './ask.ts'
import { type AccountContext, changeUser, notify, requireOutbox } from './context.ts'
import { requireLive, toVerified } from './live.ts'
import { ENDED_BY_EPOCH, PURPOSES, type TicketRecord, ticketError } from './tickets.ts'

/** The number of address changes that can be undone at the same time. Ten changes in three days are more than a user needs. */
const MAX_CHANGES = 10

/** Verifies and changes the address of an account, and undoes changes. */
export function createAddresses (context: AccountContext) {
  const { users, tickets, tokens, now, recorder, onError } = context

  async function requireUser (user_id: string): Promise<UserRecord> {
    const user = await users.get(user_id)
    if (user === null) throw new IdentityError('ErrNotFound', 'userId: no such user')
    return user
  }

  /** Writes an address to the user. @throws ErrTicket also when another user has verified the address meanwhile */
  async function write (user_id: string, type: EventType, decide: (record: UserRecord | null) => Change): Promise<UserRecord> {
    try {
      return await changeUser(context, user_id, decide, type)
    } catch (error) {
      if (error instanceof DuplicateKeyError) throw ticketError()
      throw error
    }
  }

  async function verify (ticket: TicketRecord): Promise<void> {
    await write(ticket.user_id!, 'user.verified', (record) => {
      const current = requireLive(ticket, record, now)
      // The first of two concurrent uses sets this field, which spends the ticket.
      if (current.email_verified_at !== undefined) throw ticketError()
      return { set: toVerified(current, ticket.address!, now) }
    })
  }

  const listLive = ({ address_changes = [] }: UserRecord): AddressChange[] => {
    const time = toTimestamp(now())
    return address_changes.filter(({ until }) => until > time)
  }

  async function change (ticket: TicketRecord): Promise<void> {
    const { address, former, user_id } = ticket as TicketRecord & { address: string, user_id: string }
    requireLive(ticket, await users.get(user_id), now)
    if (await isTaken(users, address, user_id)) throw ticketError()
    const token = createToken()
    let notice: { release: () => void } | undefined
    if (former !== undefined) {
      await tickets.issue({ purpose: 'undo', user_id, mailed: true }, token)
      // Stored before the change and sent after it, so that a thief cannot change the address without the mail that undoes it.
      notice = await context.outbox?.enqueue({ kind: 'address-changed', user_id, token, to: former }, PURPOSES.undo.life, { waits: true })
    }
    await write(user_id, 'user.email_changed', (record) => {
      const current = requireLive(ticket, record, now)
      const live = listLive(current)
      if (live.length >= MAX_CHANGES) throw new IdentityError('ErrLimit', 'email: was changed too often, try again in a day')
      const { email, email_verified_at } = current
      const undo: AddressChange = {
        ticket: hashToken(token),
        until: toTimestamp(now() + PURPOSES.undo.life),
        ...(email !== undefined && { email }),
        ...(email_verified_at !== undefined && { email_verified_at })
      }
      // The new mailbox invalidates the ticket.
      return { set: { ...toVerified(current, address, now), address_changes: former === undefined ? live : [...live, undo] } }
    })
    notice?.release()
  }

  return {
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
      await checkMayMail(context, mailbox)
      await outbox.enqueue({ kind: 'verify', user_id, epoch: user.epoch, language }, PURPOSES.verify.life)
      await recorder.insert({ type: 'user.verification_requested', id: user_id })
    },

    /**
     * Sends a link to the new address. Nothing changes until the user uses the link. The answer is the same if the address
     * belongs to another user.
     * @throws ErrParam, ErrLimit, ErrNotFound without mail
     */
    async changeAddress (user_id: string, email: string, language = 'en'): Promise<void> {
      const outbox = requireOutbox(context)
      const address = checkAddress('email', email)
      const user = await requireUser(user_id)
      if (address === user.email) throw paramError('email', 'is your address already')
      await checkMayMail(context, address)
      const kind = address === findMailbox(user) ? 'verify' : 'change'
      await outbox.enqueue({ kind, user_id, address, epoch: user.epoch, language }, PURPOSES.change.life)
      await recorder.insert({ type: 'user.email_change_requested', id: user_id })
    },

    /**
     * Reads the purpose of a link about an address, without spending the link.
     * @throws ErrTicket
     */
    async inspectAddressLink (token: string): Promise<{ purpose: 'verify' | 'change' | 'undo', address?: string }> {
      const ticket = await tickets.require(token, 'verify', 'change', 'undo')
      const user = await users.get(ticket.user_id ?? '')
      if (ticket.purpose === 'undo') {
        if (user === null || !listLive(user).some((one) => one.ticket === ticket.id)) throw ticketError()
        return { purpose: 'undo' }
      }
      requireLive(ticket, user, now)
      return { purpose: ticket.purpose as 'verify' | 'change', ...(ticket.address !== undefined && { address: ticket.address }) }
    },

    /**
     * Verifies the mailbox that the link was mailed to: the user's own, or the new one.
     * @throws ErrTicket
     */
    async verifyAddress (token: string): Promise<void> {
      const ticket = await tickets.require(token, 'verify', 'change')
      await (ticket.purpose === 'verify' ? verify(ticket) : change(ticket))
      await tickets.remove(ticket.id).catch(onError)
    },

    /**
     * Undoes a change of the address and all later changes, because they are assumed to come from the same person. Ends all
     * sessions and links, and sends a link for a new password to the restored address.
     * @throws ErrTicket
     */
    async undoChange (token: string): Promise<void> {
      const ticket = await tickets.require(token, 'undo')
      const written = await write(ticket.user_id!, 'user.email_restored', (record) => {
        const live = record === null ? [] : listLive(record)
        const index = live.findIndex((one) => one.ticket === ticket.id)
        if (record === null || index < 0) throw ticketError()
        const { email, email_verified_at } = live[index]!
        return {
          set: {
            addresses: listAddresses(record.account, email),
            address_changes: live.slice(0, index),
            ...(email !== undefined && { email }),
            ...(email_verified_at !== undefined && { email_verified_at })
          },
          unset: email === undefined ? ['email', 'email_verified_at'] : [],
          increment: { epoch: 1 }
        }
      })
      tokens.deleteOfUser(written.id, written.epoch)
      await Promise.all([tickets.remove(ticket.id), tickets.removeOf(written.id, ENDED_BY_EPOCH)]).catch(onError)
      await notify(context, { kind: 'address-restored', user_id: written.id, epoch: written.epoch })
    }
  }
}
