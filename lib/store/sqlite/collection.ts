import { LRUCache } from 'lru-cache'
import { deepFreeze } from '../../freeze.ts'
import { checkChange, checkDocument, checkFilter, checkId, checkQuery, checkUnique, isEmptyFilter } from '../checks.ts'
import type { Change, Collection, Document, Filter, Linked, ListQuery, Scalar } from '../port.ts'
import type { Backend } from './backend.ts'
import { COUNT, type DocumentCache, SIZE } from './cache.ts'
import { guard } from './failure.ts'
import type { Value } from './operations.ts'
import type { Statement, Table } from './sql.ts'
import type { Touched } from './writer.ts'

/** Documents one step of a deleteMany removes: other writes go between. */
const DELETE_STEP = 100

/** An answer that was put together from the cache. */
interface Recalled {
  found: Linked<Document>
  /** The cache's, when all of it was there last. */
  stamp: number
}

/** What one shape of getLinked asks for: its statement, and its links in the order of the columns. */
interface LinkedPlan {
  sql: string
  entries: readonly (readonly [key: string, collection: string])[]
  /** By the id: who asks again for what has not changed gets the same object. */
  recalled: LRUCache<string, Recalled>
}

/** A collection of a file or of memory. What is checked is checked first; then it is one statement. */
export class SqliteCollection<T extends Document> implements Collection<T> {
  readonly #backend: Backend
  readonly #table: Table
  /** By the caller's own object, and by what is in it, of which a program has a few. */
  readonly #plans = new WeakMap<Record<string, string>, LinkedPlan>()
  readonly #shapes = new Map<string, LinkedPlan>()

  constructor (backend: Backend, table: Table) {
    this.#backend = backend
    this.#table = table
  }

  async insert (document: T): Promise<void> {
    checkDocument(this.#table.spec, document)
    // It touches nothing that a look-up may have kept: what is there already it does not change.
    await this.#backend.write({ kind: 'run', ...this.#table.insert(document) }, null)
  }

  async put (document: T): Promise<void> {
    checkDocument(this.#table.spec, document)
    await this.#backend.write({ kind: 'run', ...this.#table.put(document) }, this.#touch(document.id))
  }

  async get (id: string): Promise<T | null> {
    checkId(this.#table.spec, id)
    return this.#read(this.#table.find(id))
  }

  async getBy (key: string, value: Scalar): Promise<T | null> {
    checkUnique(this.#table.spec, key, value)
    return this.#read(this.#table.findBy(key, value))
  }

  getLinked (id: string, links: Record<string, string>): Linked<T> | null {
    checkId(this.#table.spec, id)
    const plan = this.#planOf(links)
    const cache = this.#backend.cache?.isUsable() === true ? this.#backend.cache : null
    if (cache === null) return this.#readLinked(id, plan, null)
    const recalled = plan.recalled.get(id)
    if (recalled?.stamp === cache.stamp) return recalled.found as Linked<T>
    return this.#recall(id, plan, cache, recalled) ?? this.#readLinked(id, plan, cache)
  }

  /** From the cache, when all of it is there. */
  #recall (id: string, { entries, recalled }: LinkedPlan, cache: DocumentCache, earlier: Recalled | undefined): Linked<T> | null {
    const own = cache.get(this.#table.spec.name, id)
    if (own === undefined) return null
    let same = earlier?.found.document === own.document
    let size = own.length
    const linked: Linked<T>['linked'] = {}
    for (const [key, collection] of entries) {
      const kept = cache.get(collection, (own.document as unknown as Record<string, string>)[key] ?? '')
      if (kept === undefined) return null
      linked[key] = kept.document
      same &&= earlier?.found.linked[key] === kept.document
      size += kept.length
    }
    const found = earlier !== undefined && same ? earlier.found : deepFreeze({ document: own.document, linked })
    recalled.set(id, { found, stamp: cache.stamp }, { size })
    return found as Linked<T>
  }

  #readLinked (id: string, { sql, entries }: LinkedPlan, cache: DocumentCache | null): Linked<T> | null {
    const row = this.#look<Record<string, string | null>>({ sql, values: [id] })
    if (row === undefined) return null
    const keep = <D extends Document>(collection: string, doc: string): D => {
      const document = JSON.parse(doc) as D
      cache?.set(collection, document, doc.length)
      return document
    }
    const linked: Linked<T>['linked'] = {}
    for (const [index, [key, collection]] of entries.entries()) {
      const doc = row[`l${index}`]
      linked[key] = typeof doc === 'string' ? keep(collection, doc) : null
    }
    return { document: keep<T>(this.#table.spec.name, row.doc!), linked }
  }

  async update (id: string, change: Change, where?: Filter): Promise<T | null> {
    const { spec } = this.#table
    checkId(spec, id)
    checkChange(spec, change)
    checkFilter(spec, where)
    const operation = { kind: 'update', collection: spec.name, change: JSON.stringify(change), ...this.#table.find(id, where) } as const
    return parse(await this.#backend.write(operation, this.#touch(id)))
  }

  async take (id: string, where?: Filter): Promise<T | null> {
    checkId(this.#table.spec, id)
    checkFilter(this.#table.spec, where)
    return parse(await this.#backend.write({ kind: 'read', ...this.#table.take(id, where) }, this.#touch(id)))
  }

  async delete (id: string, where?: Filter): Promise<boolean> {
    checkId(this.#table.spec, id)
    checkFilter(this.#table.spec, where)
    return await this.#backend.write({ kind: 'run', ...this.#table.delete(id, where) }, this.#touch(id)) === 1
  }

  /** By their ids: what is known of the others stays known, and where there is none nothing is written. */
  async deleteMany (filter: Filter): Promise<number> {
    checkFilter(this.#table.spec, filter)
    if (isEmptyFilter(filter)) throw new TypeError('deleteMany takes a condition')
    const { sql, values } = this.#table.findSome(filter, DELETE_STEP)
    for (let total = 0; ;) {
      const found = guard(() => this.#backend.connection.all<{ id: string }>(sql, ...values))
      // The condition again: one may have changed since.
      const removed = await Promise.all(found.map(({ id }) => this.delete(id, filter)))
      total += removed.filter(Boolean).length
      if (found.length < DELETE_STEP) return total
    }
  }

  async count (filter?: Filter): Promise<number> {
    checkFilter(this.#table.spec, filter)
    return this.#backend.count(this.#table, filter)
  }

  async * list (query: ListQuery = {}): AsyncGenerator<T[], void, undefined> {
    checkQuery(this.#table.spec, query)
    for await (const docs of this.#backend.list(this.#table, query)) yield docs.map((doc) => JSON.parse(doc) as T)
  }

  get render (): Collection<T>['render'] {
    const { render } = this.#backend
    return render && ((query, rendering) => {
      checkQuery(this.#table.spec, query)
      return render(this.#table, query, rendering)
    })
  }

  #touch (id: string): Touched {
    return { collection: this.#table.spec.name, id }
  }

  #read (statement: Statement): T | null {
    return parse(this.#look<{ doc: string }>(statement)?.doc ?? null)
  }

  /** One row, on this thread: some microseconds. */
  #look<R> (statement: Statement): R | undefined {
    return guard(() => this.#backend.connection.get<R>(statement))
  }

  #planOf (links: Record<string, string>): LinkedPlan {
    let plan = this.#plans.get(links)
    if (plan === undefined) {
      const entries = Object.entries(links)
      const sql = this.#table.linked(entries.map(([key, name]) => {
        const table = this.#backend.tables.get(name)
        if (table === undefined) throw new TypeError(`no collection ${name} is declared`)
        if (this.#table.spec.keys[key] !== 'string') throw new TypeError(`${this.#table.spec.name} declares no key ${key} that could hold an id`)
        return [key, table]
      }))
      const shape = JSON.stringify(entries)
      plan = this.#shapes.get(shape) ?? { sql, entries, recalled: new LRUCache({ max: COUNT, maxSize: SIZE }) }
      this.#shapes.set(shape, plan)
      this.#plans.set(links, plan)
    }
    return plan
  }
}

function parse<T> (doc: Value): T | null {
  return typeof doc === 'string' ? JSON.parse(doc) as T : null
}
