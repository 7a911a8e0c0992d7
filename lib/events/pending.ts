import { fullError } from '../retry.ts'
import { EVENT_PREFIX } from '../store/collections.ts'
import type { Document, Json } from '../store/port.ts'
import type { EventContent } from './types.ts'

/** The key by which the relay finds documents with pending events: the ULID of the last one. */
export const EVENT_DUE = 'event_due'

const FIELD_PREFIX = `${EVENT_PREFIX}:`

/** The most pending events of one document. The relay soon removes them. */
const CAPACITY = 32

/** An event that was written together with the change that it records. */
export interface Pending {
  key: string
  content: EventContent
}

export const toField = (key: string): string => `${FIELD_PREFIX}${key}`

/** The pending events of a document, the oldest first. */
export function listPending (document: Document): Pending[] {
  return Object.entries(document)
    .filter(([field]) => field.startsWith(FIELD_PREFIX))
    .map(([field, content]) => ({ key: field.slice(FIELD_PREFIX.length), content: content as EventContent }))
    .sort((one, other) => one.key < other.key ? -1 : 1)
}

/** The fields that hold pending events in a document. */
export function toFields (pending: readonly Pending[]): { [field: string]: Json } {
  if (pending.length === 0) return {}
  return { ...Object.fromEntries(pending.map(({ key, content }) => [toField(key), content as Json])), [EVENT_DUE]: pending.at(-1)!.key }
}

/** @throws ErrBusy when too many events of the document wait for the relay */
export function checkRoom (document: Document | null): void {
  if (document !== null && listPending(document).length >= CAPACITY) throw fullError()
}
