import type { Collection as Native, FindOptions } from 'mongodb'
import { deadlineError, storeError } from '../../errors.ts'
import { checkChange, checkCount, checkDocument, checkFilter, checkId, checkMany, checkPageQuery, checkQuery, checkUnique, isEmptyFilter } from '../checks.ts'
import {
  BATCH_SIZE, type Change, type Collection, type CollectionSpec, type Document, DuplicateKeyError, type Filter,
  type CountQuery, type Linked, type ListQuery, type MaybePromise, type PageQuery, type Scalar
} from '../port.ts'
import { type BoundedCalls, within } from './bounded-calls.ts'
import { type Stored, decodeDocument, encodeDocument, encodeName } from './documents.ts'
import type { ServerError } from './errors.ts'
import type { Handle } from './handles.ts'
import type { KeyedMutex } from './keyed-mutex.ts'
import { Lookups } from './lookups.ts'
import { toFilter, toFilterAfter, toMatch, toPipeline, toSort } from './statements.ts'

/** Documents that one step of deleteMany removes, at most. */
const DELETE_STEP = 1_000

/** Attempts of a put that loses to puts of the same new id. */
const PUT_ATTEMPTS = 5

/** MaxTimeMSExpired: the server has given up. */
const EXPIRED = 50

/** What the server answers, unless that takes longer than the caller waits. The server ends by its own clock, maxTimeMS. */
async function untilDeadline<R> (work: Promise<R>, until: number | undefined): Promise<R> {
  if (until === undefined) return await work
  try {
    return await within(until - Date.now(), () => work)
  } catch (error) {
    if ((error as ServerError).code === EXPIRED || Date.now() >= until) throw deadlineError()
    throw error
  }
}

/** Shared by the collections of a store. */
export interface Context {
  calls: BoundedCalls
  mutex: KeyedMutex
  /** Rejects when this process may not write. */
  admit: () => Promise<void>
  /** The collection of the current client. */
  handle: (name: string) => Handle
  /** The spec of a declared collection; an undeclared name throws. */
  spec: (name: string) => CollectionSpec
}

/** A collection of the port on MongoDB. Each method is one statement, except deleteMany, page and stream. */
export class MongoCollection<T extends Document> implements Collection<T> {
  readonly #context: Context
  readonly #spec: CollectionSpec
  /** By the `links` object of the caller. A program has a few such objects, which are constant. */
  readonly #lookups = new WeakMap<Record<string, string>, Lookups<T>>()

  constructor (context: Context, name: string) {
    this.#context = context
    this.#spec = context.spec(name)
  }

  get #writes (): Native<Stored> {
    return this.#context.handle(this.#spec.name).writes
  }

  get #reads (): Native<Stored> {
    return this.#context.handle(this.#spec.name).reads
  }

  async insert (document: T): Promise<void> {
    checkDocument(this.#spec, document)
    const stored = encodeDocument(this.#spec, document)
    await this.#write(document, () => this.#writes.insertOne(stored))
  }

  async insertMany (documents: readonly T[]): Promise<void> {
    for (const document of documents) checkDocument(this.#spec, document)
    if (documents.length === 0) return
    const stored = documents.map((document) => encodeDocument(this.#spec, document))
    await this.#change([], () => this.#writes.insertMany(stored, { ordered: true }))
  }

  async put (document: T): Promise<void> {
    checkDocument(this.#spec, document)
    const stored = encodeDocument(this.#spec, document)
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#write(document, () => this.#writes.replaceOne({ _id: document.id }, stored, { upsert: true }))
        return
      } catch (error) {
        // Two upserts of a new id may both find nothing and insert. The loser finds it in its next attempt.
        if (!(error instanceof DuplicateKeyError && error.field === 'id' && attempt < PUT_ATTEMPTS)) throw error
      }
    }
  }

  async get (id: string): Promise<T | null> {
    checkId(this.#spec, id)
    return this.#decode(await this.#run(() => this.#reads.findOne({ _id: id })))
  }

  async getBy (key: string, value: Scalar): Promise<T | null> {
    checkUnique(this.#spec, key, value)
    const condition = toFilter(this.#spec, { equal: { [key]: value } })
    return this.#decode(await this.#run(() => this.#reads.findOne(condition)))
  }

  async getMany (key: string, values: readonly string[]): Promise<T[]> {
    checkMany(this.#spec, key, values)
    if (values.length === 0) return []
    const condition = { [encodeName(key)]: { $in: [...values] } }
    return (await this.#run(() => this.#reads.find(condition, { batchSize: BATCH_SIZE + 1 }).toArray())).map((stored) => decodeDocument<T>(stored))
  }

  getLinked (id: string, links: Record<string, string>): MaybePromise<Linked<T> | null> {
    checkId(this.#spec, id)
    const lookups = this.#lookupsOf(links)
    return this.#context.calls.run((call) => lookups.find(id, call))
  }

  async update (id: string, change: Change, where?: Filter): Promise<T | null> {
    const match = this.#match(id, where)
    checkChange(this.#spec, change)
    const pipeline = toPipeline(this.#spec, change)
    if (pipeline.length === 0) return this.#decode(await this.#run(() => this.#reads.findOne(match)))
    const written = { ...change.set, ...change.increment }
    return this.#decode(await this.#write(change.set ?? {}, () => (
      this.#writes.findOneAndUpdate(match, pipeline, { returnDocument: 'after', includeResultMetadata: false })
    ), [...this.#spec.unique ?? [], ...this.#spec.uniqueItems ?? []].filter((key) => written[key] !== undefined)))
  }

  async delete (id: string, where?: Filter): Promise<boolean> {
    const match = this.#match(id, where)
    const { deletedCount } = await this.#change([], () => this.#writes.deleteOne(match))
    if (deletedCount === 1) return true
    // FerretDB's deleteOne misses a document that is updated meanwhile; its deleteMany does not.
    return (await this.#change([], () => this.#writes.deleteMany(match))).deletedCount === 1
  }

  /** In steps, because one statement over millions of documents would exceed any deadline. */
  async deleteMany (filter: Filter): Promise<number> {
    checkFilter(this.#spec, filter)
    if (isEmptyFilter(filter)) throw new TypeError(`deleteMany of ${this.#spec.name} needs a condition`)
    const condition = toFilter(this.#spec, filter)
    const options = { projection: { _id: 1 }, limit: DELETE_STEP, batchSize: DELETE_STEP, maxTimeMS: this.#context.calls.timeout }
    for (let removed = 0; ;) {
      const found = await this.#run(() => this.#reads.find(condition, options).toArray())
      if (found.length === 0) return removed
      const ids = found.map(({ _id }) => _id)
      const step = { $and: [condition, { _id: { $in: ids } }] }
      removed += (await this.#change([], () => this.#writes.deleteMany(step))).deletedCount
      if (found.length < DELETE_STEP) return removed
    }
  }

  async count (filter?: Filter, query: CountQuery = {}): Promise<number> {
    checkCount(this.#spec, filter, query)
    const limit = query.limit === undefined ? {} : { limit: query.limit }
    const condition = toFilter(this.#spec, filter)
    // Without a condition mongod reads every document, unless a hint makes it count the keys of an index.
    const hint = Object.keys(condition).length === 0 ? { hint: '_id_' } : {}
    return this.#run(() => this.#reads.countDocuments(condition, { ...hint, ...limit, maxTimeMS: this.#context.calls.timeout }))
  }

  page ({ limit = BATCH_SIZE, ...query }: PageQuery = {}): AsyncIterable<T[]> {
    checkPageQuery(this.#spec, { ...query, limit })
    // In one answer, if it is not too large for one.
    return this.#list({ ...query, limit }, limit)
  }

  stream (query: ListQuery = {}): AsyncIterable<T[]> {
    checkQuery(this.#spec, query)
    return this.#list(query, BATCH_SIZE)
  }

  #list ({ filter, sort, after, offset = 0, limit = 0, until }: ListQuery & Pick<PageQuery, 'until'>, batchSize: number): AsyncIterable<T[]> {
    return this.#batches(after === undefined ? toFilter(this.#spec, filter) : toFilterAfter(this.#spec, filter, sort, after), {
      // As pairs: an object would not keep the order of keys that look like numbers.
      sort: toSort(sort),
      skip: offset,
      // Absent without a limit: with a limit of 0 the driver (7.9) asks for larger and larger batches.
      ...limit === 0 ? {} : { limit },
      batchSize,
      allowDiskUse: true
    }, until)
  }

  async * #batches (condition: object, options: FindOptions, until?: number): AsyncGenerator<T[], void, undefined> {
    const left = until === undefined ? undefined : until - Date.now()
    if (left !== undefined && left <= 0) throw deadlineError()
    const cursor = this.#reads.find(condition, left === undefined ? options : { ...options, maxTimeMS: Math.ceil(left) })
    let [count, failed] = [0, false]
    try {
      while (await this.#run(() => untilDeadline(cursor.hasNext(), until))) {
        const batch = cursor.readBufferedDocuments(options.batchSize).map((stored) => decodeDocument<T>(stored))
        count += batch.length
        yield batch
      }
      // A cursor that was closed with its client looks exhausted. So does one that reached its limit.
      if (cursor.killed && count !== options.limit) throw storeError(new Error('the cursor was closed while the list was read'))
    } catch (error) {
      failed = true
      throw error
    } finally {
      // A reader that leaves early waits until the cursor is closed, up to a deadline. One whose list failed does not wait.
      const closing = this.#context.calls.within(() => cursor.close()).catch(() => {})
      if (!failed) await closing
    }
  }

  #run<R> (work: () => Promise<R>): Promise<R> {
    return this.#context.calls.run(work)
  }

  /** Writes these fields. Writes that share a unique value run one after another. */
  #write<R> (fields: object, write: () => Promise<R>, unique?: string[]): Promise<R> {
    const keys = (this.#spec.unique ?? []).flatMap((key) => {
      const value = (fields as Record<string, Scalar | null | undefined>)[key]
      return value === undefined || value === null ? [] : [JSON.stringify([this.#spec.name, key, value])]
    })
    for (const field of this.#spec.uniqueItems ?? []) {
      const items = new Set((fields as Record<string, string[] | undefined>)[field])
      for (const item of items) keys.push(JSON.stringify([this.#spec.name, field, item]))
    }
    return this.#change(keys, write, unique)
  }

  /** @param keys one for each unique value that is written */
  #change<R> (keys: string[], write: () => Promise<R>, unique?: string[]): Promise<R> {
    return this.#context.calls.run(async (call) => {
      await this.#context.admit()
      return await this.#context.mutex.run(keys, call, write)
    }, unique)
  }

  #lookupsOf (links: Record<string, string>): Lookups<T> {
    let lookups = this.#lookups.get(links)
    if (lookups === undefined) {
      const entries = Object.entries(links).map(([field, name]) => {
        if (this.#spec.keys[field] !== 'string') throw new TypeError(`${this.#spec.name}.${field} is not a declared string key`)
        return { field, spec: this.#context.spec(name) }
      })
      lookups = new Lookups({ native: () => this.#reads, links: entries, calls: this.#context.calls })
      this.#lookups.set(links, lookups)
    }
    return lookups
  }

  #match (id: string, where?: Filter): object {
    checkId(this.#spec, id)
    checkFilter(this.#spec, where)
    return toMatch(this.#spec, id, where)
  }

  #decode (stored: Stored | null): T | null {
    return stored === null ? null : decodeDocument<T>(stored)
  }
}
