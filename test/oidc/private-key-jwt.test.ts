import { createHmac, createPublicKey } from 'node:crypto'
import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import { type TestKey, assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { startIdentity } from '../../testing/index.ts'
import { type App, type Harness, createFile, eachStore, startHarness } from './harness.ts'

// RFC 7523: clients authenticate by assertions that they sign.

/** All endpoints that authenticate clients. */
const ENDPOINTS = {
  token: { grant_type: 'client_credentials' },
  introspect: { token: 'x' },
  revoke: { token: 'x' },
  par: { response_type: 'code', redirect_uri: 'https://app.example/cb', code_challenge: 'c'.repeat(43), code_challenge_method: 'S256' },
  device_authorization: {}
}

const KEYS = { rsa: createTestKey('RS256', 'rsa'), ec: createTestKey('ES256', 'ec'), ed: createTestKey('EdDSA', 'ed') }
const STRANGER = createTestKey('ES256', 'ec')

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

async function open (harness: Harness) {
  const { kit, register } = harness
  const { clients } = kit.app.identity
  const admin = { user_id: harness.user.user_id, isAdmin: true }
  const withKeys = async (keys: TestKey[]): Promise<App> => {
    const app = await register()
    await clients.patch(app.client_id, { data: { tokenAuth: 'private_key_jwt', jwks: { keys: keys.map(({ jwk }) => jwk) } } }, admin)
    return app
  }
  const issuer = String((await (await fetch(`${harness.url}/.well-known/openid-configuration`)).json() as { issuer: string }).issuer)
  return { clients, admin, withKeys, issuer, records: kit.app.identity.store.collection<ClientRecord>('clients') }
}

eachStore(t, 'one judge of assertions for all endpoints', async (t, start) => {
  const harness = await start()
  const { url, post, register } = harness
  const { withKeys, issuer, records, clients, admin } = await open(harness)
  const app = await withKeys(Object.values(KEYS))
  const other = await withKeys([STRANGER])
  const { client_id } = app
  const now = () => Math.floor(Date.now() / 1000)
  const token = `${issuer}/api/v1/auth/token`
  t.equal((await (await fetch(`${url}/.well-known/openid-configuration`)).json() as { token_endpoint: string }).token_endpoint, token)

  type Make = () => Promise<string> | string
  /** @param claims a function: read when the assertion is made, because it is about the time */
  const of = (key: TestKey, claims: object | (() => object) = {}, header: object = {}): Make =>
    async () => await assert(client_id, issuer, key, typeof claims === 'function' ? (claims as () => object)() : claims, header)
  const ec = (claims: object | (() => object), header: object = {}) => of(KEYS.ec, claims, header)
  const unsigned = (header: object, secret?: string | Buffer): Make => () => {
    const text = `${encode(header)}.${encode({ iss: client_id, sub: client_id, aud: issuer, jti: String(Math.random()), iat: now(), exp: now() + 60 })}`
    return `${text}.${secret === undefined ? '' : createHmac('sha256', secret).update(text).digest('base64url')}`
  }
  const pem = createPublicKey({ key: KEYS.rsa.jwk, format: 'jwk' }).export({ format: 'pem', type: 'spki' })

  const good: Record<string, Make> = {
    RS256: of(KEYS.rsa),
    PS256: of({ ...KEYS.rsa, alg: 'PS256' }),
    ES256: of(KEYS.ec),
    EdDSA: of(KEYS.ed),
    Ed25519: of({ ...KEYS.ed, alg: 'Ed25519' }),
    'the kid of the key': ec({}, { kid: 'ec' }),
    'the token endpoint as audience': ec({ aud: token }),
    'an array of one audience': ec({ aud: [issuer] }),
    'an exp in an hour': ec(() => ({ exp: now() + 3600 })),
    'an exp 10 s ago': ec(() => ({ iat: now() - 60, exp: now() - 10 })),
    'an iat 305 s ago': ec(() => ({ iat: now() - 305, exp: now() + 3600 })),
    'an iat and nbf 50 s ahead': ec(() => ({ iat: now() + 50, nbf: now() + 50, exp: now() + 3600 })),
    'a typ': ec({}, { typ: 'client-authentication+jwt' }),
    // Nobody but the client's record says which keys it has.
    'a jwk of another key in the header': ec({}, { jwk: STRANGER.jwk }),
    'a jku and an x5c in the header': ec({}, { jku: 'https://evil.example/keys', x5c: ['x'], x5u: 'https://evil.example/x' })
  }
  const bad: Record<string, Make> = {
    'an exp 20 s ago': ec(() => ({ iat: now() - 60, exp: now() - 20 })),
    'an iat 320 s ago, and a later exp': ec(() => ({ iat: now() - 320, exp: now() + 3600 })),
    // A second may pass until it is read.
    'an iat 61 s ahead': ec(() => ({ iat: now() + 66, exp: now() + 3600 })),
    'an nbf 61 s ahead': ec(() => ({ nbf: now() + 66, exp: now() + 3600 })),
    'no exp': ec({ exp: undefined }),
    'no iat': ec({ iat: undefined }),
    'no jti': ec({ jti: undefined }),
    'an empty jti': ec({ jti: '' }),
    'a jti that is a number': ec({ jti: 7 }),
    'no iss': ec({ iss: undefined }),
    'another iss': ec({ iss: other.client_id }),
    'no aud': ec({ aud: undefined }),
    'another aud': ec({ aud: 'https://evil.example' }),
    'an aud with a slash': ec({ aud: `${issuer}/` }),
    'two audiences': ec({ aud: [issuer, token] }),
    'two audiences, one of another server': ec({ aud: [issuer, 'https://evil.example'] }),
    'no audience in an array': ec({ aud: [] }),
    'the introspection endpoint': ec({ aud: `${issuer}/api/v1/auth/introspect` }),
    'the PAR endpoint': ec({ aud: `${issuer}/api/v1/auth/par` }),
    'the revocation endpoint': ec({ aud: `${issuer}/api/v1/auth/revoke` }),
    'times that are texts': ec(() => ({ iat: String(now()), exp: String(now() + 60) })),
    'a key of nobody': of(STRANGER),
    'a key of nobody with a kid of ours': of(STRANGER, {}, { kid: 'ec' }),
    'a key of nobody, in the header': of(STRANGER, {}, { jwk: STRANGER.jwk, kid: undefined }),
    'an unknown kid': ec({}, { kid: 'none' }),
    'the kid of another key of the client': ec({}, { kid: 'rsa' }),
    'a signature of another key type': of({ ...KEYS.ed, alg: 'EdDSA' }, {}, { kid: 'ec' }),
    RS512: of({ ...KEYS.rsa, alg: 'RS512' }),
    'alg none': unsigned({ alg: 'none' }),
    'alg none with the kid': unsigned({ alg: 'none', kid: 'rsa' }),
    'HS256 with the public key': unsigned({ alg: 'HS256', kid: 'rsa' }, pem),
    'HS256 with the modulus': unsigned({ alg: 'HS256', kid: 'rsa' }, Buffer.from(KEYS.rsa.jwk.n!, 'base64url')),
    'HS256 with the former secret': unsigned({ alg: 'HS256' }, app.client_secret),
    'an unknown critical header': async () => {
      const [, payload, signature] = (await assert(client_id, issuer, KEYS.ec)).split('.')
      return `${encode({ alg: 'ES256', crit: ['x'], x: 1 })}.${payload}.${signature}`
    },
    'a text that is too long': ec({ more: 'x'.repeat(9000) }),
    'an assertion of another client': async () => await assert(other.client_id, issuer, KEYS.ec),
    'a client that is not known': async () => await assert('nobody', issuer, KEYS.ec),
    'a sub of another client': ec({ sub: other.client_id }),
    'a sub that is an object': ec({ sub: { a: 1 } }),
    'no sub': ec({ sub: undefined }),
    'a changed payload': async () => {
      const [header, , signature] = (await assert(client_id, issuer, KEYS.ec)).split('.')
      return `${header}.${encode({ iss: client_id, sub: client_id, aud: issuer, jti: 'changed', iat: now(), exp: now() + 60 })}.${signature}`
    }
  }
  async function judge (make: Make, fields: object = {}): Promise<string[]> {
    const outcomes = await Promise.all(Object.entries(ENDPOINTS).map(async ([path, own]) => {
      const { status, body } = await post(path, { ...own, ...toFields(await make()), ...fields })
      const isRefused = body.error === 'invalid_client' || /mechanism|mismatch|client_assertion/.test(String(body.error_description))
      return isRefused ? `${status} ${body.error}` : 'authenticated'
    }))
    return [...new Set(outcomes)]
  }

  for (const [name, make] of Object.entries(good)) {
    t.strictSame(await judge(make), ['authenticated'], name)
    t.strictSame(await judge(make, { client_id }), ['authenticated'], `${name}, and the id in the form`)
  }
  for (const [name, make] of Object.entries(bad)) {
    // Sixty failures a minute are counted.
    harness.kit.clock.advance(60_000)
    t.strictSame(await judge(make), ['401 invalid_client'], name)
  }

  const forms: Record<string, object> = {
    'another id in the form': { client_id: other.client_id },
    'no type': { client_assertion_type: '' },
    'another type': { client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer' },
    'a secret too': { client_id, client_secret: app.client_secret },
    'no JWT': { client_assertion: 'a.b.c' }
  }
  for (const [name, fields] of Object.entries(forms)) t.strictSame(await judge(good.ES256!, fields), ['400 invalid_request'], name)

  // The way that the client declares decides.
  const open_ = await register({ public: true })
  const plain = await register()
  for (const { client_id: id } of [open_, plain]) {
    await records.update(id, { set: { keys: (await records.get(client_id))!.keys as never } })
    t.strictSame(await judge(async () => await assert(id, issuer, KEYS.ec)), ['401 invalid_client'])
  }
  const until = new Date(harness.kit.clock.now() + 60_000).toISOString()
  await records.update(plain.client_id, { set: { tokenAuth: 'secret', former_auth: { method: 'private_key_jwt', until } } })
  t.strictSame(await judge(async () => await assert(plain.client_id, issuer, KEYS.ec)), ['authenticated'], 'the former way within its time')
  t.equal((await post('token', ENDPOINTS.token, plain)).status, 200, 'and its secret')
  await clients.patch(client_id, { data: { disabled: true } }, admin)
  t.strictSame(await judge(good.ES256!), ['401 invalid_client'], 'a disabled client')
})

eachStore(t, 'an assertion is good once, at whichever endpoint and process', async (t, start) => {
  const harness = await start()
  const { kit, post } = harness
  const { withKeys, issuer } = await open(harness)
  const { client_id } = await withKeys([KEYS.ec])
  const other = await withKeys([KEYS.rsa])
  const send = async (path: keyof typeof ENDPOINTS, assertion: string, from = post) => await from(path, { ...ENDPOINTS[path], ...toFields(assertion) })
  for (const first of ['token', 'introspect'] as const) {
    for (const second of ['token', 'introspect', 'par', 'revoke'] as const) {
      const assertion = await assert(client_id, issuer, KEYS.ec)
      t.equal((await send(first, assertion)).status, 200)
      t.match(await send(second, assertion), { status: 401, body: { error: 'invalid_client' } }, `${first}, then ${second}`)
    }
  }
  const raced = await assert(client_id, issuer, KEYS.ec)
  const outcomes = await Promise.all([...Array(10)].map(async (_, index) => (await send(index % 2 === 0 ? 'token' : 'introspect', raced)).status))
  t.strictSame(outcomes.toSorted(), [200, ...Array(9).fill(401)], 'one of ten at once')

  const jti = 'the same'
  t.equal((await send('token', await assert(client_id, issuer, KEYS.ec, { jti }))).status, 200)
  t.equal((await send('token', await assert(client_id, issuer, KEYS.ec, { jti, iat: Math.floor(Date.now() / 1000) - 1 }))).status, 401, 'the jti of another assertion')
  t.equal((await send('token', await assert(other.client_id, issuer, KEYS.rsa, { jti }))).status, 200, 'another client has its own')
  const refused = await assert(client_id, issuer, KEYS.rsa, { jti: 'kept' })
  t.equal((await send('token', refused)).status, 401)
  t.equal((await send('token', await assert(client_id, issuer, KEYS.ec, { jti: 'kept' }))).status, 200, 'what nobody signed uses up no jti')

  const rows = await Array.fromAsync(kit.app.identity.store.collection<{ id: string, expired_at: string }>('proofs').stream({}))
  const latest = Math.max(...rows.flat().map(({ expired_at }) => Date.parse(expired_at)))
  t.ok(latest <= kit.clock.now() + 6 * 60_000, 'a row lives six minutes at most')
  t.equal((await send('token', await assert(client_id, issuer, KEYS.ec, { exp: Math.floor(Date.now() / 1000) + 86_400 }))).status, 200)
  const after = await Array.fromAsync(kit.app.identity.store.collection<{ id: string, expired_at: string }>('proofs').stream({}))
  t.ok(Math.max(...after.flat().map(({ expired_at }) => Date.parse(expired_at))) <= kit.clock.now() + 6 * 60_000, 'however late its exp is')
})

t.test('two processes share what was used', async (t) => {
  const issuer = 'https://id.example'
  const options = { t, rateLimit: false as const, database: createFile(t), oidc: { issuer } }
  const [first, second] = [await startIdentity(options), await startIdentity(options)]
  const { users, clients } = first.app.identity
  const admin = { user_id: (await users.create({ data: { account: 'ann@example.com', password: 'correct horse' } })).user_id, isAdmin: true }
  const { clientId } = await clients.create({ data: { name: 'n', redirectUris: [], scopes: ['a'], tokenAuth: 'private_key_jwt', jwks: { keys: [KEYS.ec.jwk] } } }, admin)
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const path of ['token', 'introspect'] as const) {
    const payload = String(new URLSearchParams({ ...ENDPOINTS[path], ...toFields(await assert(clientId, issuer, KEYS.ec)) }))
    const outcomes = await Promise.all([first, second, first, second].map(async (kit) => (await kit.inject({ method: 'POST', url: `/api/v1/auth/${path}`, headers, payload })).statusCode))
    t.strictSame(outcomes.toSorted(), [200, 401, 401, 401])
  }
})

t.test('a token names the key that got it, and lives no longer than the client has that key', async (t) => {
  const harness = await startHarness(t)
  const { kit, post } = harness
  const { withKeys, issuer, clients, admin, records } = await open(harness)
  const { client_id } = await withKeys([KEYS.ec, KEYS.rsa])
  const get = async (key: TestKey) => String((await post('token', { ...ENDPOINTS.token, ...toFields(await assert(client_id, issuer, key)) })).body.access_token)
  const [one, two] = [await get(KEYS.ec), await get(KEYS.rsa)]
  const alive = async (token: string) => (await post('introspect', { token, ...toFields(await assert(client_id, issuer, KEYS.rsa)) })).body.active
  const [ec] = await clients.listKeys(client_id, admin)
  t.equal((await kit.app.identity.store.collection<TokenRecord>('access_tokens').get(hashToken(one)))?.auth_id, ec!.id)
  t.match(ec, { kid: 'ec', algorithms: ['ES256'], lastUsedAt: String })
  t.strictSame([await alive(one), await alive(two)], [true, true])
  const { epoch } = (await records.get(client_id))!
  await clients.removeKey(client_id, 'ec', admin)
  t.strictSame([await alive(one), await alive(two)], [false, true])
  t.equal((await records.get(client_id))!.epoch, epoch)
  t.equal((await harness.get('tokeninfo', one)).status, 401)
  t.equal((await post('token', { ...ENDPOINTS.token, ...toFields(await assert(client_id, issuer, KEYS.ec)) })).status, 401)
  const types = (await kit.events.list({ client: client_id })).map(({ type }) => type)
  t.equal(types.filter((type) => type === 'client.keys_changed').length, 2)
  await clients.patch(client_id, { data: { jwks: { keys: [] } } }, admin)
  t.match(await clients.require(client_id, admin), { jwks: undefined, confidential: undefined, tokenAuth: 'private_key_jwt' })
  t.equal(await (async () => (await harness.get('tokeninfo', two)).status)(), 401)
})
