import type { webcrypto } from 'node:crypto'
import { exportJWK } from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import t from 'tap'
import type { GrantRecord } from '../../lib/records/token.ts'
import { scan } from '../../lib/store/scan.ts'
import { assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { type App, type Harness, askCode, eachStore, signIn } from './harness.ts'

// Clients of the FAPI 2.0 security profile, by libraries with their documented options.

const DAY = 24 * 60 * 60

async function register (harness: Harness, publicKeys: webcrypto.CryptoKey[]): Promise<App> {
  const { clients } = harness.kit.app.identity
  const admin = { user_id: harness.user.user_id, isAdmin: true }
  const app = await harness.register()
  const keys = await Promise.all(publicKeys.map(async (key) => ({ ...await exportJWK(key) })))
  await clients.patch(app.client_id, { data: { jwks: { keys }, tokenAuth: 'private_key_jwt', profile: 'fapi2' } }, admin)
  return app
}

eachStore(t, 'openid-client and oauth4webapi sign in by private_key_jwt, PAR and DPoP', async (t, start) => {
  const refreshMax = 30 * DAY
  const harness = await start({ oidc: { refreshTtl: 10 * DAY, refreshMax } })
  const { url, kit, get } = harness
  for (const alg of ['ES256', 'Ed25519', 'PS256']) {
    const pair = await oauth.generateKeyPair(alg)
    const app = await register(harness, [pair.publicKey])
    const config = await openid.discovery(new URL(url), app.client_id, { id_token_signed_response_alg: 'ES256' }, openid.PrivateKeyJwt(pair.privateKey), { execute: [openid.allowInsecureRequests] })
    const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'))
    const verifier = openid.randomPKCECodeVerifier()
    const asked = await openid.buildAuthorizationUrlWithPAR(config, {
      redirect_uri: app.redirect_uri, scope: 'openid offline_access', code_challenge: await openid.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256'
    }, { DPoP })
    const { left } = await signIn(harness, asked.href)
    const tokens = await openid.authorizationCodeGrant(config, left!, { pkceCodeVerifier: verifier }, {}, { DPoP })
    t.match([tokens.token_type, tokens.claims()], ['dpop', { sub: harness.user.user_id }], alg)
    const refresh = async () => await openid.refreshTokenGrant(config, tokens.refresh_token!, {}, { DPoP })
    for (let turn = 0; turn < 2; turn++) t.match(await refresh(), { access_token: String, refresh_token: tokens.refresh_token }, 'the same refresh token')
    t.equal((await openid.tokenIntrospection(config, tokens.access_token)).active, true)
    if (alg !== 'ES256') continue
    kit.clock.advance((refreshMax - 100) * 1000)
    t.match(await refresh(), { refresh_token: tokens.refresh_token }, 'it lives as long as its authorization')
    const grants = kit.app.identity.store.collection<GrantRecord>('grants')
    const used: string[] = []
    for await (const batch of scan(grants, { equal: { client_id: app.client_id } })) used.push(...batch.map(({ last_used_at }) => last_used_at))
    t.strictSame(used, [new Date(kit.clock.now()).toISOString()], 'its last use is written without a rotation')
    kit.clock.advance(101_000)
    t.equal(await refresh().catch((error: { error?: string }) => error.error), 'invalid_grant')
  }

  const pair = await oauth.generateKeyPair('ES256')
  const app = await register(harness, [pair.publicKey])
  const INSECURE = { [oauth.allowInsecureRequests]: true }
  const as = await oauth.processDiscoveryResponse(new URL(url), await oauth.discoveryRequest(new URL(url), INSECURE))
  const client = { client_id: app.client_id, id_token_signed_response_alg: 'ES256' }
  const auth = oauth.PrivateKeyJwt(pair.privateKey)
  const DPoP = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
  const verifier = oauth.generateRandomCodeVerifier()
  const query = new URLSearchParams({
    client_id: app.client_id, redirect_uri: app.redirect_uri, response_type: 'code', scope: 'openid', code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256'
  })
  const pushed = await oauth.processPushedAuthorizationResponse(as, client, await oauth.pushedAuthorizationRequest(as, client, auth, query, { ...INSECURE, DPoP }))
  const { left } = await signIn(harness, `${as.authorization_endpoint}?${new URLSearchParams({ client_id: app.client_id, request_uri: pushed.request_uri })}`)
  const params = oauth.validateAuthResponse(as, client, left!, oauth.expectNoState)
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, await oauth.authorizationCodeGrantRequest(as, client, auth, params, app.redirect_uri, verifier, { ...INSECURE, DPoP }), { requireIdToken: true })
  t.equal(tokens.token_type, 'dpop')
  t.equal((await get('tokeninfo', tokens.access_token)).status, 401, 'not as a bearer token')
})

eachStore(t, 'what the profile refuses', async (t, start) => {
  const harness = await start()
  const { post, kit, user } = harness
  const { clients } = kit.app.identity
  const [admin, ann] = [{ user_id: user.user_id, isAdmin: true }, { user_id: user.user_id, isAdmin: false }]
  const [ec, rsa] = [createTestKey('ES256', 'ec'), createTestKey('RS256', 'rsa')]
  const app = await harness.register()
  const { issuer } = await (await fetch(`${harness.url}/.well-known/openid-configuration`)).json() as { issuer: string }
  await t.rejects(clients.patch(app.client_id, { data: { profile: 'fapi2' } }, admin), { message: 'profile: fapi2 requires tokenAuth private_key_jwt' })
  const until = new Date(kit.clock.now() + 60_000).toISOString()
  await clients.patch(app.client_id, { data: { jwks: { keys: [ec.jwk, rsa.jwk] }, tokenAuth: 'private_key_jwt', former: { until } } }, admin)
  const par = { client_id: app.client_id, response_type: 'code', scope: 'openid', redirect_uri: app.redirect_uri, code_challenge: 'c'.repeat(43), code_challenge_method: 'S256' }
  const send = async (aud: unknown, key = ec, claims = {}) => (await post('par', { ...par, ...toFields(await assert(app.client_id, aud, key, claims)) })).status
  const all = async () => [await send([issuer]), await send(`${issuer}/api/v1/auth/token`), await send(issuer, rsa), (await post('par', par, app)).status]
  t.strictSame(await all(), [201, 201, 201, 201], 'before')
  await t.rejects(clients.patch(app.client_id, { data: { profile: 'fapi2' } }, { ...ann, isAdmin: false }), { code: 'ErrPerm' })
  await clients.patch(app.client_id, { data: { profile: 'fapi2' } }, admin)
  t.match(await clients.require(app.client_id, admin), { profile: 'fapi2' })
  t.equal(await send(issuer), 201)
  t.equal(await send(issuer, { ...rsa, alg: 'PS256' }), 201)
  t.strictSame(await all(), [401, 401, 401, 401], 'aud as an array, the token endpoint, RS256, the former secret')
  t.equal(await send(issuer, ec, { iat: Math.floor(Date.now() / 1000) + 66, exp: Math.floor(Date.now() / 1000) + 120 }), 401, 'iat 61 s ahead')
  t.match((await signIn(harness, askCode(app).url)).left?.searchParams.get('error'), 'invalid_request', 'a request that was not pushed')
  t.match(await post('token', { grant_type: 'client_credentials', ...toFields(await assert(app.client_id, issuer, ec)) }), { status: 400, body: { error: 'invalid_grant' } }, 'a token without DPoP')
  await t.rejects(clients.patch(app.client_id, { data: { tokenAuth: 'secret' } }, admin), { message: 'profile: fapi2 requires tokenAuth private_key_jwt' })
  await t.rejects(clients.patch(app.client_id, { data: { pkce: 'optional' } }, admin), { message: 'pkce: must be required with profile fapi2' })
  await clients.patch(app.client_id, { data: { profile: 'none' } }, admin)
  t.equal((await clients.require(app.client_id, admin)).profile, undefined)
})
