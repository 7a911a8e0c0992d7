import { toTimestamp } from '../clock.ts'
import type { UserRecord } from '../records/user.ts'
import { DuplicateKeyError } from '../store/port.ts'
import type { Way, WayKind } from '../way.ts'
import { isOnly } from '../ways/words.ts'
import type { AccountContext } from './context.ts'
import { keepWays } from './keep-ways.ts'
import { ENDED_BY_EPOCH, ticketError } from '../tickets/tickets.ts'
import { createUndoChange, isMoved } from './undo-change.ts'
import { createUndoList, listAdded } from './undo-list.ts'

/** A way in, for display. */
export interface ShownWay {
  kind: WayKind
  /** The id of the upstream of an identity. */
  upstream?: string | undefined
  at: string
  /** From where it was added. Absent: nobody knows. */
  place?: string | undefined
}

/** What a link would do, for display. */
export interface InspectedUndo {
  account: string
  /** What goes, and what stays; the password goes too. */
  goes: ShownWay[]
  stays: ShownWay[]
  /** The address that the account gets. Absent: it keeps its own. */
  address?: string | undefined
  /** The address from before, which another account has by now. */
  taken?: string | undefined
  /** The name of the upstream by which alone the user signs in, and whether their identity there goes. */
  only?: string | undefined
  losesOnly?: boolean | undefined
  /** How many personal access tokens end. */
  endingTokens?: number | undefined
}

const show = ({ kind, upstream, at }: Way, place?: string): ShownWay => ({ kind, at, upstream, place })

/** Undoes what was added to accounts: any link takes everything that was added since the earliest act that can still be undone. */
export function createUndoLinks (context: AccountContext) {
  const { users, changeUser, tickets, ways, now, findOnly, onError } = context
  const { listAll, judge } = createUndoList(context)
  const { findTaken, decide } = createUndoChange(context)

  return {
    /**
     * Reads a link that undoes something, without spending it.
     * @throws ErrTicket
     */
    async inspectUndo (token: string): Promise<InspectedUndo> {
      const ticket = await tickets.require(token, 'undo')
      const { record, list, own } = await judge(ticket, await users.get(ticket.user_id ?? ''))
      const { account, ways: held = {} } = record
      const added = listAdded(list)
      const gone = keepWays(record, Object.keys(held).filter((way) => !added.includes(way))).removed
      const goes = Object.entries(held).filter(([id]) => gone.includes(id))
      const taken = await findTaken(record, own)
      const only = findOnly?.(record)
      return {
        account,
        goes: goes.map(([id, way]) => show(way, list.find((one) => one.added.includes(id))?.place)),
        stays: Object.entries(held).filter(([id]) => !gone.includes(id)).map(([, way]) => show(way)),
        address: isMoved(record, own) && taken === undefined ? own.mailbox : undefined,
        taken,
        only: only?.name,
        endingTokens: await context.countTokens?.(record),
        losesOnly: only && goes.some(([, way]) => isOnly(way, only.id))
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
      const { user_id } = ticket
      if (user_id === undefined) throw ticketError()
      let removed: string[] = []
      const write = async (isFree: boolean): Promise<UserRecord> => await changeUser(user_id, async (record) => {
        const decided = await decide(await judge(ticket, record), isFree)
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
      const stays = Object.values(record.ways ?? {}).map((way) => show(way))
      const all = await listAll(record)
      const time = toTimestamp(now())
      const own = listAdded(all).length === 0 ? undefined : all.find((one) => one.mailbox === mailbox && one.until > time)
      if (mailbox === undefined || own === undefined) return { stays }
      return { stays, token: await tickets.issue({ purpose: 'undo', user_id, of: own.id, address: mailbox, mailed: true }, own.until) }
    }
  }
}
