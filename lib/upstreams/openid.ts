import type { JSONWebKeySet } from 'jose'
import type { Configuration } from 'openid-client'
import type { Upstream } from '../../schemas/upstream.ts'
import type { Clock } from '../clock.ts'
import { defined } from '../defined.ts'
import type { Calls, CallProvider } from './calls.ts'
import { lacksRoles, withRoles } from './claimed-roles.ts'
import { findScope } from './kinds.ts'
import { createDiscovery } from './openid-discovery.ts'
import type { Enter } from './places.ts'
import type { Authorization, Callback, Claims, Provider } from './provider.ts'

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
    const [header = ''] = String(token).split('.')
    const { kid }: { kid?: unknown } = JSON.parse(Buffer.from(header, 'base64url').toString())
    return typeof kid === 'string' && kid.length <= KEY_ID ? kid : undefined
  } catch {
    return undefined
  }
}

/** Whether the provider can ask which account is meant. Each can ask for a sign-in (OpenID Connect Core, 3.1.2.1), and some refuse other values. */
function selects (kind: Upstream['kind'], config: Configuration): boolean {
  const { prompt_values_supported: values } = config.serverMetadata()
  return kind !== 'oidc' || (Array.isArray(values) && values.includes('select_account'))
}

/** The parameter `prompt` of the authorization request (OpenID Connect Core, 3.1.2.1). Undefined: none, so the provider decides. */
function choosePrompt (kind: Upstream['kind'], config: Configuration, { isSilent, isFresh, asksAccount }: Authorization): string | undefined {
  if (isSilent === true) return 'none'
  if (isFresh) return kind === 'google' ? 'select_account' : 'login'
  if (asksAccount !== true || kind === 'apple') return undefined
  return selects(kind, config) ? 'select_account' : 'login'
}

/** Answers the library's calls: keys may come from the cache, and all else is sent. */
function createAnswers (calls: Calls, config: Configuration, enter: Enter): CallProvider {
  const { jwks_uri: keys } = config.serverMetadata()
  let kid: string | undefined
  const call = calls.call(enter)
  const readKeys = calls.read(enter, () => kid)
  return async (url, init) => {
    if (url === keys) return await readKeys(url, init)
    const response = await call(url, init)
    const answer = await response.clone().json().catch(() => undefined) as { id_token?: unknown } | null | undefined
    kid = findKeyId(answer?.id_token)
    return response
  }
}

/** Signs people in with an OpenID Connect server, by openid-client: Google, Microsoft, Apple and any other. */
export async function createOpenid (upstream: Upstream, calls: Calls, now: Clock): Promise<Provider> {
  const client = await import('openid-client')
  const { kind, clientId } = upstream
  const discover = createDiscovery({ client, upstream, calls, now })

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

  async function readLogoutKeys (kid: string | undefined, enter: Enter): Promise<JSONWebKeySet> {
    const { jwks_uri: keys } = (await discover(enter, PAUSE)).serverMetadata()
    if (keys === undefined) throw new Error('the metadata name no keys')
    const response = await calls.read(enter, () => kid, PAUSE)(keys)
    if (response.status !== 200) throw new Error(`the keys cannot be read: status ${response.status}`)
    return await response.json() as JSONWebKeySet
  }

  return {
    async check (enter) {
      const config = await discover(enter)
      const { authorization_endpoint: authorize, token_endpoint: token, jwks_uri: keys } = config.serverMetadata()
      if (authorize === undefined || token === undefined || keys === undefined) {
        throw new Error('the metadata name no authorization endpoint, token endpoint or keys')
      }
      const found = await calls.read(enter, () => undefined)(keys)
      if (found.status !== 200) throw new Error(`the keys cannot be read: status ${found.status}`)
    },

    async toAuthorization (authorization: Authorization, enter) {
      const config = await discover(enter)
      const { redirectUri, state, nonce, verifier, hint, isFresh, maxAge = 0 } = authorization
      const { domains = [] } = upstream
      return client.buildAuthorizationUrl(config, defined({
        redirect_uri: redirectUri,
        scope: findScope(upstream),
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        response_mode: kind === 'apple' ? 'form_post' : undefined,
        hd: kind === 'google' && domains.length === 1 ? domains[0] : undefined,
        login_hint: kind === 'apple' ? undefined : hint,
        max_age: isFresh && TELLS_TIME.includes(kind) ? String(maxAge) : undefined,
        prompt: choosePrompt(kind, config, authorization)
      })).href
    },

    async redeem ({ url, state, nonce, verifier }: Callback, enter): Promise<Claims> {
      const config = await discover(enter)
      config[client.customFetch] = createAnswers(calls, config, enter)
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

    readLogoutKeys: kind === 'oidc' ? readLogoutKeys : undefined
  }
}
