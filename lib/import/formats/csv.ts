import { ImportLineSchema } from '../../../schemas/import.ts'
import type { Convert } from './convert.ts'
import { type Source, Refusal } from './source.ts'

type Json = Record<string, unknown>

interface Schema {
  type?: string
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  patternProperties?: Record<string, Schema>
}

/** The schema of a member. A password has several forms, whose members of one name have one type. */
function find (schema: Schema | undefined, name: string): Schema | undefined {
  const own = schema?.items ?? schema
  const properties = own?.properties ?? {}
  if (Object.hasOwn(properties, name)) return properties[name]
  return own?.anyOf?.map((form) => find(form, name)).find((found) => found !== undefined) ?? Object.values(own?.patternProperties ?? {})[0]
}

/** The value of a cell. */
function read (source: Source, column: string, schema: Schema | undefined): unknown {
  if (column.startsWith('roles.') || schema?.type === 'boolean') return source.flag(column)
  if (schema !== undefined && schema.type !== 'integer' && schema.type !== 'string') {
    try {
      return source.json(column)
    } catch (error) {
      if (column !== 'password' || !(error instanceof Refusal)) throw error
      throw new Refusal('is not JSON; a hash goes into the column password.hash, and plain passwords are not taken', column)
    }
  }
  const text = source.text(column)
  return schema?.type === 'integer' && text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : text
}

/** Sets a member. It is always an own one, whatever its name. */
function put (target: Json, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

function place (line: Json, column: string, source: Source): void {
  const path = column.split('.')
  let [at, schema]: [Json, Schema | undefined] = [line, ImportLineSchema as Schema]
  const value = read(source, column, path.reduce<Schema | undefined>(find, schema))
  // A role that is not held is no role.
  if (value === undefined || (path[0] === 'roles' && value === false)) return
  for (const name of path.slice(0, -1)) {
    schema = find(schema, name)
    const isList = schema?.items !== undefined
    if (!Object.hasOwn(at, name)) put(at, name, isList ? [{}] : {})
    const next = at[name]
    at = (Array.isArray(next) ? next[0] : next) as Json
    if (typeof at !== 'object' || at === null) throw new Refusal('is a part of a column that has a value', column)
  }
  put(at, path.at(-1)!, value)
}

/**
 * A CSV whose header names the fields of a line: `account`, `email_verified`, `password.hash`, `totp.secret`, `external.shop`, `info.city`,
 * `roles.editor`. Empty cells are absent fields; a column of a whole object has JSON.
 */
export const convertCsv: Convert = (source) => {
  const line: Json = {}
  for (const column of source.names) place(line, column, source)
  return line as ReturnType<Convert>
}
