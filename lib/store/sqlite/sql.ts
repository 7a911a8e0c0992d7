import type { SQLInputValue } from 'node:sqlite'
import { type Condition, toSeekRanges } from '../seek.ts'
import { LAST_CHARACTER, searchOf } from '../checks.ts'
import type { CollectionSpec, Document, Filter, Json, ListQuery, Keyset, Scalar, SortKey } from '../port.ts'

/** A statement with its bound values. Its text contains only declared names: every value is bound. */
export interface Statement {
  sql: string
  values: SQLInputValue[]
}

/** Names of collections and keys: safe in quotes, and without the dot that the engine's own names contain. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const RESERVED = ['id', 'doc', 'rowid']

/** Checks that the names can be tables and columns. SQLite's names are case-insensitive. */
export function checkSpecs (specs: readonly CollectionSpec[]): void {
  checkNames(specs.map(({ name }) => name), [])
  for (const spec of specs) {
    const { name, keys, unique = [], indexes = [], expiry, search } = spec
    checkNames(listColumns(spec), RESERVED)
    for (const key of [...unique, ...indexes.flat(), ...[expiry, search?.order].filter((one) => one !== undefined)]) {
      if (!Object.hasOwn(keys, key)) throw new TypeError(`${name} declares no key ${key}`)
    }
  }
}

function checkNames (names: string[], taken: string[]): void {
  const seen = new Set(taken)
  for (const name of names) {
    if (!NAME.test(name) || /^sqlite_/i.test(name)) throw new TypeError(`'${name}' cannot name a collection or key`)
    if (seen.has(name.toLowerCase())) throw new TypeError(`the name '${name}' is taken`)
    seen.add(name.toLowerCase())
  }
}

export function quote (name: string): string {
  return `"${name}"`
}

/**
 * A table of one row: the version of the store's content. Triggers clear it at every change of a row, whatever program makes
 * it, and the transaction of a batch ends by setting a new random number. So it is null only after a change by another program.
 */
export const STATE_TABLE = 'store.content'
export const STATE = quote(STATE_TABLE)

const VERSION = 'CAST("version" AS TEXT) AS "version"'

/** Reads the version, as text because a JavaScript number is not exact at 64 bits. */
export const READ_VERSION = `SELECT ${VERSION} FROM ${STATE}`

/** Sets a version if there is none: a new one, or that which the content had before. */
export const SET_VERSION = `UPDATE ${STATE} SET "version" = CAST(? AS INTEGER) WHERE "version" IS NULL`

/**
 * A table of one row: the last changes of the content (changes.ts). It has no trigger, because it is not content. Earlier releases do not write
 * it, and then its newest line is not that of the version.
 */
export const CHANGES_TABLE = 'store.changes'

const CHANGES = quote(CHANGES_TABLE)

export const READ_CHANGES = `SELECT "lines" FROM ${CHANGES}`

export const WRITE_CHANGES = `UPDATE ${CHANGES} SET "lines" = ?`

/** A table of one row, the state of the store (../state.ts). It has no trigger, because it is not content. */
export const LAYOUT_TABLE = 'store.layout'

/**
 * The fields whose columns every write so far has filled. A release that does not declare a field leaves its column empty,
 * and so removes it from this table; a release that declares it again fills the column from the documents.
 */
export const KEYS_TABLE = 'store.keys'

/** A table of one row, which the readiness check writes. It has no trigger, because it is not content. */
export const PROBE_TABLE = 'store.probe'

/** The function that ends a statement at its deadline (connection.ts). */
export const WITHIN = 'store_within'

/** The table of a field of unique items, or of words: each item with the id of the document that has it. Triggers update it. */
export const toItemsTable = ({ name }: CollectionSpec, field: string): string => `${name}.${field}`

/** Writes as many pages as a large document with its indexes. Random bytes, because SQLite does not write unchanged data. */
export const PROBE = `INSERT OR REPLACE INTO ${quote(PROBE_TABLE)} ("id", "data") VALUES (1, randomblob(65536))`

/** The value of a key's column. Columns have no type, so a value is stored and compared as it is bound. */
export function toColumn (value: Json | undefined): SQLInputValue {
  if (typeof value === 'boolean') return Number(value)
  return typeof value === 'string' || typeof value === 'number' ? value : null
}

/** The fields whose items have a table. */
export const listItemFields = ({ uniqueItems = [], search }: CollectionSpec): string[] => [...uniqueItems, ...(search === undefined ? [] : [search.field])]

/** The fields of a collection that have columns of their own. */
export const listColumns = (spec: CollectionSpec): string[] => [...Object.keys(spec.keys), ...listItemFields(spec)]

/** The name of the index that lists a search walks: it has the words, so that no document is read in vain. */
export const nameSearchIndex = (spec: CollectionSpec): string => `${spec.name}.${searchOf(spec).order}.search`

/** The index by which SQLite finds a document by its id. */
const nameIdIndex = ({ name }: CollectionSpec): string => `sqlite_autoindex_${name}_1`

/** The values of a document's columns. Unique items and words are stored as JSON. */
export function toColumns ({ keys }: CollectionSpec, document: object, columns: string[]): SQLInputValue[] {
  const fields = document as Record<string, Json | undefined>
  return columns.map((column) => Object.hasOwn(keys, column) ? toColumn(fields[column]) : JSON.stringify(fields[column]) ?? null)
}

/** The id as bytes: node:sqlite of Node 24.7 reads text only up to its first NUL. Documents are JSON, which escapes it. */
const ID_BYTES = 'CAST("id" AS BLOB) AS "bytes"'

/** An id that was read as `bytes`. */
export const toId = ({ bytes }: { bytes: Uint8Array }): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()

/**
 * The statements of one collection: a table with the document as JSON, and a column for each declared key and field of
 * unique items.
 *
 * Inserts and updates are OR FAIL. They write one row, and SQLite checks every constraint before it writes, so a refused
 * statement has nothing to undo. Otherwise SQLite would copy each page first, in case the trigger fails, and an insert
 * would cost twice as much (https://sqlite.org/lang_conflict.html).
 */
export class Table {
  readonly name: string
  readonly #columns: string[]
  readonly spec: CollectionSpec
  readonly #insert: string
  readonly #put: string
  readonly #find: string
  readonly #findBy: ReadonlyMap<string, string>

  constructor (spec: CollectionSpec) {
    this.spec = spec
    this.name = quote(spec.name)
    this.#columns = listColumns(spec)
    const columns = ['id', 'doc', ...this.#columns].map(quote)
    this.#insert = `INSERT OR FAIL INTO ${this.name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    this.#find = `SELECT "doc" FROM ${this.name} WHERE "id" = ?`
    this.#findBy = new Map([
      ...(spec.unique ?? []).map((key): [string, string] => [key, `SELECT "doc" FROM ${this.name} WHERE ${quote(key)} = ?`]),
      ...(spec.uniqueItems ?? []).map((field): [string, string] => [
        field, `SELECT "doc" FROM ${this.name} WHERE "id" = (SELECT "id" FROM ${quote(toItemsTable(spec, field))} WHERE "item" = ?)`
      ])
    ])
    this.#put = `${this.#insert} ON CONFLICT ("id") DO UPDATE SET ${columns.slice(1).map((column) => `${column} = excluded.${column}`).join(', ')}`
  }

  insert (document: Document): Statement {
    return { sql: this.#insert, values: this.#row(document) }
  }

  put (document: Document): Statement {
    return { sql: this.#put, values: this.#row(document) }
  }

  /** Reads `doc` by id. */
  find (id: string, where?: Filter): Statement {
    return where === undefined ? { sql: this.#find, values: [id] } : this.#one(`SELECT "doc" FROM ${this.name}`, id, where)
  }

  /** Reads `doc` by a unique key, or by an item of a field of unique items. */
  findBy (key: string, value: Scalar): Statement {
    return { sql: this.#findBy.get(key)!, values: [toColumn(value)] }
  }

  /** Reads `doc` by ids, unique keys, or items of a field of unique items. */
  findMany (key: string, values: readonly string[]): Statement {
    const given = '(SELECT value FROM json_each(?))'
    const condition = this.spec.uniqueItems?.includes(key) === true
      ? `"id" IN (SELECT "id" FROM ${quote(toItemsTable(this.spec, key))} WHERE "item" IN ${given})`
      : `${quote(key)} IN ${given}`
    return { sql: `SELECT "doc" FROM ${this.name} WHERE ${condition}`, values: [JSON.stringify(values)] }
  }

  /** Reads from one snapshot `doc` by id, the documents its keys refer to as `l0`, `l1`..., and the `version`. Binds the id. */
  linked (links: [key: string, table: Table][]): string {
    const docs = links.map((_, index) => `, l${index}."doc" AS l${index}`).join('')
    const joins = links.map(([key, table], index) => ` LEFT JOIN ${table.name} l${index} ON l${index}."id" = t.${quote(key)}`).join('')
    return `SELECT t."doc" AS doc${docs}, (${READ_VERSION}) AS version FROM ${this.name} t${joins} WHERE t."id" = ?`
  }

  /** Replaces an existing document, with the columns of changed fields only, so that no other index is written. */
  rewrite (document: Document, changed: readonly string[]): Statement {
    const columns = this.#columns.filter((column) => changed.includes(column))
    const [id, doc, ...values] = this.#row(document, columns)
    return {
      sql: `UPDATE OR FAIL ${this.name} SET "doc" = ?${columns.map((column) => `, ${quote(column)} = ?`).join('')} WHERE "id" = ?`,
      values: [doc!, ...values, id!]
    }
  }

  delete (id: string, where?: Filter): Statement {
    return this.#one(`DELETE FROM ${this.name}`, id, where)
  }

  /** Reads `bytes` of up to `limit` matching documents, in any order. */
  findSome (filter: Filter, limit: number): Statement {
    const { sql, values } = this.#select([ID_BYTES], this.#toSource(filter))
    return { sql: `${sql} LIMIT ?`, values: [...values, limit] }
  }

  /** @param limit absent: all are counted */
  count (filter: Filter = {}, limit?: number): Statement {
    const found = this.#findIds(filter)
    if (limit === undefined) return { sql: `SELECT count(*) AS count FROM (${found.sql})`, values: found.values }
    return { sql: `SELECT count(*) AS count FROM (${found.sql} LIMIT ?)`, values: [...found.values, limit] }
  }

  /** A row for each document that a filter finds. */
  #findIds ({ begins, ...others }: Filter): Statement {
    const [word, ...more] = begins?.words ?? []
    // One word alone: its index has all that is needed.
    if (word !== undefined && more.length === 0 && begins?.isCommon !== true && Object.keys(others).length === 0) return this.#findWord(word, 'DISTINCT ')
    return this.#select(['1'], this.#toSource({ ...others, begins }))
  }

  /** The ids of the documents with a word that begins with this text. */
  #findWord (word: string, distinct = ''): Statement {
    const items = quote(toItemsTable(this.spec, searchOf(this.spec).field))
    return { sql: `SELECT ${distinct}"id" FROM ${items} WHERE "item" >= ? AND "item" < ?`, values: [word, word + LAST_CHARACTER] }
  }

  /** Reads `doc` or `bytes` of the documents that a query finds, in its order. With `after`, rows have the sort's columns too. */
  list ({ filter = {}, sort = [], after, offset = 0, limit = 0, until }: ListQuery & { until?: number | undefined }, wanted: 'doc' | 'bytes'): Statement {
    const column = wanted === 'doc' ? quote('doc') : ID_BYTES
    const source = this.#toSource(filter, until)
    const { sql, values } = after === undefined ? this.#select([column], source) : this.#selectAfter(column, source, sort, after)
    return {
      sql: `${sql} ORDER BY ${toOrder(sort, this.#isStrict(sort, after))} LIMIT ? OFFSET ?`,
      values: [...values, limit === 0 ? -1 : limit, offset]
    }
  }

  /**
   * Whether the documents of a list differ in the first key, so that the sort does not need the id. The index of a unique key does
   * not end with the id. A sort by both would need another index, and each write would update it.
   */
  #isStrict ([first]: SortKey[], after: Keyset | undefined): boolean {
    if (first === undefined || !this.spec.unique?.includes(first.key)) return false
    // Nulls are not unique. They come first ascending, and so before any value.
    return first.direction === 'asc' && after !== undefined && after.values[0] !== null
  }

  /** One select per range: SQLite seeks to each, and merges them in order, no further than they are read. */
  #selectAfter (column: string, { sql, values, index }: Source, sort: SortKey[], after: Keyset): Statement {
    const columns = [...new Set([column, ...sort.map(({ key }) => quote(key)), quote('id')])]
    const selects = toSeekRanges(sort, after).map((range) => {
      const bounds = range.map(toBound)
      return this.#select(columns, { index, sql: [...sql, ...bounds.map(({ sql }) => sql)], values: [...values, ...bounds.flatMap(({ values }) => values)] })
    })
    return { sql: selects.map(({ sql }) => sql).join(' UNION ALL '), values: selects.flatMap(({ values }) => values) }
  }

  #select (columns: string[], { sql, values, index }: Source): Statement {
    const where = sql.length === 0 ? '' : ` WHERE ${sql.join(' AND ')}`
    return { sql: `SELECT ${columns.join(', ')} FROM ${this.name}${index === undefined ? '' : ` INDEXED BY ${quote(index)}`}${where}`, values }
  }

  /** The conditions of a filter, and the index by which a search finds its documents. */
  #toSource (filter: Filter, until?: number): Source {
    const { begins, equal } = filter
    const [word, ...more] = begins?.words ?? []
    if (word === undefined) return toConditions(this.spec, filter, until)
    // What is equal leads to fewer documents than a word that many have, unless it is one of two values.
    const isLed = Object.values(equal ?? {}).some((value) => typeof value !== 'boolean')
    if (begins?.isCommon === true) return { ...toConditions(this.spec, filter, until), index: isLed ? undefined : nameSearchIndex(this.spec) }
    const led = this.#findWord(word)
    const rest = toConditions(this.spec, { ...filter, begins: { words: more } }, until)
    return { sql: [`"id" IN (${led.sql})`, ...rest.sql], values: [...led.values, ...rest.values], index: nameIdIndex(this.spec) }
  }

  #one (head: string, id: string, where: Filter = {}): Statement {
    const { sql, values } = toConditions(this.spec, where)
    return { sql: [`${head} WHERE "id" = ?`, ...sql].join(' AND '), values: [id, ...values] }
  }

  #row (document: Document, columns: string[] = this.#columns): SQLInputValue[] {
    return [document.id, JSON.stringify(document), ...toColumns(this.spec, document, columns)]
  }
}

/** Conditions with their values, and the index to use, if SQLite must not choose. */
interface Source {
  sql: string[]
  values: SQLInputValue[]
  index?: string | undefined
}

/**
 * The conditions of a filter. `instr` compares character by character; a null column matches no condition. A word begins after a quote in the
 * JSON of the words, which have none themselves.
 * @param until the deadline of `contains`
 */
function toConditions (spec: CollectionSpec, { equal = {}, contains = {}, before = {}, since = {}, absent = [], begins }: Filter, until?: number): Source {
  const deadline = until === undefined ? [] : [until]
  // One expression, so that it is every row, and not every match, that may ask for the time. One row in 64 does: a call costs more than the row.
  const toContains = (column: string): string => (
    until === undefined ? `instr(${column}, ?) > 0` : `iif((rowid & 63) <> 0 OR ${WITHIN}(?), instr(${column}, ?), 0) > 0`)
  const kinds = [
    [equal, (column: string) => `${column} = ?`, []], [contains, toContains, deadline],
    [before, (column: string) => `${column} < ?`, []], [since, (column: string) => `${column} >= ?`, []]
  ] as const
  const conditions = kinds.flatMap(([named, toSql, first]) => (
    Object.entries(named).map(([key, value]) => ({ sql: toSql(quote(key)), values: [...first, toColumn(value)] }))))
  const words = begins?.words ?? []
  return {
    sql: [
      ...conditions.map(({ sql }) => sql),
      ...absent.map((key) => `${quote(key)} IS NULL`),
      ...words.map(() => `instr(${quote(searchOf(spec).field)}, ?) > 0`)
    ],
    values: [...conditions.flatMap(({ values }) => values), ...words.map((word) => `"${word}`)]
  }
}

const RELATIONS = { is: '= ?', above: '> ?', below: '< ?', present: 'IS NOT NULL', absent: 'IS NULL' } as const

function toBound (condition: Condition): Statement {
  const values = 'value' in condition ? [toColumn(condition.value)] : []
  return { sql: `${quote(condition.key)} ${RELATIONS[condition.relation]}`, values }
}

/** SQLite sorts as the port demands: nulls first, and text by its UTF-8 bytes, that is, by code point. */
function toOrder (sort: SortKey[], isStrict: boolean): string {
  const last = sort.at(-1)
  const keys: SortKey[] = isStrict || last?.key === 'id' ? sort : [...sort, { key: 'id', direction: last?.direction ?? 'asc' }]
  return keys.map(({ key, direction }) => `${quote(key)} ${direction === 'desc' ? 'DESC' : 'ASC'}`).join(', ')
}
