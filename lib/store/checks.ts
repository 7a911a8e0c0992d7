import {
  BATCH_SIZE, type Begins, type Change, type CollectionSpec, type CountQuery, type Document, type Filter, type Keyset, type ListQuery, type PageQuery,
  PAGE_SIZE, type SortKey
} from './port.ts'

/**
 * The checks of arguments that all engines share, run before any I/O. A failed check is a mistake of the program, not of
 * a client: TypeError. Messages name fields and never contain a value.
 */

function checkValue (spec: CollectionSpec, key: string, value: unknown): void {
  const type = declaredType(spec, key)
  const actual: string = typeof value
  if (actual !== type || (type === 'number' && !Number.isFinite(value))) {
    throw new TypeError(`${spec.name}.${key} takes a ${type}`)
  }
}

/** The type of a declared key; an undeclared one throws. */
function declaredType (spec: CollectionSpec, key: string): CollectionSpec['keys'][string] {
  if (key === 'id') return 'string'
  if (!Object.hasOwn(spec.keys, key)) throw new TypeError(`${spec.name} declares no key ${key}`)
  return spec.keys[key]!
}

export function checkId (spec: CollectionSpec, id: unknown): void {
  if (typeof id !== 'string') throw new TypeError(`${spec.name}.id takes a string`)
}

/** A declared key has its declared type, or is absent or null: an index would order any other type differently. */
export function checkDocument (spec: CollectionSpec, document: Document): void {
  checkId(spec, document.id)
  for (const key of Object.keys(spec.keys)) {
    const value = (document as unknown as Record<string, unknown>)[key]
    if (value !== undefined && value !== null) checkValue(spec, key, value)
  }
  checkItems(spec, document as unknown as Record<string, unknown>)
}

/** A field of unique items is an array of well-formed strings, or absent; the search field one of words. */
function checkItems (spec: CollectionSpec, fields: Record<string, unknown>): void {
  for (const field of spec.uniqueItems ?? []) {
    const items = fields[field]
    if (items === undefined) continue
    if (!Array.isArray(items) || !items.every((item) => typeof item === 'string' && item.isWellFormed() && !item.includes('\0'))) {
      throw new TypeError(`${spec.name}.${field} takes an array of strings`)
    }
  }
  if (spec.search === undefined) return
  const words = fields[spec.search.field]
  if (words !== undefined && !(Array.isArray(words) && words.every(isWord))) {
    throw new TypeError(`${spec.name}.${spec.search.field} takes an array of words of letters and digits`)
  }
}

/** The key or the field of items is declared unique, and the value has its type. */
export function checkUnique (spec: CollectionSpec, key: string, value: unknown): void {
  if (spec.uniqueItems?.includes(key) === true) {
    if (typeof value !== 'string') throw new TypeError(`${spec.name}.${key} takes a string`)
    return
  }
  if (!spec.unique?.includes(key)) throw new TypeError(`${spec.name} declares no unique key ${key}`)
  checkValue(spec, key, value)
}

/** As checkUnique, or checkId, for each of some values. */
export function checkMany (spec: CollectionSpec, key: string, values: readonly unknown[]): void {
  if (values.length > BATCH_SIZE) throw new TypeError(`getMany takes at most ${BATCH_SIZE} values`)
  for (const value of values) {
    if (key === 'id') checkId(spec, value)
    else checkUnique(spec, key, value)
  }
}

/** The upper end of the range of the words that begin with a text: no word has this character. */
export const LAST_CHARACTER = '\u{10ffff}'

const WORD = /^[\p{L}\p{N}]+$/u

const isWord = (word: unknown): boolean => typeof word === 'string' && WORD.test(word)

/** The search field of a collection. @throws TypeError where none is declared */
export function searchOf ({ name, search }: CollectionSpec): NonNullable<CollectionSpec['search']> {
  if (search === undefined) throw new TypeError(`${name} declares no search`)
  return search
}

function checkBegins (spec: CollectionSpec, { words }: Begins): void {
  searchOf(spec)
  if (!Array.isArray(words) || words.length === 0 || !words.every(isWord)) throw new TypeError('begins takes words of letters and digits')
}

const FILTER_KINDS: string[] = ['equal', 'contains', 'before', 'since'] satisfies (keyof Filter)[]

/** Every value is a string, number or boolean of the key's type: nothing from outside can become an operator. */
export function checkFilter (spec: CollectionSpec, { absent = [], begins, ...filter }: Filter = {}): void {
  if (begins !== undefined) checkBegins(spec, begins)
  for (const key of absent) declaredType(spec, key)
  for (const [kind, conditions] of Object.entries(filter)) {
    if (!FILTER_KINDS.includes(kind)) throw new TypeError(`a filter has no ${kind}`)
    for (const [key, value] of Object.entries(conditions ?? {})) {
      checkValue(spec, key, value)
      if (kind !== 'equal' && typeof value !== 'string') throw new TypeError(`${kind} takes a string key`)
    }
  }
}

/** Whether the filter has no condition. */
export function isEmptyFilter (filter: Filter): boolean {
  return Object.values(filter).every((conditions) => Object.keys(conditions ?? {}).length === 0)
}

export function checkQuery (spec: CollectionSpec, query: ListQuery): void {
  checkFilter(spec, query.filter)
  for (const { key, direction } of query.sort ?? []) {
    declaredType(spec, key)
    if (direction !== 'asc' && direction !== 'desc') throw new TypeError('the direction of a sort is asc or desc')
  }
  if (query.after !== undefined) checkKeyset(spec, query.sort ?? [], query.after)
  for (const bound of [query.offset ?? 0, query.limit ?? 0]) {
    if (!Number.isSafeInteger(bound) || bound < 0) throw new TypeError('offset and limit are non-negative integers')
  }
}

export function checkPageQuery (spec: CollectionSpec, query: PageQuery): void {
  checkQuery(spec, query)
  if (query.limit === 0 || (query.limit ?? 1) > PAGE_SIZE) throw new TypeError(`a page has 1 to ${PAGE_SIZE} documents`)
}

export function checkCount (spec: CollectionSpec, filter: Filter | undefined, { limit }: CountQuery): void {
  checkFilter(spec, filter)
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit > 0)) throw new TypeError('the limit of a count is a positive integer')
}

/** A keyset has a value of the declared type, or null, for each key of its sort. */
function checkKeyset (spec: CollectionSpec, sort: SortKey[], { values, id }: Keyset): void {
  checkId(spec, id)
  if (!Array.isArray(values) || values.length !== sort.length) throw new TypeError('a keyset has a value for each key of its sort')
  for (const [index, { key }] of sort.entries()) if (values[index] !== null) checkValue(spec, key, values[index])
}

/** Each field is named once, is not the id, and keeps its declared type. A field set to undefined counts as not named. */
export function checkChange (spec: CollectionSpec, change: Change): void {
  const set = Object.entries(change.set ?? {}).filter(([, value]) => value !== undefined)
  const increment = Object.entries(change.increment ?? {})
  const named = [...set, ...increment].map(([field]) => field).concat(change.unset ?? [])
  if (new Set(named).size !== named.length) throw new TypeError(`a change of ${spec.name} names a field twice`)
  if (named.includes('id')) throw new TypeError(`a change of ${spec.name} names its id`)
  checkItems(spec, { ...change.set, ...change.increment })
  for (const [field, value] of set) {
    if (Object.hasOwn(spec.keys, field) && value !== null) checkValue(spec, field, value)
  }
  for (const [field, value] of increment) {
    if (!Number.isFinite(value)) throw new TypeError(`${spec.name}.${field} can only be incremented by a number`)
    if (Object.hasOwn(spec.keys, field)) checkValue(spec, field, value)
  }
}
