import type { Collection as Native, FindOptions, Sort } from 'mongodb'
import { storeError } from '../../errors.ts'
import { checkChange, checkDocument, checkFilter, checkId, checkQuery, checkUnique, isEmptyFilter } from '../checks.ts'
import {
  BATCH_SIZE, type Change, type Collection, type CollectionSpec, type Document, DuplicateKeyError, type Filter,
  type Linked, type ListQuery, type MaybePromise, type Scalar
} from '../port.ts'
import type { BoundedCalls } from './bounded-calls.ts'
import { type Stored, decodeDocument, encodeDocument } from './documents.ts'
import type { Handle } from './handles.ts'
import type { KeyedMutex } from './keyed-mutex.ts'
import { Lookups } from './lookups.ts'
import { toFilter, toFilterAfter, toMatch, toPipeline, toSort } from './statements.ts'

/** Documents that one step of deleteMany removes. */
const DELETE_STEP = 1_000

/** Times put starts again when another put of the same id came between. */
const PUT_ATTEMPTS = 5

/** What the collections of a store share. */
export interface Context {
  calls: BoundedCalls
  mutex: KeyedMutex
  /** The collection, as the client in use has it. */
  handle: (name: string) => Handle
  /** The spec of a declared collection; an undeclared name throws. */
  spec: (name: string) => CollectionSpec
}

/** The port's collection on one of MongoDB's: each method is one statement on it, but for deleteMany and list. */
export class MongoCollection<T extends Document> implements Collection<T> {
  readonly #context: Context
  readonly #spec: CollectionSpec
  /** By the caller's own object, of which a program has a few. */
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

  async put (document: T): Promise<void> {
    checkDocument(this.#spec, document)
    const stored = encodeDocument(this.#spec, document)
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#write(document, () => this.#writes.replaceOne({ _id: document.id }, stored, { upsert: true }))
        return
      } catch (error) {
        // Two upserts of one new id may both find nothing and insert: the loser finds it the next time.
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
    ), this.#spec.unique?.filter((key) => written[key] !== undefined)))
  }

  async delete (id: string, where?: Filter): Promise<boolean> {
    const match = this.#match(id, where)
    const { deletedCount } = await this.#run(() => this.#writes.deleteOne(match))
    return deletedCount === 1
  }

  /** In steps, since one statement over millions would outlast any bound in time and be cut off midway. */
  async deleteMany (filter: Filter): Promise<number> {
    checkFilter(this.#spec, filter)
    if (isEmptyFilter(filter)) throw new TypeError(`deleteMany of ${this.#spec.name} takes a condition`)
    const condition = toFilter(this.#spec, filter)
    const options = { projection: { _id: 1 }, limit: DELETE_STEP, batchSize: DELETE_STEP, maxTimeMS: this.#context.calls.timeout }
    for (let removed = 0; ;) {
      const found = await this.#run(() => this.#reads.find(condition, options).toArray())
      if (found.length === 0) return removed
      const ids = found.map(({ _id }) => _id)
      const step = { $and: [condition, { _id: { $in: ids } }] }
      removed += (await this.#run(() => this.#writes.deleteMany(step))).deletedCount
      if (found.length < DELETE_STEP) return removed
    }
  }

  async count (filter?: Filter): Promise<number> {
    checkFilter(this.#spec, filter)
    const condition = toFilter(this.#spec, filter)
    // Without a condition mongod would read every document, unless told to count the keys of an index.
    const hint = Object.keys(condition).length === 0 ? { hint: '_id_' } : {}
    return this.#run(() => this.#reads.countDocuments(condition, { ...hint, maxTimeMS: this.#context.calls.timeout }))
  }

  list (query: ListQuery = {}): AsyncIterable<T[]> {
    checkQuery(this.#spec, query)
    const { filter, sort, after, offset = 0, limit = 0 } = query
    return this.#batches(after === undefined ? toFilter(this.#spec, filter) : toFilterAfter(this.#spec, filter, sort, after), {
      // As pairs: an object's keys would not keep the order of every name.
      sort: toSort(sort) as Sort,
      skip: offset,
      // Left out when there is none: with a limit of 0 the driver (7.9) asks for ever larger batches.
      ...limit === 0 ? {} : { limit },
      // One more than a batch still comes in one answer: who asks for it wants to know whether there is more.
      batchSize: limit === BATCH_SIZE + 1 ? limit : BATCH_SIZE,
      allowDiskUse: true
    })
  }

  async * #batches (condition: object, options: FindOptions): AsyncGenerator<T[], void, undefined> {
    const cursor = this.#reads.find(condition, options)
    let [given, failed] = [0, false]
    try {
      while (await this.#run(() => cursor.hasNext())) {
        const batch = cursor.readBufferedDocuments(BATCH_SIZE).map((stored) => decodeDocument<T>(stored))
        given += batch.length
        yield batch
      }
      // A cursor that the end of its client closed looks like one that came to its end; so does one at its limit.
      if (cursor.killed && given !== options.limit) throw storeError(new Error('the cursor was closed under the list'))
    } catch (error) {
      failed = true
      throw error
    } finally {
      // A reader who leaves early waits for the cursor to be gone, within bounds; one whose list failed does not.
      const closing = this.#context.calls.within(() => cursor.close()).catch(() => {})
      if (!failed) await closing
    }
  }

  #run<R> (work: () => Promise<R>): Promise<R> {
    return this.#context.calls.run(work)
  }

  /** A write of these fields, in its turn among those that write the same unique values. */
  #write<R> (fields: object, write: () => Promise<R>, unique?: string[]): Promise<R> {
    const keys = (this.#spec.unique ?? []).flatMap((key) => {
      const value = (fields as Record<string, Scalar | null | undefined>)[key]
      return value === undefined || value === null ? [] : [JSON.stringify([this.#spec.name, key, value])]
    })
    return this.#context.calls.run((call) => this.#context.mutex.run(keys, call, write), unique)
  }

  #lookupsOf (links: Record<string, string>): Lookups<T> {
    let lookups = this.#lookups.get(links)
    if (lookups === undefined) {
      const entries = Object.entries(links).map(([field, name]) => {
        if (this.#spec.keys[field] !== 'string') throw new TypeError(`${this.#spec.name}.${field} holds no id`)
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
