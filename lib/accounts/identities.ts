import { toTimestamp } from '../clock.ts'
import type { Happening } from '../events/types.ts'
import type { Job } from '../mail/outbox.ts'
import type { UserRecord } from '../records.ts'
import type { MaybePromise } from '../store/port.ts'
import { findMailbox } from '../users/addresses.ts'
import type { Way } from '../way.ts'
import type { NewWay } from '../ways/credentials.ts'
import { showIdentity } from '../ways/identity.ts'
import type { WayChange } from '../ways/way-changes.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor } from '../ways/ways.ts'
import { type AccountContext, prepareNotice } from './context.ts'
import { keepWays } from './keep-ways.ts'
import { requireMailbox } from './live.ts'
import { ENDED_BY_EPOCH, PURPOSES, type TicketRecord, ticketError } from './tickets.ts'

/** An identity at an upstream, as a way. */
export type NewIdentity = NewWay & { kind: 'upstream', upstream: string, key: string }

export interface LinkOptions {
  /** Checks a rule on the record that the write replaces, and may throw. It returns what else is written. */
  decide?: (record: UserRecord) => MaybePromise<Pick<WayChange, 'also' | 'happened' | 'remove' | 'isEnd'> | undefined>
  /** The mail that tells of it. `identity-joined`: what was there before has gone. `identity-rejoined`: the identity before has. */
  notice?: 'identity-linked' | 'identity-joined' | 'identity-rejoined' | undefined
}

/**
 * Links identities at other providers to accounts, and unlinks them. A mail tells the person of each new identity, and lets them undo it.
 * The mail is stored before the identity is linked and sent after it, so that nothing is linked without the mail.
 */
export function createIdentityLinks (context: AccountContext) {
  const { users, requireUser, changeUser, tickets, ways, outbox, findPlace, now, onError } = context

  /** Stores the mail about a link. Undefined where the user has no mailbox, or mail is off. */
  async function prepare (user: UserRecord, way: string, name: string, kind: NonNullable<LinkOptions['notice']>): Promise<{ release: () => void } | undefined> {
    const to = findMailbox(user)
    if (to === undefined || outbox === undefined) return undefined
    const job: Job = { kind, user_id: user.id, to, way, until: toTimestamp(now() + PURPOSES['undo-link'].life), upstream_name: name, time: toTimestamp(now()), place: { ...findPlace() } }
    return await outbox.enqueue(job, PURPOSES['undo-link'].life, { waits: true })
  }

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
    async linkIdentity (actor: WayActor, identity: NewIdentity, name: string, { decide = () => undefined, notice: kind = 'identity-linked' }: LinkOptions = {}): Promise<UserRecord> {
      const [id] = await ways.prepare(actor, [identity])
      const user = await requireUser(actor.user_id)
      const notice = await prepare(user, id!, name, kind)
      const written = await ways.name(actor, [id!], async (record) => {
        const { happened = [], ...more } = await decide(record) ?? {}
        return { ...more, happened: [{ type: 'identity.linked', id: record.id, via: showIdentity(identity) }, ...happened] }
      })
      notice?.release()
      if (written.epoch !== user.epoch) await tickets.removeOf(user.id, ENDED_BY_EPOCH).catch(onError)
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
      const happening: Happening = { type: 'identity.unlinked', id: user.id, via: showIdentity(way) }
      const job: Job | undefined = findMailbox(user) === undefined
        ? undefined
        : { kind: 'identity-unlinked', user_id: user.id, to: findMailbox(user)!, way: id, time: toTimestamp(now()), place: { ...findPlace() } }
      const notice = job && await prepareNotice(context, job)
      const written = await ways.remove(actor, id, { isEnd, happened: [happening] })
      notice?.release()
      return written
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
