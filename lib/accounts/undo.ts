import { toTimestamp } from '../clock.ts'
import type { Happening } from '../events/types.ts'
import { generateId } from '../ids.ts'
import { type Notice, toResetMailbox } from '../notice.ts'
import { type UserRecord, applyChange, findMailbox, listAddresses } from '../records.ts'
import { type Change, DuplicateKeyError, type Json } from '../store/port.ts'
import { type AddressProof, keepProof, restoreProof } from '../users/address-proof.ts'
import { isTaken } from '../users/addresses.ts'
import { NO_PASSWORD } from '../users/passwords.ts'
import { type Undo, listUndos, toUndoFields } from '../users/undos.ts'
import type { Way, WayKind } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import { isFactor, isOnly } from '../ways/words.ts'
import type { AccountContext } from './context.ts'
import { keepWays } from './keep-ways.ts'
import { ENDED_BY_EPOCH, type TicketRecord, findNamed, ticketError } from './tickets.ts'

/** A way in, for display. */
export interface ShownWay {
  kind: WayKind
  /** The id of the upstream of an identity. */
  upstream?: string
  at: string
  /** From where it was added. Absent: nobody knows. */
  place?: string
}

/** What a link would do, for display. */
export interface InspectedUndo {
  account: string
  /** What goes, and what stays; the password goes too. */
  goes: ShownWay[]
  stays: ShownWay[]
  /** The address that the account gets. Absent: it keeps its own. */
  address?: string
  /** The former address, which another account has by now. */
  taken?: string
  /** The name of the upstream by which alone the user signs in, and whether their identity there goes. */
  only?: string
  losesOnly?: boolean
}

const show = ({ kind, upstream, at }: Way, place?: string): ShownWay => ({ kind, at, ...(upstream !== undefined && { upstream }), ...(place !== undefined && { place }) })

/** What a link is about: what can be undone, the latest act last, and the act of the link. */
interface Judged { list: Undo[], index: number, own: Undo }

/** The ids of the ways that were added since the earliest act. */
const listAdded = (list: readonly Undo[]): string[] => [...new Set(list.flatMap(({ added }) => added))]

/** Undoes what was added to accounts: any link takes everything that was added since the earliest act that can still be undone. */
export function createUndoLinks (context: AccountContext) {
  const { users, changeUser, tickets, ways, notices, now, writeLink, findOnly, onError } = context

  /** What can be undone, with the identities that were linked under 1158eb3, which no record lists. */
  async function list (record: UserRecord): Promise<Undo[]> {
    const all = listUndos(record, now())
    for (const { way = '', created_at: at, expired_at: until } of await tickets.listEarlierLinks(record.id)) {
      if (!Object.hasOwn(record.ways ?? {}, way) || all.some(({ id }) => id === way)) continue
      const found = all.findIndex((one) => one.at >= at)
      const index = found < 0 ? all.length : found
      const before = all[index]?.before ?? keepProof(record)
      all.splice(index, 0, { id: way, at, until, kind: 'identity', added: [way], before, mailbox: findMailbox({ account: record.account, ...before }) })
    }
    return all
  }

  /** @throws ErrTicket */
  async function judge (ticket: TicketRecord, record: UserRecord | null): Promise<Judged> {
    const all = record === null ? [] : await list(record)
    const index = all.findIndex(({ id, until }) => id === findNamed(ticket) && until > toTimestamp(now()))
    const own = all[index]
    // Links of earlier releases do not name their mailbox.
    if (own === undefined || (ticket.address !== undefined && ticket.address !== own.mailbox)) throw ticketError()
    return { list: all, index, own }
  }

  /**
   * The fields with an address as it was. An upstream that claims the user by the present one goes on claiming them: otherwise an undo would
   * lead out of its rule.
   */
  function restoreAddress (record: UserRecord, before: AddressProof): { set: { [field: string]: Json }, unset: string[] } {
    const { account, roles } = record
    const { email } = before
    const { set, unset } = restoreProof(before)
    const only = findOnly?.(record)?.id
    const isLeft = only !== undefined && findOnly?.({ account, roles, ...(email !== undefined && { email }) })?.id !== only
    return { set: { ...set, addresses: listAddresses(account, email), ...(isLeft && { held_by: only }) }, unset }
  }

  const isMoved = (record: UserRecord, { mailbox }: Undo): boolean => findMailbox(record) !== mailbox

  /** The address to restore, where another account has it by now. */
  async function findTaken (record: UserRecord, own: Undo): Promise<string | undefined> {
    const { email } = own.before
    return isMoved(record, own) && email !== undefined && await isTaken(users, email, record.id) ? email : undefined
  }

  /** Where factors went, none is left and one is demanded, the next one needs a link, as after a reset by an administrator. */
  async function demandEnrolment (record: UserRecord, made: UserRecord, to: string | undefined): Promise<Change & { notices: Notice[] }> {
    const none = { set: {}, unset: record.enrol_ticket === undefined ? [] : ['enrol_ticket'], notices: [] }
    const hadOne = record.enrol_ticket !== undefined || Object.values(record.ways ?? {}).some(isFactor)
    if (writeLink === undefined || !hadOne || await ways.hasFactor(made) || !ways.demandsFactor(made)) return none
    const id = generateId(now())
    const mails = await notices.write('undone-enrol', made, { to, of: id })
    return mails.length === 0 ? none : { set: { enrol_ticket: id }, unset: [], notices: mails }
  }

  /**
   * What the use of a link writes.
   * @param isFree false once a write has shown that somebody else has the address from before
   */
  async function decide (record: UserRecord, { list: all, index, own }: Judged, isFree: boolean) {
    const gone = listAdded(all)
    const kept = keepWays(record, Object.keys(record.ways ?? {}).filter((id) => !gone.includes(id)))
    const isAvailable = isFree && await findTaken(record, own) === undefined
    const address = isMoved(record, own) ? restoreAddress(record, isAvailable ? own.before : {}) : { set: {}, unset: [] }
    // The earliest mailbox has the last word: what another one may still undo ends with its undo, and never the other way round.
    const isEarliest = all[0]!.mailbox === own.mailbox
    const undos = toUndoFields(record, isEarliest ? [] : all.slice(0, index))
    const lost = kept.removed.map((id) => record.ways![id]!)
    const identities = lost.filter(({ kind }) => kind === 'upstream')
    const fields = {
      set: { ...kept.set, ...address.set, ...undos.set, password: NO_PASSWORD, ...(identities.length > 0 && { link_undone: true }) },
      unset: [...kept.unset, ...address.unset, ...undos.unset]
    }
    const made = applyChange(record, fields)
    const to = own.mailbox
    const enrolment = await demandEnrolment(record, made, to)
    const { id } = record
    const happened: Happening[] = [
      ...identities.map((way) => ({ type: 'identity.unlinked' as const, id, via: showIdentity(way) })),
      ...(lost.length > identities.length ? [{ type: 'factor.undone', id } as const] : []),
      ...(isMoved(record, own) ? [{ type: 'user.email_restored', id } as const] : [])
    ]
    const [first = { type: 'user.sessions_ended', id } as const, ...others] = happened
    const former = findMailbox(record)
    return {
      removed: kept.removed,
      change: {
        set: { ...fields.set, ...enrolment.set },
        unset: [...fields.unset, ...enrolment.unset ?? []],
        increment: { epoch: 1 },
        happened: [first, ...others] as [Happening, ...Happening[]],
        notices: [
          ...await notices.write('undone', made, { ...toResetMailbox(to, findMailbox(made)), epoch: record.epoch + 1 }),
          ...enrolment.notices,
          ...(former === undefined || former === to ? [] : await notices.write('address-taken-back', record, { to: former }))
        ]
      }
    }
  }

  return {
    /**
     * Reads a link that undoes something, without spending it.
     * @throws ErrTicket
     */
    async inspectUndo (token: string): Promise<InspectedUndo> {
      const ticket = await tickets.require(token, 'undo')
      const record = await users.get(ticket.user_id ?? '')
      const { list: all, own } = await judge(ticket, record)
      const { account, ways: held = {} } = record!
      const added = listAdded(all)
      const gone = keepWays(record!, Object.keys(held).filter((way) => !added.includes(way))).removed
      const findPlace = (way: string) => all.find((one) => one.added.includes(way))?.place
      const taken = await findTaken(record!, own)
      const only = findOnly?.(record!)
      return {
        account,
        goes: gone.map((way) => show(held[way]!, findPlace(way))),
        stays: Object.entries(held).filter(([way]) => !gone.includes(way)).map(([, way]) => show(way)),
        ...(isMoved(record!, own) && taken === undefined && own.mailbox !== undefined && { address: own.mailbox }),
        ...(taken !== undefined && { taken }),
        ...(only !== undefined && { only: only.name, losesOnly: gone.some((way) => isOnly(held[way], only.id)) })
      }
    },

    /**
     * Takes away every way in that was added since the earliest act that can still be undone, and sets the address to what it was before the
     * act of the link: all later acts are assumed to come from the same person, and the earlier ones may. Ends the password, which that person
     * may know, all sessions and all links. The mailbox of the link gets one for a new password. Links of
     * earlier acts stay where the earliest one is another mailbox's.
     * @returns the ways that stay: the time of an act may have passed since the link was read
     * @throws ErrTicket
     */
    async undo (token: string): Promise<{ stays: ShownWay[] }> {
      const ticket = await tickets.require(token, 'undo')
      let removed: string[] = []
      const write = async (isFree: boolean): Promise<UserRecord> => await changeUser(ticket.user_id!, async (record) => {
        const decided = await decide(record, await judge(ticket, record), isFree)
        removed = decided.removed
        return decided.change
      }, { notFound: ticketError })
      const written = await write(true).catch(async (error: unknown) => {
        // No key is set that another user could have, but for the address. Everything else happens in any case.
        if (error instanceof DuplicateKeyError) return await write(false)
        throw error
      })
      await Promise.all([tickets.remove(ticket.id), tickets.removeOf(written.id, ENDED_BY_EPOCH), ways.drop(removed)]).catch(onError)
      return { stays: Object.values(written.ways ?? {}).map((way) => show(way)) }
    },

    /**
     * The ways that stay beside a new password, and a link to what its mailbox can still undo.
     * @param mailbox that the link for the password was mailed to. Absent: it was shown to a caller
     */
    async reviewWays (user_id: string, mailbox?: string): Promise<{ stays: ShownWay[], token?: string }> {
      const record = await users.get(user_id)
      if (record === null) return { stays: [] }
      const all = await list(record)
      const time = toTimestamp(now())
      const own = mailbox === undefined || listAdded(all).length === 0 ? undefined : all.find((one) => one.mailbox === mailbox && one.until > time)
      const stays = Object.values(record.ways ?? {}).map((way) => show(way))
      return { stays, ...(own && { token: await tickets.issue({ purpose: 'undo', user_id, of: own.id, address: own.mailbox!, mailed: true }, own.until) }) }
    }
  }
}
