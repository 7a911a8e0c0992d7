import type { Test } from 'tap'
import type { Collection, Filter, ListQuery, Store, StoreOptions } from '../../../../lib/store/port.ts'
import type { Thing } from './collections.ts'

export { COLLECTIONS, type Thing } from './collections.ts'

/** An engine under test. */
export interface Engine {
  name: string
  /**
   * Opens the store at a place: a short name of [a-z0-9_] that the engine's test turns into a URL. A place is empty at first,
   * and the same place has the same data. The suite closes every store that it opens. The engine's test removes the places.
   */
  open: (options: StoreOptions, place: string) => Promise<Store>
  /** False when closing a store loses its data, so that a place means nothing: an in-memory store. */
  persistent?: boolean
  /** True when lists are rendered in a thread. */
  renders?: boolean
}

export interface Suite {
  engine: Engine
  store: Store
  /** Emptied before each case. */
  things: Collection<Thing>
}

export type Cases = Record<string, (t: Test, suite: Suite) => Promise<unknown>>

/** Runs a job for each item, with bounded concurrency. */
export async function each<T> (items: Iterable<T>, job: (item: T) => Promise<unknown>): Promise<void> {
  const queue = [...items]
  await Promise.all(Array.from({ length: 50 }, async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await job(item)
  }))
}

/** The documents of a list, and the sizes of its batches. */
export async function read (collection: Collection<Thing>, query?: ListQuery): Promise<{ things: Thing[], sizes: number[] }> {
  const things: Thing[] = []
  const sizes: number[] = []
  for await (const batch of collection.stream(query)) {
    things.push(...batch)
    sizes.push(batch.length)
  }
  return { things, sizes }
}

/** The ids of a list, in its order. */
export async function ids (collection: Collection<Thing>, query?: ListQuery): Promise<string[]> {
  return (await read(collection, query)).things.map((thing) => thing.id)
}

/** The ids of the documents that match a filter, in order of id. */
export function found (collection: Collection<Thing>, filter: Filter): Promise<string[]> {
  return ids(collection, { filter })
}

export async function drain (collection: Collection<Thing>): Promise<void> {
  await each(await ids(collection), (id) => collection.delete(id))
}

/** An id of fixed length, so that ids sort by their numbers. */
export function serialId (number: number): string {
  return `t${String(number).padStart(6, '0')}`
}

/** Inserts `count` documents whose ids are in the order of their numbers. */
export function fill (collection: Collection<Thing>, count: number, fields: (number: number) => Omit<Thing, 'id'> = () => ({})): Promise<void> {
  return each(Array.from({ length: count }, (_, number) => number), (number) =>
    collection.insert({ id: serialId(number), ...fields(number) }))
}
