import type { JSONWebKeySet } from 'jose'
import type { ClientAuth, Configuration } from 'openid-client'
import type { Upstream } from '../../schemas/upstream.ts'
import type { Clock } from '../clock.ts'
import type { Calls, CallProvider } from './calls.ts'
import { lacksRoles, withRoles } from './claimed-roles.ts'
import type { Claims } from './claims.ts'
import { findIssuer, findScope, findServer } from './kinds.ts'
import type { Enter } from './places.ts'
import type { Authorization, Callback, Provider } from './provider.ts'
import { readKey, readSecret, signAppleSecret, toWebKey } from './secret.ts'

/** Below this origin openid-client takes `{tenantid}` in an issuer as Microsoft means it. */
const MICROSOFT = 'https://login.microsoftonline.com'

/** The kinds that say when somebody has signed in, where they are asked with `max_age` (OpenID Connect Core, 3.1.2.1). */
const TELLS_TIME: readonly Upstream['kind'][] = ['oidc', 'microsoft']

/** Seconds by which a provider's clock may be ahead of ours. */
const MOST_AHEAD = 60

/** Milliseconds in which a logout token makes us fetch metadata or keys once at most, but for a key that is missing. Anybody can send one. */
const PAUSE = 60_000

/** Characters of an id of a key that is looked for. */
const KEY_ID = 512

/** The id of the key that an ID token names. The token is verified later. */
function findKeyId (token: unknown): string | undefined {
  try {
    const { kid } = JSON.parse(Buffer.from(String(token).split('.')[0]!, 'base64url').toString()) as { kid?: unknown }
    return typeof kid === 'string' && kid.length <= KEY_ID ? kid : undefined
  } catch {
    return undefined
  }
}

/** Signs people in with an OpenID Connect server, by openid-client: Google, Microsoft, Apple and any other. */
export async function createOpenid (upstream: Upstream, calls: Calls, now: Clock): Promise<Provider> {
  const client = await import('openid-client')
  const { kind, clientId, keyFile, keyId } = upstream
  const server = findServer(upstream)

  async function authenticate (): Promise<ClientAuth> {
    if (kind === 'apple') return client.ClientSecretPost(signAppleSecret(await readKey(keyFile!), upstream, server, now()))
    if (keyFile === undefined) {
      const secret = await readSecret(upstream)
      // In the body, as each of the known providers takes it, unless the server says that it takes it in the header only.
      return (server, ...request) => {
        const methods = server.token_endpoint_auth_methods_supported ?? []
        const isHeader = methods.includes('client_secret_basic') && !methods.includes('client_secret_post')
        const apply = isHeader ? client.ClientSecretBasic(secret) : client.ClientSecretPost(secret)
        apply(server, ...request)
      }
    }
    const key = await toWebKey(await readKey(keyFile))
    return client.PrivateKeyJwt(keyId === undefined ? key : { key, kid: keyId })
  }

  /** Reads the metadata. Their issuer is the configured one; at Microsoft it may stand for any tenant. */
  async function discover (enter: Enter, pause?: number): Promise<Configuration> {
    const read = calls.read(enter, undefined, pause)
    const issuer = findIssuer(upstream)
    const isMicrosoft = kind === 'microsoft'
    const fetch = async (url: string, init: unknown) => await read(isMicrosoft ? url.replace(MICROSOFT, server) : url, init as Parameters<CallProvider>[1])
    const config = await client.discovery(new URL(isMicrosoft ? issuer.replace(server, MICROSOFT) : issuer), clientId, {}, await authenticate(), {
      [client.customFetch]: fetch,
      // Which hosts may be called without TLS is a matter of lib/outbound.
      execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks]
    })
    const { issuer: found } = config.serverMetadata()
    if (isMicrosoft && found !== issuer && found !== `${server}/{tenantid}/v2.0`) throw new Error('the metadata have another issuer')
    return config
  }

  /** Whether the provider can ask which account is meant. Each can ask for a sign-in (OpenID Connect Core, 3.1.2.1), and some refuse other values. */
  function selects (config: Configuration): boolean {
    const { prompt_values_supported: values } = config.serverMetadata()
    return kind !== 'oidc' || (Array.isArray(values) && values.includes('select_account'))
  }

  /** Answers the library's calls: keys may come from the cache, and all else is sent. */
  function answer (config: Configuration, enter: Enter): CallProvider {
    const { jwks_uri: keys } = config.serverMetadata()
    let kid: string | undefined
    const call = calls.call(enter)
    const readKeys = calls.read(enter, () => kid)
    return async (url, init) => {
      if (url === keys) return await readKeys(url, init)
      const response = await call(url, init)
      kid = findKeyId((await response.clone().json().catch(() => ({})) as { id_token?: unknown }).id_token)
      return response
    }
  }

  /**
   * The claims, and what only `userinfo` says: many servers put the claims of the scopes there and nowhere else (OpenID Connect Core, 5.4).
   * Who somebody is, and what they have proved, the ID token alone says.
   */
  async function complete (config: Configuration, claims: Claims, accessToken: string): Promise<Claims> {
    const { emails, claims: { name = 'name', email = 'email' } = {} } = upstream
    const isComplete = claims[emails === 'verified' ? email : name] !== undefined
    const isWhole = isComplete && !lacksRoles(upstream, claims)
    if (kind !== 'oidc' || isWhole || config.serverMetadata().userinfo_endpoint === undefined) return claims
    const found = await client.fetchUserInfo(config, accessToken, String(claims['sub']))
    const known = withRoles(upstream, claims, found)
    if (isComplete) return known
    const absent = [name, 'given_name', 'family_name', email].filter((claim) => claims[claim] === undefined)
    // An address and the word about it are of one answer.
    const taken = absent.includes(email) ? [...absent, 'email_verified'] : absent
    return { ...known, ...Object.fromEntries(taken.map((claim) => [claim, found[claim]])) }
  }

  return {
    async check (enter) {
      const config = await discover(enter)
      const { authorization_endpoint: authorize, token_endpoint: token, jwks_uri: keys } = config.serverMetadata()
      if (authorize === undefined || token === undefined || keys === undefined) throw new Error('the metadata name no authorization endpoint, token endpoint or keys')
      const found = await calls.read(enter, () => undefined)(keys)
      if (found.status !== 200) throw new Error(`the keys cannot be read: status ${found.status}`)
    },

    async toAuthorization ({ redirectUri, state, nonce, verifier, hint, isFresh, isSilent = false, maxAge = 0, asksAccount = false }: Authorization, enter) {
      const config = await discover(enter)
      const { domains = [] } = upstream
      return client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: findScope(upstream),
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(kind === 'apple' && { response_mode: 'form_post' }),
        ...(kind === 'google' && domains.length === 1 && { hd: domains[0]! }),
        ...(hint !== undefined && kind !== 'apple' && { login_hint: hint }),
        ...(isFresh && TELLS_TIME.includes(kind) && { max_age: String(maxAge) }),
        ...(isSilent ? { prompt: 'none' } : isFresh ? { prompt: kind === 'google' ? 'select_account' : 'login' } : asksAccount && kind !== 'apple' && { prompt: selects(config) ? 'select_account' : 'login' })
      }).href
    },

    async redeem ({ url, state, nonce, verifier }: Callback, enter): Promise<Claims> {
      const config = await discover(enter)
      config[client.customFetch] = answer(config, enter)
      const tokens = await client.authorizationCodeGrant(config, url, {
        expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true
      })
      const claims: Record<string, unknown> = { ...tokens.claims() }
      // OpenID Connect Core, 3.1.3.7 (5): a token that was made for another app.
      const { auth_time: time, iat } = claims
      const ahead = typeof iat === 'number' ? Math.floor(iat - now() / 1000) : 0
      // By a clock that is minutes ahead of ours, an old sign-in would look recent.
      if (typeof time === 'number' && ahead > MOST_AHEAD) claims['auth_time'] = time - ahead
      if (claims['azp'] !== undefined && claims['azp'] !== clientId) throw new Error('the ID token was made for another client')
      return await complete(config, claims, tokens.access_token)
    },

    ...(kind === 'oidc' && {
      async readLogoutKeys (kid: string | undefined, enter: Enter): Promise<JSONWebKeySet> {
        const { jwks_uri: keys } = (await discover(enter, PAUSE)).serverMetadata()
        if (keys === undefined) throw new Error('the metadata name no keys')
        const response = await calls.read(enter, () => kid, PAUSE)(keys)
        if (response.status !== 200) throw new Error(`the keys cannot be read: status ${response.status}`)
        return await response.json() as JSONWebKeySet
      }
    })
  }
}
