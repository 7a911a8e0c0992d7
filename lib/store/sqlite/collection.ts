import { deadlineError } from '../../errors.ts'
import { checkChange, checkCount, checkDocument, checkFilter, checkId, checkMany, checkPageQuery, checkQuery, checkUnique, isEmptyFilter } from '../checks.ts'
import {
  BATCH_SIZE, type Change, type Collection, type CountQuery, type Document, type Filter, type Linked, type ListQuery, type PageQuery, type Scalar
} from '../port.ts'
import { toKeyset } from '../seek.ts'
import type { Backend } from './backend.ts'
import type { CollectionCache, Entry } from './cache.ts'
import type { Operation, Value } from './operations.ts'
import { type Statement, type Table, toId } from './sql.ts'
import { checkUrgent } from './urgency.ts'

/** Documents deleted in one step of deleteMany. Other writes run between the steps. */
const DELETE_STEP = 100

/** How getLinked reads one set of links: its statement, and the links in the order of the statement's columns. */
interface LinkedPlan {
  sql: string
  links: { key: string, cached: CollectionCache | undefined }[]
}

/** A collection of a file or of memory. Each method checks its arguments, and then runs one statement. */
export class SqliteCollection<T extends Document> implements Collection<T> {
  readonly #backend: Backend
  readonly #table: Table
  readonly #cached: CollectionCache | undefined
  /** By the `links` object of the caller. A program has a few such objects. */
  readonly #plans = new WeakMap<Record<string, string>, LinkedPlan>()

  constructor (backend: Backend, table: Table) {
    this.#backend = backend
    this.#table = table
    this.#cached = backend.cache?.collection(table.spec.name)
  }

  async insert (document: T): Promise<void> {
    checkDocument(this.#table.spec, document)
    // An insert changes no existing document, and so no cached one.
    await this.#backend.write({ kind: 'run', ...this.#table.insert(document), quiet: this.#isQuiet() }, null)
  }

  async insertMany (documents: readonly T[]): Promise<void> {
    for (const document of documents) checkDocument(this.#table.spec, document)
    if (documents.length === 0) return
    const statements = documents.map((document) => this.#table.insert(document))
    await this.#backend.write({ kind: 'series', statements, quiet: this.#isQuiet() }, null)
  }

  async put (document: T): Promise<void> {
    checkDocument(this.#table.spec, document)
    await this.#write({ kind: 'run', ...this.#table.put(document), quiet: this.#isQuiet() }, document.id)
  }

  async get (id: string): Promise<T | null> {
    checkId(this.#table.spec, id)
    return this.#read(this.#table.find(id))
  }

  async getBy (key: string, value: Scalar): Promise<T | null> {
    checkUnique(this.#table.spec, key, value)
    return this.#read(this.#table.findBy(key, value))
  }

  async getMany (key: string, values: readonly string[]): Promise<T[]> {
    checkMany(this.#table.spec, key, values)
    if (values.length === 0) return []
    const { sql, values: bound } = this.#table.findMany(key, values)
    return this.#backend.read((connection) => connection.all<{ doc: string }>(sql, ...bound)).map(({ doc }) => JSON.parse(doc) as T)
  }

  getLinked (id: string, links: Record<string, string>): Linked<T> | null {
    checkId(this.#table.spec, id)
    const plan = this.#getPlan(links)
    return this.#getCached(id, plan) ?? this.#readLinked(id, plan)
  }

  getGeneration (): number | undefined {
    return this.#backend.cache?.getGeneration()
  }

  /** Answers from the cache, if it has all the documents. */
  #getCached (id: string, plan: LinkedPlan): Linked<T> | null {
    if (this.#backend.cache?.isCurrent() !== true) return null
    const entry = this.#cached?.get(id) as Entry<T> | undefined
    if (entry === undefined) return null
    const linked: Linked<T>['linked'] = {}
    let { stamp } = entry
    for (const { key, cached } of plan.links) {
      const reference = getReference(entry.document, key)
      linked[key] = null
      if (reference === null) continue
      const found = cached?.get(reference)
      if (found === undefined) return null
      linked[key] = found.document
      stamp = Math.max(stamp, found.stamp)
    }
    return { document: entry.document, linked, stamp }
  }

  /** Answers from the file, and caches the documents if their version is accepted. */
  #readLinked (id: string, { sql, links }: LinkedPlan): Linked<T> | null {
    const row = this.#look<Record<string, string | null>>({ sql, values: [id] })
    if (row === undefined) return null
    const isCacheable = this.#backend.cache?.accepts(row.version ?? null) === true
    const decode = <D extends Document>(cached: CollectionCache | undefined, id: string, text: string): Entry<D> =>
      (isCacheable ? cached?.add<D>(id, text) : undefined) ?? { document: JSON.parse(text) as D, stamp: Number.NaN }
    const entry = decode<T>(this.#cached, id, row.doc!)
    const linked: Linked<T>['linked'] = {}
    let { stamp } = entry
    for (const [index, { key, cached }] of links.entries()) {
      const reference = getReference(entry.document, key)
      const text = row[`l${index}`] ?? null
      linked[key] = null
      if (reference === null) continue
      const found = text === null ? null : decode(cached, reference, text)
      if (found !== null) linked[key] = found.document
      // NaN when a document is missing or not cached. From then on it stays NaN.
      stamp = Math.max(stamp, found?.stamp ?? Number.NaN)
    }
    return { document: entry.document, linked, ...(!Number.isNaN(stamp) && { stamp }) }
  }

  async update (id: string, change: Change, where?: Filter): Promise<T | null> {
    const { spec } = this.#table
    checkId(spec, id)
    checkChange(spec, change)
    checkFilter(spec, where)
    const fields = [...Object.keys(change.set ?? {}), ...change.unset ?? [], ...Object.keys(change.increment ?? {})]
    return parse(await this.#write({
      kind: 'update', collection: spec.name, change: JSON.stringify(change), ...this.#table.find(id, where), quiet: this.#isQuiet(fields)
    }, id))
  }

  async delete (id: string, where?: Filter): Promise<boolean> {
    checkId(this.#table.spec, id)
    checkFilter(this.#table.spec, where)
    return await this.#write({ kind: 'run', ...this.#table.delete(id, where), quiet: this.#isQuiet() }, id) === 1
  }

  /** Deletes by id, so that other documents stay cached, and nothing is written when none matches. */
  async deleteMany (filter: Filter): Promise<number> {
    checkFilter(this.#table.spec, filter)
    if (isEmptyFilter(filter)) throw new TypeError('deleteMany takes a condition')
    const { sql, values } = this.#table.findSome(filter, DELETE_STEP)
    for (let total = 0; ;) {
      const found = this.#backend.read((connection) => connection.all<{ bytes: Uint8Array }>(sql, ...values))
      // With the filter again: a document may have changed since.
      const removed = await Promise.all(found.map((row) => this.delete(toId(row), filter)))
      total += removed.filter(Boolean).length
      if (found.length < DELETE_STEP) return total
    }
  }

  async count (filter?: Filter, query: CountQuery = {}): Promise<number> {
    checkCount(this.#table.spec, filter, query)
    if (query.urgent === true) checkUrgent(this.#table.spec, { filter })
    this.#backend.verify()
    return this.#backend.count(this.#table, filter, query)
  }

  async * page ({ urgent = false, limit = BATCH_SIZE, ...query }: PageQuery = {}): AsyncGenerator<T[], void, undefined> {
    const { spec } = this.#table
    checkPageQuery(spec, { ...query, limit })
    const { sort = [], until } = query
    if (until !== undefined && Date.now() > until) throw deadlineError()
    if (urgent) checkUrgent(spec, { ...query, sort })
    let [left, start] = [limit, query]
    while (true) {
      this.#backend.verify()
      const { docs, done } = await this.#backend.page(this.#table, { ...start, limit: left, urgent })
      this.#backend.verify()
      const documents = docs.map((doc) => JSON.parse(doc) as T)
      const last = documents.at(-1)
      if (last === undefined) return
      yield documents
      left -= documents.length
      if (done || left === 0) return
      start = { ...query, offset: 0, after: toKeyset(last, sort) }
    }
  }

  async * stream (query: ListQuery = {}): AsyncGenerator<T[], void, undefined> {
    checkQuery(this.#table.spec, query)
    for await (const docs of this.#verified(this.#backend.stream(this.#table, query))) yield docs.map((doc) => JSON.parse(doc) as T)
  }

  get render (): Collection<T>['render'] {
    const { render } = this.#backend
    return render && ((query, rendering) => {
      checkQuery(this.#table.spec, query)
      return this.#verified(render(this.#table, query, rendering))
    })
  }

  /** Fails a list when the file is lost. */
  async * #verified<B> (batches: AsyncIterable<B>): AsyncGenerator<B, void, undefined> {
    this.#backend.verify()
    for await (const batch of batches) {
      this.#backend.verify()
      yield batch
    }
  }

  /** Writes a document that may be cached. It stays cached when look-ups need not see the change. */
  #write (operation: Operation, id: string): Promise<Value> {
    return this.#backend.write(operation, operation.quiet === true ? null : { collection: this.#table.spec.name, id })
  }

  /** Whether look-ups need not see a write of these fields. Without an argument: a write of any field. */
  #isQuiet (fields: readonly string[] = ['']): boolean {
    const { hidden } = this.#table.spec
    return hidden !== undefined && fields.every((field) => field.startsWith(hidden))
  }

  #read (statement: Statement): T | null {
    return parse(this.#look<{ doc: string }>(statement)?.doc ?? null)
  }

  /** Reads one row on this thread, which takes microseconds. */
  #look<R> (statement: Statement): R | undefined {
    return this.#backend.read((connection) => connection.get<R>(statement))
  }

  #getPlan (links: Record<string, string>): LinkedPlan {
    let plan = this.#plans.get(links)
    if (plan === undefined) {
      const tables = Object.entries(links).map(([key, name]): [string, Table] => {
        const table = this.#backend.tables.get(name)
        if (table === undefined) throw new TypeError(`no collection ${name} is declared`)
        if (this.#table.spec.keys[key] !== 'string') throw new TypeError(`${this.#table.spec.name} declares no string key ${key}`)
        return [key, table]
      })
      plan = {
        sql: this.#table.linked(tables),
        links: tables.map(([key, { spec }]) => ({ key, cached: this.#backend.cache?.collection(spec.name) }))
      }
      this.#plans.set(links, plan)
    }
    return plan
  }
}

/** The id that a document's field holds, or null. */
function getReference (document: Document, key: string): string | null {
  return (document as unknown as Record<string, string | null | undefined>)[key] ?? null
}

function parse<T> (doc: Value): T | null {
  return typeof doc === 'string' ? JSON.parse(doc) as T : null
}
