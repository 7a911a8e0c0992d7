import ajvFormats from 'ajv-formats/dist/formats.js'
import { LIMITS } from '../../schemas/common.ts'
import type { NewResource } from '../../schemas/resource.ts'
import { type Checks, checkScopes, countCharacters } from '../checks.ts'
import { RESOURCE_PLACES, checkClaims } from '../custom-claims.ts'
import { paramError } from '../errors.ts'
import { checkName } from '../names.ts'
import type { ResourceEntry } from './registry.ts'

const isUri = ajvFormats.fullFormats.uri as (text: string) => boolean

/** The allowed start of a resource indicator. It is checked as text, because URL also reads `127.1` as 127.0.0.1. */
const ALLOWED = /^(?:https:\/\/[^/]|http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/|$)|urn:[a-z0-9][a-z0-9-]{1,31}:.)/i

/**
 * Checks a resource indicator (RFC 8707, 2).
 * @throws ErrParam
 */
function checkUri (text: string): string {
  if (text.length > LIMITS.uri) throw paramError('id', `must not have more than ${LIMITS.uri} characters`)
  if (!isUri(text) || !URL.canParse(text)) throw paramError('id', 'must be an absolute URI')
  if (/[?#]/.test(text)) throw paramError('id', 'must not have a query or a fragment')
  if (!ALLOWED.test(text)) throw paramError('id', 'must begin with https://, with http:// and localhost, 127.0.0.1 or [::1], or with urn:')
  if (/^https?:\/\/[^/]*@/i.test(text)) throw paramError('id', 'must not have user information')
  return text
}

/** Checks a text that people base decisions on. It must not be blank or hide anything. */
function checkShown (field: string, text: string): string {
  if (text.trim() === '') throw paramError(field, 'must not be empty')
  if (countCharacters(text) > LIMITS.name) throw paramError(field, `must not have more than ${LIMITS.name} characters`)
  return checkName(field, text)
}

function checkDescriptions (scopes: NewResource['scopes']): NewResource['scopes'] {
  const names = checkScopes(Object.keys(scopes))
  // Without assignments, so that `__proto__` is an ordinary name.
  return Object.fromEntries(names.map((name) => [name, checkShown('scopes', scopes[name] ?? '')]))
}

function checkRoleList (roles: string[]): string[] {
  if (roles.length === 0) throw paramError('roles', 'must not be empty')
  return [...new Set(roles.map((role) => checkShown('roles', role)))].sort()
}

/** Checks of the fields that callers set. Each returns the value for the record. */
export const CHECKS: Checks<NewResource> = {
  id: checkUri,
  name: (text) => checkShown('name', text),
  scopes: checkDescriptions,
  selfService: (names) => [...new Set(names)].sort(),
  documents: (names) => [...new Set(names)].sort(),
  accessTtl: (seconds) => seconds,
  tokenFormat: (format) => format,
  tokenAlg: (alg) => alg,
  roles: checkRoleList,
  claims: (claims) => checkClaims(claims, RESOURCE_PLACES) as typeof claims
}

/** Seconds that a JWT access token may live: whoever verifies it alone learns of no revocation until then. */
export const JWT_MAX_TTL = 60 * 60

/** @throws ErrParam when JWTs would live too long */
export function checkTokenFormat ({ token_format, access_ttl = 0 }: Pick<ResourceEntry, 'token_format' | 'access_ttl'>): void {
  if (token_format === 'jwt' && access_ttl > JWT_MAX_TTL) throw paramError('accessTtl', `must be at most ${JWT_MAX_TTL} with tokenFormat jwt`)
}

/** @throws ErrParam when users may give, or documents request, a scope that the resource does not have */
export function checkSelfService ({ scopes, self_service, documents = [] }: Pick<ResourceEntry, 'scopes' | 'self_service' | 'documents'>): void {
  if (!documents.every((scope) => Object.hasOwn(scopes, scope))) throw paramError('documents', 'must be scopes of the resource')
  if (!self_service.every((scope) => Object.hasOwn(scopes, scope))) throw paramError('selfService', 'must be scopes of the resource')
}
