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
  /** The unique key of the last event, for a deletion and for an event that is published once. */
  once?: string
}

/** The unique key of an event. Only the last event of a carrier has one. */
export const findOnce = (
  { once, pending: all }: Pick<Carrier, 'once' | 'pending'>, pending: Pending
): string | undefined => pending === all.at(-1) ? once : undefined

/** Documents whose events cannot be published in this round, each with its error. */
export type Failed = Map<Found, unknown>
