import type { CollectionSpec, Document } from '../port.ts'

/** A document as MongoDB keeps it: `_id` is the id, the expiry key is a Date, the rest is as the port's, but for names and values below. */
export interface Stored {
  _id: string
  [name: string]: unknown
}

/** A stored value that is this one key and a text: the JSON of a value that BSON or the driver would change. */
const JSON_KEY = '%json'

/** Levels of nesting stored as BSON; what is deeper is stored as JSON, since a server refuses more than 100. */
const MAX_DEPTH = 32

const PLAIN_NAME = /^(?!\$)(?!_id$)[^.%\0]+$/

/**
 * The stored name of a top-level field. In a name, `.` is a path and a leading `$` an operator, `_id` is the id, and
 * a NUL ends it: these are percent-encoded, with `%` itself, and the empty name is a lone `%`.
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
  if (Object.hasOwn(spec.keys, field)) return value
  return isAwkward(value, 0) ? { [JSON_KEY]: JSON.stringify(value) } : value
}

/** The Date of an expiry, which a TTL index needs. Only the form that comes back the same is taken. */
export function toDate (spec: CollectionSpec, text: string): Date {
  const date = new Date(text)
  if (Number.isNaN(date.getTime()) || date.toISOString() !== text) {
    throw new TypeError(`${spec.name}.${spec.expiry} takes a time in ISO 8601 form, in UTC and milliseconds`)
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
 * Whether a value would not come back from BSON as it went in: a key that servers or the driver read as an operator,
 * a reference ($ref) or a BSON type (_bsontype), a NUL in a key, half a surrogate pair, or too deep a nesting.
 */
function isAwkward (value: unknown, depth: number): boolean {
  if (typeof value === 'string') return !value.isWellFormed()
  if (typeof value !== 'object' || value === null) return false
  if (depth >= MAX_DEPTH) return true
  if (Array.isArray(value)) return value.some((item) => isAwkward(item, depth + 1))
  return Object.entries(value).some(([key, item]) => isAwkwardKey(key) || isAwkward(item, depth + 1))
}

function isAwkwardKey (key: string): boolean {
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
    // Assigned, that name would set the prototype.
    if (field === '__proto__') Object.defineProperty(document, field, { value, enumerable: true, configurable: true, writable: true })
    else document[field] = value
  }
  return document as unknown as T
}
