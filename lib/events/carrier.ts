import type { Collection, Document } from '../store/port.ts'
import type { Pending } from './pending.ts'

/** A document with events, and the name of its collection. */
export interface Found {
  name: string
  document: Document
}

/** A document with the events that it carries. */
export interface Carrier extends Found {
  collection: Collection<Document>
  /** In the order that they must keep. */
  pending: Pending[]
  /** For a deletion: the unique key of its last event, because a document is deleted once. */
  once?: string
}

/** Documents whose events cannot be published in this round, each with its error. */
export type Failed = Map<Found, unknown>
