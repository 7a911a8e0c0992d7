import * as oauth from 'oauth4webapi'
import t from 'tap'
import { type App, type Harness, eachStore, signIn } from './harness.ts'

/** oauth4webapi's option for a service without TLS. */
const INSECURE = { [oauth.allowInsecureRequests]: true }
const SCOPE = 'openid profile email offline_access read'

async function authorize (harness: Harness, as: oauth.AuthorizationServer, app: App, extra: { DPoP?: oauth.DPoPHandle, pushed?: boolean } = {}) {
  const client = { client_id: app.client_id }
  const auth = app.client_secret === '' ? oauth.None() : oauth.ClientSecretPost(app.client_secret)
  const options = { ...INSECURE, ...(extra.DPoP && { DPoP: extra.DPoP }) }
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const query = new URLSearchParams({
    client_id: app.client_id,
    redirect_uri: app.redirect_uri,
    response_type: 'code',
    scope: SCOPE,
    prompt: 'consent',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256'
  })
  let url = `${as.authorization_endpoint}?${query}`
  if (extra.pushed === true) {
    const pushed = await oauth.processPushedAuthorizationResponse(as, client, await oauth.pushedAuthorizationRequest(as, client, auth, query, options))
    url = `${as.authorization_endpoint}?${new URLSearchParams({ client_id: app.client_id, request_uri: pushed.request_uri })}`
  }
  const { left } = await signIn(harness, url)
  const params = oauth.validateAuthResponse(as, client, left as URL, state)
  const response = await oauth.authorizationCodeGrantRequest(as, client, auth, params, app.redirect_uri, verifier, options)
  return { client, auth, options, tokens: await oauth.processAuthorizationCodeResponse(as, client, response, { requireIdToken: true }) }
}

eachStore(t, 'oauth4webapi', async (t, start) => {
  const harness = await start()
  const { get, register, url, user } = harness
  const issuer = new URL(url)
  const app = await register()
  const spa = await register({ public: true })
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { ...INSECURE, algorithm: 'oauth2' }))

  await t.test('code with PKCE, id token, userinfo, refresh', async (t) => {
    for (const [client, pushed] of [[app, false], [spa, false], [app, true]] as const) {
      const { client: c, auth, options, tokens } = await authorize(harness, as, client, { pushed })
      const claims = oauth.getValidatedIdTokenClaims(tokens)
      t.match(claims, { sub: user.user_id, iss: url })
      const info = await oauth.processUserInfoResponse(as, c, user.user_id, await oauth.userInfoRequest(as, c, tokens.access_token, options))
      t.match(info, { email: user.account, name: 'Ann' })
      const again = await oauth.processRefreshTokenResponse(as, c, await oauth.refreshTokenGrantRequest(as, c, auth, tokens.refresh_token ?? '', options))
      t.match(await get('tokeninfo', again.access_token), { status: 200 })
    }
  })

  await t.test("DPoP, with the server's nonce", async (t) => {
    const DPoP = oauth.DPoP({}, await oauth.generateKeyPair('ES256'))
    const { client, options, tokens } = await authorize(harness, as, spa, { DPoP })
    t.equal(tokens.token_type, 'dpop')
    for (let turn = 0; turn < 2; turn++) {
      const info = await oauth.processUserInfoResponse(as, client, user.user_id, await oauth.userInfoRequest(as, client, tokens.access_token, options))
      t.match(info, { sub: user.user_id })
    }
    const stolen = await oauth.userInfoRequest(as, client, tokens.access_token, INSECURE)
    t.equal(stolen.status, 401)
  })

  await t.test('client credentials, introspection, revocation', async (t) => {
    const client = { client_id: app.client_id }
    const auth = oauth.ClientSecretBasic(app.client_secret)
    const { access_token } = await oauth.processClientCredentialsResponse(as, client, await oauth.clientCredentialsGrantRequest(as, client, auth, {}, INSECURE))
    const introspect = async () => await oauth.processIntrospectionResponse(as, client, await oauth.introspectionRequest(as, client, auth, access_token, INSECURE))
    t.match(await introspect(), { active: true, scope: 'read write' })
    await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, access_token, INSECURE))
    t.match(await introspect(), { active: false })
    t.match(await get('tokeninfo', access_token), { status: 401 })
  })

  await t.test('the device flow', async (t) => {
    const client = { client_id: spa.client_id }
    const device = await oauth.processDeviceAuthorizationResponse(as, client,
      await oauth.deviceAuthorizationRequest(as, client, oauth.None(), { scope: SCOPE }, INSECURE))
    let page = await harness.browser().open(device.verification_uri)
    page = await page.submit({ user_code: device.user_code })
    page = await page.submit({ account: user.account, password: user.password })
    page = await page.submit({ decision: 'allow' })
    t.equal(page.title, 'Device connected')
    const tokens = await oauth.processDeviceCodeResponse(as, client,
      await oauth.deviceCodeGrantRequest(as, client, oauth.None(), device.device_code, INSECURE))
    t.match(await get('tokeninfo', tokens.access_token), { status: 200 })
  })
})
