import { randomBytes } from 'node:crypto'
import { GRANT_TYPES, listGrants } from '../clients/kinds.ts'
import { isConfidential } from '../clients/token-auth.ts'
import { defined } from '../defined.ts'
import { LOOPBACK_URI, isLoopbackHost } from '../loopback.ts'
import { type ClientKey, type ClientRecord, isVouchedFor } from '../records/client.ts'
import { type Registry, findDeclarer, listUsableScopes } from '../resources/registry.ts'
import type { Json } from '../store/port.ts'

/** Our own properties, in addition to the client metadata of oidc-provider. */
export const CLIENT_PROPERTIES = [
  'registered_uris',
  'own_scopes',
  'owner',
  'epoch',
  'first_party',
  'public',
  'pkce',
  'id_token_claims',
  'custom_claims',
  'grants',
  'vouched',
  'vouched_image',
  'declared_scopes',
  'document',
  'profile'
] as const

/**
 * oidc-provider requires a secret of a confidential client. It never compares this one, which is new in each process: see `verify` of
 * client-authentication.ts.
 */
const UNUSED_SECRET = randomBytes(32).toString('base64url')

const WEB = /^https?:$/

/**
 * Whether oidc-provider accepts the URI for a client of this type. One of our clients may have URIs of both types.
 * `isRegisteredUri` decides about redirects, so a URI that is left out of the metadata still works.
 */
function isAcceptedFor (type: 'web' | 'native', uri: string): boolean {
  const { protocol, hostname } = new URL(uri)
  if (type === 'web') return WEB.test(protocol)
  if (protocol === 'http:') return LOOPBACK_URI.test(uri)
  return protocol === 'https:' ? !isLoopbackHost(hostname) : protocol !== 'about:'
}

interface MetadataOptions {
  /** Of a client from a document: whether the stored client has the same content. */
  isAccepted?: boolean
  /** Whether an assertion has authenticated the client of the request. */
  isAsserted?: boolean
  /** The keys that may have signed what the request has of the client. */
  keys?: readonly ClientKey[]
}

/** How the client authenticates, for oidc-provider, which knows one way. Which ways pass now is decided by `verify` of client-authentication.ts. */
function toMethod (isPublic: boolean, isAsserted: boolean): object {
  if (isPublic) return { token_endpoint_auth_method: 'none' }
  if (isAsserted) return { token_endpoint_auth_method: 'private_key_jwt' }
  // oidc-provider accepts client_secret_post too for a client with client_secret_basic.
  return { token_endpoint_auth_method: 'client_secret_basic', client_secret: UNUSED_SECRET }
}

/** A client as oidc-provider's client metadata (RFC 7591). Nothing secret is in it. */
export function toMetadata (
  record: ClientRecord, registry: Registry, { isAccepted = false, isAsserted = false, keys = [] }: MetadataOptions = {}
): Record<string, Json> {
  const isPublic = !isConfidential(record)
  const { profile, redirectUris: uris } = record
  const schemes = uris.some((uri) => !WEB.test(new URL(uri).protocol))
  const type = schemes || (isPublic && uris.some((uri) => LOOPBACK_URI.test(uri))) ? 'native' : 'web'
  const grants = listGrants(record)
  const usable = listUsableScopes(record, registry)
  const accepted = grants.includes('code') ? uris.filter((uri) => isAcceptedFor(type, uri)) : []
  // A refresh token that the operator minted needs no grant, so adaptRefreshTokens decides about refresh tokens.
  const types = new Set([...grants.filter((grant) => grant !== 'code' || accepted.length > 0), 'refresh' as const])
  return defined({
    client_id: record.id,
    client_name: record.name !== '' ? record.name : undefined,
    application_type: type,
    redirect_uris: accepted,
    response_types: accepted.length > 0 ? ['code'] : [],
    grant_types: [...types].map((grant) => GRANT_TYPES[grant]),
    ...toMethod(isPublic, isAsserted),
    jwks: keys.length > 0 ? { keys: keys.map(({ jwk }) => jwk) } : undefined,
    id_token_signed_response_alg: (record.idTokenAlg ?? profile) === undefined ? undefined : 'ES256',
    require_signed_request_object: record.signedRequests === undefined ? undefined : true,
    ...(profile !== undefined && { profile, require_pushed_authorization_requests: true, dpop_bound_access_tokens: true }),
    // Our ID tokens for such a client always have `sid`.
    ...(record.backchannelLogoutUri !== undefined && { backchannel_logout_uri: record.backchannelLogoutUri, backchannel_logout_session_required: true }),
    registered_uris: uris,
    own_scopes: usable,
    declared_scopes: usable.filter((scope) => findDeclarer(registry, scope) !== undefined),
    grants,
    vouched: isVouchedFor(record),
    vouched_image: isVouchedFor(record) ? record.image : undefined,
    owner: record.userId,
    epoch: record.epoch,
    first_party: record.first_party === true,
    public: isPublic,
    pkce: record.pkce,
    document: record.document === undefined ? undefined : { print: record.document.print, accepted: isAccepted },
    id_token_claims: record.id_token_claims === true,
    custom_claims: record.claims
  })
}
