import { type Registry, type ScopeHolder, findEntry } from '../resources/registry.ts'
import { canRedeem } from '../clients/kinds.ts'
import { isConfidential } from '../clients/token-auth.ts'
import { type ClaimPlace, readClaims } from '../custom-claims.ts'
import { defined } from '../defined.ts'
import type { TokenRecord } from '../records/token.ts'
import { showStrength } from '../tokens/strength.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { hashToken } from '../crypto/random-token.ts'
import { type Valid, isOfClient } from '../tokens/validity.ts'
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

/** What introspection knows of a valid token. */
interface TokenView {
  client_id: string
  isRefresh: boolean
  /** Of a token with a name, whose last use is noted: whose it is, and its id. */
  noted?: { holder: string, id: string } | undefined
  /** The answer about it. It differs with the issuer, and the times with the clock. */
  show (issuer: string): string
}

const INACTIVE = JSON.stringify({ active: false })

function refuseRepeated (form: URLSearchParams, names: string[]): void {
  const repeated = names.filter((name) => form.getAll(name).length > 1).map((name) => `'${name}'`)
  if (repeated.length > 0) throw invalidRequest(`${repeated.join(' and ')} parameter${repeated.length > 1 ? 's' : ''} must not be provided twice`)
}

/** What introspection says of a token, whenever it was issued: for whom, to whom, and what it may do. */
export function showToken (
  record: Pick<TokenRecord, 'kind' | 'user_id' | 'client_id' | 'scopes' | 'operator' | 'resource' | 'resource_id'>,
  client: ScopeHolder,
  registry: Registry,
  issuer: string
) {
  const scope = toScopeParameter(record, client, registry)
  return defined({
    // RFC 9068, 2.2: the subject of a client that acts for itself is the client.
    sub: isOfClient(record) ? record.client_id : record.user_id,
    client_id: record.client_id,
    iss: issuer,
    scope: scope === '' ? undefined : scope,
    aud: record.resource
  })
}

/**
 * The operator's own claims of an access token: those of its client and of its resource, which wins over the client. A client that acts for
 * itself has no user, and so none.
 */
export function showCustomClaims (
  place: Extract<ClaimPlace, 'introspection' | 'jwt'>,
  { record, user, client, registry }: Pick<Valid<Pick<TokenRecord, 'kind' | 'resource_id'>>, 'record' | 'user' | 'client' | 'registry'>
): object {
  if (user === null || isOfClient(record)) return {}
  return readClaims(place, [client?.claims, findEntry(registry, record.resource_id)?.claims], user)
}

/**
 * Token introspection (RFC 7662): a resource server asks whether a token is valid, and for its user and scopes. The service answers
 * this itself, and not through oidc-provider, because it takes one look-up, as any other request does.
 */
export function createIntrospection ({ tokens, authentication, times, refreshGrace, standing }: {
  tokens: Tokens, authentication: ClientAuthentication, times: Times, refreshGrace: number, standing?: Pick<IdentityStanding, 'isPastRefresh'> | undefined
}) {
  /** Null for a token of a client that is gone. */
  function toView (valid: Valid<TokenRecord>): TokenView | null {
    const { record, client, registry } = valid
    if (client === null) return null
    const isRefresh = record.generation !== undefined
    const custom = isRefresh ? {} : showCustomClaims('introspection', valid)
    let last: { key: string, text: string } | undefined
    return {
      client_id: record.client_id,
      isRefresh,
      noted: record.holder === undefined ? undefined : { holder: record.holder, id: record.id },
      show (issuer) {
        const [exp, iat] = [times.toEpoch(record.expired_at), times.toEpoch(record.created_at)]
        const strength = showStrength(record.auth, times.toEpoch)
        const key = `${issuer} ${exp} ${iat} ${strength.auth_time}`
        if (last?.key === key) return last.text
        const text = JSON.stringify(defined({
          active: true,
          ...custom,
          ...showToken(record, client, registry, issuer),
          exp,
          iat,
          cnf: record.jkt === undefined ? undefined : { jkt: record.jkt },
          act: record.act,
          ...strength,
          token_id: record.name === undefined ? undefined : record.id,
          token_name: record.name,
          token_type: !isRefresh ? record.jkt === undefined ? 'Bearer' : 'DPoP' : undefined
        }))
        last = { key, text }
        return text
      }
    }
  }

  const findAccess = tokens.createLookUp(toView)

  async function findRefresh (id: string): Promise<TokenView | null> {
    const refresh = await tokens.find<TokenRecord>('refresh_tokens', id)
    if (refresh === null || refresh.client === null || tokens.isSpent(refresh, refreshGrace)) return null
    return canRedeem(refresh.client, refresh.record) && await standing?.isPastRefresh(refresh.user, refresh.grant) !== true ? toView(refresh) : null
  }

  async function find (token: string): Promise<TokenView | null> {
    const id = hashToken(token)
    return await findAccess(id) ?? await findRefresh(id)
  }

  /**
   * The answer, as JSON.
   * @throws OAuthError
   */
  return async function introspect ({ authorization, form, issuer, address, origin }: IntrospectionRequest): Promise<string> {
    refuseRepeated(form, CREDENTIALS)
    const token = form.get('token')
    // It starts here, so that both look-ups take one round trip. A caller who is refused learns nothing of it.
    const looking = token ? find(token) : Promise.resolve(null)
    looking.catch(() => {})
    const client = await authentication.authenticate(authorization, form, { issuer, address })
    if (origin !== undefined && !(!isConfidential(client) && isOwnOrigin(client.redirectUris, origin))) throw new OriginError(origin, client.id)
    refuseRepeated(form, ['token', 'token_type_hint'])
    if (!token) throw invalidRequest("missing required parameter 'token'")
    const found = await looking
    // A public client cannot authenticate, so it may introspect its own tokens only. Nobody but its client has a use for a refresh token.
    const needsOwn = !isConfidential(client) || found?.isRefresh === true
    if (found === null || (needsOwn && found.client_id !== client.id)) return INACTIVE
    if (found.noted !== undefined) tokens.noteUse(found.noted.holder, found.noted.id)
    return found.show(issuer)
  }
}
