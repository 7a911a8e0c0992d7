import { toTimestamp } from '../clock.ts'
import { type UserRecord, findMailbox } from '../records/user.ts'
import { keepProof } from '../user-changes/address-proof.ts'
import { type Undo, listUndos } from '../user-changes/undos.ts'
import { findWay } from '../way.ts'
import type { AccountContext } from './context.ts'
import { type TicketRecord, findNamed, ticketError } from '../tickets/tickets.ts'

/** What a link is about: what can be undone of the user, the latest act last, and the act of the link. */
export interface Judged { record: UserRecord, list: Undo[], index: number, own: Undo }

/** The ids of the ways that were added since the earliest act. */
export const listAdded = (list: readonly Undo[]): string[] => [...new Set(list.flatMap(({ added }) => added))]

/** Reads what can be undone, for the links that do it. */
export function createUndoList ({ tickets, now }: Pick<AccountContext, 'tickets' | 'now'>) {
  /** What can be undone, with the identities that were linked under 1158eb3, which no record lists. */
  async function listAll (record: UserRecord): Promise<Undo[]> {
    const all = listUndos(record, now())
    for (const { way = '', created_at: at, expired_at: until } of await tickets.listEarlierLinks(record.id)) {
      if (findWay(record, way) === undefined || all.some(({ id }) => id === way)) continue
      const found = all.findIndex((one) => one.at >= at)
      const index = found < 0 ? all.length : found
      const before = all[index]?.before ?? keepProof(record)
      const mailbox = findMailbox({ account: record.account, ...before })
      all.splice(index, 0, { id: way, at, until, kind: 'identity', added: [way], before, mailbox })
    }
    return all
  }

  return {
    listAll,

    /** @throws ErrTicket */
    async judge (ticket: TicketRecord, record: UserRecord | null): Promise<Judged> {
      if (record === null) throw ticketError()
      const list = await listAll(record)
      const index = list.findIndex(({ id, until }) => id === findNamed(ticket) && until > toTimestamp(now()))
      const own = list[index]
      // Links of earlier releases do not name their mailbox.
      if (own === undefined || (ticket.address !== undefined && ticket.address !== own.mailbox)) throw ticketError()
      return { record, list, index, own }
    }
  }
}
