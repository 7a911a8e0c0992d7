import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import { scan } from '../store/scan.ts'
import type { UserRecord } from '../records/user.ts'
import type { Document, Store } from '../store/port.ts'
import { createToken, hashToken } from '../crypto/random-token.ts'

const HOUR = 60 * 60 * 1000

/**
 * Purposes of links. `life` is in milliseconds. `live` is the number of valid links per user or address: a new link replaces the
 * oldest one beyond it.
 */
export const PURPOSES = {
  reset: { life: HOUR, live: 5 },
  'sign-up': { life: 24 * HOUR, live: 5 },
  verify: { life: 24 * HOUR, live: 1 },
  change: { life: HOUR, live: 1 },
  invite: { life: 7 * 24 * HOUR, live: 1 },
  /** Undoes what was added to an account. No later link replaces it. The user's record decides what can still be undone. */
  undo: { life: 72 * HOUR, live: Infinity },
  /** Adds a factor after an administrator's reset, in the same way. */
  enrol: { life: 72 * HOUR, live: Infinity }
} as const

/** What undid the addition of a first factor, and the link of an identity, in 1158eb3. Their links are links of `undo`. */
const EARLIER_UNDOS: readonly string[] = ['undo-factor', 'undo-link']

export type Purpose = keyof typeof PURPOSES

/** Purposes whose links end when the user's epoch changes. */
export const ENDED_BY_EPOCH: readonly Purpose[] = ['reset', 'invite', 'verify', 'change']

/** Those that end with the user's account. */
export const ENDED_BY_DELETION: readonly Purpose[] = [...ENDED_BY_EPOCH, 'undo', 'enrol']

/** A link that was issued. The id is the SHA-256 of its token. */
export interface TicketRecord extends Document {
  purpose: Purpose
  /** The purpose and the user or address. The limit counts links with the same holder. */
  holder: string
  /** Absent for a sign-up, and where no user has the address. */
  user_id?: string
  /** The user's epoch when the link was issued. A password change increments the epoch, which ends the link. */
  user_epoch?: number
  /** The user's link epoch when the link was issued. A new role increments it, which ends the link. Absent: 0. */
  link_epoch?: number
  /** The address that the link was mailed to, or that it is about. */
  address?: string
  /**
   * On a change of address, and on a reset that was mailed to another mailbox than the user's: theirs at the time of the request, '' for
   * none.
   */
  former?: string
  /** On a change of address: true if the user had a second factor when they asked for it, and so has proved both kinds. */
  has_factor?: boolean
  /** Whether the link was only mailed, and shown to no caller. Its use then proves that the mailbox is the user's. */
  mailed: boolean
  /** Where the person continues afterwards: a URI, and the client that has registered it. */
  return_to?: string
  client_id?: string
  /** Of a link of 1158eb3 that undoes the link of an identity: the id of the way. */
  way?: string
  /** Of an undo and of an enrolment: its id in the user's record. Absent on tickets of earlier releases: that of the way, or of the ticket. */
  of?: string
  /** Of a sign-up: the language of its request. */
  language?: string
  created_at: string
  expired_at: string
}

export type NewTicket = Omit<TicketRecord, 'id' | 'holder' | 'way' | 'created_at' | 'expired_at'>

/** The id by which the user's record names the undo or the enrolment that a ticket is for. */
export const findNamed = ({ id, way = id, of = way }: Pick<TicketRecord, 'id' | 'way' | 'of'>): string => of

/** The fields of a ticket that make it end with its user's password and roles. */
export function toHolder ({ id, epoch, link_epoch }: UserRecord): Pick<NewTicket, 'user_id' | 'user_epoch' | 'link_epoch'> {
  return { user_id: id, user_epoch: epoch, link_epoch }
}

/** What names a ticket: the token of its link, or the id of the ticket, which a browser's progress has instead of the token. */
export type Link = string | { ticket: string }

function isFor<P extends Purpose> (ticket: TicketRecord, purposes: readonly P[]): ticket is TicketRecord & { purpose: P } {
  return purposes.some((purpose) => purpose === ticket.purpose)
}

/** The error is the same for every cause, so that a probe learns nothing. */
export function ticketError (): IdentityError {
  return new IdentityError('ErrTicket', 'token: the link is unknown, was used or replaced, or has expired')
}

/**
 * Tickets: links for a single action. A token has 256 random bits, and only its hash is stored. Reading a ticket does not spend
 * it. The action is one conditional write on the user, which also invalidates the ticket. The ticket's record is deleted later.
 */
export function createTickets ({ store, now }: { store: Store, now: Clock }) {
  const tickets = store.collection<TicketRecord>('tickets')

  /** Removes the holder's oldest tickets beyond the limit. The newest one stays, also if others were issued in the same millisecond. */
  async function trim (holder: string, live: number, newest: string): Promise<void> {
    const list = tickets.page({ filter: { equal: { holder } }, sort: [{ key: 'created_at', direction: 'desc' }], urgent: true })
    let kept = 1
    for await (const batch of list) {
      for (const { id } of batch) if (id !== newest && ++kept > live) await tickets.delete(id)
    }
  }

  return {
    /**
     * Issues a ticket. Resolves to its token.
     * @param until ISO 8601, if it does not last as long as its purpose says
     */
    async issue (ticket: NewTicket, until?: string): Promise<string> {
      const { life, live } = PURPOSES[ticket.purpose]
      const time = now()
      const token = createToken()
      const holder = `${ticket.purpose} ${ticket.user_id ?? ticket.address ?? ''}`
      const id = hashToken(token)
      const expired_at = until ?? toTimestamp(time + life)
      await tickets.insert(defined({ id, ...ticket, holder, created_at: toTimestamp(time), expired_at }))
      if (live !== Infinity) await trim(holder, live, id)
      return token
    },

    /**
     * Finds the ticket of a link, for one of these purposes, without spending it.
     * @throws ErrTicket
     */
    async require<P extends Purpose> (link: Link, ...purposes: P[]): Promise<TicketRecord & { purpose: P }> {
      const found = await tickets.get(typeof link === 'string' ? hashToken(link) : link.ticket)
      const ticket = found !== null && EARLIER_UNDOS.includes(found.purpose) ? { ...found, purpose: 'undo' as const } : found
      if (ticket === null || !isFor(ticket, purposes) || ticket.expired_at <= toTimestamp(now())) throw ticketError()
      return ticket
    },

    /**
     * Requires that some link to an undo or an enrolment of a user can still be used.
     * @param named its id in the user's record
     * @throws ErrTicket
     */
    async requireNamed (user_id: string, purpose: Purpose, named: string): Promise<void> {
      const time = toTimestamp(now())
      for await (const batch of scan(tickets, { equal: { holder: `${purpose} ${user_id}` } }, { key: 'created_at', urgent: true })) {
        if (batch.some((ticket) => findNamed(ticket) === named && ticket.expired_at > time)) return
      }
      throw ticketError()
    },

    /** When the last valid link of a user or address expires: ISO 8601. Undefined without one. @param holder the id of the user, or the address */
    async findUntil (purpose: Purpose, holder: string): Promise<string | undefined> {
      const time = toTimestamp(now())
      let until: string | undefined
      for await (const batch of scan(tickets, { equal: { holder: `${purpose} ${holder}` } }, { key: 'created_at', urgent: true })) {
        for (const { expired_at } of batch) if (expired_at > time && expired_at > (until ?? '')) until = expired_at
      }
      return until
    },

    /** The links of 1158eb3 that still undo the link of an identity: that release has recorded them here only. */
    async listEarlierLinks (user_id: string): Promise<TicketRecord[]> {
      const time = toTimestamp(now())
      const found: TicketRecord[] = []
      for await (const batch of scan(tickets, { equal: { holder: `undo-link ${user_id}` } }, { key: 'created_at', urgent: true })) {
        found.push(...batch.filter(({ way, expired_at }) => way !== undefined && expired_at > time))
      }
      return found
    },

    /** Deletes the record of a ticket that is no longer valid. */
    async remove (id: string): Promise<void> {
      await tickets.delete(id)
    },

    /** Deletes a user's tickets of these purposes. The caller has made them invalid already, so this may be interrupted. */
    async removeOf (user_id: string, purposes: readonly Purpose[]): Promise<void> {
      for (const purpose of purposes) {
        for await (const batch of scan(tickets, { equal: { holder: `${purpose} ${user_id}` } }, { key: 'created_at', urgent: true })) {
          for (const { id } of batch) await tickets.delete(id)
        }
      }
    }
  }
}

export type Tickets = ReturnType<typeof createTickets>
