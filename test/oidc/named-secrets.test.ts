import t from 'tap'
import { crc32 } from 'node:zlib'
import { toChecksum } from '../../lib/crypto/prefixed-secret.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import { type App, eachStore } from './harness.ts'

interface Secret { id: string, name: string, last4?: string, createdAt?: string, expiresAt?: string, lastUsedAt?: string }

const DAY = 24 * 60 * 60 * 1000

t.test('the checksum of a secret', async (t) => {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  for (const text of ['', 'a', 'x'.repeat(43), '0123456789']) {
    t.equal([...toChecksum(text)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0), crc32(text))
    t.equal(toChecksum(text).length, 6)
  }
  t.equal(toChecksum('123456789'), '3jZRME', '0xCBF43926, the check value of CRC-32')
})

eachStore(t, 'named secrets', async (t, start) => {
  const harness = await start()
  const { kit, post, user } = harness
  const { identity } = kit.app
  const records = identity.store.collection<ClientRecord>('clients')
  const sign = async (user_id: string, client_id: string, scopes?: string[]) => ({ authorization: `Bearer ${(await identity.tokens.mint({ user_id, client_id, ...(scopes && { scopes }) })).access_token}` })
  const app = await harness.register({ first_party: false })
  const other = await harness.register({ first_party: false })
  const headers = await sign(user.user_id, other.client_id)
  const call = async (method: 'GET' | 'POST' | 'DELETE' | 'PATCH', id: string, path = '', payload?: object, more: object = headers) => {
    const reply = await kit.inject({ method, url: `/api/v1/client/${id}${path}`, headers: { ...more }, ...(payload && { payload }) })
    return { status: reply.statusCode, tag: String(reply.headers.etag), body: reply.body === '' ? undefined : JSON.parse(reply.body) as { data: never, message: string } }
  }
  const add = async (data: object, id = app.client_id) => (await call('POST', id, '/secret', { data })).body!.data as { id: string, secret: string }
  const list = async (id = app.client_id) => (await call('GET', id, '/secret')).body!.data as Secret[]
  const get = async (secret: string, of: App = app) => await post('token', { grant_type: 'client_credentials' }, { ...of, client_secret: secret })
  const works = async (token: string) => (await harness.get('tokeninfo', token)).status === 200

  await t.test('a secret is shown once, and the others go on', async (t) => {
    const { id, secret } = await add({ name: 'Nightly' })
    t.match(secret, /^fi_sec_[0-9A-Za-z]{49}$/)
    t.equal(secret.slice(-6), toChecksum(secret.slice(7, -6)))
    const stored = JSON.stringify(await records.get(app.client_id))
    t.notOk(stored.includes(secret) || stored.includes(secret.slice(7, 30)))
    t.match(stored, hashToken(secret))
    const [first, named, ...none] = await list()
    t.strictSame(none, [])
    t.strictSame(first, { id: 'first', name: 'first' })
    t.match(named, { id, name: 'Nightly', last4: secret.slice(-4), createdAt: String, expiresAt: undefined, lastUsedAt: undefined })
    t.equal((await get(secret)).status, 200)
    t.equal((await get(app.client_secret)).status, 200)
    t.notMatch(JSON.stringify(await call('GET', app.client_id)), /Nightly/, 'the client itself is as before')
    const now = new Date(kit.clock.now()).toISOString()
    t.match((await list()).map(({ lastUsedAt }) => lastUsedAt?.slice(0, 16)), [now.slice(0, 16), now.slice(0, 16)])
    await call('DELETE', app.client_id, `/secret/${id}`)
  })

  await t.test('removing a secret ends the tokens that it got, and no others', async (t) => {
    const { id, secret } = await add({ name: 'a' })
    const kept = await add({ name: 'b' })
    const [mine, others] = [String((await get(secret)).body.access_token), String((await get(kept.secret)).body.access_token)]
    const refresh = await kit.mint({ user: user.account, client: app.client_id, refresh: true })
    const before = await records.get(app.client_id)
    t.strictSame([await works(mine), await works(others)], [true, true])
    t.equal((await call('DELETE', app.client_id, `/secret/${id}`)).status, 204)
    t.strictSame([await works(mine), await works(others), await works(refresh.access_token)], [false, true, true])
    t.equal((await get(secret)).status, 401)
    t.equal((await records.get(app.client_id))?.epoch, before?.epoch, 'no epoch moves')
    const after = await post('token', { grant_type: 'refresh_token', refresh_token: refresh.refresh_token! }, { ...app, client_secret: kept.secret })
    t.equal(after.status, 200, 'a session goes on with another secret')
    for (const collection of ['grants', 'refresh_tokens']) {
      for await (const batch of identity.store.collection<TokenRecord>(collection).stream()) t.ok(batch.every((record) => !('auth_id' in record)), collection)
    }
    t.equal((await call('DELETE', app.client_id, `/secret/${id}`)).status, 404)
    await call('DELETE', app.client_id, `/secret/${kept.id}`)
  })

  await t.test('an expired secret authenticates no request, and ends no token', async (t) => {
    const soon = await add({ name: 'soon', expiresAt: new Date(kit.clock.now() + 1_000).toISOString() })
    const token = String((await get(soon.secret)).body.access_token)
    kit.clock.advance(2_000)
    t.match(await get(soon.secret), { status: 401, body: { error: 'invalid_client' } })
    t.ok(await works(token))
    for (const [expiresAt, message] of [[new Date(kit.clock.now()).toISOString(), 'expiresAt: must be in the future'], ['tomorrow', /^expiresAt: must be an RFC 3339/]] as const) {
      t.match(await call('POST', app.client_id, '/secret', { data: { name: 'x', expiresAt } }), { status: 400, body: { code: 'ErrParam', message } })
    }
    await call('DELETE', app.client_id, `/secret/${soon.id}`)
  })

  await t.test('bounds', async (t) => {
    const app = await harness.register({ first_party: false })
    for (let count = 0; count < 5; count++) await add({ name: `n${count}` }, app.client_id)
    t.match(await call('POST', app.client_id, '/secret', { data: { name: 'one more' } }), { status: 429, body: { code: 'ErrLimit', message: 'secrets: a client may have at most 5' } })
    for (const name of [' ', 'a\u202eb', 'x'.repeat(257)]) t.match(await call('POST', app.client_id, '/secret', { data: { name } }), { status: 400, body: { code: 'ErrParam' } })
    for (const data of [{}, { name: 'x', secret: 'chosen' }, { name: 'x', hash: 'h' }, { name: 'x', id: 'first' }, { name: 'x', act: { client_id: 'c' } }]) {
      t.match(await call('POST', app.client_id, '/secret', { data }), { status: 400 }, JSON.stringify(data))
    }
    const open = await harness.register({ public: true, first_party: false })
    t.match(await call('POST', open.client_id, '/secret', { data: { name: 'x' } }), { status: 400, body: { message: 'clientId: must be a confidential client: set tokenAuth first' } })
  })

  await t.test('the readable secret is removed like the others, and the client stays confidential', async (t) => {
    const app = await harness.register({ first_party: false })
    const token = String((await get(app.client_secret, app)).body.access_token)
    t.equal((await call('DELETE', app.client_id, '/secret/first')).status, 204)
    t.notOk(await works(token))
    t.strictSame(await list(app.client_id), [])
    t.match(await records.get(app.client_id), { tokenAuth: 'secret', secret: undefined })
    t.match((await call('GET', app.client_id)).body, { data: { confidential: true, clientSecret: undefined } })
    for (const answer of [await get(app.client_secret, app), await post('token', { grant_type: 'client_credentials', client_id: app.client_id }), await post('introspect', { token: 'x', client_id: app.client_id })]) {
      t.match(answer, { status: 401, body: { error: 'invalid_client' } })
    }
    t.match(await call('PATCH', app.client_id, '', { regen_secret: true }), { status: 400, body: { code: 'ErrParam', message: 'regen_secret: the client has no readable secret' } })
    const { secret } = await add({ name: 'next' }, app.client_id)
    t.equal((await get(secret, app)).status, 200)
  })

  await t.test('regen_secret ends the tokens of all secrets, and leaves the named ones', async (t) => {
    const app = await harness.register({ first_party: false })
    const { secret } = await add({ name: 'n' }, app.client_id)
    const token = String((await get(secret, app)).body.access_token)
    t.equal((await call('PATCH', app.client_id, '', { regen_secret: true })).status, 204)
    t.notOk(await works(token))
    t.equal((await get(secret, app)).status, 200)
    t.equal((await get(app.client_secret, app)).status, 401)
  })

  await t.test('If-Match', async (t) => {
    const app = await harness.register({ first_party: false })
    const { tag } = await call('GET', app.client_id, '/secret')
    t.match(tag, /^"[\w-]{16}"$/)
    const by = (match: string) => ({ ...headers, 'if-match': match })
    t.equal((await call('POST', app.client_id, '/secret', { data: { name: 'a' } }, by(tag))).status, 200)
    for (const stale of [tag, '"x"', `W/${tag}`]) {
      t.match(await call('POST', app.client_id, '/secret', { data: { name: 'b' } }, by(stale)), { status: 412, body: { code: 'ErrParam' } })
      t.match(await call('DELETE', app.client_id, '/secret/first', undefined, by(stale)), { status: 412 })
    }
    t.equal((await list(app.client_id)).length, 2)
    t.equal((await call('DELETE', app.client_id, '/secret/first', undefined, by(`"x", ${(await call('GET', app.client_id, '/secret')).tag}`))).status, 204)
    t.equal((await call('POST', app.client_id, '/secret', { data: { name: 'b' } }, by('*'))).status, 200)
  })

  await t.test('who may', async (t) => {
    const { user_id } = await identity.users.create({ data: { account: 'eve', password: 'correct horse' } })
    const stranger = await sign(user_id, other.client_id)
    const reader = await sign(user.user_id, other.client_id, ['clients:read'])
    const vouched = await harness.register({ first_party: true })
    for (const [method, path, payload] of [['POST', '/secret', { data: { name: 'x' } }], ['GET', '/secret', undefined], ['DELETE', '/secret/first', undefined]] as const) {
      t.match(await call(method, app.client_id, path, payload, stranger), { status: 404 }, `${method} by a stranger`)
      t.match(await call(method, app.client_id, path, payload, reader), { status: 403 }, `${method} without clients:write`)
      t.match(await call(method, vouched.client_id, path, payload), { status: 403 }, `${method} of a client that the operator vouches for`)
    }
    await records.update(app.client_id, { set: { scopes: ['clients:write'] } })
    const own = { authorization: `Bearer ${(await post('token', { grant_type: 'client_credentials', scope: 'clients:write' }, app)).body.access_token}` }
    t.match(await call('POST', app.client_id, '/secret', { data: { name: 'x' } }, own), { status: 403 }, 'a client adds no secret to itself')
    await t.rejects(identity.clients.addSecret(app.client_id, { data: { name: 'x' } }, { user_id: user.user_id, isAdmin: false, isUser: false }), { code: 'ErrPerm', message: /may not see secrets/ })
    await records.update(app.client_id, { set: { document: { id: 'x', hash: 'x', print: 'x', method: 'private_key_jwt', used_at: '2026-11-23T00:00:00.000Z' } } })
    await t.rejects(identity.clients.addSecret(app.client_id, { data: { name: 'x' } }, { user_id: user.user_id, isAdmin: true }), { code: 'ErrParam', message: /^clientId: must not be a client from a document/ })
  })
})

eachStore(t, 'last uses are written apart from the clients, at most once a minute, and go with them', async (t, start) => {
  const harness = await start()
  const { kit, post, register, user } = harness
  const { clients, store } = kit.app.identity
  const admin = { user_id: user.user_id, isAdmin: true }
  const app = await register()
  const { id, secret } = await clients.addSecret(app.client_id, { data: { name: 'n' } }, admin)
  await kit.app.identity.events.flush()
  const before = await store.collection('clients').get(app.client_id)
  await post('introspect', { token: 'x' }, { ...app, client_secret: secret })
  await post('introspect', { token: 'x' }, { ...app, client_secret: 'wrong' })
  t.strictSame(await store.collection('clients').get(app.client_id), before, 'the client is not written')
  t.equal(await store.collection('client_uses').get(app.client_id), null, 'nothing is written for a minute')
  const [first, named] = (await clients.listSecrets(app.client_id, admin)).secrets
  t.equal(first?.lastUsedAt, undefined, 'a wrong secret is no use')
  t.ok(Date.parse(named?.lastUsedAt ?? '') > kit.clock.now() - DAY)
  await clients.removeSecret(app.client_id, id, admin)
  t.strictSame((await clients.listSecrets(app.client_id, admin)).secrets.map((one) => one.id), ['first'])
})
