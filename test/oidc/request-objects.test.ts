import { createHmac, createPublicKey } from 'node:crypto'
import t from 'tap'
import type { Document } from '../../lib/store/port.ts'
import { type TestKey, assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { type App, type Harness, askCode, eachStore, signIn } from './harness.ts'

// RFC 9101: authorization requests that the client has signed.

const KEYS = { rsa: createTestKey('RS256', 'rsa'), ec: createTestKey('ES256', 'ec'), ed: createTestKey('EdDSA', 'ed') }
const STRANGER = createTestKey('ES256', 'ec')

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const now = () => Math.floor(Date.now() / 1000)

async function open (harness: Harness) {
  const { clients } = harness.kit.app.identity
  const admin = { user_id: harness.user.user_id, isAdmin: true }
  const { issuer } = await (await fetch(`${harness.url}/.well-known/openid-configuration`)).json() as { issuer: string }
  return {
    issuer,
    setKeys: async ({ client_id }: App, keys: TestKey[], data: object = {}) =>
      await clients.patch(client_id, { data: { jwks: { keys: keys.map(({ jwk }) => jwk) }, ...data } }, admin),
    /** A signed request with the parameters of `askCode`, and the verifier of its code challenge. */
    async sign (app: App, key: Pick<TestKey, 'alg' | 'privateKey'>, claims: object = {}, header: object = {}) {
      const { url, verifier } = askCode(app)
      const params = Object.fromEntries(new URL(url, issuer).searchParams)
      return { request: await assert(app.client_id, issuer, key, { sub: undefined, ...params, ...claims }, header), verifier }
    },
    async redeem (app: App, page: { left: URL | undefined }, code_verifier: string) {
      const code = page.left?.searchParams.get('code') ?? 'none'
      return await harness.post('token', { grant_type: 'authorization_code', code, code_verifier, redirect_uri: app.redirect_uri }, app)
    }
  }
}

const toUrl = ({ client_id }: App, params: Record<string, string>) => `/api/v1/auth/authorize?${new URLSearchParams({ client_id, ...params })}`

eachStore(t, 'a signed request', async (t, start) => {
  const harness = await start()
  const { post, register, browser, kit, url } = harness
  const { issuer, setKeys, sign, redeem } = await open(harness)
  const app = await register()
  const bare = await register()
  const spa = await register({ public: true })
  await setKeys(app, Object.values(KEYS))

  await t.test('signs in by each algorithm, at the authorization endpoint and pushed', async (t) => {
    for (const [alg, key] of [['RS256', KEYS.rsa], ['PS256', KEYS.rsa], ['ES256', KEYS.ec], ['EdDSA', KEYS.ed], ['Ed25519', KEYS.ed]] as const) {
      const { request, verifier } = await sign(app, { ...key, alg })
      const page = await signIn(harness, toUrl(app, { request }))
      t.equal(page.left?.searchParams.get('state'), 'abc', alg)
      t.match(await redeem(app, page, verifier), { status: 200, body: { scope: 'openid read offline_access', refresh_token: String, id_token: String } }, alg)
      const pushed = await sign(app, { ...key, alg })
      const { status, body } = await post('par', { request: pushed.request }, app)
      t.equal(status, 201, alg)
      t.ok(Number(body.expires_in) > 0 && Number(body.expires_in) <= 60)
      const other = await signIn(harness, toUrl(app, { request_uri: String(body.request_uri) }))
      t.match(await redeem(app, other, pushed.verifier), { status: 200, body: { scope: 'openid read offline_access', refresh_token: String } }, `${alg}, pushed`)
    }
    const aged = await sign(app, KEYS.ec, { max_age: 100 })
    const { body: { id_token } } = await redeem(app, await signIn(harness, toUrl(app, { request: aged.request })), aged.verifier)
    t.type((JSON.parse(Buffer.from(String(id_token).split('.')[1]!, 'base64url').toString()) as { auth_time: number }).auth_time, 'number', 'with a parameter that is a number')

    const { request, verifier } = await sign(app, KEYS.ec)
    const form = { method: 'POST', body: new URLSearchParams({ client_id: app.client_id, request }), headers: { origin: url } }
    const asked = await browser().open('/api/v1/auth/authorize', form)
    const { user } = harness
    const page = asked.left === undefined ? await asked.submit({ account: user.account, password: user.password }) : asked
    t.equal((await redeem(app, page, verifier)).status, 200, 'by a form')
  })

  await t.test('counts alone: other parameters beside it have no effect', async (t) => {
    const { request, verifier } = await sign(app, KEYS.ec, { state: 'signed', scope: 'openid', nonce: 'signed' })
    const outside = { request, state: 'other', scope: 'openid offline_access read write', nonce: 'other', redirect_uri: 'https://evil.example/cb', code_challenge: 'c'.repeat(43), prompt: 'none', max_age: '0' }
    const page = await signIn(harness, toUrl(app, outside))
    t.match(page.left?.href, 'https://app.example/cb?')
    t.equal(page.left?.searchParams.get('state'), 'signed')
    const { status, body } = await redeem(app, page, verifier)
    t.match([status, body.scope, body.refresh_token], [200, 'openid', undefined])
    t.equal((JSON.parse(Buffer.from(String(body.id_token).split('.')[1]!, 'base64url').toString()) as { nonce: string }).nonce, 'signed')
    const pushed = await sign(app, KEYS.ec, { scope: 'openid' })
    const { body: { request_uri } } = await post('par', { ...outside, request: pushed.request }, app)
    t.match((await redeem(app, await signIn(harness, toUrl(app, { request_uri: String(request_uri) })), pushed.verifier)).body, { scope: 'openid', refresh_token: undefined }, 'pushed')
    const free = await sign(app, KEYS.ec, { scope: undefined })
    const none = await signIn(harness, toUrl(app, { request: free.request, scope: 'openid' }))
    t.equal((await redeem(app, none, free.verifier)).body.scope, 'read write', 'without a scope: the free scopes of the client')
    const other = await signIn(harness, toUrl(app, { request, response_type: 'token' }))
    t.notOk(other.left?.href.includes('code='), 'another response_type is refused')
  })

  await t.test('may ask for form_post, for its refusal too', async (t) => {
    const { request } = await sign(app, KEYS.ec, { response_mode: 'form_post' })
    const page = await signIn(harness, toUrl(app, { request }))
    t.match(page.text, /name="code"/)
    const refused = await browser().open(toUrl(app, { request: request.slice(0, -4), redirect_uri: app.redirect_uri, response_type: 'code' }))
    t.match(refused.text, /name="error" value="invalid_request_object"/)
    for (const { response: { headers } } of [page, refused]) t.match(headers.get('content-security-policy'), /script-src 'sha256-/)
  })

  type Make = () => Promise<string> | string
  const of = (key: Pick<TestKey, 'alg' | 'privateKey'>, claims: object = {}, header: object = {}, by = app): Make => async () => (await sign(by, key, claims, header)).request
  const ec = (claims: object, header: object = {}) => of(KEYS.ec, claims, header)
  const forge = (header: object, secret?: string | Buffer): Make => async () => {
    const [, payload] = (await sign(app, KEYS.ec)).request.split('.')
    const text = `${encode(header)}.${payload}`
    return `${text}.${secret === undefined ? '' : createHmac('sha256', secret).update(text).digest('base64url')}`
  }
  const pem = createPublicKey({ key: KEYS.rsa.jwk, format: 'jwk' }).export({ format: 'pem', type: 'spki' })
  const bad: Record<string, Make> = {
    'no JWT': () => 'x',
    'alg none': forge({ alg: 'none' }),
    'alg none with the kid of a key': forge({ alg: 'none', kid: 'rsa' }),
    'HS256 with the public key': forge({ alg: 'HS256', kid: 'rsa' }, pem),
    'HS256 with the modulus': forge({ alg: 'HS256', kid: 'rsa' }, Buffer.from(KEYS.rsa.jwk.n!, 'base64url')),
    'HS256 with the secret': forge({ alg: 'HS256' }, app.client_secret),
    RS512: of({ ...KEYS.rsa, alg: 'RS512' }),
    'a key of nobody': of(STRANGER),
    'a key of nobody with a kid of ours': of(STRANGER, {}, { kid: 'ec' }),
    'a key of nobody, in the header': of(STRANGER, {}, { jwk: STRANGER.jwk }),
    'an unknown kid': ec({}, { kid: 'none' }),
    'the kid of another key of the client': ec({}, { kid: 'rsa' }),
    'an unknown critical header': async () => {
      const [, payload, signature] = (await sign(app, KEYS.ec)).request.split('.')
      return `${encode({ alg: 'ES256', crit: ['x'], x: 1 })}.${payload}.${signature}`
    },
    'a changed payload': async () => {
      const [header, payload, signature] = (await sign(app, KEYS.ec)).request.split('.')
      const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as object
      return `${header}.${encode({ ...claims, scope: 'openid write' })}.${signature}`
    },
    'an exp in the past': ec({ iat: now() - 90, exp: now() - 30 }),
    'an exp of now': ec({ iat: now() - 60, exp: now() }),
    'no exp': ec({ exp: undefined }),
    'an exp that is a text': ec({ exp: String(now() + 60) }),
    'an nbf ten minutes ahead': ec({ nbf: now() + 600, exp: now() + 660 }),
    'no iss': ec({ iss: undefined }),
    'another iss': ec({ iss: bare.client_id }),
    'no aud': ec({ aud: undefined }),
    'another aud': ec({ aud: 'https://other.example' }),
    'no client_id': ec({ client_id: undefined }),
    'the client_id of another client': ec({ client_id: bare.client_id }),
    'a client_id that is an object': ec({ client_id: { a: 1 } }),
    'a request of another client': of(KEYS.ec, {}, {}, bare),
    'what would do as an assertion too': ec({ sub: app.client_id }),
    'an assertion of the client': async () => await assert(app.client_id, issuer, KEYS.ec),
    'a request in the request': ec({ request: 'e30.e30.' }),
    'a request_uri in the request': ec({ request_uri: 'https://app.example/request' }),
    'more than 12 KiB': ec({ more: 'x'.repeat(9_300) })
  }

  await t.test('is refused otherwise, with an error that goes to the app', async (t) => {
    for (const [name, make] of Object.entries(bad)) {
      const request = await make()
      const error = name.startsWith('more') ? 'invalid_request' : 'invalid_request_object'
      const page = await browser().open(toUrl(app, { request, redirect_uri: app.redirect_uri, response_type: 'code' }))
      t.match([page.left?.origin, page.left?.searchParams.get('error')], ['https://app.example', error], name)
      t.match(await post('par', { request }, app), { status: 400, body: { error } }, `${name}, pushed`)
      const device = await post('device_authorization', { request, scope: 'openid' }, app)
      t.match(device, { status: 400, body: { error } }, `${name}, of a device`)
    }
    t.equal(await kit.app.identity.store.collection<Document>('interactions').count(), 0, 'and nothing is stored')
  })

  await t.test('with parameters that are refused without a signature too', async (t) => {
    for (const [name, claims, error] of [
      ['a redirect URI that is not registered', { redirect_uri: 'https://evil.example/cb' }, undefined],
      ['a scope that is not the client\'s', { scope: 'openid foreign' }, 'invalid_scope'],
      ['no PKCE', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
      ['a long state', { state: 's'.repeat(4097) }, 'invalid_request'],
      ['a state twice', { state: ['a', 'b'] }, 'invalid_request'],
      ['an unknown resource', { resource: ['https://nowhere.example'] }, 'invalid_target'],
      ['a resource that is no text', { resource: [{ a: 1 }, 5] }, 'invalid_target'],
      ['no response type', { response_type: undefined }, 'invalid_request'],
      ['another response type', { response_type: 'token' }, 'unsupported_response_type']
    ] as const) {
      const { request } = await sign(app, KEYS.ec, claims)
      const page = await browser().open(toUrl(app, { request, redirect_uri: app.redirect_uri }))
      if (error === undefined) t.match(page, { left: undefined, response: { status: 400 } }, name)
      else t.equal(page.left?.searchParams.get('error') ?? new URLSearchParams(page.left?.hash.slice(1)).get('error'), error, name)
      t.match(await post('par', { request }, app), { status: 400, body: { error: error ?? 'invalid_request' } }, `${name}, pushed`)
    }
  })

  await t.test('never comes from a URL, and not beside one', async (t) => {
    const { request } = await sign(app, KEYS.ec)
    const outside = { redirect_uri: app.redirect_uri, response_type: 'code' }
    const from = await browser().open(toUrl(app, { request_uri: 'https://app.example/request', ...outside }))
    t.equal(from.left?.searchParams.get('error'), 'request_uri_not_supported')
    const { body: { request_uri } } = await post('par', { request }, app)
    const both = await browser().open(toUrl(app, { request, request_uri: String(request_uri), ...outside }))
    t.equal(both.left?.searchParams.get('error'), 'invalid_request')
    t.match(await post('par', { request, request_uri: String(request_uri) }, app), { status: 400 })
  })

  await t.test('needs a key of the client', async (t) => {
    for (const one of [bare, spa]) {
      const { request } = await sign(one, KEYS.ec)
      const page = await browser().open(toUrl(one, { request, redirect_uri: one.redirect_uri }))
      t.equal(page.left?.searchParams.get('error'), 'invalid_request_object')
      t.match(await post('par', { request }, one), { status: 400, body: { error: 'invalid_request_object' } })
    }
    const plain = askCode(app)
    t.equal((await redeem(app, await signIn(harness, plain.url), plain.verifier)).status, 200, 'a client with keys may also sign nothing')
    const { request } = await sign(app, KEYS.ec)
    await setKeys(app, [KEYS.ed])
    const page = await browser().open(toUrl(app, { request, redirect_uri: app.redirect_uri }))
    t.equal(page.left?.searchParams.get('error'), 'invalid_request_object', 'a key that was removed')
  })
})

eachStore(t, 'a client that signs all its requests', async (t, start) => {
  const harness = await start()
  const { post, register, browser, kit } = harness
  const { issuer, setKeys, sign, redeem } = await open(harness)
  const { clients, store } = kit.app.identity
  const admin = { user_id: harness.user.user_id, isAdmin: true }
  const app = await register({ redirectUris: ['https://app.example/cb', 'https://app.example/other'] })
  const toParams = (asked = askCode(app)) => Object.fromEntries(new URL(asked.url, issuer).searchParams)
  const set = async (data: object) => await clients.patch(app.client_id, { data }, admin)
  const early = await post('par', toParams(), app)
  await setKeys(app, [KEYS.ec], { signedRequests: 'required' })
  t.match(await clients.require(app.client_id, admin), { signedRequests: 'required' })
  const REFUSED = { status: 400, body: { error: 'invalid_request' } }

  for (const [name, params] of Object.entries<Record<string, string>>({
    'as it is': {}, 'to another registered URI': { redirect_uri: 'https://app.example/other' }, 'with other scopes': { scope: 'openid write' }, 'without a page': { prompt: 'none' }, 'with an empty signature': { request: '' }
  })) {
    const page = await browser().open(askCode(app, params).url)
    t.match([page.left?.origin, page.left?.searchParams.get('error')], ['https://app.example', 'invalid_request'], name)
    t.match(await post('par', { ...toParams(), ...params }, app), REFUSED, `${name}, pushed`)
  }
  t.match(await post('device_authorization', { scope: 'openid' }, app), REFUSED, 'of a device')
  const late = await browser().open(toUrl(app, { request_uri: String(early.body.request_uri), redirect_uri: app.redirect_uri, response_type: 'code' }))
  t.match([early.status, late.left?.searchParams.get('error')], [201, 'invalid_request'], 'pushed without a signature before')
  t.equal(await store.collection<Document>('interactions').count(), 0)

  const signed = await sign(app, KEYS.ec)
  t.equal((await redeem(app, await signIn(harness, toUrl(app, { request: signed.request })), signed.verifier)).status, 200, 'signed')
  const pushed = await sign(app, KEYS.ec)
  const { body: { request_uri } } = await post('par', { request: pushed.request }, app)
  t.equal((await redeem(app, await signIn(harness, toUrl(app, { request_uri: String(request_uri) })), pushed.verifier)).status, 200, 'signed and pushed')

  await set({ jwks: { keys: [] } })
  const { request } = await sign(app, KEYS.ec)
  t.equal((await browser().open(toUrl(app, { request, redirect_uri: app.redirect_uri }))).left?.searchParams.get('error'), 'invalid_request_object', 'without keys no request passes')
  await set({ name: 'Renamed' })
  const NO_KEYS = { code: 'ErrParam', message: 'signedRequests: must be optional for a client without keys' }
  await t.rejects(set({ tokenAuth: 'none', grants: ['code'] }), NO_KEYS, 'a public client has none')
  await t.rejects(set({ signedRequests: 'required' }), NO_KEYS)
  await t.rejects(clients.create({ data: { redirectUris: [], scopes: [], name: 'c', signedRequests: 'required' } }, admin), NO_KEYS)
  await set({ signedRequests: 'optional' })
  const plain = askCode(app)
  t.equal((await redeem(app, await signIn(harness, plain.url), plain.verifier)).status, 200, 'optional again')
  t.notOk('signedRequests' in (await clients.require(app.client_id, admin)) && (await clients.require(app.client_id, admin)).signedRequests)
})

eachStore(t, 'a signed request of a client of FAPI 2.0', async (t, start) => {
  const harness = await start()
  const { post, register, browser } = harness
  const { issuer, setKeys, sign } = await open(harness)
  const app = await register()
  await setKeys(app, [KEYS.ec, KEYS.rsa], { tokenAuth: 'private_key_jwt', profile: 'fapi2' })
  const push = async (fields: Record<string, string>) => await post('par', { ...fields, ...toFields(await assert(app.client_id, issuer, KEYS.ec)) })
  const life = (seconds: number) => ({ nbf: now(), exp: now() + seconds })

  const { body: { request_uri } } = await push({ request: (await sign(app, KEYS.ec, life(60))).request })
  t.ok((await signIn(harness, toUrl(app, { request_uri: String(request_uri) }))).left?.searchParams.get('code'), 'pushed')
  t.equal((await push({ request: (await sign(app, { ...KEYS.rsa, alg: 'PS256' }, life(3600))).request })).status, 201)
  t.equal((await push(Object.fromEntries(new URL(askCode(app).url, issuer).searchParams))).status, 201, 'and without a signature')
  for (const [name, { request }] of Object.entries({
    RS256: await sign(app, KEYS.rsa, life(60)),
    'no nbf': await sign(app, KEYS.ec),
    'an hour and a second': await sign(app, KEYS.ec, life(3601)),
    'an nbf after the exp': await sign(app, KEYS.ec, { nbf: now() + 40, exp: now() + 30 })
  })) t.match(await push({ request }), { status: 400, body: { error: 'invalid_request_object' } }, name)
  const { request } = await sign(app, KEYS.ec, life(60))
  const page = await browser().open(toUrl(app, { request, redirect_uri: app.redirect_uri }))
  t.equal(page.left?.searchParams.get('error'), 'invalid_request', 'it must be pushed')
  const early = await push(Object.fromEntries(new URL(askCode(app).url, issuer).searchParams))
  await setKeys(app, [KEYS.ec], { signedRequests: 'required' })
  t.match(await push(Object.fromEntries(new URL(askCode(app).url, issuer).searchParams)), { status: 400, body: { error: 'invalid_request' } }, 'FAPI 2.0 Message Signing: each is signed')
  const late = await browser().open(toUrl(app, { request_uri: String(early.body.request_uri), redirect_uri: app.redirect_uri, response_type: 'code' }))
  t.equal(late.left?.searchParams.get('error'), 'invalid_request', 'what was pushed before too')
  const { body } = await push({ request: (await sign(app, KEYS.ec, life(60))).request })
  t.ok((await signIn(harness, toUrl(app, { request_uri: String(body.request_uri) }))).left?.searchParams.get('code'), 'signed and pushed')
})
