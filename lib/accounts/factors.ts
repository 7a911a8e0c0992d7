import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { generateId } from '../ids.ts'
import { type Proof, reaches, toStrength } from '../proofs.ts'
import type { FirstFactor, UserRecord } from '../records.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { listLiveChanges } from '../users/addresses.ts'
import { NO_PASSWORD } from '../users/passwords.ts'
import { stepUpError } from '../ways/step-up.ts'
import { WayError } from '../ways/way-error.ts'
import type { WayActor } from '../ways/ways.ts'
import { isFactor } from '../ways/words.ts'
import type { AccountContext } from './context.ts'
import { checkEnrolment, createEnrolLinks } from './enrol-link.ts'
import { keepWays } from './keep-ways.ts'
import { requireMailbox } from './live.ts'
import { restoreAddress } from './restore-address.ts'
import { writeUndone } from './undone.ts'
import { ENDED_BY_EPOCH, type TicketRecord, findNamed, ticketError } from './tickets.ts'

const HOUR = 60 * 60_000

/** First factors whose addition can be undone at the same time. */
const MAX_UNDOS = 10

/** The hours for which the first factor can be undone by mail. */
export const DEFAULT_UNDO_FACTORS = 72

/**
 * What a session has proved, for a change of the factors that it asks for. `link` names the enrolment whose link the browser carries, if an
 * administrator has reset the factors of the user.
 */
export type FactorActor = WayActor & { proofs: readonly Proof[], link?: string | undefined }

const listLive = ({ first_factors = [] }: Pick<UserRecord, 'first_factors'>, now: number): FirstFactor[] => (
  first_factors.filter(({ until }) => until > toTimestamp(now)))

/** Changes of second factors. A mail tells the person of each. */
export function createFactorChanges (context: AccountContext, { undoHours = DEFAULT_UNDO_FACTORS }: { undoHours?: number | undefined }) {
  const { users, requireUser, changeUser, tickets, ways, notices, now, onError } = context

  /** @throws ErrUnknown when the session has proved less than a person with a factor must: it was begun before the factor was added */
  function checkProofs ({ proofs }: FactorActor): void {
    if (proofs.length === 0 || !reaches(toStrength(proofs), 'mfa')) throw stepUpError({ acr: 'mfa' })
  }

  /** Finds the addition that a link undoes, in the list of those that can still be undone. @throws ErrTicket */
  function requireFirst (ticket: TicketRecord, user: UserRecord): { live: FirstFactor[], index: number } {
    const live = listLive(user, now())
    const index = live.findIndex((one) => one.ticket === findNamed(ticket))
    if (index < 0) throw ticketError()
    requireMailbox(ticket, user, now)
    return { live, index }
  }

  return {
    /**
     * Names a factor that has been proved, with the recovery codes that come with the first one. Whoever knows the password alone could add
     * the first factor, so its mail has a link that undoes that. Further ones have none: a mailbox alone never removes an established factor.
     * @param ids of a factor, and of prepared codes
     * @throws WayError, ErrUnknown when the session has ended or has proved too little, ErrTicket without the link that is needed, ErrLimit
     */
    async addFactor (actor: FactorActor, ids: readonly string[]): Promise<UserRecord> {
      const { user_id, link } = actor
      if (link !== undefined) await tickets.requireNamed(user_id, 'enrol', link)
      const [id = ''] = ids
      const what = (await ways.findPrepared(actor, id))?.way.kind === 'passkey' ? 'passkey' : 'factor'
      const undo = generateId(now())
      const until = toTimestamp(now() + undoHours * HOUR)
      const written = await ways.name(actor, ids, async (record) => {
        const happened = [{ type: 'factor.added', id: user_id }] as const
        if (await ways.hasFactor(record)) {
          checkProofs(actor)
          return { happened, notices: await notices.write(`${what}-added`, record) }
        }
        checkEnrolment(ways, record, link)
        const unset = record.enrol_ticket === undefined ? [] : ['enrol_ticket']
        const mails = undoHours === 0 ? [] : await notices.write(`first-${what}-added`, record, { of: undo, until, values: { hours: String(undoHours) } })
        if (mails.length === 0) return { happened, notices: await notices.write(`${what}-added`, record), also: { unset } }
        const live = listLive(record, now())
        if (live.length >= MAX_UNDOS) throw new IdentityError('ErrLimit', 'way: first factors were added too often, try again in a day')
        const first: FirstFactor = { ticket: undo, until, ways: Object.keys(record.ways ?? {}), changes: listLiveChanges(record, now()).map(({ ticket }) => ticket) }
        return { happened, notices: mails, also: { set: { first_factors: [...live, first] }, unset } }
      })
      if (link !== undefined) await tickets.removeOf(user_id, ['enrol']).catch(onError)
      return written
    },

    /**
     * Replaces the recovery codes.
     * @throws WayError, ErrUnknown
     */
    async renewCodes (actor: FactorActor, id: string): Promise<UserRecord> {
      return await ways.name(actor, [id], async (record) => {
        if (!await ways.hasFactor(record)) throw new WayError('unknown')
        checkProofs(actor)
        return { happened: [{ type: 'recovery.renewed', id: actor.user_id }], notices: await notices.write('codes-renewed', record) }
      })
    },

    /**
     * Removes a factor of a user. The recovery codes go with the last one.
     * @param isEnd whether all sessions end
     * @throws WayError `last` unless a way in remains, ErrUnknown when the session that asks has ended
     */
    async removeFactor (actor: WayActor, id: string, { isEnd = true }: { isEnd?: boolean } = {}): Promise<UserRecord> {
      const user = await requireUser(actor.user_id)
      const way = Object.hasOwn(user.ways ?? {}, id) ? user.ways![id] : undefined
      if (way === undefined || !isFactor(way)) throw new WayError('unknown')
      const kind = way.kind === 'passkey' ? 'passkey-removed' : 'factor-removed'
      return await ways.remove(actor, id, {
        isEnd, toRecorded: async (record) => ({ happened: [{ type: 'factor.removed', id: user.id }], notices: await notices.write(kind, record) })
      })
    },

    /**
     * Reads the link of a first factor, without spending it.
     * @throws ErrTicket
     */
    async inspectUndoFactor (token: string): Promise<void> {
      const ticket = await tickets.require(token, 'undo-factor')
      const user = await users.get(ticket.user_id ?? '')
      if (user === null) throw ticketError()
      requireFirst(ticket, user)
    },

    /**
     * Undoes the addition of a first factor, and all ways and changes of the address since, because they are assumed to come from the same
     * person. Ends the password, which that person knows, all sessions and all links. The user gets a link for a new password.
     * @throws ErrTicket
     */
    async undoFactor (token: string): Promise<void> {
      const ticket = await tickets.require(token, 'undo-factor')
      let removed: string[] = []
      const write = async (restores: boolean): Promise<UserRecord> => await changeUser(ticket.user_id!, async (record) => {
        const { live, index } = requireFirst(ticket, record)
        const { ways: kept, changes: known } = live[index]!
        const fields = keepWays(record, kept)
        const changes = listLiveChanges(record, now())
        const since = !restores || known === undefined ? -1 : changes.findIndex((change) => !known.includes(change.ticket))
        const address = since < 0 ? { set: {}, unset: [] } : restoreAddress(record, changes, since, context.findOnly)
        removed = fields.removed
        const change = {
          set: { ...fields.set, ...address.set, password: NO_PASSWORD, first_factors: live.slice(0, index) },
          unset: [...fields.unset, ...address.unset],
          increment: { epoch: 1 }
        }
        const { id } = record
        return {
          ...change,
          happened: [{ type: 'factor.undone', id }, ...(since < 0 ? [] : [{ type: 'user.email_restored', id }] as const)],
          notices: await writeUndone(context, 'factor-undone', record, change)
        }
      }, { notFound: ticketError })
      const written = await write(true).catch(async (error: unknown) => {
        // Another user has that address now. The ways and the password go in any case.
        if (error instanceof DuplicateKeyError) return await write(false)
        throw error
      })
      await Promise.all([tickets.remove(ticket.id), tickets.removeOf(written.id, ENDED_BY_EPOCH), ways.drop(removed)]).catch(onError)
    },

    ...createEnrolLinks(context)
  }
}
