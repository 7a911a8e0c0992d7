import type { Layout, StateRecord, StoreState } from './state.ts'

/**
 * The store port: the contract between the rules and a storage engine, for collections of documents. An engine knows
 * nothing about users or tokens, and the rules know nothing about engines. Each promise below is a named case of the
 * conformance suite, test/lib/store/conformance.ts, which every engine passes.
 *
 * One document is the unit of atomicity. There are no transactions: of two racing conditional updates one wins, and
 * every one-shot code is spent that way.
 */

/** The value of a document's field: JSON, and nothing else. Times are ISO 8601 strings, see lib/clock.ts. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

/**
 * A stored document: an id, and top-level fields. It is read back exactly as it was written: any Unicode, any names of
 * fields, and the difference between null and absent. A field with the value undefined is absent.
 */
export interface Document {
  id: string
}

/** A value that a filter compares with. Anything else throws, so that no value from outside can become an operator. */
export type Scalar = string | number | boolean

/** Declares a collection. An engine derives its tables, columns and indexes from it when the store is opened. */
export interface CollectionSpec {
  name: string
  /**
   * The top-level fields, other than the id, that filters and sorts may name, with their types: a write with another type
   * throws TypeError. Other fields are stored and cannot be searched. An absent or null key matches no condition, and sorts
   * first ascending and last descending. Strings sort by code point.
   */
  keys: Record<string, 'string' | 'number' | 'boolean'>
  /** Keys whose values are unique in the collection; absent and null never clash. */
  unique?: string[]
  /**
   * Top-level fields, other than the keys, that hold arrays of strings. No item is in the arrays of two documents; one document
   * may repeat it. getBy finds a document by an item. An absent or empty array never clashes.
   */
  uniqueItems?: string[]
  /**
   * What `Filter.begins` searches: a top-level field, other than the keys, that holds an array of words, each of letters and digits only. Lists
   * of a search are sorted by `order`, a string key. Absent: the collection cannot be searched by the beginnings of words.
   */
  search?: { field: string, order: string }
  /** Compound indexes for the filters and sorts in use; the engine appends the id to each. */
  indexes?: string[][]
  /**
   * The key that holds a document's expiry time. The engine removes expired documents by itself, in its own time: a caller
   * still checks the expiry of what it reads. Absent: documents never expire.
   */
  expiry?: string
  /**
   * Fields whose names begin with this prefix matter only to the module that owns the collection: getLinked may answer with previous
   * values of them. So an engine with a cache evicts nothing when only such fields change. Empty: all fields.
   */
  hidden?: string
}

/** Each of the texts is the beginning of a word of the document's search field. */
export interface Begins {
  /** Of letters and digits, at least one. */
  words: readonly string[]
  /**
   * How an engine that has a choice finds them, which changes no answer. True: it walks the documents in the order of the search, and looks at
   * their words: right where many match. Otherwise it reads all documents that have the first of the words, and sorts them: right where few do.
   */
  isCommon?: boolean
}

/** Conditions that must all hold. Every field named must be a declared key or the id, every value of its type. */
export interface Filter {
  equal?: Record<string, Scalar>
  /** The key's string contains this substring, compared character by character. Every string contains the empty one. */
  contains?: Record<string, string>
  /** The key's string sorts before this one: an earlier ISO time, for example. */
  before?: Record<string, string>
  /** The key's string is this one or sorts after it. */
  since?: Record<string, string>
  /** These keys are absent or null. */
  absent?: readonly string[]
  begins?: Begins
}

/** The names of the fields that hold the events of a document until they are published (lib/events/pending.ts). */
export type EventField = `event:${string}` | `event_${string}`

export type EventFields = { [field in EventField]: Json }

/** The names of the fields that a change may name. Of a plain Document: any. */
export type FieldName<T extends Document> = Document extends T ? string : Exclude<keyof T & string, 'id'> | EventField

/** What is added to the fields that hold a number. Of a plain Document: to any. */
type Increments<T extends Document> = Document extends T
  ? Record<string, number>
  : { [K in keyof T & string as number extends T[K] ? K : never]?: number }

/** Values of some fields. Of a plain Document: any. */
type FieldValues<T extends Document> = Document extends T ? Record<string, Json> : Partial<Omit<T, 'id'>> & EventFields

/** An atomic update of one document. It names top-level fields other than the id; a field named twice throws TypeError. */
export interface Change<T extends Document = Document> {
  /** Replaces whole values. A field set to undefined is left as it is. */
  set?: FieldValues<T>
  unset?: FieldName<T>[]
  /** Adds to a number; an absent field counts as 0. */
  increment?: Increments<T>
}

/** A key and its direction. */
export interface SortKey {
  key: string
  direction: 'asc' | 'desc'
}

/** A position in a sorted list: that of a document with these values, which need not exist any more. */
export interface Keyset {
  /** The document's values of the sort's keys, in their order; null for an absent one. */
  values: (Scalar | null)[]
  id: string
}

export interface ListQuery {
  filter?: Filter
  /** The most significant key first. The id ends every sort, in the direction of the last key, so that pages are stable. */
  sort?: SortKey[]
  /** Only documents after this position. Where an index has the sort's order, the cost does not depend on the position. */
  after?: Keyset
  offset?: number
  /** 0 or absent: no limit. */
  limit?: number
}

/** How soon a read is wanted. An engine with threads keeps urgent reads apart from all others; any other engine ignores it. */
export interface Urgency {
  /**
   * An index leads to what is read, so that nothing is read in vain: its first keys are compared with `equal`, and the next ones with
   * `before` or `since` and sorted by. Other conditions, but not `contains`, may follow at least one `equal`. Any other read throws.
   */
  urgent?: boolean
}

export interface PageQuery extends ListQuery, Urgency {
  /** At most PAGE_SIZE; absent: BATCH_SIZE. */
  limit?: number
  /**
   * Until when the page is wanted, in milliseconds since the epoch. Later it rejects with ErrBusy (deadlineError), and the engine stops its
   * search for `contains`.
   */
  until?: number | undefined
}

export interface CountQuery extends Urgency {
  /** Counting stops at this number. Absent: it counts all. */
  limit?: number | undefined
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

/** The maximal number of documents in one batch of a list. */
export const BATCH_SIZE = 100

/** The maximal limit of a page: a batch, and the document that shows that another page follows. */
export const PAGE_SIZE = BATCH_SIZE + 1

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
 * with ErrBusy when too many operations are waiting. An argument that breaks the types above is a mistake of the program:
 * TypeError, before any I/O.
 *
 * A write whose promise resolved survives a crash of the process and a power failure, and every later read sees it. A
 * write that was rejected with ErrDb may still have happened, or may happen yet.
 */
export interface Collection<T extends Document> {
  /** Adds a document. Rejects with DuplicateKeyError when its id or a unique key is taken. */
  insert (document: T): Promise<void>
  /**
   * Adds documents, some hundred at most, in their order and in one round trip. Not atomic: when it rejects, also with
   * DuplicateKeyError, or the process dies, some may have been added. No document is added unless all before it were.
   */
  insertMany (documents: readonly T[]): Promise<void>
  /** Adds the document, or replaces the whole document with its id. Rejects with DuplicateKeyError when a unique key is taken. */
  put (document: T): Promise<void>
  get (id: string): Promise<T | null>
  /** Reads the document with this value of a unique key, or with this item of a field of unique items. */
  getBy (key: string, value: Scalar): Promise<T | null>
  /**
   * Reads the documents with these ids, or with these values of a unique key or items of a field of unique items: in one round trip, in
   * any order, each once.
   * @param values at most BATCH_SIZE
   */
  getMany (key: string, values: readonly string[]): Promise<T[]>
  /**
   * Reads the document and the documents its keys refer to, in one round trip. Every authenticated request makes this call:
   * an engine that can answer without I/O returns the answer itself instead of a promise, and may cache documents.
   * Documents in the answer are shared with other callers: never change them.
   *
   * The answer includes every write that this store acknowledged before the call, and every write that another process
   * committed before the event loop last polled for I/O. So a request that began to arrive before such a commit may be
   * answered as of before it; one on a connection that had nothing to read until then is not.
   * @param links names of declared string keys, each with the collection whose ids it holds
   */
  getLinked (id: string, links: Record<string, string>): MaybePromise<Linked<T> | null>
  /**
   * Present in an engine that caches. While the number stays the same, getLinked would repeat every answer that had a stamp, with
   * the same stamp. Undefined while that is not certain.
   */
  getGeneration? (): number | undefined
  /**
   * Updates a document if it exists and matches `where`, in one atomic step. Resolves to the updated document, or null.
   * @param change the compiler compares a Change<T> with the fields of the document. Code that knows some of them only passes a Change
   */
  update (id: string, change: Change<T> | Change, where?: Filter): Promise<T | null>
  /** Deletes a document if it exists and matches `where`, in one atomic step. Resolves to whether it did. */
  delete (id: string, where?: Filter): Promise<boolean>
  /** Deletes all matching documents in bounded steps, not atomically. An empty filter throws. Resolves to their number. */
  deleteMany (filter: Filter): Promise<number>
  count (filter?: Filter, query?: CountQuery): Promise<number>
  /**
   * Reads a bounded number of documents, and holds no cursor meanwhile. They come in one batch, or in several if they are large; each
   * batch is of one moment. No batch is empty.
   */
  page (query?: PageQuery): AsyncIterable<T[]>
  /**
   * Reads a whole list from one cursor, in batches of 1 to BATCH_SIZE. Leaving the loop early closes the cursor. Memory does not grow
   * with the length of the list, and other calls may write while it is read. A cursor may stay open as long as a reader is slow: only
   * what reads whole collections streams, and lib/lists bounds how many do.
   */
  stream (query?: ListQuery): AsyncIterable<T[]>
  /**
   * The same stream as text, written in another thread, in pieces of some tens of KiB. No piece is empty. The first has the documents
   * of one batch, and is the only one when these are all. An IdentityError that the renderer throws reaches the caller as it is.
   * Absent when the store has no renderers, or its engine has no thread for them: then the caller renders `stream`.
   */
  render?: (query: ListQuery, rendering: Rendering) => AsyncIterable<string>
}

/** An open store. */
export interface Store {
  /** `sqlite` or `mongodb`, for logs and readiness. */
  readonly engine: string
  /** The layout of the store, and a move or a migration in progress. */
  readonly state: StateRecord
  /** A declared collection; an undeclared name throws. */
  collection<T extends Document> (name: string): Collection<T>
  /** Resolves when the engine can read and write; rejects with ErrDb otherwise. May write to find out. */
  ping (): Promise<void>
  /** Throws ErrDb when the store is closed, or its data was removed, replaced or damaged. Absent where only `ping` can tell. */
  verify? (): void
  /** Waits for the accepted operations, and then releases everything the store opened. Idempotent. */
  close (): Promise<void>
}

/** The options of every engine. */
export interface StoreOptions {
  collections: readonly CollectionSpec[]
  /** The clock that decides when documents expire, in milliseconds since the epoch. */
  now: () => number
  /**
   * Renderers for Collection.render: a module, by its URL, whose `createRenderers(data)` returns functions by name. Each
   * takes the options of a Rendering and returns a Renderer. An engine that reads lists in a thread of its own loads the
   * module there, once, and hands over `data` by structured clone; a KeyObject may be in it.
   */
  renderers?: { module: string, data?: unknown } | undefined
  /**
   * Called with failures that no caller waits for, such as a failed sweep; once with a StoreLostError, which the host logs
   * as fatal; and with a ReconnectedError, which it logs as a warning. Errors never contain data of a document.
   */
  onError?: (error: unknown) => void
  /** Receives warnings for the operator, such as that a new database was made. They contain no secrets. */
  onWarning?: ((message: string) => void) | undefined
  /** Whether a missing or empty database is created. False: it is an error. True by default. */
  create?: boolean
  /** Whether the layout, tables and indexes may be changed. False: a store that this release would change rejects with OutdatedError. True by default. */
  migrate?: boolean | undefined
  /** The most MiB that the write-ahead log of an SQLite file may reach while lists are read. */
  walLimit?: number
  /** Milliseconds an operation may take before it is rejected with ErrDb. */
  timeout?: number
  /** Opens the store even when it is marked as being moved, for the command `move` itself. */
  moving?: boolean | undefined
  /** The layout, for tests. */
  layout?: Layout | undefined
}

/** There is no database and none may be made: usually the volume is not mounted, or the name is wrong. */
export class NoDatabaseError extends Error {
  override readonly name = 'NoDatabaseError'

  /** @param where what begins the message */
  constructor (where = '') {
    super(where + 'there is no database, and an empty one is made only by `bootstrap`, `serve --create` or IDENTITY_CREATE_DATABASE=on (option createDatabase)')
  }
}

/** The store has the layout of an earlier release, or lacks tables or indexes, and may not be changed. */
export class OutdatedError extends Error {
  override readonly name = 'OutdatedError'
  readonly state: StoreState
  /** Milliseconds for which nobody can write while a start shuts out earlier releases. */
  readonly delay: number

  constructor (state: StoreState, delay: number) {
    super(`it has layout ${state.version} of an earlier release, or lacks tables or indexes: a start migrates it, and so does \`config check --migrate\``)
    this.state = state
    this.delay = delay
  }
}

/**
 * The data was removed, replaced or damaged while the store was open. Every call rejects with ErrDb, whose cause this is, until the
 * process restarts: the store never reopens by itself, because acknowledged writes may be missing from the new data.
 */
export class StoreLostError extends Error {
  override readonly name = 'StoreLostError'
}

/** A connection to the store did not recover and was replaced. Passed to onError; nothing is left to do. */
export class ReconnectedError extends Error {
  override readonly name = 'ReconnectedError'
}

/** An id or a unique key is taken. */
export class DuplicateKeyError extends Error {
  override readonly name = 'DuplicateKeyError'
  /** `id`, or the unique key or the field of unique items that clashed. */
  readonly field: string

  constructor (field: string, options?: ErrorOptions) {
    super(`duplicate value of ${field}`, options)
    this.field = field
  }
}
