import type { Event } from '../../schemas/event.ts'
import type { Reason } from '../../schemas/reason.ts'
import type { Notice } from '../notice.ts'
import type { Document, Json } from '../store/port.ts'

/** All types of events, each with the kind of its target. */
export const EVENT_TYPES = {
  'user.created': 'user',
  'user.invited': 'user',
  'user.signed_up': 'user',
  'user.migrated': 'user',
  'user.updated': 'user',
  'user.roles_changed': 'user',
  'user.role_kept': 'user',
  'user.disabled': 'user',
  'user.enabled': 'user',
  'user.verified': 'user',
  'user.password_changed': 'user',
  'user.password_reset': 'user',
  'user.password_removed': 'user',
  'user.recovery_started': 'user',
  'user.verification_requested': 'user',
  'user.email_change_requested': 'user',
  'user.email_changed': 'user',
  'user.email_restored': 'user',
  'user.email_released': 'user',
  'user.confirmation_failed': 'user',
  'user.unlocked': 'user',
  'user.viewed': 'user',
  'user.sessions_ended': 'user',
  'user.deleted': 'user',
  'user.exported': 'user',
  'users.imported': 'import',
  'users.exported': 'export',
  'factor.added': 'user',
  'factor.removed': 'user',
  'factor.failed': 'user',
  'factor.closed': 'user',
  'factor.opened': 'user',
  'factor.reset': 'user',
  'factor.undone': 'user',
  'identity.linked': 'user',
  'identity.unlinked': 'user',
  'identity.refused': 'user',
  'identity.replaced': 'user',
  'identity.signed_out': 'user',
  'recovery.used': 'user',
  'recovery.renewed': 'user',
  'sign_in.succeeded': 'user',
  'sign_in.failed': 'user',
  'session.ended': 'session',
  'token.revoked': 'token',
  'token.service_created': 'token',
  'token.service_removed': 'token',
  'token.service_expiring': 'token',
  'token.personal_created': 'token',
  'token.personal_removed': 'token',
  'token.personal_expiring': 'token',
  'token.previewed': 'client',
  'browser.signed_out': 'browser',
  'console.entered': 'user',
  'app.connected': 'client',
  'device.connected': 'client',
  'app.disconnected': 'client',
  'client.created': 'client',
  'client.updated': 'client',
  'client.secret_changed': 'client',
  'client.secret_added': 'client',
  'client.secret_removed': 'client',
  'client.secret_expiring': 'client',
  'client.keys_changed': 'client',
  'client.deleted': 'client',
  'client.document_added': 'client',
  'client.document_changed': 'client',
  'client.document_refused': 'client',
  'resource.created': 'resource',
  'resource.updated': 'resource',
  'resource.deleted': 'resource',
  'webhook.created': 'webhook',
  'webhook.updated': 'webhook',
  'webhook.secret_changed': 'webhook',
  'webhook.replayed': 'webhook',
  'webhook.disabled': 'webhook',
  'webhook.deleted': 'webhook',
  'key.rotated': 'key',
  'key.resealed': 'key',
  'mail.sent': 'mail',
  'mail.failed': 'mail',
  'mail.retried': 'mail',
  'logout.retried': 'logout',
  'operation.refused': 'operation',
  'events.counted': 'event'
} as const

export type EventType = keyof typeof EVENT_TYPES

/** Whether a pattern covers a type: the type itself, all of a kind as `user.*`, or all as `*`. */
export function coversType (pattern: string, type: string): boolean {
  return pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))
}

/**
 * The events of changes that increment a user's epoch, and the deletion of the user. An identity may also be linked and unlinked without
 * that: then no session of an earlier epoch is found.
 */
export const ENDS_SESSIONS: ReadonlySet<EventType> = new Set<EventType>([
  'user.password_changed', 'user.password_reset', 'user.migrated', 'user.disabled', 'user.sessions_ended', 'user.email_restored', 'user.email_released', 'user.deleted',
  'factor.undone', 'identity.linked', 'identity.unlinked', 'identity.replaced'
])

/** The events of changes that may take access away without that: a way to sign in, or what a client authenticates with. */
const ENDS_A_WAY: ReadonlySet<EventType> = new Set<EventType>([
  'user.password_removed', 'factor.removed', 'factor.reset', 'client.secret_changed', 'client.secret_removed', 'client.keys_changed', 'token.service_removed',
  'token.personal_removed'
])

/** The fields of an event that whoever records it says. */
type Told =
  | 'changed' | 'granted' | 'removed' | 'outcome' | 'count' | 'counts' | 'accounts' | 'refusal' | 'via' | 'reason' | 'method' | 'methods' | 'amr' | 'acr'
  | 'addresses' | 'mail' | 'failure'

/** An event before the recorder adds its time and its actor. */
export interface Happening extends Partial<Pick<Event, Told>> {
  type: EventType
  /** The kind of the target, if it is not that of the type. */
  kind?: string
  /** The id of the target: a user, client, resource and so on, by the type. */
  id: string
  /** The user whose account it is about. Absent: the target, if that is a user; otherwise the acting user. Null: nobody's. */
  user_id?: string | null | undefined
  /** The owner of a client that acted for itself. The event is then about no account. */
  owner_id?: string | undefined
  /** The client that it is about. Absent: the target, if that is a client; otherwise the acting client. */
  client_id?: string | undefined
}

/** The events of a change, and the mails about it. These belong to the first event, so there are none without one. */
export type Recorded =
  | { happened?: readonly Happening[] | undefined, notices?: undefined }
  | { happened: readonly [Happening, ...Happening[]], notices: readonly Notice[] }

/** @throws Error for mails without an event */
export function toRecorded ([first, ...others]: readonly Happening[], notices: readonly Notice[] = []): Recorded {
  if (first !== undefined) return { happened: [first, ...others], notices }
  if (notices.length > 0) throw new Error('a mail about a change needs an event of the change')
  return {}
}

/** Whether a change takes access away: it is not refused while many events wait. */
export function endsAccess ({ type, changed = [], removed = [] }: Happening): boolean {
  return ENDS_SESSIONS.has(type) || ENDS_A_WAY.has(type) || (type === 'client.updated' && changed.includes('disabled')) ||
    (type === 'user.roles_changed' && removed.length > 0)
}

/** An event without its position in the feed. */
export type EventContent = Omit<Event, 'cursor' | 'id'> & { [field: string]: Json | undefined }

/** A published event. The id is its number in the feed, with leading zeros. */
export interface EventRecord extends Document {
  /** The ULID of the event. Absent on a gap: a number without an event. */
  key?: string
  /** A unique key: only one event with it is published. That of a deletion has the collection, id and time of creation of the document. */
  once?: string
  type?: EventType
  /** The user whose account it is about, and the client. */
  user?: string
  client?: string
  /** The owner of a client that acted for itself. */
  owner?: string
  /** Why a sign-in or a mail has failed. */
  reason?: Reason
  content?: EventContent
  expired_at: string
}

/** The digits of an event's number: as many as the largest safe integer of JavaScript has. */
const DIGITS = 16

export const toNumberId = (number: number): string => String(number).padStart(DIGITS, '0')
