/**
 * The store port: a small contract for collections of documents. An engine knows no resource, and a rule knows no
 * engine. Every promise below is a named case of the conformance suite in test/lib/store/conformance.ts.
 */

/** What a field of a document may hold: JSON, and nothing else. Times are ISO 8601 strings, see lib/clock.ts. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

/** A stored document: an id, and top-level fields of JSON. A field with the value undefined is absent. */
export interface Document {
  id: string
}

/** A value a filter may compare with. Anything else throws, so that no outside value can become an operator. */
export type Scalar = string | number | boolean

/** Declares a collection, once. Engines make their tables, columns and indexes from it. */
export interface CollectionSpec {
  name: string
  /**
   * Top-level fields that filters and sorts may name, beside the id, with what they hold: a write that puts another
   * type there throws TypeError. Other fields are stored, not searched. A field that is absent or null is not found by
   * equality and sorts first ascending, last descending.
   */
  keys: Record<string, 'string' | 'number' | 'boolean'>
  /** Keys of which each holds a value at most once in the collection; absent and null never clash. */
  unique?: string[]
  /** Compound indexes for the filters and sorts in use; the engine ends each with the id. */
  indexes?: string[][]
  /**
   * The key that holds a document's expiry time. The engine removes expired documents by itself, in its own time: a caller
   * still checks the expiry of what it reads. Absent: documents never expire.
   */
  expiry?: string
}

/** Conditions that must all hold. Every field named must be a declared key or the id, every value of its type. */
export interface Filter {
  equal?: Record<string, Scalar>
  /** The key's string holds this substring; case and every character count as they are. The empty one is in every string. */
  contains?: Record<string, string>
  /** The key's ISO time is before this one. */
  before?: Record<string, string>
}

/** One update of one document, atomic. Names top-level fields other than the id; a field named twice throws TypeError. */
export interface Change {
  /** Replaces whole values. A field set to undefined counts as not named. */
  set?: Record<string, Json>
  unset?: string[]
  /** Adds to a number; an absent field counts as 0. */
  increment?: Record<string, number>
}

/** A key and its direction. */
export interface SortKey {
  key: string
  direction: 'asc' | 'desc'
}

/** A place in a sort: where a document with these values stands, or stood. */
export interface Keyset {
  /** What it holds in the sort's keys, in their order; null for none. */
  values: (Scalar | null)[]
  id: string
}

export interface ListQuery {
  filter?: Filter
  /** In order of weight. The id ends every sort, in the direction of the last key, so that pages are stable. */
  sort?: SortKey[]
  /** Only what comes after this place. It costs the same wherever the place is, where an index has the sort's order. */
  after?: Keyset
  offset?: number
  /** 0 or absent: no limit. */
  limit?: number
}

export type MaybePromise<T> = T | Promise<T>

/** A document with the documents its fields refer to, see Collection.getLinked. */
export interface Linked<T> {
  document: T
  /**
   * The referenced documents by field name. Null when the field holds no id, and when no document has that id: the field
   * of `document` tells the two apart.
   */
  linked: Record<string, Document | null>
  /**
   * Set by an engine that caches. Two answers with the same stamp, for the same id and links, have the same content:
   * whatever the caller derived from the first is valid for the second. An answer that does not come from the cache, or
   * in which a referenced document does not exist, has none.
   */
  stamp?: number
}

/** Records in one batch of a list. */
export const BATCH_SIZE = 100

/** Writes one document of a list as text. */
export type Renderer<T extends Document = Document> = (document: T) => string

/** How a list becomes text: the name of a renderer (StoreOptions.renderers), and plain data. */
export interface Rendering {
  renderer: string
  options: object
  /** Written between any two documents. */
  separator: string
}

/**
 * A collection. Every method rejects with ErrDb (lib/errors.ts) when the engine fails or does not answer in time, and
 * with ErrBusy when too much is waiting. What breaks the types above is a mistake of the program: TypeError, before any I/O.
 * A write whose promise has resolved survives the end of the process and of the power, and is seen by every read after it.
 * A write that was rejected with ErrDb may have happened.
 */
export interface Collection<T extends Document> {
  /** Adds a document. Rejects with DuplicateKeyError when its id or a unique key is taken. */
  insert (document: T): Promise<void>
  /** Adds the document, or replaces the one with its id whole. Rejects with DuplicateKeyError on another unique key. */
  put (document: T): Promise<void>
  get (id: string): Promise<T | null>
  /** The document that holds this value in a unique key. */
  getBy (key: string, value: Scalar): Promise<T | null>
  /**
   * Reads the document and the documents its keys refer to, in one round trip. Every authenticated request makes this call:
   * an engine that can answer without I/O returns the answer itself instead of a promise, and may cache documents.
   * Documents in the answer are shared with other callers: never change them.
   *
   * The answer includes every write that this store acknowledged before the call. A write by another process may be
   * missing only if it was committed after the event loop last polled for I/O, so that a request which arrives after another
   * process acknowledged a write is answered with that write.
   * @param links names of declared string keys, each with the collection whose ids it holds
   */
  getLinked (id: string, links: Record<string, string>): MaybePromise<Linked<T> | null>
  /** Changes one document when it exists and `where` holds: of two racers one wins. Resolves to what it became, or null. */
  update (id: string, change: Change, where?: Filter): Promise<T | null>
  /** Removes one document; false when there was none or `where` did not hold. */
  delete (id: string, where?: Filter): Promise<boolean>
  /** Removes all that match, in bounded steps: not atomic as a whole. An empty filter throws. Resolves to the number. */
  deleteMany (filter: Filter): Promise<number>
  count (filter?: Filter): Promise<number>
  /**
   * Batches of up to BATCH_SIZE documents from one cursor, none of them empty. Leaving the loop early frees the cursor.
   * Memory does not grow with the length of the list, and writing while it is read is safe.
   */
  list (query?: ListQuery): AsyncIterable<T[]>
  /**
   * The same list as text, written in another thread. Pieces of some tens of KiB, none empty: the first has the documents
   * of one batch, and there is no second when these are all. Rejects with what the renderer throws when that is an
   * IdentityError. Absent where the store has no renderers, or its engine no thread for them: the caller renders `list`.
   */
  render?: (query: ListQuery, rendering: Rendering) => AsyncIterable<string>
}

/** An open store. */
export interface Store {
  /** `sqlite` or `mongodb`, for logs and readiness. */
  readonly engine: string
  /** A declared collection; an undeclared name throws. */
  collection<T extends Document> (name: string): Collection<T>
  /** Resolves when the engine answers; rejects with ErrDb otherwise. */
  ping (): Promise<void>
  /** Finishes what was accepted and frees everything the store opened. Idempotent. */
  close (): Promise<void>
}

/** What an engine needs from its opener. */
export interface StoreOptions {
  collections: readonly CollectionSpec[]
  /** Milliseconds since the epoch; the sweep asks it. */
  now: () => number
  /**
   * Renderers for Collection.render: a module, by its URL, whose `createRenderers(data)` returns functions by name. Each
   * takes the options of a Rendering and returns a Renderer. An engine that reads lists in a thread of its own loads the
   * module there, once, and hands over `data` by structured clone; a KeyObject may be in it.
   */
  renderers?: { module: string, data?: unknown } | undefined
  /**
   * Called with failures that no caller waits for, such as a failed sweep; once with a StoreLostError, which the host logs
   * as fatal; and with a ReconnectedError, which it logs as a warning. Errors never hold data of a document.
   */
  onError?: (error: unknown) => void
  /** Milliseconds any one operation may take before it fails with ErrDb. */
  timeout?: number
}

/**
 * The data was removed or replaced while the store was open. Every call rejects with ErrDb, whose cause this is, until the
 * process restarts: the store never reopens by itself, because what it acknowledged may be missing from the new data.
 */
export class StoreLostError extends Error {
  override readonly name = 'StoreLostError'
}

/** A connection to the store did not recover and was replaced. Passed to onError; nothing is left to do. */
export class ReconnectedError extends Error {
  override readonly name = 'ReconnectedError'
}

/** An id or a unique key is taken. The same from every engine. */
export class DuplicateKeyError extends Error {
  override readonly name = 'DuplicateKeyError'
  /** `id`, or the unique key that clashed. */
  readonly field: string

  constructor (field: string, options?: ErrorOptions) {
    super(`duplicate value of ${field}`, options)
    this.field = field
  }
}
