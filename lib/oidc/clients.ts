import { GRANT_TYPES, isVouchedFor, listGrants } from '../clients/kinds.ts'
import { LOOPBACK_URI, isLoopbackHost } from '../loopback.ts'
import type { ClientRecord } from '../records.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { type Registry, findDeclarer, listUsableScopes } from '../resources/registry.ts'
import type { Json } from '../store/port.ts'

/** Our own properties, in addition to the client metadata of oidc-provider. */
export const CLIENT_PROPERTIES = ['registered_uris', 'own_scopes', 'owner', 'epoch', 'first_party', 'public', 'pkce', 'id_token_claims', 'grants', 'vouched', 'declared_scopes'] as const

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

/** A registered client as oidc-provider's client metadata (RFC 7591). */
export function toMetadata (record: ClientRecord, box: SecretBox, registry: Registry): Record<string, Json> {
  const secret = record.secret === undefined ? undefined : box.open(record.secret, record.id)
  const isPublic = secret === undefined
  const uris = record.redirectUris
  const schemes = uris.some((uri) => !WEB.test(new URL(uri).protocol))
  const type = schemes || (isPublic && uris.some((uri) => LOOPBACK_URI.test(uri))) ? 'native' : 'web'
  const grants = listGrants(record)
  const usable = listUsableScopes(record, registry)
  const accepted = grants.includes('code') ? uris.filter((uri) => isAcceptedFor(type, uri)) : []
  // A refresh token that the operator minted needs no grant, so adaptRefreshTokens decides about refresh tokens.
  const types = new Set([...grants.filter((grant) => grant !== 'code' || accepted.length > 0), 'refresh' as const])
  return {
    client_id: record.id,
    ...(record.name !== '' && { client_name: record.name }),
    application_type: type,
    redirect_uris: accepted,
    response_types: accepted.length > 0 ? ['code'] : [],
    grant_types: [...types].map((grant) => GRANT_TYPES[grant]),
    // oidc-provider accepts client_secret_post too for a client with client_secret_basic.
    token_endpoint_auth_method: isPublic ? 'none' : 'client_secret_basic',
    ...(secret !== undefined && { client_secret: secret }),
    // Our ID tokens for such a client always have `sid`.
    ...(record.backchannelLogoutUri !== undefined && { backchannel_logout_uri: record.backchannelLogoutUri, backchannel_logout_session_required: true }),
    registered_uris: uris,
    own_scopes: usable,
    declared_scopes: usable.filter((scope) => findDeclarer(registry, scope) !== undefined),
    grants,
    vouched: isVouchedFor(record),
    owner: record.userId,
    epoch: record.epoch,
    first_party: record.first_party === true,
    public: isPublic,
    ...(record.pkce !== undefined && { pkce: record.pkce }),
    id_token_claims: record.id_token_claims === true
  }
}
