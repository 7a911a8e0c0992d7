import { hash } from 'node:crypto'
import type { PublicKey } from '../crypto/public-keys.ts'
import { checkName } from '../names.ts'
import { findRedirectUriProblem } from '../redirect-uris.ts'
import { LIMITS } from '../../schemas/common.ts'
import { DocumentError } from './error.ts'
import { readKeys } from './keys.ts'
import { readMessage } from '../failure.ts'

/** The members of a document that are kept. All others are dropped. */
export interface DocumentBody {
  client_name: string
  redirect_uris: string[]
  method: 'none' | 'private_key_jwt'
  /** The scopes of resources to which the client limits itself. Absent: no limit of its own. */
  scope?: string[]
  keys?: PublicKey[]
  jwks_uri?: string
  /** Whether its authorization requests must be signed (RFC 9101, 10.5). Absent: they may be. */
  require_signed_request_object?: true
}

/** What the author of a document may choose. Further hosts and private schemes are the operator's. */
interface JudgeOptions {
  redirects: readonly string[]
}

/** Schemes that a browser runs or opens by itself. */
const DANGEROUS = /^(javascript|data|file|blob|about|vbscript|view-source|filesystem|ws|wss|ftp|http|https):$/

function checkRedirect (uri: unknown, name: string, host: string, redirects: readonly string[]): string {
  const refuse = (reason: string, rule: 'redirect_uris' | 'redirect_host' = 'redirect_uris') => new DocumentError(rule, `${name} ${reason}`, {
    value: typeof uri === 'string' ? uri.split(/[?#]/, 1)[0] : uri
  })
  if (typeof uri !== 'string') throw refuse('must be a string')
  const url = URL.parse(uri)
  if (url !== null && !/^https?:$/.test(url.protocol)) {
    if (!redirects.includes(url.protocol) || DANGEROUS.test(url.protocol)) {
      throw refuse('has a scheme that the operator has not named for this host', 'redirect_host')
    }
    const problem = findRedirectUriProblem(uri, () => true)
    if (problem !== undefined) throw refuse(problem)
    return uri
  }
  const problem = findRedirectUriProblem(uri)
  if (problem !== undefined || url === null) throw refuse(problem ?? 'must be an absolute URI')
  if (url.protocol === 'https:' && url.host !== host && !redirects.includes(url.host)) {
    throw refuse('must be on the host of the client_id, or on one that the operator names for it', 'redirect_host')
  }
  return uri
}

function checkRedirects (uris: unknown, host: string, redirects: readonly string[]): string[] {
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > LIMITS.items) {
    throw new DocumentError('redirect_uris', `must be a list of one to ${LIMITS.items} URIs`, { value: Array.isArray(uris) ? uris.length : typeof uris })
  }
  return [...new Set(uris.map((uri, index) => checkRedirect(uri, `redirect_uris[${index}]`, host, redirects)))].sort()
}

function checkClientName (name: unknown): string {
  if (typeof name !== 'string' || name.trim() === '' || name.length > LIMITS.name) {
    throw new DocumentError('client_name', `must be a text of at most ${LIMITS.name} characters`, { value: name })
  }
  try {
    return checkName('client_name', name)
  } catch (error) {
    throw new DocumentError('client_name', readMessage(error).replace(/^client_name: /, ''), { value: name })
  }
}

function checkScope (scope: unknown): string[] {
  const scopes = typeof scope === 'string' ? scope.split(' ').filter(Boolean) : undefined
  if (scopes === undefined || scopes.length > LIMITS.items || scopes.some((one) => one.length > LIMITS.scope)) {
    throw new DocumentError('scope', 'must be a list of scopes, separated by spaces', { value: scope })
  }
  return [...new Set(scopes)].sort()
}

/** The keys of a client with private_key_jwt. A URL of keys is fetched by the caller. */
function checkKeys ({ jwks, jwks_uri }: Record<string, unknown>, host: string): Pick<DocumentBody, 'keys' | 'jwks_uri'> {
  if (jwks !== undefined && jwks_uri !== undefined) throw new DocumentError('jwks_uri', 'must not be beside jwks', { value: jwks_uri })
  if (jwks_uri === undefined) return { keys: readKeys(jwks) }
  const url = typeof jwks_uri === 'string' ? URL.parse(jwks_uri) : null
  if (url?.protocol !== 'https:' || url.host !== host || url.username !== '' || url.password !== '' || url.hash !== '') {
    throw new DocumentError('jwks_uri', 'must be an https URL on the host of the client_id', { value: jwks_uri })
  }
  return { jwks_uri: url.href }
}

/** Whether the client signs all its requests, which needs keys. */
function checkSigns (value: unknown, hasKeys: boolean): Pick<DocumentBody, 'require_signed_request_object'> {
  const refuse = (reason: string) => new DocumentError('require_signed_request_object', reason, { value })
  if (value !== undefined && typeof value !== 'boolean') throw refuse('must be true or false')
  if (value === true && !hasKeys) throw refuse('must not be true without token_endpoint_auth_method private_key_jwt')
  return value === true ? { require_signed_request_object: value } : {}
}

/**
 * Judges a client ID metadata document, and keeps the members that a client may decide. Everything else is dropped, whatever it is called:
 * a list of refused members would miss the next one.
 * @throws DocumentError
 */
export function judgeDocument (url: URL, text: string, { redirects }: JudgeOptions): DocumentBody {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new DocumentError('json', 'the document must be JSON')
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new DocumentError('json', 'the document must be a JSON object', { value: Array.isArray(given) ? 'array' : typeof given })
  }
  const { client_id, client_name, redirect_uris, token_endpoint_auth_method: method = 'none', scope, require_signed_request_object: signs, ...rest } = given as Record<string, unknown>
  if (client_id !== url.href) throw new DocumentError('client_id', 'must be the URL of the document', { value: client_id })
  if (method !== 'none' && method !== 'private_key_jwt') {
    throw new DocumentError('token_endpoint_auth_method', 'must be none or private_key_jwt', { value: method })
  }
  return {
    client_name: checkClientName(client_name),
    redirect_uris: checkRedirects(redirect_uris, url.host, redirects),
    method,
    ...(scope !== undefined && { scope: checkScope(scope) }),
    // The keys of a client that does not authenticate are of no use. A private key is refused wherever it stands.
    ...(method === 'private_key_jwt' ? checkKeys(rest, url.host) : rest.jwks !== undefined && { keys: readKeys(rest.jwks) }),
    ...checkSigns(signs, method === 'private_key_jwt')
  }
}

/** Identifies the content of a document. */
export const toHash = (body: DocumentBody): string => hash('sha256', JSON.stringify(body), 'base64url')

/** Identifies what people have decided on: with another name, other redirect URIs or another method, they are asked again. */
export const toPrint = ({ client_name, redirect_uris, method }: DocumentBody): string =>
  hash('sha256', JSON.stringify([client_name, redirect_uris, method]), 'base64url').slice(0, 22)
