import { timingSafeEqual } from 'node:crypto'
import type { Base } from '../base.ts'
import type { CredentialUses } from '../tokens/uses.ts'
import { listMethods } from '../clients/token-auth.ts'
import { findUsable } from '../clients/usable.ts'
import { toTimestamp } from '../clock.ts'
import { type SignatureHeader, explainRefusal } from '../crypto/public-keys.ts'
import { hashToken } from '../crypto/random-token.ts'
import { isDocumentUrl } from '../client-documents/ids.ts'
import type { LazyDocuments } from '../client-documents/index.ts'
import { Lazy } from '../lazy.ts'
import { type ClientRecord, FIRST } from '../records/client.ts'
import type { Counter } from '../throttling/counter.ts'
import { FailureLimit } from '../throttling/failure-limit.ts'
import type { Times } from './contract.ts'
import { OAuthError, invalidRequest, tooMany } from './oauth-error.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/
const NOT_VSCHAR = /[^\x20-\x7e]/

/** Failures a minute of one client and address: of its authentication, and of requests that it is said to have signed. */
const FAILURES = 60

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

/** The header of an assertion or a signed request. */
export function readHeader (signed: string): SignatureHeader {
  try {
    return JSON.parse(Buffer.from(signed.split('.', 1)[0]!, 'base64url').toString()) as SignatureHeader | null ?? {}
  } catch {
    return {}
  }
}

/** The `kid` that an assertion or a signed request names. It says nothing yet about who sends it. */
export function readKid (signed: string): string | undefined {
  const { kid } = readHeader(signed)
  return typeof kid === 'string' ? kid : undefined
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

/** Where a request was sent to, and the address that it comes from. */
export interface Sender { issuer: string, address: string }

/** What a client reads whose credentials were refused. It depends on nothing but the request. */
export function describeRefusal (presented: Presented): string {
  const failed = 'client authentication failed'
  return presented.method === 'private_key_jwt' && readKid(presented.assertion) === undefined ? `${failed}: ${explainRefusal({})}` : failed
}

/** The id of the secret or key that has authenticated the request. Absent for a public client. */
export interface Authenticated { auth_id?: string }

export type ClientAuthentication = ReturnType<typeof createClientAuthentication>

interface AuthenticationParts extends Pick<Base, 'store' | 'box' | 'now'> {
  times: Times
  uses: Pick<CredentialUses, 'note'>
  counter: Counter
  documents?: LazyDocuments | undefined
}

/**
 * Authenticates clients at all OAuth endpoints: by HTTP Basic or the form for a client with a secret, by its id alone for a public one
 * (RFC 6749, 2.3.1 and 3.2.1), and by an assertion for one with keys (RFC 7523). oidc-provider reads the credentials itself, and has
 * `verify` judge them (provider.ts).
 */
export function createClientAuthentication ({ store, box, now, times, uses, counter, documents }: AuthenticationParts) {
  const failures = new FailureLimit({ counter, now, kind: 'client-auth', most: FAILURES })
  // Browsers send these. They do not keep the client itself out.
  const requestFailures = new FailureLimit({ counter, now, kind: 'client-request', most: FAILURES })
  // Loaded with the first assertion.
  const assertions = new Lazy(async () => (await import('./assertions.ts')).createAssertions({ store, times }))

  /** The SHA-256 of first secrets that were opened, by the record of the client. A changed client is another record. */
  const opened = new WeakMap<ClientRecord, string>()

  function isFirstSecret (client: ClientRecord, sealed: string, hash: string): boolean {
    let own = opened.get(client)
    if (own === undefined) opened.set(client, own = hashToken(box.open(sealed, client.id)))
    return isSame(hash, own)
  }

  /** The id of the client's secret with this text. All are compared, so that the time does not tell which one matches. */
  function findSecret (client: ClientRecord, text: string, time: string): string | undefined {
    const hash = hashToken(text)
    const found = (client.secrets ?? []).filter((secret) => isSame(hash, secret.hash)).find(({ expires_at }) => expires_at === undefined || expires_at > time)?.id
    const isFirst = client.secret !== undefined && isFirstSecret(client, client.secret, hash)
    return isFirst ? FIRST : found
  }

  /** The one judge of a client's credentials, which notes their use. Null refuses them. */
  async function judge (client: ClientRecord, presented: Presented, issuer: string): Promise<Authenticated | null> {
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

  /** Judges credentials. @throws OAuthError when too many of this client and network were refused, before a signature is verified */
  async function verify (client: ClientRecord, presented: Presented, { issuer, address }: Sender): Promise<Authenticated | null> {
    if (presented.method === 'none') return await judge(client, presented, issuer)
    return await failures.run(client.id, address, async () => await judge(client, presented, issuer), (wait) =>
      tooMany('too many attempts to authenticate this client have failed', wait))
  }

  async function find (id: string, presented: Presented, address: string): Promise<ClientRecord | null> {
    if (!isDocumentUrl(id)) return await findUsable(store, id, toTimestamp(now()))
    const kid = presented.method === 'private_key_jwt' ? readKid(presented.assertion) : undefined
    return (await (await documents?.load())?.find(id, 'redeem', { kid, address }))?.client ?? null
  }

  return {
    verify,

    /** Whether the client has signed the request (RFC 9101). @throws OAuthError as `verify` */
    async verifyRequest (client: ClientRecord, request: string, header: SignatureHeader, address: string): Promise<boolean> {
      const { findSigner } = await import('./assertions.ts')
      const find = async () => await findSigner(client.keys ?? [], request, header) ?? null
      return await requestFailures.run(client.id, address, find, (wait) => tooMany('too many requests of this client had a wrong signature', wait)) !== null
    },

    /**
     * Authenticates the client of a request that oidc-provider does not handle.
     * @throws OAuthError invalid_request, or invalid_client with the same message for every cause
     */
    async authenticate (authorization: string | undefined, form: URLSearchParams, sender: Sender): Promise<ClientRecord> {
      const { client_id, presented } = await readCredentials(authorization, form)
      const client = await find(client_id, presented, sender.address)
      if (client !== null && await verify(client, presented, sender) !== null) return client
      const description = describeRefusal(presented)
      throw new OAuthError(401, 'invalid_client', description, authorization === undefined
        ? {}
        : {
            'www-authenticate': `Basic realm="${sender.issuer}", error="invalid_client", error_description="${description}"`
          })
    }
  }
}
