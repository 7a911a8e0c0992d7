import type { CollectionSpec, Document } from '../port.ts'

/** A document as MongoDB stores it: the id is `_id`, the expiry a Date, and some names and values are encoded (below). */
export interface Stored {
  _id: string
  [name: string]: unknown
}

/** The only key of a stored object that holds, as JSON, a value that BSON or the driver would change. */
const JSON_KEY = '%json'

/** Levels of nesting stored as BSON. Deeper values are stored as JSON, since a server refuses more than 100 levels. */
const MAX_DEPTH = 32

const PLAIN_NAME = /^(?!\$)(?!_id$)[^.%\0]+$/

/**
 * The stored name of a top-level field. In MongoDB a `.` means a path, a leading `$` an operator, `_id` the id, and a NUL
 * ends the name: these and `%` are percent-encoded. The empty name becomes a lone `%`.
 */
export function encodeName (field: string): string {
  if (field === 'id') return '_id'
  if (PLAIN_NAME.test(field)) return field
  if (field === '') return '%'
  if (field === '_id') return '%5Fid'
  return field.replace(/^\$|[.%\0]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
}

export function decodeName (name: string): string {
  if (name === '_id') return 'id'
  if (!name.includes('%')) return name
  return name.replace(/%([0-9A-F]{2})?/g, (_, code?: string) => code === undefined ? '' : String.fromCharCode(parseInt(code, 16)))
}

/** The stored form of a field's value. */
export function encodeValue (spec: CollectionSpec, field: string, value: unknown): unknown {
  if (field === spec.expiry && typeof value === 'string') return toDate(spec, value)
  if (Object.hasOwn(spec.keys, field) || spec.uniqueItems?.includes(field) === true || spec.search?.field === field) return value
  return needsJson(value, 0) ? { [JSON_KEY]: JSON.stringify(value) } : value
}

/** The Date of an expiry, which a TTL index needs. Accepts only the form that comes back unchanged. */
export function toDate (spec: CollectionSpec, text: string): Date {
  const date = new Date(text)
  if (Number.isNaN(date.getTime()) || date.toISOString() !== text) {
    throw new TypeError(`${spec.name}.${spec.expiry} is not an ISO 8601 time in UTC with milliseconds`)
  }
  return date
}

function decodeValue (value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return value.toISOString()
  const json = (value as Record<string, unknown>)[JSON_KEY]
  return typeof json === 'string' ? JSON.parse(json) : value
}

/**
 * Whether a value would come back changed from BSON, because of a key that a server or the driver reads as an operator, a
 * reference ($ref) or a BSON type (_bsontype), a NUL in a key, half a surrogate pair, or too many levels of nesting.
 */
function needsJson (value: unknown, depth: number): boolean {
  if (typeof value === 'string') return !value.isWellFormed()
  if (typeof value !== 'object' || value === null) return false
  if (depth >= MAX_DEPTH) return true
  if (Array.isArray(value)) return value.some((item) => needsJson(item, depth + 1))
  return Object.entries(value).some(([key, item]) => needsJsonKey(key) || needsJson(item, depth + 1))
}

function needsJsonKey (key: string): boolean {
  return key === '' || key === '_bsontype' || key === JSON_KEY || key.startsWith('$') || key.includes('\0') || !key.isWellFormed()
}

export function encodeDocument (spec: CollectionSpec, document: Document): Stored {
  const fields = Object.entries(document).filter(([, value]) => value !== undefined)
  return Object.fromEntries(fields.map(([field, value]) => [encodeName(field), encodeValue(spec, field, value)])) as Stored
}

export function decodeDocument<T extends Document> (stored: Stored): T {
  const document: Record<string, unknown> = {}
  for (const name of Object.keys(stored)) {
    const field = decodeName(name)
    const value = decodeValue(stored[name])
    // An assignment would set the prototype.
    if (field === '__proto__') Object.defineProperty(document, field, { value, enumerable: true, configurable: true, writable: true })
    else document[field] = value
  }
  return document as unknown as T
}
