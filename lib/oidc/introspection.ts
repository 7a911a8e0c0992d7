import { canRedeem } from '../clients/kinds.ts'
import { isConfidential } from '../clients/token-auth.ts'
import type { TokenRecord } from '../records.ts'
import { showStrength } from '../tokens/strength.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { hashToken } from '../crypto/random-token.ts'
import { CLIENT_CREDENTIALS, type Valid } from '../tokens/validity.ts'
import { CREDENTIALS, type ClientAuthentication } from './client-authentication.ts'
import { isOwnOrigin } from '../clients/registered-uris.ts'
import type { Times } from './contract.ts'
import { OriginError, invalidRequest } from './oauth-error.ts'
import { toScopeParameter } from './scopes.ts'
import type { IdentityStanding } from '../upstreams/standing.ts'

export interface IntrospectionRequest {
  authorization: string | undefined
  form: URLSearchParams
  issuer: string
  /** The address that it comes from. */
  address: string
  /** The origin of the page that sends the request. */
  origin: string | undefined
}

function refuseRepeated (form: URLSearchParams, names: string[]): void {
  const repeated = names.filter((name) => form.getAll(name).length > 1).map((name) => `'${name}'`)
  if (repeated.length > 0) throw invalidRequest(`${repeated.join(' and ')} parameter${repeated.length > 1 ? 's' : ''} must not be provided twice`)
}

/**
 * Token introspection (RFC 7662): a resource server asks whether a token is valid, and for its user and scopes. The service answers
 * this itself, and not through oidc-provider, because it takes one look-up, as any other request does.
 */
export function createIntrospection ({ tokens, authentication, times, refreshGrace, standing }: {
  tokens: Tokens, authentication: ClientAuthentication, times: Times, refreshGrace: number, standing?: Pick<IdentityStanding, 'isPastRefresh'> | undefined
}) {
  async function find (token: string): Promise<Valid<TokenRecord> | null> {
    const id = hashToken(token)
    const access = await tokens.find<TokenRecord>('access_tokens', id)
    if (access !== null) return access
    const refresh = await tokens.find<TokenRecord>('refresh_tokens', id)
    if (refresh === null || refresh.client === null || tokens.isSpent(refresh, refreshGrace)) return null
    return canRedeem(refresh.client, refresh.record) && await standing?.isPastRefresh(refresh.user, refresh.grant) !== true ? refresh : null
  }

  /** @throws OAuthError */
  return async function introspect ({ authorization, form, issuer, address, origin }: IntrospectionRequest): Promise<object> {
    refuseRepeated(form, CREDENTIALS)
    const client = await authentication.authenticate(authorization, form, { issuer, address })
    if (origin !== undefined && !(!isConfidential(client) && isOwnOrigin(client.redirectUris, origin))) throw new OriginError(origin, client.id)
    refuseRepeated(form, ['token', 'token_type_hint'])
    const token = form.get('token')
    if (!token) throw invalidRequest("missing required parameter 'token'")
    const found = await find(token)
    // A public client cannot authenticate, so it may introspect its own tokens only. Nobody but its client has a use for a refresh token.
    const isOwn = found?.record.client_id === client.id
    const needsOwn = !isConfidential(client) || found?.record.generation !== undefined
    if (found === null || found.client === null || (needsOwn && !isOwn)) return { active: false }
    const { record } = found
    const scope = toScopeParameter(record, found.client, found.registry)
    const isRefresh = record.generation !== undefined
    return {
      active: true,
      // RFC 9068, 2.2: the subject of a client that acts for itself is the client.
      sub: record.kind === CLIENT_CREDENTIALS ? record.client_id : record.user_id,
      client_id: record.client_id,
      exp: times.toEpoch(record.expired_at),
      iat: times.toEpoch(record.created_at),
      iss: issuer,
      scope: scope === '' ? undefined : scope,
      ...(record.resource !== undefined && { aud: record.resource }),
      ...(record.jkt !== undefined && { cnf: { jkt: record.jkt } }),
      ...(record.act !== undefined && { act: record.act }),
      ...showStrength(record.auth, times.toEpoch),
      ...(!isRefresh && { token_type: record.jkt === undefined ? 'Bearer' : 'DPoP' })
    }
  }
}
