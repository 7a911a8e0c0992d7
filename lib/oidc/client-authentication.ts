import { timingSafeEqual } from 'node:crypto'
import { findUsable } from '../clients/usable.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { ClientRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import { OAuthError, invalidRequest } from './oauth-error.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/
const NOT_VSCHAR = /[^\x20-\x7e]/

interface Credentials {
  client_id: string
  /** Absent for a public client. */
  secret?: string
}

/** Decodes the id or the secret, which are form-encoded before they are joined (RFC 6749, 2.3.1). */
function decodePart (text: string): string {
  const decoded = decodeURIComponent(text.replaceAll('+', '%20'))
  if (NOT_VSCHAR.test(decoded)) throw new Error('invalid character')
  return decoded
}

function readBasic (header: string): { client_id: string, secret: string } {
  const [scheme, encoded, ...more] = header.split(' ')
  const text = scheme?.toLowerCase() === 'basic' && encoded && more.length === 0 && BASE64.test(encoded) ? Buffer.from(encoded, 'base64').toString() : ''
  const colon = text.indexOf(':')
  if (colon === -1) throw invalidRequest('invalid authorization header value format')
  try {
    return { client_id: decodePart(text.slice(0, colon)), secret: decodePart(text.slice(colon + 1)) }
  } catch {
    throw invalidRequest('client_id and client_secret in the authorization header are not properly encoded')
  }
}

function readCredentials (authorization: string | undefined, form: URLSearchParams): Credentials {
  const [id, posted] = [form.get('client_id'), form.get('client_secret')]
  if (authorization && posted) throw invalidRequest('client authentication must only be provided using one mechanism')
  const basic = authorization === undefined || posted ? undefined : readBasic(authorization)
  if (basic !== undefined && id !== null && id !== basic.client_id) throw invalidRequest('client_id mismatch')
  if (basic?.secret === '') throw invalidRequest('client_secret must be provided in the Authorization header')
  const client_id = basic?.client_id ?? id
  if (!client_id) throw invalidRequest('no client authentication mechanism provided')
  const secret = basic?.secret ?? posted
  return { client_id, ...(secret && { secret }) }
}

function isSame (a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/**
 * Authenticates the client of a request to an OAuth endpoint: by HTTP Basic or the form for a client with a secret, by its id
 * alone for a public one (RFC 6749, 2.3.1 and 3.2.1).
 * @throws OAuthError invalid_request, or invalid_client with the same message for every cause
 */
export function createClientAuthentication ({ store, box, now }: { store: Store, box: SecretBox, now: Clock }) {
  return async function authenticateClient (authorization: string | undefined, form: URLSearchParams, realm: string): Promise<ClientRecord> {
    const { client_id, secret } = readCredentials(authorization, form)
    const client = await findUsable(store, client_id, toTimestamp(now()))
    const expected = client?.secret === undefined ? undefined : box.open(client.secret, client.id)
    const isAuthenticated = expected === undefined || secret === undefined ? expected === secret : isSame(secret, expected)
    if (client !== null && isAuthenticated) return client
    const description = 'client authentication failed'
    throw new OAuthError(401, 'invalid_client', description, authorization === undefined
      ? {}
      : {
          'www-authenticate': `Basic realm="${realm}", error="invalid_client", error_description="${description}"`
        })
  }
}
