import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { scan } from '../lists/scan.ts'
import { BATCH_SIZE, type Document, type Store } from '../store/port.ts'
import { createToken, hashToken } from '../tokens/tokens.ts'

const HOUR = 60 * 60 * 1000

/** What a link is for, with its life in milliseconds, and how many of them a user or an address has at once: the last ones. */
export const PURPOSES = {
  reset: { life: HOUR, live: 5 },
  'sign-up': { life: 24 * HOUR, live: 5 },
  verify: { life: 24 * HOUR, live: 1 },
  change: { life: HOUR, live: 1 },
  invite: { life: 7 * 24 * HOUR, live: 1 },
  /** Of a change of address. Nothing replaces it; the record of the user says whether it can still be undone. */
  undo: { life: 72 * HOUR, live: Infinity }
} as const

export type Purpose = keyof typeof PURPOSES

/** What a new epoch of the user ends. */
export const ENDED_BY_EPOCH: readonly Purpose[] = ['reset', 'invite', 'verify', 'change']

/** A link that was handed out, under the SHA-256 of its token. */
export interface TicketRecord extends Document {
  purpose: Purpose
  /** The purpose with the user or the address that it is for: those beyond the limit are replaced. */
  holder: string
  /** Absent for a sign-up, and where nobody has the address. */
  user_id?: string
  /** The user's epoch when the link was made: a change of the password ends it. */
  user_epoch?: number
  /** The address that it was mailed to, or that it is about. */
  address?: string
  /** Of a change of address: the mailbox that the user had when they asked for it. */
  former?: string
  /** Whether it went by mail, and to nobody else: then its use proves that the mailbox is the user's. */
  mailed: boolean
  /** Where the person goes on afterwards: a registered URI of a client. */
  return_to?: string
  created_at: string
  expired_at: string
}

export type NewTicket = Pick<TicketRecord, 'purpose' | 'mailed'> & Partial<Pick<TicketRecord, 'user_id' | 'user_epoch' | 'address' | 'former' | 'return_to'>>

/** The same for every cause, so that a probe learns nothing. */
export function ticketError (): IdentityError {
  return new IdentityError('ErrTicket', 'token: the link is unknown, was used or replaced, or has expired')
}

/**
 * Links that do one thing: 256 random bits, of which the store has the hash. Reading a ticket spends nothing. What it is for
 * is done by one conditional write on the user, which makes the ticket worthless; its record is removed after that.
 */
export function createTickets ({ store, now }: { store: Store, now: Clock }) {
  const tickets = store.collection<TicketRecord>('tickets')

  /** Removes the holder's oldest tickets beyond the limit. */
  async function trim (holder: string, live: number): Promise<void> {
    const list = tickets.list({ filter: { equal: { holder } }, sort: [{ key: 'created_at', direction: 'desc' }], offset: live, limit: BATCH_SIZE })
    for await (const batch of list) for (const { id } of batch) await tickets.delete(id)
  }

  return {
    /** Makes a ticket; resolves to its token. */
    async issue (ticket: NewTicket, token = createToken()): Promise<string> {
      const { life, live } = PURPOSES[ticket.purpose]
      const time = now()
      const holder = `${ticket.purpose} ${ticket.user_id ?? ticket.address ?? ''}`
      await tickets.insert({ id: hashToken(token), ...ticket, holder, created_at: toTimestamp(time), expired_at: toTimestamp(time + life) })
      if (live !== Infinity) await trim(holder, live)
      return token
    },

    /**
     * The ticket of a token, for one of these purposes. It is not spent.
     * @throws ErrTicket
     */
    async require (token: string, ...purposes: Purpose[]): Promise<TicketRecord> {
      const ticket = await tickets.get(hashToken(token))
      if (ticket === null || !purposes.includes(ticket.purpose) || ticket.expired_at <= toTimestamp(now())) throw ticketError()
      return ticket
    },

    /** Removes a ticket that is worthless. */
    async remove (id: string): Promise<void> {
      await tickets.delete(id)
    },

    /** Removes what a user's password change has ended; whatever is left is worthless already. */
    async removeOf (user_id: string, purposes: readonly Purpose[]): Promise<void> {
      for (const purpose of purposes) {
        for await (const batch of scan(tickets, { equal: { holder: `${purpose} ${user_id}` } })) {
          for (const { id } of batch) await tickets.delete(id)
        }
      }
    }
  }
}

export type Tickets = ReturnType<typeof createTickets>
