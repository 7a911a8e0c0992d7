import { defined } from '../defined.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { EventType, Happening } from '../events/types.ts'
import type { Notice } from '../notice.ts'
import { type UserChange, type UserRecord, findMailbox } from '../records/user.ts'
import { DuplicateKeyError, type MaybePromise } from '../store/port.ts'
import { isTaken, toVerified } from '../users/addresses.ts'
import type { ConfirmRecord } from '../user-changes/user-changes.ts'
import { checkAddress } from './ask.ts'
import { type AccountContext, requireOutbox } from './context.ts'
import { requireLive } from './live.ts'
import { checkOwnMail } from './mail-limits.ts'
import { PURPOSES, type TicketRecord, ticketError } from '../tickets/tickets.ts'

/** A change of an address, with further events, and the mails about it. */
interface AddressDecision extends UserChange {
  also?: readonly Happening[]
  notices?: readonly Notice[]
}

/**
 * The ticket of a link about an address, which has a user and the address.
 * @throws ErrTicket
 */
export function requireAddressed (ticket: TicketRecord): { user_id: string, address: string } {
  const { user_id, address } = ticket
  if (user_id === undefined || address === undefined) throw ticketError()
  return { user_id, address }
}

/** Writes an address to the user. @throws ErrTicket also when another user has verified the address meanwhile */
export async function writeAddress (
  { changeUser }: AccountContext, user_id: string, type: EventType, decide: (record: UserRecord) => MaybePromise<AddressDecision>
): Promise<UserRecord> {
  try {
    return await changeUser(user_id, async (record) => {
      const { also = [], notices = [], ...change } = await decide(record)
      return { ...change, happened: [{ type, id: user_id }, ...also], notices }
    }, { notFound: ticketError })
  } catch (error) {
    if (error instanceof DuplicateKeyError) throw ticketError()
    throw error
  }
}

/**
 * Only the account that asked for a change completes it: whoever reads the new mailbox may be somebody else, who takes the mail for
 * one about their own account.
 * @param user_id the signed-in user; undefined without a sign-in
 */
function checkIsOwn ({ user_id: owner }: TicketRecord, user_id: string | undefined): void {
  if (user_id === undefined) {
    const message = 'authorization: is required, because the link changes the address of an account'
    throw new IdentityError('ErrUnknown', message, { headers: { 'www-authenticate': 'Bearer' } })
  }
  if (user_id !== owner) throw permError('token', 'the link belongs to another account')
}

/** Changes the address of an account: first the request, and then the use of the link that it has mailed. */
export function createAddressChanges (context: AccountContext) {
  const { users, requireUser, now, recorder, undos, findOnly = () => undefined } = context

  /**
   * With another address, somebody who signs in with one provider only could do so in other ways, and keep the account after they have
   * left the company.
   * @throws ErrPerm
   */
  function checkStays (user: UserRecord, address: string): void {
    const only = findOnly(user)
    // The address alone: that of another domain would not be proved by that provider.
    if (only !== undefined && findOnly({ account: address, email: address, roles: user.roles })?.id !== only.id) {
      throw permError('email', `only an administrator may set this address, because the account signs in with ${only.name} only`)
    }
  }

  return {
    /**
     * Sends a link to the new address. Nothing changes until the user uses the link. The answer is the same if the address
     * belongs to another user.
     * @param confirm called with the user's record: the link is good as long as what this has checked
     * @throws ErrParam, ErrLimit, ErrNotFound without mail, ErrPerm for an address that no longer binds them to one provider, and what
     *   `confirm` throws
     */
    async changeAddress (user_id: string, email: string, language = 'en', confirm?: ConfirmRecord): Promise<void> {
      const outbox = requireOutbox(context)
      const address = checkAddress('email', email)
      const user = await requireUser(user_id)
      await confirm?.(user)
      if (address === user.email) throw paramError('email', 'is your address already')
      checkStays(user, address)
      await checkOwnMail(context, user_id, address)
      const kind = address === findMailbox(user) ? 'verify' : 'change'
      const { epoch, has_factor } = user
      await outbox.enqueue(defined({ kind, user_id, address, epoch, language, has_factor }), PURPOSES.change.life)
      await recorder.insert({ type: 'user.email_change_requested', id: user_id })
    },

    /**
     * Mails a link to an address that another provider has seen at a new user. The address may be somebody else's by now, so nothing of it is
     * in the user's record, and only the user can use the link, as that of a change. The sign-in goes on whether or not there is a mail.
     * @param upstream the name of the provider
     */
    async suggestAddress (user: UserRecord, address: string, upstream: string, language = 'en'): Promise<void> {
      const { outbox, writeLink, onError } = context
      if (outbox === undefined || writeLink === undefined) return
      try {
        await checkOwnMail(context, user.id, address)
        const job = { kind: 'suggest', user_id: user.id, address, upstream_name: upstream, epoch: user.epoch, language }
        await outbox.enqueue(job, PURPOSES.change.life)
      } catch (cause) {
        if (cause instanceof IdentityError && cause.code === 'ErrLimit') return
        onError(new Error('a user was sent no link for the address that a provider has seen', { cause }))
      }
    },

    /**
     * Completes a change.
     * @param signedIn the id of the signed-in user
     * @throws ErrUnknown without a user, ErrPerm for another user, ErrTicket, ErrLimit
     */
    async completeChange (ticket: TicketRecord, signedIn: string | undefined): Promise<void> {
      checkIsOwn(ticket, signedIn)
      const { address, user_id } = requireAddressed(ticket)
      requireLive(ticket, await users.get(user_id), now)
      if (await isTaken(users, address, user_id)) throw ticketError()
      await writeAddress(context, user_id, 'user.email_changed', async (record) => {
        const current = requireLive(ticket, record, now)
        checkStays(current, address)
        const { set, unset, notices } = await undos.write(current, { kind: 'address', mail: 'address-changed', isAsked: true })
        // The new mailbox invalidates the ticket.
        return { set: { ...toVerified(current, address, 'mail', now), ...set }, unset, notices }
      })
    }
  }
}
