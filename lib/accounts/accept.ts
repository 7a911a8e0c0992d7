import { IdentityError } from '../errors.ts'
import { generateId } from '../ids.ts'
import type { Language } from '../pages/texts/language.ts'
import { type UserRecord, createUserRecord } from '../records/user.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { isInUse } from '../ways/credentials.ts'
import { showIdentity } from '../ways/identity.ts'
import { WayError } from '../ways/way-error.ts'
import type { AccountContext } from './context.ts'
import { type IdentityLinks, type NewIdentity, findLinked } from './identities.ts'
import { requireLive } from './live.ts'
import type { InspectedLink } from './password.ts'
import { type Spent, requireNewcomer, spendLink, toSpent } from './spend-link.ts'
import { type TicketRecord, ticketError } from '../tickets/tickets.ts'

/** The purposes of links that an identity at another provider may complete. */
export type AcceptPurpose = 'invite' | 'sign-up'

export interface Accepted extends Spent<AcceptPurpose> {
  /** The id of the way that was linked. */
  way: string
}

export interface AcceptOptions {
  /** What the provider calls a new person. */
  displayName: string
  language?: Language | undefined
  /** Checks whether the person may sign in by this identity, on the account as the write leaves it. It may throw. */
  decide: (becomes: InspectedLink['becomes']) => void
}

/** Completes invitations and sign-ups by an identity, instead of a password. */
export function createAcceptances (
  context: AccountContext, { isSignUpOn, linkIdentity }: { isSignUpOn: boolean } & Pick<IdentityLinks, 'linkIdentity'>
) {
  const { users, insertUser, tickets, ways, now, onError } = context

  async function acceptInvitation (
    ticket: TicketRecord, identity: NewIdentity, name: string, { language, decide }: AcceptOptions
  ): Promise<UserRecord> {
    const user = requireLive(ticket, await users.get(ticket.user_id ?? ''), now)
    // The link is the proof, and not a session: the record that the write replaces decides whether it is still good.
    const decideOn = (record: UserRecord) => {
      const { happened, ...also } = spendLink(ticket, requireLive(ticket, record, now), { language, now })
      decide({ ...record, ...also.set })
      return { also, happened }
    }
    return await linkIdentity({ user_id: user.id, epoch: null }, identity, name, { decide: decideOn }).catch((error: unknown) => {
      const isGone = error instanceof DuplicateKeyError || (error instanceof IdentityError && error.code === 'ErrUnknown')
      throw isGone ? ticketError() : error
    })
  }

  async function signUp (
    ticket: TicketRecord, identity: NewIdentity, { displayName, language = ticket.language, decide }: AcceptOptions
  ): Promise<UserRecord> {
    const fields = await requireNewcomer(context, ticket, isSignUpOn)
    decide(fields)
    const id = generateId(now())
    const made = await ways.prepareNew(id, identity)
    const record = createUserRecord(now(), { id, ...fields, name: displayName, ...made.fields, language }, false)
    try {
      await insertUser(record, [{ type: 'user.signed_up', id }, { type: 'identity.linked', id, via: showIdentity(identity) }], ticketError)
    } catch (error) {
      await made.drop(error)
      throw isInUse(error) ? new WayError('in_use', { cause: error }) : error
    }
    await tickets.remove(ticket.id).catch(onError)
    return record
  }

  return {
    /**
     * Completes a link by an identity. The link is the proof: the address that the provider says need not be that of the account, and
     * changes nothing. The write that names the identity spends the link.
     * @param link the id of its ticket
     * @param name of the upstream, for the mail
     * @throws ErrTicket; WayError `in_use`, and what `decide` throws: the link can then be used again
     */
    async acceptByIdentity (link: string, identity: NewIdentity, name: string, options: AcceptOptions): Promise<Accepted> {
      const ticket = await tickets.require({ ticket: link }, 'invite', 'sign-up')
      const isInvited = ticket.purpose === 'invite'
      const user = isInvited ? await acceptInvitation(ticket, identity, name, options) : await signUp(ticket, identity, options)
      return { ...toSpent(ticket, user), way: findLinked(user, identity) }
    }
  }
}
