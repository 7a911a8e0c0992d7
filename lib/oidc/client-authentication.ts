import { timingSafeEqual } from 'node:crypto'
import type { SecretUses } from '../clients/secret-uses.ts'
import { FIRST, listMethods } from '../clients/token-auth.ts'
import { findUsable } from '../clients/usable.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { isDocumentUrl } from '../documents/ids.ts'
import type { LazyDocuments } from '../documents/index.ts'
import { Lazy } from '../lazy.ts'
import type { ClientRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import type { Times } from './contract.ts'
import { OAuthError, invalidRequest } from './oauth-error.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/
const NOT_VSCHAR = /[^\x20-\x7e]/

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** The parameters that authenticate a client. */
export const CREDENTIALS = ['client_id', 'client_secret', 'client_assertion', 'client_assertion_type']

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

interface Credentials { client_id: string, presented: Presented }

/** The `kid` that an assertion or a signed request names. It says nothing yet about who sends it. */
export function readKid (assertion: string): string | undefined {
  try {
    const { kid } = JSON.parse(Buffer.from(assertion.split('.', 1)[0]!, 'base64url').toString()) as { kid?: unknown }
    return typeof kid === 'string' ? kid : undefined
  } catch {
    return undefined
  }
}

/** The client that an assertion names. It says nothing yet about who sends it. */
async function readAssertion (form: URLSearchParams, assertion: string): Promise<Credentials> {
  const { decodeJwt } = await import('jose')
  let sub: unknown
  try {
    ({ sub } = decodeJwt(assertion))
  } catch {
    throw invalidRequest('invalid client_assertion format')
  }
  const type = form.get('client_assertion_type')
  if (type === null) throw invalidRequest('client_assertion_type must be provided')
  if (type !== ASSERTION_TYPE) throw invalidRequest(`client_assertion_type must have value ${ASSERTION_TYPE}`)
  const [id, client_id] = [form.get('client_id'), typeof sub === 'string' ? sub : '']
  if (id !== null && id !== client_id && client_id !== '') throw invalidRequest('client_id mismatch')
  return { client_id, presented: { method: 'private_key_jwt', assertion } }
}

function readCredentials (authorization: string | undefined, form: URLSearchParams): Credentials | Promise<Credentials> {
  const [id, posted, assertion] = [form.get('client_id'), form.get('client_secret'), form.get('client_assertion')]
  if ([authorization, posted, assertion].filter(Boolean).length > 1) throw invalidRequest('client authentication must only be provided using one mechanism')
  if (assertion) return readAssertion(form, assertion)
  const basic = authorization === undefined || posted ? undefined : readBasic(authorization)
  if (basic !== undefined && id !== null && id !== basic.client_id) throw invalidRequest('client_id mismatch')
  if (basic?.secret === '') throw invalidRequest('client_secret must be provided in the Authorization header')
  const client_id = basic?.client_id ?? id
  if (!client_id) throw invalidRequest('no client authentication mechanism provided')
  const secret = basic?.secret ?? posted
  return { client_id, presented: secret ? { method: 'secret', secret } : { method: 'none' } }
}

function isSame (a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** How a request authenticates its client. */
export type Presented = { method: 'none' } | { method: 'secret', secret: string } | { method: 'private_key_jwt', assertion: string }

/** The id of the secret or key that has authenticated the request. Absent for a public client. */
export interface Authenticated { auth_id?: string }

export type ClientAuthentication = ReturnType<typeof createClientAuthentication>

/**
 * Authenticates clients at all OAuth endpoints: by HTTP Basic or the form for a client with a secret, by its id alone for a public one
 * (RFC 6749, 2.3.1 and 3.2.1), and by an assertion for one with keys (RFC 7523). oidc-provider reads the credentials itself, and has
 * `verify` judge them (provider.ts).
 */
export function createClientAuthentication ({ store, box, now, times, uses, documents }: {
  store: Store, box: SecretBox, now: Clock, times: Times, uses: Pick<SecretUses, 'note'>, documents?: LazyDocuments | undefined
}) {
  // Loaded with the first assertion.
  const assertions = new Lazy(async () => (await import('./assertions.ts')).createAssertions({ store, times }))

  /** The id of the client's secret with this text. All are compared, so that the time does not tell which one matches. */
  function findSecret (client: ClientRecord, text: string, time: string): string | undefined {
    const hash = client.secrets === undefined ? '' : hashToken(text)
    const found = (client.secrets ?? []).filter((secret) => isSame(hash, secret.hash)).find(({ expires_at }) => expires_at === undefined || expires_at > time)?.id
    const isFirst = client.secret !== undefined && isSame(text, box.open(client.secret, client.id))
    return isFirst ? FIRST : found
  }

  /** The one judge of a client's credentials, which also notes their use. Null refuses them. */
  async function verify (client: ClientRecord, presented: Presented, issuer: string): Promise<Authenticated | null> {
    const time = toTimestamp(now())
    if (!listMethods(client, time).includes(presented.method)) return null
    if (presented.method === 'none') return {}
    const auth_id = presented.method === 'secret'
      ? findSecret(client, presented.secret, time)
      : (await (await assertions.get()).verify(client, presented.assertion, issuer))?.id
    if (auth_id === undefined) return null
    uses.note(client.id, auth_id)
    return { auth_id }
  }

  async function find (id: string, presented: Presented): Promise<ClientRecord | null> {
    if (!isDocumentUrl(id)) return await findUsable(store, id, toTimestamp(now()))
    const kid = presented.method === 'private_key_jwt' ? readKid(presented.assertion) : undefined
    return (await (await documents?.load())?.find(id, 'redeem', { kid }))?.client ?? null
  }

  return {
    verify,

    /**
     * Authenticates the client of a request that oidc-provider does not handle.
     * @throws OAuthError invalid_request, or invalid_client with the same message for every cause
     */
    async authenticate (authorization: string | undefined, form: URLSearchParams, issuer: string): Promise<ClientRecord> {
      const { client_id, presented } = await readCredentials(authorization, form)
      const client = await find(client_id, presented)
      if (client !== null && await verify(client, presented, issuer) !== null) return client
      const description = 'client authentication failed'
      throw new OAuthError(401, 'invalid_client', description, authorization === undefined
        ? {}
        : {
            'www-authenticate': `Basic realm="${issuer}", error="invalid_client", error_description="${description}"`
          })
    }
  }
}
