import { defined } from '../defined.ts'
import { fullError } from '../retry.ts'
import { EVENT_PREFIX } from '../store/collections.ts'
import type { Notice } from '../notice.ts'
import type { Document, Filter, Json } from '../store/port.ts'
import type { EventContent } from './types.ts'

/** The key by which the relay finds documents with pending events: the ULIDs of the oldest one and of the last one, in this order. */
export const EVENT_DUE = 'event_due'

/** On a document whose events are set aside: the id of their letter (letters.ts). */
export const EVENT_LETTER = 'event_letter'

const FIELD_PREFIX = `${EVENT_PREFIX}:`

/** The prefix of the fields that hold the mails about the change. They travel with the event, and are never part of it. */
export const NOTICE_PREFIX = `${EVENT_PREFIX}_notice:`

/** Characters of a ULID. */
const ULID_LENGTH = 26

/** The most pending events of one document. The relay soon removes them. */
const CAPACITY = 32

/** When an event was made, by the clock of a machine. */
export interface Made {
  machine: string
  ticks: number
}

/** An event that was written together with the change that it records. */
export interface Pending {
  key: string
  content: EventContent
  /** Absent on an event of an early release. */
  made?: Made
  /** The mails about the change. */
  notices?: readonly Notice[]
}

/** The fields that hold an event, and the mails that belong to it. */
export const toFieldNames = (key: string): [event: string, mails: string] => [`${FIELD_PREFIX}${key}`, `${NOTICE_PREFIX}${key}`]

/** Whether an event was made first: by the clock of their machine, which is never set back, or else by their ULIDs. */
function byAge (one: Pending, other: Pending): number {
  const { made } = other
  if (one.made !== undefined && one.made.machine === made?.machine && one.made.ticks !== made.ticks) return one.made.ticks - made.ticks
  return one.key < other.key ? -1 : 1
}

/** The fields of a document that hold its pending events, and the mails that belong to them. */
export function readFields (document: Document): { [field: string]: Json } {
  return Object.fromEntries(Object.entries(document).filter(([field]) => field.startsWith(FIELD_PREFIX) || field.startsWith(NOTICE_PREFIX)))
}

/** A document of a restored backup: its mails may have been sent since the backup was made. */
export function withRestoredNotices<T extends Document> (document: T): T {
  const fields = Object.entries(document).map(([field, value]) =>
    [field, field.startsWith(NOTICE_PREFIX) ? (value as Notice[]).map((notice) => ({ ...notice, restored: true })) : value])
  return Object.fromEntries(fields) as T
}

/** The pending events of a document, the oldest first. */
export function listPending (document: Document): Pending[] {
  const fields = readFields(document)
  return Object.entries(fields)
    .filter(([field]) => field.startsWith(FIELD_PREFIX))
    .map(([field, stored]) => {
      const { made, ...content } = stored as EventContent & { made?: Made }
      const key = field.slice(FIELD_PREFIX.length)
      const notices = fields[`${NOTICE_PREFIX}${key}`] as Notice[] | undefined
      return { key, content, made, notices }
    })
    .sort(byAge)
}

const readDue = (document: Document): string | undefined => (document as { [EVENT_DUE]?: string })[EVENT_DUE]

/** The value of EVENT_DUE where the events of one document join those of another. */
export const joinDue = (previous: Document, added: Document): string => `${readOldest(previous)}${readDue(added)!.slice(ULID_LENGTH)}`

/** The condition that a document carries the events that it had when it was read: EVENT_DUE is another one after each added event. */
export const toSame = (document: Document): Filter => ({ equal: { [EVENT_DUE]: readDue(document)! } })

/** A lower bound of the ULIDs of a document's pending events. Undefined when it has none. */
export function readOldest (document: Document): string | undefined {
  return readDue(document)?.slice(0, ULID_LENGTH)
}

/** The value of EVENT_DUE: another one after each added event, and never above the oldest one. */
export function toDue (pending: readonly Pending[], oldest?: string): string {
  const keys = pending.map(({ key }) => key)
  return `${[...keys, ...(oldest === undefined ? [] : [oldest])].sort()[0]} ${keys.at(-1)}`
}

/**
 * The fields that hold pending events in a document.
 * @param oldest see `readOldest`, of the document that they are added to
 */
export function toFields (pending: readonly Pending[], oldest?: string): { [field: string]: Json } {
  if (pending.length === 0) return {}
  const fields = pending.flatMap(({ key, content, made, notices = [] }): [string, Json][] => {
    const [event, mails] = toFieldNames(key)
    const stored = defined({ ...content, made }) as unknown as Json
    return [[event, stored], ...(notices.length === 0 ? [] : [[mails, notices as unknown as Json] as [string, Json]])]
  })
  return { ...Object.fromEntries(fields), [EVENT_DUE]: toDue(pending, oldest) }
}

/**
 * @param endsAccess whether the event is of an end of access. Those have as many places again, because a thief must not go on while the
 *   relay stands still
 * @throws ErrBusy when too many events of the document wait for the relay
 */
export function checkRoom (document: Document | null, endsAccess = false): void {
  if (document !== null && listPending(document).length >= (endsAccess ? 2 * CAPACITY : CAPACITY)) throw fullError()
}
