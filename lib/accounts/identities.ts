import type { Happening } from '../events/types.ts'
import type { UserRecord } from '../records.ts'
import type { MaybePromise } from '../store/port.ts'
import type { Way } from '../way.ts'
import type { NewWay } from '../ways/credentials.ts'
import { showIdentity } from '../ways/identity.ts'
import type { More } from '../ways/way-changes.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor } from '../ways/ways.ts'
import type { AccountContext } from './context.ts'
import { keepWays } from './keep-ways.ts'
import { requireMailbox } from './live.ts'
import { ENDED_BY_EPOCH, type TicketRecord, ticketError } from './tickets.ts'

/** An identity at an upstream, as a way. */
export type NewIdentity = NewWay & { kind: 'upstream', upstream: string, key: string }

/** What is written together with a link. */
export type LinkChange = Omit<More, 'notices' | 'happened'> & {
  happened?: readonly Happening[]
  /** The mail that tells of it. `identity-joined`: what was there before has gone. `identity-rejoined`: the identity before has. */
  notice?: 'identity-joined' | 'identity-rejoined' | undefined
}

export interface LinkOptions {
  /** Checks a rule on the record that the write replaces, and may throw. It returns what else is written. */
  decide?: (record: UserRecord) => MaybePromise<LinkChange | undefined>
}

/** Links identities at other providers to accounts, and unlinks them. A mail tells the person of each new identity, and lets them undo it. */
export function createIdentityLinks (context: AccountContext) {
  const { users, requireUser, changeUser, tickets, ways, notices, now, onError } = context

  /** Returns the identity that a link is about. @throws ErrTicket */
  function requireLinked (ticket: TicketRecord, user: UserRecord | null): Way {
    const { way: id } = ticket
    if (user === null || id === undefined || !Object.hasOwn(user.ways ?? {}, id)) throw ticketError()
    requireMailbox(ticket, user, now)
    return user.ways![id]!
  }

  return {
    /**
     * Links an identity to an account.
     * @param name of the upstream, for the mail
     * @throws WayError `in_use` where it is another account's, `most`; ErrUnknown when the session that asks has ended
     */
    async linkIdentity (actor: WayActor, identity: NewIdentity, name: string, { decide = () => undefined }: LinkOptions = {}): Promise<UserRecord> {
      const [id] = await ways.prepare(actor, [identity])
      let before = 0
      const written = await ways.name(actor, [id!], async (record) => {
        before = record.epoch
        const { happened = [], notice = 'identity-linked', ...more } = await decide(record) ?? {}
        return {
          ...more,
          happened: [{ type: 'identity.linked', id: record.id, via: showIdentity(identity) }, ...happened],
          notices: await notices.write(notice, record, { of: id!, values: { upstream: name } })
        }
      })
      if (written.epoch !== before) await tickets.removeOf(written.id, ENDED_BY_EPOCH).catch(onError)
      return written
    },

    /**
     * Unlinks an identity.
     * @throws WayError `last` unless a way in remains, `unknown`; ErrUnknown when the session that asks has ended
     */
    async unlinkIdentity (actor: WayActor, id: string, { isEnd = true }: { isEnd?: boolean } = {}): Promise<UserRecord> {
      const user = await requireUser(actor.user_id)
      const way = Object.hasOwn(user.ways ?? {}, id) ? user.ways![id] : undefined
      if (way?.kind !== 'upstream') throw new WayError('unknown')
      return await ways.remove(actor, id, {
        isEnd,
        toRecorded: async (record) => ({
          happened: [{ type: 'identity.unlinked', id: user.id, via: showIdentity(way) }], notices: await notices.write('identity-unlinked', record)
        })
      })
    },

    /**
     * Reads the link of a mail about a linked identity, without spending it.
     * @throws ErrTicket
     */
    async inspectUndoLink (token: string): Promise<void> {
      const ticket = await tickets.require(token, 'undo-link')
      requireLinked(ticket, await users.get(ticket.user_id ?? ''))
    },

    /**
     * Removes an identity that its account's owner has not linked, and ends all sessions: whoever linked it may be signed in. The write
     * that removes it spends the link.
     * @throws ErrTicket
     */
    async undoLink (token: string): Promise<void> {
      const ticket = await tickets.require(token, 'undo-link')
      const { way: id = '' } = ticket
      const written = await changeUser(ticket.user_id!, (record) => {
        const way = requireLinked(ticket, record)
        const { set, unset } = keepWays(record, Object.keys(record.ways!).filter((other) => other !== id))
        return { set: { ...set, link_undone: true }, unset, increment: { epoch: 1 }, happened: [{ type: 'identity.unlinked', id: record.id, via: showIdentity(way) }] }
      }, { notFound: ticketError })
      await Promise.all([tickets.remove(ticket.id), tickets.removeOf(written.id, ENDED_BY_EPOCH), ways.drop([id])]).catch(onError)
    }
  }
}

export type IdentityLinks = ReturnType<typeof createIdentityLinks>
