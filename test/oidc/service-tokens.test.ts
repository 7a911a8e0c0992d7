import t from 'tap'
import { createPrefixed, toChecksum } from '../../lib/crypto/prefixed-secret.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { callAs } from '../helpers/people.ts'
import { eachStore } from './harness.ts'

interface Listed { id: string, name: string, last4: string, scopes: string[], resource?: string, createdAt: string, expiresAt: string, lastUsedAt?: string, lastUsedFrom?: string }
interface Made { id: string, token: string, expiresAt: string }

const DAY = 24 * 60 * 60_000
const ROOT = { user_id: '', isAdmin: true }

t.setTimeout(300_000)

eachStore(t, 'service tokens', async (t, start) => {
  const harness = await start()
  const { kit, post } = harness
  const { identity } = kit.app
  const { store, clients, users } = identity
  const tokens = store.collection<TokenRecord>('access_tokens')
  const boss = callAs(kit, (await kit.mint({ user: 'boss@example.com', roles: ['admin'], ttl: 2 * 365 * 86_400 })).headers)
  const at = (days: number) => new Date(kit.clock.now() + days * DAY).toISOString()
  let count = 0

  /** A confidential client with an owner of its own. */
  async function create ({ roles, scopes = ['read', 'users:read'], ofAdmin = false }: { roles?: string[], scopes?: string[], ofAdmin?: boolean } = {}) {
    const account = `owner-${count++}@example.com`
    const owner = await users.create({ data: { account, password: 'correct horse', name: account } })
    if (ofAdmin) await users.patch(owner.user_id, { data: { roles: { admin: true } } }, ROOT)
    const held = roles && { roles: Object.fromEntries(roles.map((role) => [role, true as const])) }
    const { clientId } = await clients.create({ data: { redirectUris: [], name: account, scopes, userId: owner.user_id, ...held }, credentials: true }, ROOT)
    return { clientId, owner: { ...owner, account }, path: `/client/${clientId}/token` }
  }
  const add = async (path: string, data: object = {}) => await boss.post<{ data: Made, message: string }>(path, { data: { name: 'SCIM', scopes: ['read'], ...data } })
  const list = async (path: string) => (await boss.get<{ data: Listed[] }>(path)).body.data
  const info = async (token: string) => await callAs(kit, { authorization: `Bearer ${token}` }).get<{ data: Record<string, unknown> }>('/auth/tokeninfo')
  const works = async (token: string) => (await info(token)).status === 200

  await t.test('it is shown once, and its hash is stored', async (t) => {
    const { clientId, owner, path } = await create()
    const { status, body: { data: made } } = await add(path, { name: 'SCIM of Acme' })
    t.equal(status, 200)
    t.match(made.token, /^fi_svc_[0-9A-Za-z]{49}$/)
    t.equal(made.token.slice(-6), toChecksum(made.token.slice(7, -6)))
    t.equal(made.id, hashToken(made.token))
    t.equal(made.expiresAt, at(365), 'a year by default')
    const record = (await tokens.get(made.id))!
    t.match(record, { kind: 'Service', client_id: clientId, user_id: owner.user_id, holder: clientId, name: 'SCIM of Acme', scopes: ['read'] })
    t.notOk('user_epoch' in record, 'it does not stand on the epoch of the owner')
    t.notOk(JSON.stringify(record).includes(made.token.slice(7, 30)))
    t.strictSame(await list(path), [{
      id: made.id, name: 'SCIM of Acme', last4: made.token.slice(-4), scopes: ['read'], createdAt: at(0), expiresAt: at(365)
    }])
  })

  await t.test('it has the power of the client, and never that of an owner who is an administrator', async (t) => {
    const plain = await create({ ofAdmin: true, scopes: ['read', 'users:read', 'users:write', 'clients:read'] })
    t.strictSame((await users.require(plain.owner.user_id)).roles, { admin: true })
    const made = (await add(plain.path, { scopes: ['users:read', 'users:write', 'clients:read'] })).body.data
    const own = await post('token', { grant_type: 'client_credentials', scope: 'users:read' }, {
      client_id: plain.clientId, client_secret: (await clients.require(plain.clientId, ROOT)).clientSecret!, redirect_uri: ''
    })
    const [service, credentials] = [await info(made.token), await info(String(own.body.access_token))]
    t.match(service.body.data, { user_id: plain.owner.user_id, account: plain.owner.account, client_id: plain.clientId, subject: 'client', token_id: made.id, token_name: 'SCIM' })
    t.strictSame([service.body.data.roles, service.body.data.acr, service.body.data.amr], [{}, undefined, undefined])
    const { token_id: _id, token_name: _name, scopes: _scopes, ...rest } = service.body.data
    const { scopes: _others, ...expected } = credentials.body.data
    t.strictSame(rest, expected, 'as that of the token endpoint')
    const api = callAs(kit, { authorization: `Bearer ${made.token}` })
    for (const [method, url] of [['GET', '/user/list'], ['GET', '/user'], ['GET', `/user/${plain.owner.user_id}`], ['DELETE', `/user/${plain.owner.user_id}`], ['GET', '/client/list']] as const) {
      t.equal((await api.send({ method, url })).status, 403, `${method} ${url}`)
    }
    const roled = await create({ roles: ['admin'], scopes: ['users:read'] })
    const strong = (await add(roled.path, { scopes: ['users:read'] })).body.data
    const other = callAs(kit, { authorization: `Bearer ${strong.token}` })
    t.equal((await other.get('/user/list')).status, 200, "with the client's own roles it may")
    t.equal((await other.delete(`/user/${plain.owner.user_id}`)).status, 403, 'as far as its scopes go')
    await clients.patch(roled.clientId, { data: { roles: {} } }, ROOT)
    t.equal((await other.get('/user/list')).status, 403, 'a role that the client loses is lost at once')
    await users.patch(plain.owner.user_id, { data: { roles: {} } }, ROOT)
  })

  await t.test('introspection says whose it is', async (t) => {
    const { clientId, path } = await create()
    const made = (await add(path)).body.data
    const asker = await harness.register()
    const answer = await post('introspect', { token: made.token }, asker)
    t.match(answer.body, { active: true, sub: clientId, client_id: clientId, scope: 'read', token_id: made.id, token_name: 'SCIM', token_type: 'Bearer' })
    t.match(await list(path), [{ lastUsedAt: at(0), lastUsedFrom: undefined }], 'an API that asks is a use, from no address')
  })

  await t.test('its last use, with the address, is written once a minute', async (t) => {
    const { clientId, path } = await create()
    const made = (await add(path)).body.data
    t.match(await list(path), [{ lastUsedAt: undefined }])
    kit.clock.advance(5_000)
    const reply = await fetch(`${harness.url}/api/v1/auth/tokeninfo`, { headers: { authorization: `Bearer ${made.token}` } })
    t.equal(reply.status, 200)
    t.match(await list(path), [{ lastUsedAt: at(0), lastUsedFrom: '127.0.0.1' }])
    t.equal(await store.collection('client_uses').get(clientId), null, 'not yet')
  })

  await t.test('bad input is refused, and leaves nothing', async (t) => {
    const ends = await store.collection('secret_ends').count({})
    const { clientId, path } = await create()
    const resource = 'https://orders.example'
    await boss.post('/resource', { data: { id: resource, name: 'Orders', scopes: { 'orders:read': 'See orders' } } })
    for (const [data, message] of [
      [{ name: ' ' }, /^name: must not be empty/],
      [{ name: 'a\u202eb' }, /^name: /],
      [{ scopes: ['write'] }, /^scopes: .*write/],
      [{ scopes: ['account:read'] }, /^scopes: /],
      [{ scopes: ['orders:read'], resource }, /^scopes: must be scopes of the client, and of the resource: orders:read/],
      [{ resource: 'https://nobody.example' }, /^resource: no such resource/],
      [{ expiresAt: at(-1) }, /^expiresAt: must be in the future/],
      [{ expiresAt: at(731) }, /^expiresAt: must be at most two years ahead/],
      [{ expiresAt: 'tomorrow' }, /^expiresAt: /]
    ] as const) {
      const { status, body } = await add(path, data)
      t.equal(status, 400, JSON.stringify(data))
      t.match(body.message, message)
    }
    const open = (await clients.create({ data: { redirectUris: ['https://app.example/cb'], name: 'Open', scopes: ['read'], userId: harness.user.user_id } }, ROOT)).clientId
    t.match((await add(`/client/${open}/token`)).body.message, /must be a confidential client/)
    const lonely = await create()
    await store.collection<ClientRecord>('clients').update(lonely.clientId, { unset: ['userId'] })
    t.match((await add(lonely.path)).body.message, /whose owner exists/)
    await clients.patch(clientId, { data: { disabled: true } }, ROOT)
    t.match((await add(path)).body.message, /must not be a disabled client/)
    t.equal((await add('/client/nobody/token')).status, 404)
    t.strictSame(await list(path), [])
    t.equal(await store.collection('secret_ends').count({}), ends, 'and nobody is to be told of one')
  })

  await t.test('only people who are administrators make, list and remove them', async (t) => {
    const { clientId, owner, path } = await create({ roles: ['admin'], scopes: ['users:read', 'users:write', 'clients:write'] })
    const made = (await add(path, { scopes: ['users:read', 'users:write', 'clients:write'] })).body.data
    const itself = callAs(kit, { authorization: `Bearer ${made.token}` })
    t.match(await itself.post(path, { data: { name: 'more', scopes: [] } }), { status: 403, body: { message: /only a user/ } }, 'a token makes no token')
    for (const headers of [(await kit.mint({ user: owner.user_id })).headers, (await kit.mint({ user: 'boss@example.com', scopes: ['clients:write'] })).headers]) {
      const api = callAs(kit, headers)
      t.strictSame([
        (await api.post(path, { data: { name: 'x', scopes: [] } })).status, (await api.get(path)).status, (await api.delete(`${path}/${made.id}`)).status
      ], [403, 403, 403])
    }
    const other = await create()
    t.equal((await boss.delete(`${other.path}/${made.id}`)).status, 404, 'not by the path of another client')
    const plain = await kit.mint({ user: owner.user_id, client: clientId })
    t.equal((await boss.delete(`${path}/${hashToken(plain.access_token)}`)).status, 404, 'not another token of the client')
    t.ok(await works(plain.access_token))
    t.equal((await boss.delete(`${path}/${made.id}`)).status, 204)
    t.equal((await boss.delete(`${path}/${made.id}`)).status, 404)
    t.notOk(await works(made.token))
  })

  await t.test('at most twenty, also when they are made at the same time', async (t) => {
    const { clientId, path } = await create()
    for (let made = 0; made < 18; made++) await identity.serviceTokens.add(clientId, { data: { name: `n${made}`, scopes: [] } }, ROOT)
    await Promise.all(Array.from({ length: 6 }, async () => await add(path)))
    const held = await list(path)
    t.ok(held.length >= 18 && held.length <= 20, `${held.length}`)
    while ((await list(path)).length < 20) t.equal((await add(path)).status, 200)
    t.match(await add(path), { status: 429, body: { code: 'ErrLimit' } })
    t.equal((await list(path)).length, 20)
    t.equal(await tokens.count({ equal: { holder: clientId } }), 20, 'a refused one is gone')
  })

  await t.test('what ends it, and what does not', async (t) => {
    type Scene = Awaited<ReturnType<typeof create>> & Made
    const rows: [name: string, act: (scene: Scene) => Promise<unknown>, works: boolean][] = [
      ['a new password of the owner', async ({ owner }) => await users.patch(owner.user_id, { data: { password: 'another horse' } }, ROOT), true],
      ["the end of the owner's sessions", async ({ owner }) => await boss.delete(`/user/${owner.user_id}/sessions`), true],
      ['a reset of the factors of the owner', async ({ owner }) => await boss.post(`/user/${owner.user_id}/factors/reset`), true],
      ['the owner disabled', async ({ owner }) => await users.patch(owner.user_id, { disable: true }, ROOT), false],
      ['the owner disabled and enabled', async ({ owner }) => {
        for (const disable of [true, false]) await users.patch(owner.user_id, { disable }, ROOT)
      }, true],
      ['the owner expired', async ({ owner }) => await store.collection<UserRecord>('users').update(owner.user_id, { set: { expired_at: at(-1) } }), false],
      ['the owner expired and extended', async ({ owner }) => {
        await store.collection<UserRecord>('users').update(owner.user_id, { set: { expired_at: at(-1) } })
        await store.collection<UserRecord>('users').update(owner.user_id, { unset: ['expired_at'] })
      }, true],
      ['the owner deleted', async ({ owner }) => await boss.delete(`/user/${owner.user_id}`), false],
      ['the client disabled', async ({ clientId }) => await clients.patch(clientId, { data: { disabled: true } }, ROOT), false],
      ['the client disabled and enabled', async ({ clientId }) => {
        for (const disabled of [true, false]) await clients.patch(clientId, { data: { disabled } }, ROOT)
      }, false],
      ['a new readable secret', async ({ clientId }) => await clients.patch(clientId, { regen_secret: true }, ROOT), false],
      ['a named secret removed', async ({ clientId }) => {
        const { id } = await clients.addSecret(clientId, { data: { name: 'x' } }, ROOT)
        await clients.removeSecret(clientId, id, ROOT)
      }, true],
      ['the client made public', async ({ clientId }) => await clients.patch(clientId, { data: { tokenAuth: 'none', grants: ['code'] } }, ROOT), false],
      ['the client taken over', async ({ clientId }) => await boss.patch(`/client/${clientId}`, { take_over: true }), false],
      ['the client deleted', async ({ clientId }) => await clients.remove(clientId, ROOT), false],
      ['its removal', async ({ path, id }) => await boss.delete(`${path}/${id}`), false],
      ['its own logout', async ({ token }) => await callAs(kit, { authorization: `Bearer ${token}` }).post('/auth/logout'), false],
      ['its revocation by the client', async ({ clientId, token }) => await post('revoke', { token }, {
        client_id: clientId, client_secret: (await clients.require(clientId, ROOT)).clientSecret!, redirect_uri: ''
      }), false],
      ['its end', async ({ clientId, path }) => {
        const { token } = (await add(path, { expiresAt: at(1 / 24) })).body.data
        t.ok(await works(token))
        kit.clock.advance(DAY / 24)
        t.notOk(await works(token), `${clientId}: expired`)
      }, true]
    ]
    for (const [name, act, isLeft] of rows) {
      const scene = await create()
      const made = (await add(scene.path)).body.data
      t.ok(await works(made.token), `${name}: before`)
      await act({ ...scene, ...made })
      t.equal(await works(made.token), isLeft, name)
      await identity.tokens.settle()
      t.equal(await works(made.token), isLeft, `${name}, once the cleanup has ended`)
      if (!isLeft && await store.collection('clients').get(scene.clientId) !== null) {
        const owner = await store.collection<UserRecord>('users').get(scene.owner.user_id)
        if (owner !== null) t.strictSame(await list(scene.path), [], `${name}: it is in no list`)
      }
    }
  })

  await t.test('an owner who is deleted does not come back as somebody else', async (t) => {
    const { owner, path } = await create()
    const made = (await add(path)).body.data
    const people = store.collection<UserRecord>('users')
    const [record, before] = [(await tokens.get(made.id))!, (await people.get(owner.user_id))!]
    await users.remove(owner.user_id, ROOT)
    await identity.tokens.settle()
    // The relay has done its part of the deletion, so that it removes nothing below.
    await kit.flush()
    // As if the process had been killed before its cleanup, and an import had given the id to another user.
    await tokens.insert(record)
    kit.clock.advance(1_000)
    const later = { ...before, epoch: Math.floor(kit.clock.now() / 1000), created_at: at(0) }
    await people.insert(later)
    t.ok(await works(made.token), 'the record alone cannot tell')
    await identity.serviceTokens.removeOfOwner({ user: owner.user_id, content: { time: at(0) } as never })
    t.notOk(await works(made.token), 'so the deletion takes it along')
    kit.clock.advance(1_000)
    const next = (await add(path)).body.data
    await identity.serviceTokens.removeOfOwner({ user: owner.user_id, content: { time: new Date(kit.clock.now() - 1_000).toISOString() } as never })
    t.ok(await works(next.token), 'one that was made later stays')
  })

  await t.test('all of them end at once', async (t) => {
    const [one, other] = [await create(), await create()]
    const made = [(await add(one.path)).body.data.token, (await add(other.path)).body.data.token]
    const plain = await kit.mint({ user: one.owner.user_id, client: one.clientId })
    t.ok(await identity.serviceTokens.endAll() >= 2)
    for (const token of made) t.notOk(await works(token))
    t.ok(await works(plain.access_token))
    t.equal(await tokens.count({ since: { holder: '' } }), 0)
  })

  await t.test('a resource that is deleted ends it', async (t) => {
    const uri = 'https://stock.example'
    const data = { id: uri, name: 'Stock', scopes: { 'stock:read': 'See it' } }
    const { resourceId } = (await boss.post<{ data: { resourceId: string } }>('/resource', { data })).body.data
    const { path } = await create({ scopes: ['stock:read'] })
    const made = (await add(path, { scopes: ['stock:read'], resource: uri })).body.data
    t.match((await info(made.token)).body.data, { aud: uri, scopes: ['stock:read'], subject: 'client' })
    t.equal((await callAs(kit, { authorization: `Bearer ${made.token}` }).get('/client/list')).status, 401, 'it is for no other audience')
    await boss.delete(`/resource/${resourceId}`)
    t.notOk(await works(made.token))
  })

  await t.test('owner and administrators are told, by mail and by events', async (t) => {
    const { clientId, owner, path } = await create()
    await kit.mails.all()
    const made = (await add(path)).body.data
    const sent = async () => (await kit.mails.all()).map(({ to, subject, text }) => ({ to, subject, text }))
    const mails = await sent()
    t.strictSame(mails.map(({ to }) => to).sort(), ['boss@example.com', owner.account].sort())
    for (const { text } of mails) {
      t.match(text, clientId)
      t.match(text, `ends with ${made.token.slice(-4)}`)
      t.notMatch(text, made.token.slice(0, -4))
    }
    kit.clock.advance(351.1 * DAY)
    await kit.flush()
    const soon = (await sent()).filter(({ subject, text }) => /service token expires soon/.test(subject) && text.includes(clientId))
    t.strictSame(soon.map(({ to }) => to).sort(), ['boss@example.com', owner.account].sort())
    await boss.delete(`${path}/${made.id}`)
    kit.clock.advance(12 * DAY)
    t.strictSame((await sent()).filter(({ subject, text }) => /service token/.test(subject) && text.includes(clientId)), [], 'a removed token is announced no more')
    const events = (await kit.events.list({ client: clientId })).filter(({ type }) => type.startsWith('token.'))
    t.match(events, [
      { type: 'token.service_created', target: { kind: 'token', id: made.id }, user_id: owner.user_id, client_id: clientId },
      { type: 'token.service_expiring', target: { id: made.id }, user_id: owner.user_id, client_id: clientId },
      { type: 'token.service_removed', target: { id: made.id }, user_id: owner.user_id, client_id: clientId }
    ])
  })

  await t.test('a helper of the kit makes one', async (t) => {
    const { clientId } = await create()
    const { token, client_id, headers } = await kit.serviceToken(clientId, { scopes: ['read'], expires_in: 60 })
    t.equal(client_id, clientId)
    t.equal((await kit.inject({ url: '/api/v1/auth/tokeninfo', headers })).statusCode, 200)
    kit.clock.advance(60_000)
    t.notOk(await works(token))
    t.notOk(await works(createPrefixed('service')), 'the form alone is nothing')
  })
})
