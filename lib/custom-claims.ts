import { CLAIM_LIMITS, CLAIM_NAME, CLAIM_SOURCE, type ClaimPlace, type CustomClaims } from '../schemas/claims.ts'
import { paramError } from './errors.ts'
import type { Json } from './store/port.ts'

export type { ClaimPlace, CustomClaims } from '../schemas/claims.ts'

/** The value of a claim of the operator's own. */
type ClaimValue = string | number | boolean | (string | number | boolean)[]

/** What a user's record says, for claims. */
type Attributes = { [key: string]: Json }

const NAME = new RegExp(CLAIM_NAME)
const SOURCE = new RegExp(CLAIM_SOURCE)

/**
 * Names that nobody may give another meaning. Whoever reads a token trusts each of them: an operator's `sub`, `roles` or `scope` would be
 * somebody else's power.
 */
const RESERVED: ReadonlySet<string> = new Set([
  // RFC 7519, 4.1.
  'iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti',
  // OpenID Connect Core, 2, 5.1, 5.6 and 7.
  'auth_time', 'nonce', 'acr', 'amr', 'azp', 'at_hash', 'c_hash', 's_hash', 'sub_jwk', '_claim_names', '_claim_sources',
  'name', 'given_name', 'family_name', 'middle_name', 'nickname', 'preferred_username', 'profile', 'picture', 'website', 'email', 'email_verified',
  'gender', 'birthdate', 'zoneinfo', 'locale', 'phone_number', 'phone_number_verified', 'address', 'updated_at',
  // OpenID Connect Back-Channel Logout, 2.4; RFC 8417, 2.2.
  'sid', 'events', 'toe', 'txn', 'sub_id',
  // RFC 7662, 2.2; RFC 9701, 5.
  'active', 'scope', 'client_id', 'username', 'token_type', 'token_introspection',
  // RFC 8693, 4; RFC 9068, 2.2.3; RFC 9396, 9; RFC 7800, 3.1; RFC 9449, 4.2 and 6.
  'act', 'may_act', 'roles', 'groups', 'entitlements', 'authorization_details', 'cnf', 'jkt', 'htm', 'htu', 'ath',
  // What gateways and libraries take for `scope` and `client_id`.
  'scp', 'cid',
  // This service: tokeninfo, introspection and its own names for the same.
  'user_id', 'account', 'client', 'clientid', 'subject', 'scopes', 'resource', 'roles_withheld', 'token_id', 'token_name', 'attributes', 'info',
  // Members of every object, and the key by which programs get at its prototype.
  'prototype', ...Object.getOwnPropertyNames(Object.prototype).map((name) => name.toLowerCase())
])

/** Some programs compare the names of claims without their case. */
const isReserved = (name: string): boolean => RESERVED.has(name.toLowerCase())

const PLACES: readonly ClaimPlace[] = ['id_token', 'userinfo', 'introspection', 'jwt']

/** The places of claims of a resource: ID tokens and userinfo are the client's. */
export const RESOURCE_PLACES: readonly ClaimPlace[] = ['introspection', 'jwt']

/**
 * Checks claims that an administrator declares, and sorts them.
 * @throws ErrParam that names the claim
 */
export function checkClaims (claims: CustomClaims, places: readonly ClaimPlace[] = PLACES): CustomClaims {
  const names = Object.keys(claims).sort()
  if (names.length > CLAIM_LIMITS.claims) throw paramError('claims', `must not have more than ${CLAIM_LIMITS.claims} claims`)
  return Object.fromEntries(names.map((name) => {
    if (name.length > CLAIM_LIMITS.name || !NAME.test(name)) {
      throw paramError('claims', `must have names of at most ${CLAIM_LIMITS.name} letters, digits and _.:/- that begin with a letter`)
    }
    if (isReserved(name)) throw paramError(`claims.${name}`, 'is a name that standards or this service use, and cannot be given another meaning')
    const { from, in: given } = claims[name] as CustomClaims[string]
    if (from.length > CLAIM_LIMITS.from || !SOURCE.test(from)) {
      throw paramError(`claims.${name}.from`, `must be attributes. and at most ${CLAIM_LIMITS.depth} keys with dots between them, of letters, digits, _ and -`)
    }
    const others = given.filter((place) => !places.includes(place))
    if (given.length === 0 || others.length > 0) throw paramError(`claims.${name}.in`, `must be some of ${places.join(', ')}`)
    return [name, { from, in: places.filter((place) => given.includes(place)) }]
  }))
}

const isScalar = (value: unknown): value is string | number | boolean => (
  typeof value === 'string' ? [...value].length <= CLAIM_LIMITS.text : typeof value === 'boolean' || Number.isFinite(value))

/** The value as a claim has it; undefined for one that no claim has. */
function toClaimValue (value: unknown): ClaimValue | undefined {
  if (isScalar(value)) return value
  return Array.isArray(value) && value.length <= CLAIM_LIMITS.items && value.every(isScalar) ? value : undefined
}

/** The value at a path of keys. Only own keys of objects count. */
function findValue (attributes: Attributes, from: string): Json | undefined {
  let value: Json | undefined = attributes
  for (const key of from.split('.').slice(1)) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

/** The claims that are declared for a place: their names, and where the values come from. A later declaration wins over an earlier one of the same name. */
export function listDeclared (place: ClaimPlace, declared: readonly (CustomClaims | undefined)[]): Map<string, string> {
  const found = declared.flatMap((claims = {}) => Object.entries(claims)).filter(([, { in: places }]) => places.includes(place))
  return new Map(found.map(([name, { from }]) => [name, from]))
}

const NONE = Object.freeze({})

/**
 * The claims of the operator's own that a user has in a place. Values that are no claims are left out, and what is too much together, in the
 * order of the names.
 * @param declared absent claims cost nothing
 */
export function readClaims (
  place: ClaimPlace, declared: readonly (CustomClaims | undefined)[], { attributes = {} }: { attributes?: Attributes }
): { [name: string]: ClaimValue } {
  if (declared.every((claims) => claims === undefined)) return NONE
  const claims: [name: string, value: ClaimValue][] = []
  let bytes = 2
  for (const [name, from] of [...listDeclared(place, declared)].sort(([one], [other]) => one < other ? -1 : 1)) {
    const value = toClaimValue(findValue(attributes, from))
    // A name may have become reserved since it was declared.
    if (value === undefined || isReserved(name)) continue
    const size = Buffer.byteLength(JSON.stringify({ [name]: value }))
    if (bytes + size > CLAIM_LIMITS.bytes) continue
    bytes += size
    claims.push([name, value])
  }
  return Object.fromEntries(claims)
}
