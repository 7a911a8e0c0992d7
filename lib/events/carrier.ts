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
  /** For a deletion, and for what is recorded once: the unique key of its last event. */
  once?: string
}

/** The unique key of an event of a carrier, if it is the last one of those. */
export const findOnce = ({ once, pending: all }: Pick<Carrier, 'once' | 'pending'>, pending: Pending): string | undefined => pending === all.at(-1) ? once : undefined

/** Documents whose events cannot be published in this round, each with its error. */
export type Failed = Map<Found, unknown>
