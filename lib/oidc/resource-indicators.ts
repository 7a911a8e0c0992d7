import type { KoaContextWithOIDC, ResourceServer, errors as OidcErrors } from 'oidc-provider'
import { API_SCOPES, isApiScope } from '../api-scopes.ts'
import { type Registry, findByUri, findDeclarer } from '../resources/registry.ts'
import { toOurClient } from './context.ts'
import { splitScopes } from './scopes.ts'

/** The default lifetime of a JWT access token in seconds. */
const JWT_TTL = 10 * 60

/** The resource with this URI: the audience of its tokens, the scopes that it declares, and the lifetime that it sets for them. */
export function findResource (
  registry: Registry, uri: string, apiUri: string
): { audience: string, scopes: string[], access_ttl?: number | undefined, isJwt?: boolean } | undefined {
  if (uri === apiUri) return { audience: apiUri, scopes: Object.keys(API_SCOPES) }
  const found = findByUri(registry, uri)
  if (found === undefined) return undefined
  const [, { uri: audience, scopes, access_ttl, token_format }] = found
  return { audience, scopes: Object.keys(scopes), access_ttl, isJwt: token_format === 'jwt' }
}

/** The URIs of the resources that the requested scopes belong to. */
export function listImplied (requested: unknown, registry: Registry, apiUri: string): string[] {
  const uris = splitScopes(requested).flatMap((scope) => {
    if (isApiScope(scope)) return [apiUri]
    const declarer = findDeclarer(registry, scope)
    return typeof declarer === 'string' ? [registry.resources[declarer]!.uri] : []
  })
  return [...new Set(uris)]
}

/**
 * Resource indicators (RFC 8707). A token has at most one audience. Only a token for its resource can have a declared scope, so
 * such a scope implies the resource in a request without `resource`. Scopes of the service's own API imply nothing: the API also
 * accepts tokens without an audience.
 */
export function createResourceIndicators ({ readRegistry, apiUri, accessTtl, errors }: {
  readRegistry: () => Promise<Registry>, apiUri: string, accessTtl: number, errors: typeof OidcErrors
}) {
  return {
    enabled: true,
    // A code or refresh token stays with its resource when the token request names none.
    useGrantedResource: () => true,

    async defaultResource (ctx: KoaContextWithOIDC, _client: unknown, oneOf?: string[]): Promise<string[] | string | undefined> {
      if (oneOf !== undefined) return oneOf
      const implied = listImplied(ctx.oidc.params?.scope, await readRegistry(), apiUri)
      if (implied.length > 1) throw new errors.InvalidTarget('the scopes belong to more than one resource')
      return implied[0] === apiUri ? undefined : implied[0]
    },

    async getResourceServerInfo (ctx: KoaContextWithOIDC, uri: string, client: object): Promise<ResourceServer> {
      const registry = await readRegistry()
      const declared = findResource(registry, uri, apiUri)
      if (declared === undefined) throw new errors.InvalidTarget('no such resource')
      if ([ctx.oidc.params?.resource].flat().length > 1) throw new errors.InvalidTarget('only one resource may be requested')
      const implied = listImplied(ctx.oidc.params?.scope, registry, apiUri)
      if (implied.some((one) => one !== declared.audience)) throw new errors.InvalidTarget('a scope belongs to another resource')
      // The first getter refuses a scope that is not the client's, which oidc-provider does not do for client credentials.
      const requested = new Set([...ctx.oidc.requestParamOIDCScopes, ...ctx.oidc.requestParamScopes])
      const { own_scopes } = toOurClient(client)
      const usable = declared.scopes.filter((scope) => own_scopes.includes(scope))
      // A token for a resource shows the user's roles there, so an app must not get one by naming the resource alone.
      const isNamed = ctx.oidc.params?.scope === undefined || usable.some((scope) => requested.has(scope))
      if (usable.length === 0 || !isNamed) throw new errors.InvalidTarget('the request has no scope of the resource')
      return {
        audience: declared.audience,
        scope: usable.join(' '),
        // A JWT lives for this long wherever nobody asks about it.
        accessTokenTTL: declared.isJwt === true ? Math.min(declared.access_ttl ?? JWT_TTL, accessTtl) : declared.access_ttl ?? accessTtl,
        // A JWT is made by jwt-access-tokens.ts, so that its record is like any other.
        accessTokenFormat: 'opaque'
      }
    }
  }
}
