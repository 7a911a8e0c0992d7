import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { Provider, errors as OidcErrors } from 'oidc-provider'
import { CUSTOM, type OurClient, toInternals, toOurClient } from './context.ts'
import { isRegisteredUri } from '../clients/registered-uris.ts'
import { isForClients } from '../api-scopes.ts'
import { normalizeUris } from '../resources/uris.ts'
import { nameStructured } from './token-ids.ts'
import { chooseDefaultScope, findForeignScope } from './scopes.ts'

/** The release of oidc-provider that package.json pins. Its patched names are covered by the tests. */
export const TESTED_VERSION = '9.13.3'

/** The client address of each request, as Fastify determines it behind proxies. */
const addresses = new WeakMap<IncomingMessage, string>()

export function setAddress (request: IncomingMessage, address: string): void {
  addresses.set(request, address)
}

/** Replaces a member of oidc-provider. Throws when it does not exist: otherwise the rule that the patch enforces would silently be lost. */
function patch (object: object, name: string, descriptor: { get: (this: never) => unknown } | { value: (this: never, ...args: never[]) => unknown }): void {
  if (!(name in object)) throw new Error(`oidc-provider has no ${name}: this release of it is not supported, install ${TESTED_VERSION}`)
  Object.defineProperty(object, name, { configurable: true, ...descriptor })
}

/** URLs and secure cookies follow the issuer, never a request header, so that no caller or proxy can change them. */
function patchRequest (provider: Provider, issuer: URL): void {
  patch(provider.request, 'protocol', { get: () => issuer.protocol.slice(0, -1) })
  patch(provider.request, 'host', { get: () => issuer.host })
  patch(provider.request, 'ip', {
    get (this: { req: IncomingMessage }) {
      return addresses.get(this.req) ?? this.req.socket.remoteAddress ?? ''
    }
  })
}

interface ScopeContext {
  params?: { scope?: string }
  client?: OurClient
  route: string
  resourceServers: Record<string, { scopes: Set<string> }>
}

/**
 * oidc-provider has one list of scopes for all clients; each of our clients has its own. A scope that is not the client's is
 * refused wherever the scopes of a request are read. With client credentials and no scope parameter, a client gets its free
 * scopes; scopes of an account are never a client's own.
 */
function patchScopes (provider: Provider, { InvalidScope }: typeof OidcErrors): void {
  const { prototype } = toInternals(provider).OIDCContext

  const actsForItself = ({ params, route }: ScopeContext): boolean =>
    route === 'token' && (params as { grant_type?: string } | undefined)?.grant_type === 'client_credentials'

  function readScopes (this: ScopeContext): Set<string> {
    const { params, client } = this
    const text = params?.scope ?? (client !== undefined && client.own_scopes.length > 0 && actsForItself(this) ? chooseDefaultScope(client) : undefined)
    return new Set(text?.split(' '))
  }

  patch(prototype, 'requestParamScopes', { get: readScopes })
  patch(prototype, 'requestParamOIDCScopes', {
    get (this: ScopeContext) {
      const scopes = readScopes.call(this)
      const own = this.client?.own_scopes ?? []
      const foreign = findForeignScope(scopes, actsForItself(this) ? own.filter(isForClients) : own, this.client)
      if (foreign !== undefined) throw new InvalidScope('requested scope is not allowed', foreign)
      // The scopes of a resource server are its own, and never in a token without its audience.
      const ofResources = new Set(Object.values(this.resourceServers).flatMap(({ scopes }) => [...scopes]))
      return new Set([...scopes].filter((scope) => !ofResources.has(scope)))
    }
  })
}

/** The parameters of each request. */
const parameters = new WeakMap<object, object | undefined>()

/**
 * How some parameters are read, wherever a request names them: in the query, a form, a pushed or a signed request.
 *
 * - The scheme and the host of a `resource` have no case (RFC 3986, 6.2.2.1; MCP asks servers to accept both), so it is written as declared.
 * - A `token` to revoke that is a JWT is named by its record. oidc-provider would refuse it, because it stores none of its own.
 */
const READERS: Record<string, (value: unknown) => unknown> = { resource: normalizeUris, token: nameStructured }

function patchParameters (provider: Provider): void {
  function normalize (params: object | undefined): object | undefined {
    if (params === undefined) return params
    for (const [name, read] of Object.entries(READERS)) {
      if (!(name in params)) continue
      let value = read((params as Record<string, unknown>)[name])
      Object.defineProperty(params, name, { configurable: true, enumerable: true, get: () => value, set (next: unknown) { value = read(next) } })
    }
    return params
  }

  // oidc-provider assigns it to each context, and its class has none.
  Object.defineProperty(toInternals(provider).OIDCContext.prototype, 'params', {
    configurable: true,
    get (this: object) { return parameters.get(this) },
    set (this: object, params: object | undefined) { parameters.set(this, normalize(params)) }
  })
}

/** clients.ts decides which URIs a user may be redirected to, after a sign-in and after a sign-out. */
function patchRedirectUris (provider: Provider): void {
  for (const method of ['redirectUriAllowed', 'postLogoutRedirectUriAllowed'] as const) {
    patch(provider.Client.prototype, method, {
      value (this: object, uri: string) {
        return isRegisteredUri(toOurClient(this), uri)
      }
    })
  }
}

/**
 * ID tokens from the token endpoint have `at_hash` too (OpenID Connect Core, 3.1.3.6), which Go's VerifyAccessToken needs.
 * oidc-provider sets the hash of the value given here. The id of an access token is the token itself, also of a JWT. A refreshed one has no `nonce`
 * (12.2): angular-auth-oidc-client signs the person out at one.
 */
function patchIdTokens (provider: Provider): void {
  const { prototype } = toInternals(provider).IdToken
  const { issue } = prototype
  patch(prototype, 'issue', {
    value (this: typeof prototype, options?: { use?: string }) {
      const { entities, params } = this.ctx?.oidc ?? {}
      const access = entities?.AccessToken
      if (params?.grant_type === 'refresh_token') this.set('nonce', undefined)
      if (options?.use === 'idtoken' && access !== undefined) this.set('at_hash', access.jti)
      return issue.call(this, options)
    }
  })
}

/** ID tokens and userinfo have the operator's own claims too, which oidc-provider would remove, because they are of no scope. */
function patchClaims (provider: Provider): void {
  const { prototype } = toInternals(provider).Claims
  const { result } = prototype
  patch(prototype, 'result', {
    async value (this: typeof prototype) {
      return { ...this.available[CUSTOM], ...await result.call(this) }
    }
  })
}

/** An access token that is a JWT was given another text than oidc-provider's id, by which it is named from then on. */
function patchAccessTokens (provider: Provider, takeText: Patched['takeText']): void {
  for (const { prototype } of [provider.AccessToken, provider.ClientCredentials] as unknown as { prototype: { jti: string, save: () => Promise<string> } }[]) {
    const { save } = prototype
    patch(prototype, 'save', {
      async value (this: typeof prototype) {
        const id = await save.call(this)
        const text = takeText(id)
        if (text !== undefined) this.jti = text
        return text ?? id
      }
    })
  }
}

/**
 * oidc-provider would call each client only once, while the browser waits. Here the outbox (lib/logout/) notifies the clients of a
 * sign-out. The notifications are stored at this point, before anything is removed.
 */
function patchBackchannelLogout (provider: Provider, tellOfSignOut: Patched['tellOfSignOut']): void {
  patch(provider.Client.prototype, 'backchannelLogout', { value: async () => await tellOfSignOut() })
}

/** oidc-provider would keep 100 clients by a hash of their metadata. client-source.ts finds ours. */
function patchClients (provider: Provider, findClient: Patched['findClient']): void {
  patch(provider.Client, 'find', { value: async (id: unknown) => await findClient(id) })
}

/** The metadata of clients has no secrets. client-authentication.ts judges those that requests have. */
function patchSecrets (provider: Provider, isSecret: Patched['isSecret']): void {
  patch(provider.Client.prototype, 'compareClientSecret', {
    value (this: { clientId: string }, text: string) {
      return isSecret(this.clientId, text)
    }
  })
}

/** Seconds that `iat` of a DPoP proof may be ahead of our clock: oidc-provider's own limit. */
const PROOF_AHEAD = 300

/**
 * oidc-provider would store each assertion by which a client authenticates until its `exp`, which may be far ahead. assertions.ts has
 * stored it already. DPoP proofs come here too, and later. oidc-provider stores them for five minutes from their use; one whose `iat` is
 * ahead is good for longer.
 */
function patchReplays (provider: Provider, isSpent: Patched['isSpent']): void {
  const { ReplayDetection } = toInternals(provider)
  const { unique } = ReplayDetection
  patch(ReplayDetection, 'unique', {
    async value (this: typeof ReplayDetection, iss: string, jti: string, exp: number) {
      return isSpent(jti) || await unique.call(this, iss, jti, exp + PROOF_AHEAD)
    }
  })
}

/** Our functions that oidc-provider calls in place of its own. */
interface Patched {
  /** The client with this id, in place of `Client.find`. */
  findClient (id: unknown): Promise<object | undefined>
  /** Notifies clients of the sign-out by the current request. */
  tellOfSignOut (): Promise<void>
  /** Whether the text is a secret of the client that the current request names. */
  isSecret (client_id: string, text: string): Promise<boolean>
  /** The text of a JWT access token that the current request has just stored under this id; undefined for an opaque one. */
  takeText (id: string): string | undefined
  /** Whether the assertion of the current request, with this `jti`, was just used up. True once. */
  isSpent (jti: string): boolean
}

/**
 * Applies our rules to oidc-provider where it has no option for them.
 * @throws Error when a patched name is missing
 */
export function patchProvider (
  provider: Provider, issuer: URL, errors: typeof OidcErrors, { findClient, tellOfSignOut, isSecret, isSpent, takeText }: Patched
): void {
  patchRequest(provider, issuer)
  patchScopes(provider, errors)
  patchParameters(provider)
  patchRedirectUris(provider)
  patchIdTokens(provider)
  patchClaims(provider)
  patchAccessTokens(provider, takeText)
  patchBackchannelLogout(provider, tellOfSignOut)
  patchClients(provider, findClient)
  patchSecrets(provider, isSecret)
  patchReplays(provider, isSpent)
}

/**
 * Checks at boot that oidc-provider can be patched. The tested release can, so it is not loaded here. Another release, which
 * `overrides` in the host's package.json may install, is loaded and checked.
 * @throws Error when a patched name is missing
 */
export async function checkPatches (installed = readInstalledVersion()): Promise<void> {
  if (installed === TESTED_VERSION) return
  const { Provider, errors } = await import('oidc-provider')
  patchProvider(new Provider('http://127.0.0.1'), new URL('http://127.0.0.1'), errors, {
    findClient: async () => undefined, tellOfSignOut: async () => {}, isSecret: async () => false, isSpent: () => false, takeText: () => undefined
  })
}

function readInstalledVersion (): string {
  return (createRequire(import.meta.url)('oidc-provider/package.json') as { version: string }).version
}
