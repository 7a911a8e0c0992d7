import { createPublicKey, verify } from 'node:crypto'
import t, { type Test } from 'tap'
import { createLocalJWKSet, jwtVerify } from 'jose'
import * as openid from 'openid-client'
import { type TestKey, assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { type App, askCode, getCode, signIn, startHarness } from './harness.ts'

// Walks the discovery document: what it lists works, and what works is listed.

type Metadata = Record<string, string | boolean | string[]>

/** The members that say nothing of their own, or are tested with another. */
const OTHERS = ['issuer', 'claim_types_supported', 'subject_types_supported', 'scopes_supported', 'claims_supported', 'acr_values_supported', 'prompt_values_supported', 'ui_locales_supported']

t.test('everything that the discovery document lists works, and nothing else', async (t) => {
  const harness = await startHarness(t, { signUp: true })
  const { post, url, user, browser } = harness
  await harness.kit.app.identity.users.patch(user.user_id, { data: { roles: { clerk: true } } }, { user_id: 'x', isAdmin: true })
  const documents = await Promise.all(['openid-configuration', 'oauth-authorization-server'].map(async (name) => await (await fetch(`${url}/.well-known/${name}`)).json() as Metadata))
  const [found, same] = documents as [Metadata, Metadata]
  t.strictSame(same, found, 'one document at both paths')
  const list = (name: string) => found[name] as string[]
  const app = await harness.register()
  const plain = await harness.register({ public: true })
  const tested = new Set(OTHERS)
  const test = async (name: string, run: (t: Test) => Promise<void>) => {
    tested.add(name)
    await t.test(name, run)
  }
  const authorize = async (params: Record<string, string>, of: App = app) => await signIn(harness, askCode(of, params).url)

  for (const [name, method, status] of [
    ['authorization_endpoint', 'GET', 400], ['token_endpoint', 'POST', 400], ['userinfo_endpoint', 'GET', 401], ['jwks_uri', 'GET', 200], ['end_session_endpoint', 'GET', 200],
    ['introspection_endpoint', 'POST', 400], ['revocation_endpoint', 'POST', 400], ['pushed_authorization_request_endpoint', 'POST', 400], ['device_authorization_endpoint', 'POST', 400]
  ] as const) {
    await test(name, async (t) => {
      const address = String(found[name])
      t.ok(address.startsWith(`${url}/api/v1/auth/`))
      const response = await fetch(address, { method, ...(method === 'POST' && { body: new URLSearchParams() }) })
      t.equal(response.status, status, 'it answers, and a request without anything as its standard says')
    })
  }
  t.strictSame(Object.keys(found).filter((name) => /_endpoint$|_uri$/.test(name)).filter((name) => !tested.has(name)), [])

  await test('response_types_supported', async (t) => {
    t.strictSame(list('response_types_supported'), ['code'])
    t.ok((await authorize({ response_type: 'code' })).left?.searchParams.get('code'))
    for (const other of ['token', 'id_token', 'code id_token', 'none']) t.match((await authorize({ response_type: other, nonce: 'n' })).left?.href, /error=unsupported_response_type/, other)
  })

  await test('response_modes_supported', async (t) => {
    t.strictSame(list('response_modes_supported').toSorted(), ['form_post', 'fragment', 'query'])
    t.match((await authorize({ response_mode: 'query' })).left?.search, /code=/)
    t.match((await authorize({ response_mode: 'fragment' })).left?.hash, /code=/)
    t.match((await authorize({ response_mode: 'form_post' })).text, /name="code"/)
    t.notMatch((await authorize({ response_mode: 'jwt' })).left?.search, /[?&](code|response)=/)
  })

  await test('grant_types_supported', async (t) => {
    const device = (await post('device_authorization', { scope: 'openid' }, app)).body as Record<string, string>
    const code = await getCode(harness, app)
    const tokens = await post('token', code, app)
    const outcomes: Record<string, [number, unknown]> = {}
    for (const [grant, fields] of Object.entries({
      authorization_code: null,
      refresh_token: { refresh_token: String(tokens.body.refresh_token) },
      client_credentials: {},
      'urn:ietf:params:oauth:grant-type:device_code': { device_code: device.device_code! },
      password: { username: user.account, password: user.password },
      'urn:ietf:params:oauth:grant-type:token-exchange': { subject_token: String(tokens.body.access_token), subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
      'urn:ietf:params:oauth:grant-type:jwt-bearer': { assertion: 'x' }
    })) {
      const { status, body } = fields === null ? tokens : await post('token', { grant_type: grant, ...fields as Record<string, string> }, app)
      outcomes[grant] = [status, body.error]
    }
    const works = Object.entries(outcomes).filter(([, [, error]]) => error !== 'unsupported_grant_type').map(([grant]) => grant)
    t.strictSame(works.toSorted(), list('grant_types_supported').toSorted())
    t.strictSame(works.map((grant) => outcomes[grant]), [[200, undefined], [200, undefined], [200, undefined], [400, 'authorization_pending']])
  })

  const CREDENTIALS: Record<string, [fields: Record<string, string>, of?: App]> = {
    client_secret_basic: [{}, app],
    client_secret_post: [{ client_id: app.client_id, client_secret: app.client_secret }],
    none: [{ client_id: plain.client_id }],
    private_key_jwt: [{}]
  }
  const keyed = await harness.register()
  const KEYS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256', 'RS512', 'ES384'].map((alg) => ({ ...createTestKey(alg === 'Ed25519' ? 'EdDSA' : alg === 'RS512' ? 'RS256' : alg as 'ES256'), alg }))
  const setKey = async ({ jwk }: TestKey) => await harness.kit.app.identity.clients.patch(keyed.client_id, { data: { jwks: { keys: [jwk] }, tokenAuth: 'private_key_jwt' } }, { user_id: user.user_id, isAdmin: true })
  const prove = async (key: TestKey) => toFields(await assert(keyed.client_id, String(found.issuer), key))
  await setKey(KEYS[0]!)
  for (const [name, path] of [['token_endpoint_auth_methods_supported', 'token'], ['introspection_endpoint_auth_methods_supported', 'introspect'], ['revocation_endpoint_auth_methods_supported', 'revoke']] as const) {
    await test(name, async (t) => {
      const works: string[] = []
      for (const method of ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none']) {
        const [fields, of] = CREDENTIALS[method]!
        const { body } = await post(path, { token: 'x', grant_type: 'refresh_token', refresh_token: 'x', ...fields, ...(method === 'private_key_jwt' && await prove(KEYS[0]!)) }, of)
        if (body.error !== 'invalid_client' && body.error !== 'invalid_request') works.push(method)
      }
      t.strictSame(works, list(name))
    })
  }

  for (const [name, path] of [['token_endpoint_auth_signing_alg_values_supported', 'token'], ['introspection_endpoint_auth_signing_alg_values_supported', 'introspect'], ['revocation_endpoint_auth_signing_alg_values_supported', 'revoke']] as const) {
    await test(name, async (t) => {
      const works: string[] = []
      for (const key of KEYS) {
        if (key.alg !== 'ES384') await setKey(key)
        const { status, body } = await post(path, { token: 'x', grant_type: 'client_credentials', ...await prove(key).catch(() => ({})) })
        if (status === 200) works.push(key.alg)
        else t.match(body.error, /^invalid_/)
      }
      t.strictSame(works.toSorted(), list(name).toSorted())
    })
  }

  await test('code_challenge_methods_supported', async (t) => {
    t.strictSame(list('code_challenge_methods_supported'), ['S256'])
    t.ok((await authorize({})).left?.searchParams.get('code'))
    t.equal((await authorize({ code_challenge_method: 'plain' })).left?.searchParams.get('error'), 'invalid_request')
  })

  await test('id_token_signing_alg_values_supported', async (t) => {
    const { body } = await post('token', await getCode(harness, app), app)
    const [header = '', payload = '', signature = ''] = String(body.id_token).split('.')
    const { alg, kid } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { alg: string, kid: string }
    t.strictSame([alg, ...list('id_token_signing_alg_values_supported')].toSorted(), ['ES256', 'RS256', 'RS256'])
    const { keys } = await (await fetch(String(found.jwks_uri))).json() as { keys: (Parameters<typeof createPublicKey>[0] & { kid: string, alg: string })[] }
    const key = keys.find((one) => one.kid === kid)
    t.equal(key?.alg, alg)
    t.ok(verify('sha256', Buffer.from(`${header}.${payload}`), createPublicKey({ key: key as never, format: 'jwk' }), Buffer.from(signature, 'base64url')))
    t.strictSame(keys.map((one) => one.alg), ['RS256', 'ES256'], 'no key of another kind is published')
    await harness.mark(app, { idTokenAlg: 'ES256' })
    const other = await post('token', await getCode(harness, app), app)
    const { payload: claims, protectedHeader } = await jwtVerify(String(other.body.id_token), createLocalJWKSet({ keys }), { algorithms: ['ES256'], audience: app.client_id, issuer: String(found.issuer) })
    t.match([claims, protectedHeader], [{ at_hash: String, sub: user.user_id }, { kid: keys[1]!.kid }])
  })

  await test('dpop_signing_alg_values_supported', async (t) => {
    const config = await openid.discovery(new URL(url), app.client_id, app.client_secret, undefined, { execute: [openid.allowInsecureRequests] })
    const works: string[] = []
    for (const algorithm of ['ES256', 'Ed25519', 'EdDSA', 'RS256', 'PS256', 'ES384']) {
      // `EdDSA` is the former name of `Ed25519` (RFC 9864).
      const pair = await openid.randomDPoPKeyPair(algorithm === 'EdDSA' ? 'Ed25519' : algorithm)
      const token = await openid.clientCredentialsGrant(config, {}, { DPoP: openid.getDPoPHandle(config, pair) }).catch(() => null)
      if (token?.token_type.toLowerCase() === 'dpop') works.push(algorithm)
    }
    t.strictSame(works, list('dpop_signing_alg_values_supported'))
  })

  await test('authorization_response_iss_parameter_supported', async (t) => {
    t.equal((await authorize({})).left?.searchParams.get('iss'), found.issuer)
    t.equal((await authorize({ prompt: 'none' })).left?.searchParams.get('iss'), found.issuer)
  })

  await test('request_uri_parameter_supported', async (t) => {
    t.equal(found.request_uri_parameter_supported, false)
    t.notOk((await authorize({ request_uri: 'https://app.example/request' })).left?.searchParams.get('code'))
  })

  const signer = await harness.register()
  const asked = Object.fromEntries(new URL(askCode(signer).url, url).searchParams)
  const pushSigned = async ({ jwk, ...key }: TestKey): Promise<number> => {
    if (key.alg !== 'ES384') await harness.kit.app.identity.clients.patch(signer.client_id, { data: { jwks: { keys: [jwk] } } }, { user_id: user.user_id, isAdmin: true })
    const request = await assert(signer.client_id, found.issuer, key, { sub: undefined, ...asked }).catch(() => 'x')
    return (await post('par', { request }, signer)).status
  }
  await test('request_object_signing_alg_values_supported', async (t) => {
    const works: string[] = []
    for (const key of KEYS) if (await pushSigned(key) === 201) works.push(key.alg)
    t.strictSame(works.toSorted(), list('request_object_signing_alg_values_supported').toSorted())
  })

  await test('request_parameter_supported', async (t) => {
    t.equal(found.request_parameter_supported, true)
    t.equal(await pushSigned(KEYS[0]!), 201)
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(asked)).toString('base64url')}.`
    t.equal((await authorize({ request: unsigned }, signer)).left?.searchParams.get('error'), 'invalid_request_object')
  })

  await test('claims_parameter_supported', async (t) => {
    t.equal(found.claims_parameter_supported, false)
    const { body } = await post('token', await getCode(harness, app, { scope: 'openid', claims: '{"userinfo":{"name":null}}' }), app)
    t.notOk('name' in (await harness.get('userinfo', String(body.access_token))).body)
  })

  await test('backchannel_logout_supported', async (t) => { t.equal(found.backchannel_logout_supported, true, 'see backchannel-logout.test.ts') })
  await test('backchannel_logout_session_supported', async (t) => { t.equal(found.backchannel_logout_session_supported, true, 'the same') })

  await t.test('scopes_supported, claims_supported and acr_values_supported', async (t) => {
    t.strictSame(list('scopes_supported').toSorted(), ['email', 'offline_access', 'openid', 'profile', 'roles'])
    await harness.mark(app, { id_token_claims: true })
    const { body } = await post('token', await getCode(harness, app, { scope: list('scopes_supported').join(' '), acr_values: list('acr_values_supported').join(' '), max_age: '100' }), app)
    t.strictSame(String(body.scope).split(' ').toSorted(), list('scopes_supported').toSorted())
    const id = JSON.parse(Buffer.from(String(body.id_token).split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
    const userinfo = (await harness.get('userinfo', String(body.access_token))).body
    const PROTOCOL = ['aud', 'exp', 'iat', 'at_hash', 'nonce']
    const given = Object.keys({ ...id, ...userinfo }).filter((name) => !PROTOCOL.includes(name))
    // `sid` is for clients that get logout tokens.
    t.strictSame(new Set([...given, 'sid']), new Set(list('claims_supported')))
    t.strictSame(list('acr_values_supported'), ['1', 'mfa'])
    t.equal(id.acr, '1', 'a user without a factor')
  })

  await t.test('prompt_values_supported and ui_locales_supported', async (t) => {
    t.strictSame(list('prompt_values_supported'), ['none', 'login', 'consent', 'select_account', 'create'])
    const titles: Record<string, string | null | undefined> = {}
    for (const prompt of [...list('prompt_values_supported'), 'confirm']) {
      const page = await browser().open(askCode(app, { prompt }).url)
      titles[prompt] = page.left?.searchParams.get('error') ?? page.title
    }
    t.strictSame(titles, { none: 'login_required', login: 'Sign in', consent: 'Sign in', select_account: 'Sign in', create: 'Create an account', confirm: 'invalid_request' })
    for (const language of list('ui_locales_supported')) {
      t.match((await browser().open(askCode(app, { ui_locales: language }).url)).text, `<html lang="${language}"`, language)
    }
  })

  t.strictSame(Object.keys(found).filter((name) => !tested.has(name)), [], 'every member is tested')
})

t.test('without sign-up the prompt `create` is not listed, and refused', async (t) => {
  const { url, register, browser } = await startHarness(t)
  const { prompt_values_supported } = await (await fetch(`${url}/.well-known/openid-configuration`)).json() as Metadata
  t.strictSame(prompt_values_supported, ['none', 'login', 'consent', 'select_account'])
  t.equal((await browser().open(askCode(await register(), { prompt: 'create' }).url)).left?.searchParams.get('error'), 'invalid_request')
})
