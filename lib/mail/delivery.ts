import { hashToken } from '../crypto/random-token.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Notice } from '../notice.ts'
import type { Json } from '../store/port.ts'
import type { WorkRecord } from '../work/record.ts'
import type { Message } from './port.ts'

const DAY = 24 * 60 * 60_000

/** Milliseconds for which a failed mail is kept for the operator. */
export const KEPT = 7 * DAY

/** The content of a mail that somebody asked for, as plain data. It becomes a message when the mail is sent. */
export interface Job {
  kind: string
  [field: string]: Json
}

/**
 * A message without the fields that the outbox adds; null when no mail is to be sent. `user_id`: whom it is to, where only this process has
 * found it out.
 */
export type Draft = (Pick<Message, 'to' | 'subject' | 'text' | 'html'> & { user_id?: string }) | null

/** What is sealed: a request, a mail about a change, or the message that it became. */
export type Content = { job: Job } | { notice: Notice } | { draft: Draft }

export interface DeliveryRecord extends WorkRecord {
  kind: string
  /** Somebody asked for it without a sign-in. */
  asked?: boolean
  /** Who shares turns and room: the network that asked for it, hashed, or else the user. Absent: neither is known. */
  sharer?: string
  /**
   * The user whom it is to. Absent: nobody who has an account, or not known before it is composed; and on mails that an earlier release has
   * accepted.
   */
  user_id?: string
  /** It is about a change. Its id is made of the event, and it is remembered when it was sent. */
  notice?: true
  /** The sealed JSON of its content. Absent once it was sent. */
  sealed?: string
}

/** Whose turn and share of the room a mail has. */
export const nameSharer = ({ user_id }: Job | Notice, network?: string): string | undefined => network !== undefined
  ? `network ${hashToken(network)}`
  : typeof user_id === 'string' ? `user ${user_id}` : undefined

/** The field of the user whom a mail is to, as far as its content says. */
export const toUserField = ({ user_id }: { [field: string]: unknown }): Pick<DeliveryRecord, 'user_id'> => typeof user_id === 'string' ? { user_id } : {}

/** Seals the content of mails. */
export function createContents (box: SecretBox) {
  const toContext = (id: string) => `delivery ${id}`
  return {
    seal: (id: string, content: Content): string => box.seal(JSON.stringify(content), toContext(id)),
    /** @throws Error for what the keys of this process do not open */
    open: ({ id, sealed = '' }: Pick<DeliveryRecord, 'id' | 'sealed'>) => JSON.parse(box.open(sealed, toContext(id))) as Content
  }
}
