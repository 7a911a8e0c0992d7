import type { Configuration, KoaContextWithOIDC, errors as OidcErrors, interactionPolicy } from 'oidc-provider'
import type { createAccounts } from './accounts.ts'
import type { createAdapterFactory } from './adapter.ts'
import { MOST_AHEAD } from './assertions.ts'
import type { Callers } from './callers.ts'
import { CLIENT_PROPERTIES } from './clients.ts'
import { type OurClient, findSession, toOurClient, toOurs } from './context.ts'
import { rotatesRefresh } from '../clients/kinds.ts'
import { isOwnOrigin } from '../clients/registered-uris.ts'
import type { OidcSettings, Times } from './contract.ts'
import { defined } from '../defined.ts'
import type { MaySignIn } from '../sign-in/may-sign-in.ts'
import { createProofChecks } from './judge.ts'
import type { KeyRing } from './keys.ts'
import { LIFETIMES } from './model-adapter.ts'
import { findTooLong } from './parameter-limits.ts'
import { CODE_USED, type createGrantLoader, createPolicy } from './policy.ts'
import { createRequestCheck, readSent } from './request-objects.ts'
import { detachInteraction } from './requests.ts'
import type { createResourceIndicators } from './resource-indicators.ts'
import type { Language } from '../pages/texts/language.ts'
import { ROUTES } from './routes.ts'
import { INTERACTION } from '../issuer.ts'
import { CLAIMS, chooseScopeToAsk, splitScopes } from './scopes.ts'
import type { Views } from './views.ts'
import type { Acr } from '../proofs.ts'

interface ConfigurationParts {
  settings: OidcSettings
  /** Path of the API as the app sees it: the prefix and `/api/v1`. */
  base: string
  /** The path prefix that browsers see before it and that a proxy strips. */
  mount: string
  secure: boolean
  keys: KeyRing
  adapter: ReturnType<typeof createAdapterFactory>
  findAccount: ReturnType<typeof createAccounts>
  /** The classes that a sign-in can reach. */
  acrs: readonly Acr[]
  /** The languages of the pages. */
  languages: readonly Language[]
  views: Views
  loadGrant: ReturnType<typeof createGrantLoader>
  /** Judges what requests present of their clients. */
  callers: Pick<Callers, 'isAssertion' | 'isRequest'>
  /** Counts a refresh without a new refresh token. @throws an error of oidc-provider when there are too many */
  countRefresh (): Promise<void>
  resourceIndicators: ReturnType<typeof createResourceIndicators>
  errors: typeof OidcErrors
  policy: typeof interactionPolicy
  maySignIn: MaySignIn
  toEpoch: Times['toEpoch']
}

/**
 * Completes the scope of an authorization. One without a scope has the default of `chooseScopeToAsk`. `offline_access` is granted
 * without `prompt=consent` too: OpenID Connect Core, 11 allows other conditions, and here the user consents to it as to any
 * scope, except for first-party clients.
 */
function completeScope (ctx: KoaContextWithOIDC, value: string | undefined, client: OurClient): void {
  const params = ctx.oidc.params as Record<string, unknown>
  // oidc-provider has removed `offline_access`.
  const requested = splitScopes(readSent(ctx).scope)
  const scopes = splitScopes(value)
  const mayRefresh = client.grants.includes('refresh')
  if (requested.length === 0) params.scope = chooseScopeToAsk(client, Object.values(ctx.oidc.resourceServers ?? {}).flatMap(({ scopes }) => [...scopes]))
  else if (!mayRefresh) params.scope = scopes.filter((scope) => scope !== 'offline_access').join(' ') || undefined
  else if (requested.includes('offline_access') && !scopes.includes('offline_access')) params.scope = [...scopes, 'offline_access'].join(' ')
}

/** An ID token with `acr` has `amr` and `auth_time` too. For a request with `acr_values`, oidc-provider asks for `acr` alone. */
function completeClaims ({ oidc: { claims } }: KoaContextWithOIDC): void {
  if (claims.id_token?.acr !== undefined) Object.assign(claims.id_token, { amr: null, auth_time: null })
}

/** @throws InvalidRequest, which is sent to the client. A `state` that is too long is not returned. */
function checkLength (ctx: KoaContextWithOIDC, { InvalidRequest }: typeof OidcErrors): void {
  const params = ctx.oidc.params as Record<string, unknown>
  const found = findTooLong({ ...params })
  if (found === undefined) return
  if (found.name === 'state') params.state = undefined
  throw new InvalidRequest(found.reason)
}

/** A confidential client may be exempted: its secret protects the code too (OAuth 2.1, 7.5.1). */
function isPkceRequired (client: OurClient): boolean {
  return client.public || client.pkce !== 'optional'
}

const AUTH_METHODS: NonNullable<Configuration['clientAuthMethods']> = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none']

/** The algorithms of signatures that clients make. None is symmetric: a secret that is stored as a hash verifies no signature. */
const SIGNATURES: NonNullable<NonNullable<Configuration['enabledJWA']>['clientAuthSigningAlgValues']> = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256']

/** The options of every cookie. */
export const createCookie = (secure: boolean) => ({ httpOnly: true, sameSite: 'lax', secure, signed: true } as const)

/** oidc-provider's configuration. Settings that are absent have oidc-provider's defaults. */
export function createConfiguration (parts: ConfigurationParts): Configuration {
  const { settings, base, mount, secure, keys, adapter, findAccount, views, errors } = parts
  const routes = Object.fromEntries(Object.entries(ROUTES).map(([name, path]) => [name, base + path]))
  const cookie = createCookie(secure)
  return {
    adapter,
    routes,
    clientAuthMethods: AUTH_METHODS,
    enabledJWA: { clientAuthSigningAlgValues: [...SIGNATURES], requestObjectSigningAlgValues: [...SIGNATURES] },
    // oidc-provider checks `nbf` of an assertion before our judge does, so it must tolerate as much. It would also accept stored records for so
    // long after their end: the adapters refuse them (requests.ts).
    clockTolerance: MOST_AHEAD,
    async assertJwtClientAuthClaimsAndHeader (ctx, { jti }, _header, { clientId }) {
      if (!parts.callers.isAssertion(ctx, clientId, String(jti))) throw new errors.InvalidClientAuth('the assertion was refused')
    },
    responseTypes: ['code'],
    scopes: ['openid', 'offline_access'],
    acrValues: [...parts.acrs],
    discovery: defined({
      // Initiating User Registration via OpenID Connect 1.0, 4.1.
      prompt_values_supported: ['none', 'login', 'consent', 'select_account', ...(settings.signUp === true ? ['create'] : [])],
      client_id_metadata_document_supported: settings.documents === undefined ? undefined : true,
      ui_locales_supported: [...parts.languages],
      introspection_endpoint_auth_methods_supported: AUTH_METHODS,
      introspection_endpoint_auth_signing_alg_values_supported: SIGNATURES,
      revocation_endpoint_auth_methods_supported: AUTH_METHODS,
      revocation_endpoint_auth_signing_alg_values_supported: SIGNATURES
    }),
    claims: { amr: null, ...Object.fromEntries(Object.entries(CLAIMS).map(([scope, claims]) => [scope, [...claims]])) },
    // accounts.ts decides which claims an ID token has, per client.
    conformIdTokenClaims: false,
    pkce: { required: (_ctx, client) => isPkceRequired(toOurClient(client)) },
    jwks: { keys: [...keys.signing, ...keys.ecSigning] },
    cookies: {
      keys: keys.cookies,
      // With these prefixes a browser accepts the cookie over https only, `__Host-` from this host only (RFC 6265bis, 4.1.3).
      names: secure
        ? { session: '__Host-identity', interaction: '__Secure-identity_interaction', resume: '__Secure-identity_resume' }
        : { session: 'identity', interaction: 'identity_interaction', resume: 'identity_resume' },
      long: { ...cookie, path: '/' },
      short: cookie
    },
    ttl: {
      // A resource may set its own.
      AccessToken: (_ctx, { resourceServer }) => resourceServer?.accessTokenTTL ?? settings.accessTtl,
      ClientCredentials: (_ctx, { resourceServer }) => resourceServer?.accessTokenTTL ?? settings.accessTtl,
      RefreshToken: settings.refreshTtl,
      // Anyone may open a page with a form, and its session is stored before a user signs in. Submitting the form makes it last.
      Session: (ctx, session) => session.accountId === undefined
        ? Math.min(settings.sessionTtl, ctx.method === 'POST' ? LIFETIMES.interaction : LIFETIMES.untouched)
        : settings.sessionTtl,
      Grant: settings.refreshTtl,
      AuthorizationCode: LIFETIMES.code,
      DeviceCode: LIFETIMES.deviceCode,
      // For its cookies. requests.ts stores it for less until a form is submitted.
      Interaction: LIFETIMES.interaction,
      IdToken: LIFETIMES.idToken
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: {
        enabled: true,
        // A public client cannot authenticate, so it may introspect its own tokens only.
        allowedPolicy: async (_ctx, client, token) => client.clientAuthMethod !== 'none' || token.clientId === client.clientId
      },
      revocation: {
        enabled: true,
        allowedPolicy: async (_ctx, client, token) => {
          if (token.clientId === client.clientId) return true
          if (client.clientAuthMethod === 'none') return false
          throw new errors.InvalidRequest('client is not authorized to revoke the presented token')
        }
      },
      pushedAuthorizationRequests: { enabled: true },
      requestObjects: { enabled: true, assertJwtClaimsAndHeader: createRequestCheck(errors, parts.callers) },
      resourceIndicators: parts.resourceIndicators as NonNullable<Configuration['features']>['resourceIndicators'],
      dPoP: { enabled: true, nonceSecret: keys.nonceSecret, requireNonce: () => false, allowReplay: false },
      deviceFlow: {
        enabled: true,
        charset: 'base-20',
        mask: '****-****',
        // Not the User-Agent: the page would show a text that an attacker has chosen.
        deviceInfo: (ctx) => ({ ip: ctx.ip }),
        userCodeInputSource: views.userCode,
        userCodeConfirmSource: views.compareCode,
        successSource: views.deviceDone
      },
      // The service sends the logout tokens itself: see patches.ts and lib/logout/.
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true, logoutSource: views.signOut, postLogoutSuccessSource: views.signedOut }
    },
    extraClientMetadata: { properties: [...CLIENT_PROPERTIES], validator: () => {} },
    extraParams: {
      // The id of another provider to sign in with.
      upstream: null,
      // oidc-provider calls this for every request, before it stores anything.
      scope: (ctx, value, client) => {
        checkLength(ctx, errors)
        completeScope(ctx, value, toOurClient(client))
      }
    },
    clientBasedCORS: (ctx, origin, client) => {
      const { registered_uris } = toOurClient(client)
      return (client.clientAuthMethod === 'none' || ctx.oidc.route === 'userinfo') && isOwnOrigin(registered_uris, origin)
    },
    interactions: {
      policy: createPolicy(parts.policy, settings.signUp === true, createProofChecks(parts.maySignIn, errors, parts.toEpoch)),
      async url (_ctx, interaction) {
        // Who replaces what they lost may end the session, and goes on in the next one: routes/interaction.ts requires it.
        if (interaction.prompt.name === CODE_USED) await detachInteraction(interaction)
        return `${mount}${base}${INTERACTION}/${interaction.uid}`
      }
    },
    async findAccount (ctx, sub, token) {
      const account = await findAccount(sub, toOurs(ctx).client, findSession(ctx)?.user)
      // oidc-provider handles a missing session, but not an account deleted in mid-flow.
      if (account === undefined && token === undefined) throw new errors.AccessDenied('the account may not sign in')
      return account
    },
    async loadExistingGrant (ctx) {
      completeClaims(ctx)
      return await parts.loadGrant(ctx)
    },
    async rotateRefreshToken ({ oidc: { client } }) {
      if (rotatesRefresh(toOurClient(client!))) return true
      await parts.countRefresh()
      return false
    },
    revokeGrantPolicy: () => true,
    // `GrantRecord.bound` decides whether a token ends with the sign-in session.
    expiresWithSession: async () => false,
    issueRefreshToken: async (_ctx, client, source) => toOurClient(client).grants.includes('refresh') && source.scopes.has('offline_access'),
    renderError: views.error
  }
}
