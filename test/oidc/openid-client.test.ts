import * as openid from 'openid-client'
import t, { type Test } from 'tap'
import { type App, type Harness, eachStore, signIn } from './harness.ts'

/** openid-client's only option: for a service without TLS. */
const INSECURE = { execute: [openid.allowInsecureRequests] }

const discover = async ({ url }: Harness, app: App, authentication?: openid.ClientAuth) => await openid.discovery(
  new URL(url), app.client_id, app.client_secret === '' ? undefined : app.client_secret, authentication, INSECURE)

const SCOPE = 'openid offline_access read'

/** The code flow with PKCE, from the request to the tokens. */
async function authorize (harness: Harness, config: openid.Configuration, app: App, options: { pushed?: boolean, handle?: openid.DPoPHandle } = {}) {
  const pkceCodeVerifier = openid.randomPKCECodeVerifier()
  const expectedState = openid.randomState()
  const expectedNonce = openid.randomNonce()
  const parameters = {
    redirect_uri: app.redirect_uri,
    scope: SCOPE,
    prompt: 'consent',
    state: expectedState,
    nonce: expectedNonce,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256'
  }
  const dpop = options.handle === undefined ? undefined : { DPoP: options.handle }
  const url = options.pushed === true
    ? await openid.buildAuthorizationUrlWithPAR(config, parameters, dpop)
    : openid.buildAuthorizationUrl(config, parameters)
  const { left } = await signIn(harness, url.href)
  return await openid.authorizationCodeGrant(config, left as URL, { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true }, undefined, dpop)
}

/** The library rejects with the server's error. */
async function isRefused (t: Test, call: Promise<unknown>, error: string, message = error): Promise<void> {
  t.match(await call.then(() => 'no error', (thrown: unknown) => thrown), { error }, message)
}

eachStore(t, 'openid-client', async (t, start) => {
  const harness = await start()
  const { get, register, user, url } = harness
  const app = await register()
  const config = await discover(harness, app)

  await t.test('discovery', async (t) => {
    for (const algorithm of ['oidc', 'oauth2'] as const) {
      const found = await openid.discovery(new URL(url), app.client_id, undefined, undefined, { ...INSECURE, algorithm })
      t.equal(found.serverMetadata().issuer, url)
      t.ok(found.serverMetadata().supportsPKCE())
    }
  })

  for (const [name, authentication] of [['basic', openid.ClientSecretBasic], ['post', openid.ClientSecretPost]] as const) {
    await t.test(`code with PKCE, refresh, userinfo; the secret by ${name}`, async (t) => {
      const config = await discover(harness, app, authentication(app.client_secret))
      const tokens = await authorize(harness, config, app)
      t.match(tokens.claims(), { sub: user.user_id, iss: url, aud: app.client_id })
      t.match(await openid.fetchUserInfo(config, tokens.access_token, user.user_id), { sub: user.user_id })
      const again = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
      t.match(await get('tokeninfo', again.access_token), { status: 200 })
      t.match(again.claims(), { sub: user.user_id })
    })
  }

  await t.test('a public client with PKCE only', async (t) => {
    const spa = await register({ public: true })
    const tokens = await authorize(harness, await discover(harness, spa, openid.None()), spa)
    t.match(await get('tokeninfo', tokens.access_token), { status: 200, body: { data: { client_id: spa.client_id } } })
  })

  await t.test('a client with client credentials acts for itself', async (t) => {
    const all = await openid.clientCredentialsGrant(config)
    t.equal(all.scope, 'read write', 'a client that requests no scope gets its free scopes')
    const { body } = await get('tokeninfo', all.access_token)
    t.match(body, { data: { subject: 'client', user_id: user.user_id, client_id: app.client_id, scopes: ['read', 'write'], roles: {} } })
    const some = await openid.clientCredentialsGrant(config, { scope: 'write' })
    t.match((await get('tokeninfo', some.access_token)).body, { data: { scopes: ['write'] } })
    await isRefused(t, openid.clientCredentialsGrant(config, { scope: 'foreign' }), 'invalid_scope')
  })

  await t.test('introspection and revocation', async (t) => {
    const tokens = await authorize(harness, config, app)
    t.match(await openid.tokenIntrospection(config, tokens.access_token), { active: true, sub: user.user_id, client_id: app.client_id })
    t.match(await openid.tokenIntrospection(config, tokens.refresh_token ?? ''), { active: true })
    await openid.tokenRevocation(config, tokens.refresh_token ?? '')
    t.match(await openid.tokenIntrospection(config, tokens.access_token), { active: false })
    t.match(await get('tokeninfo', tokens.access_token), { status: 401 })
    await isRefused(t, openid.refreshTokenGrant(config, tokens.refresh_token ?? ''), 'invalid_grant')
    await openid.tokenRevocation(config, 'unknown')
  })

  await t.test('pushed authorization requests', async (t) => {
    const tokens = await authorize(harness, config, app, { pushed: true })
    t.match(await get('tokeninfo', tokens.access_token), { status: 200 })
    t.ok(tokens.refresh_token)
  })

  await t.test('DPoP', async (t) => {
    for (const pushed of [false, true]) {
      const handle = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'))
      const tokens = await authorize(harness, config, app, { pushed, handle })
      t.equal(tokens.token_type, 'dpop')
      t.match(await openid.fetchUserInfo(config, tokens.access_token, user.user_id, { DPoP: handle }), { sub: user.user_id })
      t.match(await openid.tokenIntrospection(config, tokens.access_token), { active: true, token_type: 'DPoP', cnf: { jkt: /./ } })
      const again = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '', undefined, { DPoP: handle })
      t.equal(again.token_type, 'dpop')
      for (const { access_token } of [tokens, again]) {
        t.match(await get('tokeninfo', access_token), { status: 401 }, 'a DPoP-bound token is not a bearer token')
        t.match(await get('userinfo', access_token), { status: 401 })
      }
    }
  })

  await t.test('the device flow', async (t) => {
    const device = await openid.initiateDeviceAuthorization(config, { scope: SCOPE })
    t.equal(device.interval, 5)
    t.match(device.user_code, /^[A-Z]{4}-[A-Z]{4}$/)
    const pending = openid.genericGrantRequest(config, 'urn:ietf:params:oauth:grant-type:device_code', { device_code: device.device_code })
    await isRefused(t, pending, 'authorization_pending')
    const browser = harness.browser()
    let page = await browser.open(device.verification_uri_complete ?? '')
    t.equal(page.title, 'Connect a device')
    t.match(page.text, device.user_code)
    page = await page.submit()
    page = await page.submit({ account: user.account, password: user.password })
    t.match(page.text, device.user_code)
    page = await page.submit({ decision: 'allow' })
    t.equal(page.title, 'Device connected')
    const tokens = await openid.pollDeviceAuthorizationGrant(config, { ...device, interval: 0.01 })
    t.match(await get('tokeninfo', tokens.access_token), { status: 200, body: { data: { user_id: user.user_id, scopes: ['read'] } } })
    t.match(await openid.refreshTokenGrant(config, tokens.refresh_token ?? ''), { access_token: /./ })
    await isRefused(t, openid.pollDeviceAuthorizationGrant(config, { ...device, interval: 0.01 }), 'invalid_grant', 'a device code is used once')
    t.match(await get('tokeninfo', tokens.access_token), { status: 401 }, 'a second use ends the token session')
  })

  await t.test('sign-out', async (t) => {
    const browser = harness.browser()
    const verifier = openid.randomPKCECodeVerifier()
    const ask = async (scope: string) => openid.buildAuthorizationUrl(config, {
      redirect_uri: app.redirect_uri, scope, code_challenge: await openid.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256'
    })
    const take = async (left: URL | undefined) => await openid.authorizationCodeGrant(config, left as URL, { pkceCodeVerifier: verifier })
    const bound = await take((await signIn(harness, (await ask('openid read')).href, browser)).left)
    const lasting = await take((await signIn(harness, (await ask(SCOPE)).href, browser)).left)
    const end = openid.buildEndSessionUrl(config, { id_token_hint: bound.id_token ?? '', post_logout_redirect_uri: app.redirect_uri, state: 'bye' })
    const page = await browser.open(end.href)
    t.equal(page.title, 'Sign out')
    const { left } = await page.submit({ logout: 'yes' })
    t.equal(left?.href, `${app.redirect_uri}?state=bye`)
    t.equal((await browser.open((await ask('openid')).href)).title, 'Sign in', 'the browser is signed out')
    t.match(await get('tokeninfo', bound.access_token), { status: 401 }, 'the bound token session has ended')
    t.match(await get('tokeninfo', lasting.access_token), { status: 200 }, 'a session with offline access is still valid')
  })
})
