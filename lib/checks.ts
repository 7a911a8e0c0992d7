import ajvFormats from 'ajv-formats/dist/formats.js'
import { LIMITS } from '../schemas/common.ts'
import { parseTimestamp } from './clock.ts'
import { paramError } from './errors.ts'
import { findRedirectUriProblem } from './redirect-uris.ts'
import type { Json } from './store/port.ts'

export const EMAIL = ajvFormats.fullFormats.email as RegExp
const uri = ajvFormats.fullFormats.uri as (text: string) => boolean

/** RFC 6749, 3.3. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/
export const ACCOUNT = /^[A-Za-z0-9]{1}[A-Za-z0-9-_]*$/

/** Levels of nesting in free-form JSON. MongoDB allows 100 for the whole document. */
const MAX_DEPTH = 32

/** Lower-cases and checks an account. Throws ErrParam. */
export function checkAccount (text: string): string {
  const account = text.toLowerCase()
  if (account.length > LIMITS.account || !(ACCOUNT.test(account) || EMAIL.test(account))) {
    throw paramError('account', "must be an email address, or letters, digits, '-' and '_' with a letter or digit first")
  }
  return account
}

/** The number of Unicode code points, the unit of the schemas' lengths. */
export function countCharacters (text: string): number {
  return [...text].length
}

/** Throws ErrParam for a lone surrogate, because stores would alter it. */
export function checkText (field: string, text: string): string {
  if (!text.isWellFormed()) throw paramError(field, 'must be well-formed Unicode')
  return text
}

/** Converts an RFC 3339 time to its stored form. Throws ErrParam. */
export function checkTimestamp (field: string, text: string): string {
  const timestamp = parseTimestamp(text)
  if (timestamp === null) throw paramError(field, 'must be an RFC 3339 date-time with an offset or Z')
  return timestamp
}

/** A check for each field of T. It returns the value to store, or throws ErrParam. */
export type Checks<T> = { readonly [Field in keyof T]-?: (value: NonNullable<T[Field]>) => NonNullable<T[Field]> }

/** Checks the given fields. A field without a check does not compile: it would be dropped. Throws ErrParam. */
export function checkFields<T, Given extends Partial<T>> (given: Given & { [Field in Exclude<keyof Given, keyof T>]: never }, checks: Checks<T>): Given {
  const checked: Partial<T> = {}
  for (const field of Object.keys(checks) as (keyof T)[]) {
    const value = given[field] as T[keyof T] | undefined
    if (value !== undefined) checked[field] = checks[field](value!)
  }
  return checked as Given
}

function checkItems (field: string, items: string[], problem: (item: string) => string | undefined): string[] {
  if (items.length > LIMITS.items) throw paramError(field, `must not have more than ${LIMITS.items} items`)
  for (const [index, item] of items.entries()) {
    const cause = problem(item)
    if (cause !== undefined) throw paramError(`${field}[${index}]`, cause)
  }
  // The checks allow ASCII only, so JavaScript's order is code point order.
  return [...new Set(items)].sort()
}

/** Checks, sorts and de-duplicates redirect URIs. Throws ErrParam that names the item. */
export function checkRedirectUris (uris: string[]): string[] {
  return checkItems('redirectUris', uris, (uri) => findRedirectUriProblem(uri))
}

/** Checks, sorts and de-duplicates scopes. Throws ErrParam that names the item. */
export function checkScopes (scopes: string[]): string[] {
  return checkItems('scopes', scopes, (text) => {
    if (text.length > LIMITS.scope) return `must not have more than ${LIMITS.scope} characters`
    if (!SCOPE_TOKEN.test(text)) return 'must be a scope token: printable ASCII without space, quote and backslash'
  })
}

/** Throws ErrParam unless the text is an http or https URL. */
export function checkImage (text: string): string {
  const valid = text.length <= LIMITS.uri && uri(text) && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  if (!valid) throw paramError('image', 'must be an http or https URL')
  return text
}

/** Refuses JSON that a store could not return unchanged. */
function checkJson (field: string, value: Json, depth: number): void {
  if (typeof value === 'string') checkText(field, value)
  else if (typeof value === 'number' && !Number.isFinite(value)) throw paramError(field, 'must not contain a number out of range')
  else if (typeof value === 'object' && value !== null) {
    if (depth === MAX_DEPTH) throw paramError(field, `must not be nested deeper than ${MAX_DEPTH} levels`)
    for (const [key, item] of Object.entries(value)) {
      if (key.includes('\0')) throw paramError(field, 'must not have a key with a NUL character')
      checkText(field, key)
      checkJson(field, item, depth + 1)
    }
  }
}

/** Checks the caller's free-form JSON: no empty key, within the limits, and storable unchanged. Throws ErrParam. */
export function checkMap<T extends { [key: string]: Json }> (field: string, map: T, bytes: number = LIMITS.info): T {
  if (Object.hasOwn(map, '')) throw paramError(field, 'must not have an empty key')
  if (Object.hasOwn(map, '__proto__')) throw paramError(field, 'must not have the key __proto__')
  checkJson(field, map, 0)
  if (Buffer.byteLength(JSON.stringify(map)) > bytes) throw paramError(field, `must not have more than ${bytes} bytes as JSON`)
  return map
}

/** Keys by which a program that copies JSON carelessly changes the prototype of its objects. */
const PROTOTYPE_KEYS = ['__proto__', 'constructor', 'prototype']

function refusePrototypeKeys (field: string, value: Json): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) {
    if (PROTOTYPE_KEYS.includes(key)) throw paramError(field, `must not have the key ${key}`)
    refusePrototypeKeys(field, item)
  }
}

/** Checks the attributes of a user, which other programs read as claims. Throws ErrParam. */
export function checkAttributes<T extends { [key: string]: Json }> (attributes: T): T {
  const checked = checkMap('attributes', attributes, LIMITS.attributes)
  // Not before: its depth is bounded now.
  refusePrototypeKeys('attributes', checked)
  return checked
}

/** Checks roles. Presence of a role grants it, so a value that looks like a denial is refused. Throws ErrParam. */
export function checkRoles<T extends { [key: string]: Json }> (roles: T): T {
  for (const value of Object.values(roles)) {
    const attributes = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (value !== true && !attributes) throw paramError('roles', 'must have true or an object for each role')
  }
  return checkMap('roles', roles)
}
