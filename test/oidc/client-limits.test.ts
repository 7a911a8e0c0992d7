import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import type { ClientKey, ClientRecord } from '../../lib/records/client.ts'
import { type TestKey, assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { type App, type Harness, askCode, eachStore } from './harness.ts'

// What strangers and owners of clients can make the service verify: the cost of a key, the keys for one signature, and the failures a minute.

const KEYS = { rsa: createTestKey('RS256', 'rsa'), ec: createTestKey('ES256', 'ec') }
const STRANGER = createTestKey('ES256')
const [HERE, THERE] = ['192.0.2.1', '198.51.100.1']

async function open ({ kit, register, url, user }: Harness) {
  const { clients, store } = kit.app.identity
  const admin = { user_id: user.user_id, isAdmin: true }
  const { issuer } = await (await fetch(`${url}/.well-known/openid-configuration`)).json() as { issuer: string }
  const records = store.collection<ClientRecord>('clients')
  const toHeader = ({ client_id, client_secret }: App, secret = client_secret) => `Basic ${Buffer.from(`${client_id}:${secret}`).toString('base64')}`
  return {
    issuer,
    records,
    toHeader,
    async withKeys (keys: TestKey[], tokenAuth: 'private_key_jwt' | 'secret' = 'private_key_jwt'): Promise<App> {
      const app = await register({ first_party: false })
      await clients.patch(app.client_id, { data: { tokenAuth, jwks: { keys: keys.map(({ jwk }) => jwk) } } }, admin)
      return app
    },
    /** Sends a form from an address. */
    async send (path: string, fields: object, remoteAddress: string, headers: Record<string, string> = {}) {
      const payload = String(new URLSearchParams(fields as Record<string, string>))
      const reply = await kit.inject({ method: 'POST', url: `/api/v1/auth/${path}`, remoteAddress, headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers }, payload })
      return { status: reply.statusCode, headers: reply.headers, body: reply.json<Record<string, unknown>>() }
    }
  }
}

eachStore(t, 'a key that costs too much', async (t, start) => {
  const harness = await start()
  const { clients } = harness.kit.app.identity
  const { withKeys, records, issuer, send } = await open(harness)
  const admin = { user_id: harness.user.user_id, isAdmin: true }
  const app = await withKeys([KEYS.rsa])
  const long = { kty: 'RSA', n: KEYS.rsa.jwk.n!, e: KEYS.rsa.jwk.n! }
  await t.rejects(clients.addKeys(app.client_id, { keys: [long] }, admin), { code: 'ErrParam', message: 'jwks: keys[0] must be an RSA key of 2048 to 4096 bits, with an odd exponent from 3 to 32 bits' })
  const token = async () => await send('token', { grant_type: 'client_credentials', ...toFields(await assert(app.client_id, issuer, KEYS.rsa)) }, HERE)
  t.equal((await token()).status, 200)
  const [known] = (await records.get(app.client_id))!.keys as [ClientKey]
  // Its signatures are right, and an earlier release has stored it.
  const large = generateKeyPairSync('rsa', { modulusLength: 4104 })
  const jwk = { ...large.publicKey.export({ format: 'jwk' }) as Record<string, string>, kid: 'large' }
  await records.update(app.client_id, { set: { keys: [known, { id: 'large', jwk, created_at: known.created_at }] as never } })
  const key = { alg: 'RS256', privateKey: large.privateKey }
  t.match(await send('token', { grant_type: 'client_credentials', ...toFields(await assert(app.client_id, issuer, key, {}, { kid: 'large' })) }, HERE), { status: 401, body: { error: 'invalid_client' } })
  const params = Object.fromEntries(new URL(askCode(app).url, issuer).searchParams)
  const request = await assert(app.client_id, issuer, key, { sub: undefined, ...params }, { kid: 'large' })
  const page = await harness.browser().open(`/api/v1/auth/authorize?${new URLSearchParams({ client_id: app.client_id, request })}`)
  t.equal(page.error, 'invalid_request_object')
  t.equal((await token()).status, 200, 'the other key is of use as before')
})

eachStore(t, 'a signature without kid', async (t, start) => {
  const harness = await start()
  const { kit } = harness
  const { clients } = kit.app.identity
  const { withKeys, issuer, send } = await open(harness)
  const admin = { user_id: harness.user.user_id, isAdmin: true }
  const keys = ['one', 'two', 'three', 'four'].map((kid) => createTestKey('ES256', kid))
  const app = await withKeys([KEYS.rsa])
  for (const key of keys) {
    kit.clock.advance(1_000)
    await clients.addKeys(app.client_id, { keys: [key.jwk] }, admin)
  }
  const { client_id } = app
  const ask = async (key: TestKey, path = 'token', header = {}) => await send(path, { grant_type: 'client_credentials', token: 'x', ...toFields(await assert(client_id, issuer, key, {}, header)) }, HERE)
  const sign = async (key: TestKey, header = {}) => await assert(client_id, issuer, key, { sub: undefined, ...Object.fromEntries(new URL(askCode(app).url, issuer).searchParams) }, header)
  const authorize = async (request: string) => await harness.browser().open(`/api/v1/auth/authorize?${new URLSearchParams({ client_id, request })}`)
  for (const [index, key] of keys.entries()) {
    const isTried = index >= 2
    for (const path of ['token', 'introspect']) {
      t.equal((await ask(key, path, { kid: key.jwk.kid })).status, 200, `${path}: key ${index} with its kid`)
      t.match(await ask(key, path), isTried ? { status: 200 } : { status: 401, body: { error: 'invalid_client', error_description: /only the 2 newest keys .*send the kid/ } }, `${path}: key ${index} without kid`)
    }
    t.equal((await authorize(await sign(key, { kid: key.jwk.kid }))).title, 'Sign in')
    const page = await authorize(await sign(key))
    if (isTried) t.equal(page.title, 'Sign in')
    else t.match(page, { error: 'invalid_request_object', text: /only the 2 newest keys .*send the kid/ })
  }
  t.equal((await ask(KEYS.rsa)).status, 200, 'the newest of its own algorithm')
  t.match(await ask(STRANGER, 'token', { kid: 'four' }), { status: 401, body: { error_description: 'client authentication failed' } })
  const pushed = await send('par', { request: await sign(keys[0]!, { kid: 'one' }), ...toFields(await assert(client_id, issuer, keys[3]!)) }, HERE)
  t.equal(pushed.status, 201, 'two keys in one request')
  t.match(await send('par', { request: await sign(keys[0]!), ...toFields(await assert(client_id, issuer, keys[3]!)) }, HERE), { status: 400, body: { error: 'invalid_request_object', error_description: /send the kid/ } })
})

eachStore(t, 'failures of one client', async (t, start) => {
  const harness = await start()
  const { kit } = harness
  const { withKeys, issuer, send, toHeader } = await open(harness)
  const LIMITED = { status: 429, headers: { 'retry-after': /^\d+$/ }, body: { error: 'temporarily_unavailable', error_description: /^too many attempts to authenticate this client have failed, try again in \d+ s$/ } }
  const signed = await withKeys([KEYS.ec])
  const plain = await harness.register()
  const other = await harness.register()
  const open_ = await harness.register({ public: true })
  const paths = ['token', 'introspect', 'revoke', 'par', 'device_authorization']
  const fields = { grant_type: 'client_credentials', token: 'x' }
  const byKey = async (key: TestKey, address: string, path = 'token') => await send(path, { ...fields, ...toFields(await assert(signed.client_id, issuer, key)) }, address)
  const bySecret = async (secret: string | undefined, address: string, path = 'token', app = plain) => await send(path, fields, address, { authorization: toHeader(app, secret) })

  for (const [name, wrong, right] of [
    ['assertions', async (address: string, path?: string) => await byKey(STRANGER, address, path), async (address: string) => await byKey(KEYS.ec, address)],
    ['secrets', async (address: string, path?: string) => await bySecret('wrong', address, path), async (address: string) => await bySecret(undefined, address)]
  ] as const) {
    await t.test(`${name}: sixty a minute and network, at all endpoints together, before anything is verified`, async (t) => {
      for (let count = 0; count < 60; count++) {
        t.match(await wrong(HERE, paths[count % paths.length]), { status: 401, body: { error: 'invalid_client' } })
        if (count % 20 === 0) t.equal((await right(HERE)).status, 200, 'what succeeds is not counted')
      }
      for (const path of paths) t.match(await wrong(HERE, path), LIMITED, path)
      t.match(await right(HERE), LIMITED, 'a right one is not told from a wrong one')
      t.equal((await right(THERE)).status, 200, 'nobody keeps the client out elsewhere')
      t.equal((await bySecret(undefined, HERE, 'token', other)).status, 200, 'other clients go on')
      kit.clock.advance(60_000)
      t.equal((await right(HERE)).status, 200)
    })
  }

  await t.test('a /64 of IPv6 has sixty, and a /48 six hundred', async (t) => {
    for (let count = 0; count < 60; count++) await bySecret('wrong', `2001:db8:1:1::${count}`)
    t.match(await bySecret(undefined, '2001:db8:1:1:ffff::1'), LIMITED)
    for (let count = 60; count < 600; count++) await bySecret('wrong', `2001:db8:1:${count}::1`)
    t.match(await bySecret(undefined, '2001:db8:1:2::1'), LIMITED)
    t.equal((await bySecret(undefined, '2001:db8:2:1::1')).status, 200)
    kit.clock.advance(60_000)
  })

  await t.test('a client that nobody knows, and one that does not authenticate, have none', async (t) => {
    for (let count = 0; count < 70; count++) t.equal((await bySecret('wrong', HERE, 'token', { ...plain, client_id: 'made-up' })).status, 401)
    for (let count = 0; count < 70; count++) t.match(await send('introspect', { client_id: open_.client_id, token: 'x' }, HERE), { status: 200 })
  })

  await t.test('a hundred at once: few are judged, and the rest is refused', async (t) => {
    const outcomes = await Promise.all(Array.from({ length: 100 }, async () => (await byKey(STRANGER, HERE)).status))
    const refused = outcomes.filter((status) => status === 401).length
    t.ok(refused >= 60 && refused < 70, String(refused))
    kit.clock.advance(60_000)
  })

  await t.test('signed requests have sixty of their own', async (t) => {
    const params = Object.fromEntries(new URL(askCode(signed).url, issuer).searchParams)
    const ask = async (key: TestKey, remoteAddress: string) => {
      const request = await assert(signed.client_id, issuer, key, { sub: undefined, ...params })
      return await kit.inject({ url: `/api/v1/auth/authorize?${new URLSearchParams({ client_id: signed.client_id, request })}`, remoteAddress, headers: { accept: 'text/html' } })
    }
    for (let count = 0; count < 60; count++) t.match((await ask(STRANGER, HERE)).body, /invalid_request_object/)
    const limited = await ask(KEYS.ec, HERE)
    t.match([limited.statusCode, limited.headers['retry-after'], limited.body], [429, /^\d+$/, /too many requests of this client had a wrong signature/])
    t.equal((await ask(KEYS.ec, THERE)).statusCode, 303)
    t.equal((await byKey(KEYS.ec, HERE)).status, 200, 'the client itself is not kept out')
    kit.clock.advance(60_000)
    t.equal((await ask(KEYS.ec, HERE)).statusCode, 303)
  })
})
