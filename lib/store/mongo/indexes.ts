import type { Db, IndexDescription } from 'mongodb'
import type { CollectionSpec } from '../port.ts'
import { encodeName } from './documents.ts'
import type { ServerError } from './errors.ts'

const BSON_TYPES = { string: 'string', number: 'number', boolean: 'bool' } as const

/** Server codes for an index that exists with the same name or keys, and differs: IndexOptionsConflict, IndexKeySpecsConflict. */
const CONFLICTS: unknown[] = [85, 86]

/**
 * The indexes of a collection. A unique one holds only values of the key's type, so that absent and null never clash;
 * it cannot serve a sort of all documents, which is what the plain one beside it is for. The expiry's is a TTL index.
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
    ...spec.expiry === undefined ? [] : [{ ...toIndex([spec.expiry]), expireAfterSeconds: 0 }]
  ]
  return [...new Map(indexes.map((index) => [index.name, index])).values()]
}

function toIndex (keys: readonly string[]): IndexDescription & { name: string } {
  const names = keys.map(encodeName)
  return { key: Object.fromEntries(names.map((name) => [name, 1])), name: names.map((name) => `${name}_1`).join('_') }
}

/** Makes the declared indexes that are not there. Others are left alone; two processes may do it at once. */
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

/** Says what an operator can do about an index that cannot be made. */
function explain (collection: string, error: ServerError): unknown {
  if (CONFLICTS.includes(error.code)) {
    // The server's message holds definitions of indexes, and no data.
    const reason = `has an index with other options than declared, drop it and start again: ${String(error.message)}`
    return new Error(`collection ${collection} ${reason}`, { cause: error })
  }
  // The second is FerretDB's, which passes PostgreSQL's error through. Both may hold a value, so they stay the cause.
  if (error.code === 11000 || /could not create exclusion constraint/.test(String(error.message))) {
    return new Error(`collection ${collection} holds documents that clash on a key declared unique`, { cause: error })
  }
  return error
}
