import type { Configuration, KoaContextWithOIDC, errors as OidcErrors, interactionPolicy } from 'oidc-provider'
import type { createAccounts } from './accounts.ts'
import type { createAdapterFactory } from './adapter.ts'
import { CLIENT_PROPERTIES, type OurClient } from './clients.ts'
import type { KeyRing } from './keys.ts'
import { LIFETIMES } from './model-adapter.ts'
import { createPolicy, loadGrant } from './policy.ts'
import { INTERACTION, ROUTES } from './routes.ts'
import { CLAIMS, chooseDefaultScope, splitScopes } from './scopes.ts'
import type { Views } from './views.ts'

/** Seconds, and what an operator decides besides; schemas/oidc.ts tells the meaning of each. */
export interface OidcSettings {
  accessTtl: number
  refreshTtl: number
  sessionTtl: number
  refreshGrace: number
  firstParty: string[]
  name?: string
}

export interface ConfigurationParts {
  settings: OidcSettings
  /** Path of the API, such as `/api/v1`, with every prefix. */
  base: string
  /** What comes before it where browsers are. */
  mount: string
  secure: boolean
  keys: KeyRing
  adapter: ReturnType<typeof createAdapterFactory>
  findAccount: ReturnType<typeof createAccounts>
  views: Views
  errors: typeof OidcErrors
  policy: typeof interactionPolicy
}

/** The scope that was asked for, before oidc-provider took `offline_access` out. */
function readAskedScopes (ctx: KoaContextWithOIDC): string[] {
  const pushed = ctx.oidc.entities.PushedAuthorizationRequest?.request
  if (pushed !== undefined) {
    return splitScopes((JSON.parse(Buffer.from(pushed.split('.')[1] ?? '', 'base64url').toString()) as { scope?: string }).scope)
  }
  return splitScopes(ctx.method === 'POST' ? ctx.oidc.body?.scope : ctx.query.scope)
}

/**
 * Completes the scope of an authorization. A client that names none gets all of its own. `offline_access` counts without
 * `prompt=consent` too: Core, 11 leaves that to other conditions, and here the user agrees to it as to any scope, unless
 * an operator vouches for the client.
 */
function completeScope (ctx: KoaContextWithOIDC, value: string | undefined, client: OurClient): void {
  const params = ctx.oidc.params as Record<string, unknown>
  const asked = readAskedScopes(ctx)
  const scopes = splitScopes(value)
  if (asked.includes('offline_access') && !scopes.includes('offline_access')) params.scope = [...scopes, 'offline_access'].join(' ')
  else if (asked.length === 0) params.scope = chooseDefaultScope(client.own_scopes)
}

/** oidc-provider's configuration. What is not here is as oidc-provider has it. */
export function createConfiguration (parts: ConfigurationParts): Configuration {
  const { settings, base, mount, secure, keys, adapter, findAccount, views, errors } = parts
  const routes = Object.fromEntries(Object.entries(ROUTES).map(([name, path]) => [name, base + path]))
  const cookie = { httpOnly: true, sameSite: 'lax', secure, signed: true } as const
  return {
    adapter,
    routes,
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'none'],
    responseTypes: ['code'],
    scopes: ['openid', 'offline_access'],
    claims: Object.fromEntries(Object.entries(CLAIMS).map(([scope, claims]) => [scope, [...claims]])),
    pkce: { required: () => true },
    jwks: { keys: keys.signing },
    cookies: {
      keys: keys.cookies,
      // A prefix that a browser lets no other host and no plain http set (RFC 6265bis, 4.1.3).
      names: secure
        ? { session: '__Host-identity', interaction: '__Secure-identity_interaction', resume: '__Secure-identity_resume' }
        : { session: 'identity', interaction: 'identity_interaction', resume: 'identity_resume' },
      long: { ...cookie, path: '/' },
      short: cookie
    },
    ttl: {
      AccessToken: settings.accessTtl,
      ClientCredentials: settings.accessTtl,
      RefreshToken: settings.refreshTtl,
      Session: settings.sessionTtl,
      Grant: settings.refreshTtl,
      AuthorizationCode: LIFETIMES.code,
      DeviceCode: LIFETIMES.deviceCode,
      Interaction: LIFETIMES.interaction,
      IdToken: LIFETIMES.idToken
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: {
        enabled: true,
        // A public client cannot prove who it is, so it asks about its own tokens only.
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
      // Tokens are for this service's API and those who ask it about them: there is one audience.
      resourceIndicators: { enabled: false },
      dPoP: { enabled: true, nonceSecret: keys.nonceSecret, requireNonce: () => false, allowReplay: false },
      deviceFlow: {
        enabled: true,
        charset: 'base-20',
        mask: '****-****',
        deviceInfo: (ctx) => ({ ip: ctx.ip, ua: ctx.get('user-agent').slice(0, 256) }),
        userCodeInputSource: views.userCode,
        userCodeConfirmSource: views.confirmDevice,
        successSource: views.deviceDone
      },
      rpInitiatedLogout: { enabled: true, logoutSource: views.signOut, postLogoutSuccessSource: views.signedOut }
    },
    extraClientMetadata: { properties: [...CLIENT_PROPERTIES], validator: () => {} },
    extraParams: {
      scope: (ctx, value, client) => completeScope(ctx, value, client as unknown as OurClient)
    },
    clientBasedCORS: (ctx, origin, client) => {
      const { registered_uris } = client as unknown as OurClient
      return origin !== 'null' && (client.clientAuthMethod === 'none' || ctx.oidc.route === 'userinfo') &&
        registered_uris.some((uri) => URL.parse(uri)?.origin === origin)
    },
    interactions: {
      policy: createPolicy(parts.policy),
      url: (_ctx, { uid }) => `${mount}${base}${INTERACTION}/${uid}`
    },
    async findAccount (_ctx, sub, token) {
      const account = await findAccount(sub)
      // At a browser oidc-provider reckons with nobody being there, but not with somebody who has just gone.
      if (account === undefined && token === undefined) throw new errors.AccessDenied('the account may not sign in')
      return account
    },
    loadExistingGrant: loadGrant,
    rotateRefreshToken: () => true,
    revokeGrantPolicy: () => true,
    // The grant decides which session a token ends with.
    expiresWithSession: async () => false,
    issueRefreshToken: async (_ctx, client, source) => client.grantTypeAllowed('refresh_token') && source.scopes.has('offline_access'),
    renderError: views.error
  }
}
