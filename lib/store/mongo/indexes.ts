import type { Db, IndexDescription } from 'mongodb'
import type { CollectionSpec } from '../port.ts'
import { encodeName } from './documents.ts'
import type { ServerError } from './errors.ts'

const BSON_TYPES = { string: 'string', number: 'number', boolean: 'bool' } as const

/** NamespaceNotFound: the collection has no document and no index. */
const NOT_FOUND = 26

/** IndexOptionsConflict and IndexKeySpecsConflict: an index with the same name or keys exists, with other options. */
const CONFLICTS: unknown[] = [85, 86]

/**
 * The indexes of a collection. A unique index contains only values of the key's type, so that absent and null never clash.
 * It cannot sort all documents, so there is also a plain index. The expiry has a TTL index. The index of unique items has
 * an entry for each item of an array, and so has that of the words of a search.
 */
export function toIndexes (spec: CollectionSpec): IndexDescription[] {
  const unique = spec.unique ?? []
  const plain = [...spec.indexes ?? [], ...unique.map((key) => [key])].map((keys) => toIndex([...new Set([...keys, 'id'])]))
  const indexes = [
    ...plain,
    ...unique.map((key) => ({
      ...toIndex([key]),
      unique: true,
      partialFilterExpression: { [encodeName(key)]: { $type: BSON_TYPES[spec.keys[key]!] } }
    })),
    ...(spec.uniqueItems ?? []).map((field) => ({
      ...toIndex([field]), unique: true, partialFilterExpression: { [encodeName(field)]: { $type: BSON_TYPES.string } }
    })),
    ...spec.search === undefined ? [] : [toIndex([spec.search.field]), toIndex([spec.search.order, 'id'])],
    ...spec.expiry === undefined ? [] : [{ ...toIndex([spec.expiry]), expireAfterSeconds: 0 }]
  ]
  return [...new Map(indexes.map((index) => [index.name, index])).values()]
}

function toIndex (keys: readonly string[]): IndexDescription & { name: string } {
  const names = keys.map(encodeName)
  return { key: Object.fromEntries(names.map((name) => [name, 1])), name: names.map((name) => `${name}_1`).join('_') }
}

/** Whether the database has none of the declared collections. */
export async function isNew (db: Db, specs: readonly CollectionSpec[]): Promise<boolean> {
  const names = new Set(specs.map(({ name }) => name))
  // With these options a user who may only read and write the collections is allowed to ask.
  const found = await db.listCollections({}, { nameOnly: true, authorizedCollections: true }).toArray()
  return !found.some(({ name }) => names.has(name))
}

/** Whether a declared index is missing. */
export async function lacksIndexes (db: Db, specs: readonly CollectionSpec[]): Promise<boolean> {
  const lacking = await Promise.all(specs.map(async (spec) => {
    const found = await db.collection(spec.name).listIndexes().toArray().catch((error: ServerError) => {
      if (error.code === NOT_FOUND) return []
      throw error
    })
    return toIndexes(spec).some(({ name }) => !found.some((index) => index.name === name))
  }))
  return lacking.includes(true)
}

/** Creates the declared indexes that are missing. Leaves others alone; several processes may do this at once. */
export async function ensureIndexes (db: Db, specs: readonly CollectionSpec[]): Promise<void> {
  for (const spec of specs) {
    const indexes = toIndexes(spec)
    if (indexes.length === 0) continue
    try {
      await db.collection(spec.name).createIndexes(indexes)
    } catch (error) {
      throw explain(spec.name, error as ServerError)
    }
  }
}

/** Tells an operator what to do about an index that cannot be created. */
function explain (collection: string, error: ServerError): unknown {
  if (CONFLICTS.includes(error.code)) {
    // The server's message contains index definitions, and no data.
    const reason = `has an index whose options differ from the declared ones; drop it and restart: ${String(error.message)}`
    return new Error(`collection ${collection} ${reason}`, { cause: error })
  }
  // FerretDB passes PostgreSQL's error through. Both messages may contain a value, so they are only the cause.
  if (error.code === 11000 || /could not create exclusion constraint/.test(String(error.message))) {
    return new Error(`collection ${collection} has documents with the same value in a key declared unique`, { cause: error })
  }
  return error
}
