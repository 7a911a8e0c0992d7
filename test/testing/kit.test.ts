import fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import t from 'tap'
import type { FeedRecord } from '../../lib/events/lease.ts'
import { openStore } from '../../lib/store/index.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { createMint, createTestClock, startIdentity } from '../../testing/index.ts'
import { build } from '../helpers/build.ts'
import { callAs, signIn } from '../helpers/people.ts'
import { REFUSED, redeem } from '../helpers/redeem.ts'

interface TokenInfo { data: { user_id: string, account: string, roles: object, client_id: string, scopes: string[] } }

t.test('mint', async (t) => {
  const kit = await build(t)
  const ask = async (headers: Record<string, string>) => (await callAs(kit, headers).get<TokenInfo>('/auth/tokeninfo')).body.data

  t.test('creates a missing user and client', async (t) => {
    const minted = await kit.mint({ user: 'Ann', client: 'shop', roles: ['admin'], scopes: ['b', 'a'] })
    t.strictSame(await ask(minted.headers), {
      user_id: minted.user_id, account: 'ann', name: '', roles: {}, client_id: minted.client_id, scopes: ['a', 'b']
    }, 'named scopes narrow the token')
    t.strictSame((await ask((await kit.mint({ user: 'ann', client: 'shop' })).headers)).roles, { admin: true })
    t.match([minted.user_id, minted.client_id], [/^[0-9A-Za-z]{34}$/, /^[0-9A-Za-z]{34}$/])
    t.equal(minted.account, 'ann')
    t.equal(minted.refresh_token, undefined)
  })

  t.test('finds an existing user and client by name and by id', async (t) => {
    const first = await kit.mint({ user: 'bob', client: 'desk', scopes: ['x', 'y'] })
    for (const request of [{ user: 'bob', client: 'desk' }, { user: first.user_id, client: first.client_id }]) {
      const again = await kit.mint({ ...request, scopes: ['x'] })
      t.strictSame([again.user_id, again.client_id], [first.user_id, first.client_id])
      t.not(again.access_token, first.access_token)
      t.strictSame((await ask(again.headers)).scopes, ['x'], 'some of the scopes the client has')
    }
    await t.rejects(kit.mint({ user: 'bob', client: 'desk', scopes: ['z'] }), { code: 'ErrParam' })
  })

  t.test('without a user and a client: a new user and an ownerless client', async (t) => {
    const [one, two] = await Promise.all([signIn(kit, { scopes: ['read'] }), signIn(kit, { scopes: ['read'] })])
    t.not(one.user_id, two.user_id)
    t.equal(one.client_id, two.client_id)
    t.match(await one.get('/client/count'), { status: 403 })
    t.match(await (await signIn(kit)).get('/client/count'), { body: { data: { count: 0 } } })
    t.strictSame((await ask(one.headers)).scopes, ['read'])
  })

  t.test('concurrent mints create one user and one client', async (t) => {
    const minted = await Promise.all(Array.from({ length: 20 }, () => kit.mint({ user: 'crowd', client: 'stadium' })))
    t.equal(new Set(minted.map(({ user_id, client_id }) => `${user_id} ${client_id}`)).size, 1)
    t.equal(new Set(minted.map(({ access_token }) => access_token)).size, 20)
  })

  t.test('replaces the roles if any are given, and leaves them otherwise', async (t) => {
    await kit.mint({ user: 'carl', roles: { admin: true, clerk: { desk: 4 } } })
    t.strictSame((await ask((await kit.mint({ user: 'carl' })).headers)).roles, { admin: true, clerk: { desk: 4 } })
    t.strictSame((await ask((await kit.mint({ user: 'carl', roles: [] })).headers)).roles, {})
  })

  t.test('refuses the same input as the service', async (t) => {
    await t.rejects(kit.mint({ user: 'no account' }), { code: 'ErrParam' })
    await t.rejects(kit.mint({ scopes: ['no scope'] }), { code: 'ErrParam' })
    await t.rejects(kit.mint({ roles: { admin: false } as never }), { code: 'ErrParam' })
  })

  t.test('a linked refresh token, and a lifetime', async (t) => {
    const minted = await kit.mint({ refresh: true, ttl: 5 })
    t.match(minted.refresh_token, /^[\w-]{43}$/)
    t.equal(minted.expires_in, 5)
    kit.clock.advance(4999)
    t.ok(await ask(minted.headers))
    kit.clock.advance(1)
    t.match(await callAs(kit, minted.headers).get('/auth/tokeninfo'), { status: 401 })
    t.match(await redeem(kit, minted, minted.refresh_token), { status: 200 })
  })
})

t.test('mint, after a scope that it was called with was declared', async (t) => {
  const kit = await build(t)
  const id = 'https://api.example.com/orders'
  await kit.mint({ scopes: ['orders:read'] })
  await kit.app.identity.resources.create({ data: { id, name: 'Orders', scopes: { 'orders:read': 'see orders' } } })
  const { headers } = await kit.mint({ resource: id, scopes: ['orders:read'] })
  t.match((await callAs(kit, headers).get('/auth/tokeninfo')).body, { data: { aud: id, scopes: ['orders:read'] } })
})

t.test('the clock moves the limits, and a reset clears their counts', async (t) => {
  const kit = await build(t, { writeLimit: 1, rateLimit: 1 })
  const rename = async () => {
    const { patch } = await signIn(kit, { user: 'ann' })
    return await patch('/user', { data: { name: `n ${kit.clock.now()}` } })
  }
  t.match(await rename(), { status: 204 })
  t.match(await rename(), { status: 429, headers: { 'retry-after': '60' } })
  kit.clock.advance(59_000)
  t.match(await rename(), { status: 429, headers: { 'retry-after': '1' } })
  kit.clock.advance(1000)
  t.match(await rename(), { status: 204 })
  t.match(await rename(), { status: 429 })
  await kit.reset()
  t.match(await rename(), { status: 204 })
})

t.test('the clock', async (t) => {
  const clock = createTestClock('2026-11-21T02:51:00Z')
  t.equal(clock.now(), Date.UTC(2026, 10, 21, 2, 51))
  clock.advance(1500)
  t.equal(clock.now(), Date.UTC(2026, 10, 21, 2, 51, 1, 500))
  clock.advance(-1500)
  t.equal(clock.now(), Date.UTC(2026, 10, 21, 2, 51))
  for (const time of ['2030-01-01T01:00:00+01:00', new Date(Date.UTC(2030, 0, 1)), Date.UTC(2030, 0, 1)]) {
    clock.set(0)
    clock.set(time)
    t.equal(clock.now(), Date.UTC(2030, 0, 1))
  }
  for (const wrong of ['yesterday', '2030-01-01', Number.NaN, new Date(Number.NaN), 9e15]) {
    t.throws(() => clock.set(wrong), TypeError)
  }
  t.equal(clock.now(), Date.UTC(2030, 0, 1))
  clock.reset()
  t.equal(clock.now(), Date.UTC(2026, 10, 21, 2, 51))

  const kit = await build(t, { time: '2026-11-21T02:51:00Z' })
  const ann = await signIn(kit)
  kit.clock.advance(60_000)
  await ann.patch('/user', { data: { name: 'Ann' } })
  t.match(await ann.get('/user'), { body: { data: { created_at: '2026-11-21T02:51:00.000Z', modified_at: '2026-11-21T02:52:00.000Z' } } })
})

t.test('reset empties the store and resets the clock', async (t) => {
  const kit = await build(t, { time: 0 })
  const { user_id, client_id, refresh_token, headers } = await kit.mint({ user: 'ann', client: 'shop', refresh: true })
  kit.clock.advance(1)
  await kit.reset()
  t.equal(kit.clock.now(), 0)
  for (const { name } of COLLECTIONS) {
    // The registry of resources, the state of the feed and keys are always there.
    if (!['meta', 'feed', 'keys'].includes(name)) t.equal(await kit.app.identity.store.collection(name).count(), name === 'resources' ? 1 : 0, name)
  }
  t.match(await callAs(kit, headers).get('/user'), { status: 401 })
  t.match(await redeem(kit, { client_id }, refresh_token), REFUSED)
  const again = await signIn(kit, { user: 'ann', client: 'shop' })
  t.not(again.user_id, user_id)
  t.not(again.client_id, client_id)
  t.match(await again.get('/user'), { status: 200 })
})

t.test('a socket on a free port', async (t) => {
  const kit = await build(t)
  const { url } = await kit.listen()
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.strictSame(await kit.listen(), { url })
  const { headers, account } = await kit.mint()
  const reply = await fetch(`${url}/api/v1/user`, { headers })
  t.match(await reply.json(), { data: { account } })
})

t.test('the host\'s own app, routes and options', async (t) => {
  const kit = await build(t, { app: fastify({ requestIdHeader: 'x-id' }), prefix: '/id', roles: { admin: 'root' } })
  kit.app.get('/mine', { onRequest: kit.app.identity.guard({ roles: ['admin'] }) }, (request) => ({ id: request.id, admin: request.isAdmin }))
  const { headers } = await kit.mint({ roles: ['root'] })
  t.strictSame((await kit.inject({ url: '/mine', headers: { ...headers, 'x-id': '7' } })).json(), { id: '7', admin: true })
  t.equal((await kit.inject({ url: '/id/api/v1/user', headers })).statusCode, 200)
})

t.test('a function that makes the app registers the plugin, so that routes have their guards', async (t) => {
  const buildApp = async (plugin: FastifyPluginAsync) => {
    const app = fastify()
    await app.register(plugin)
    app.get('/mine', { onRequest: app.identity.guard() }, ({ caller }) => ({ of: caller.user?.user_id }))
    return app
  }
  const kit = await startIdentity({ t, app: buildApp })
  const { headers, user_id } = await kit.mint()
  t.strictSame((await kit.inject({ url: '/mine', headers })).json(), { of: user_id })
  t.equal((await kit.inject({ url: '/mine' })).statusCode, 401)
  const late = await startIdentity({
    t,
    app: (plugin) => {
      const app = fastify()
      void app.register(plugin)
      app.after(() => { app.get('/mine', { onRequest: app.identity.guard() }, () => 'yes') })
      return app
    }
  })
  t.equal((await late.inject({ url: '/mine', headers: (await late.mint()).headers })).body, 'yes')
  await t.rejects(startIdentity({ app: () => fastify() }), /^app: the function has not registered the plugin/)
  let made: FastifyInstance | undefined
  const failing = async (plugin: FastifyPluginAsync) => {
    made = fastify()
    await made.register(plugin)
    throw new Error('a route of the host')
  }
  await t.rejects(startIdentity({ app: failing }), /a route of the host/)
  await t.rejects(made!.identity.store.ping(), 'the store is closed')
})

t.test('a store that was handed in stays open', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const kit = await startIdentity({ store })
  await kit.mint({ user: 'ann' })
  await kit.close()
  t.equal(await store.collection('users').count(), 1)
})

t.test('closes with the test, with the block, and when it cannot start', async (t) => {
  const closers: (() => Promise<void>)[] = []
  const kit = await startIdentity({ t: { after: (close) => closers.push(close) } })
  t.equal(closers.length, 1)
  await closers[0]!()
  await t.rejects(kit.app.identity.store.ping(), 'the store it opened is closed')

  let ended
  {
    await using block = await startIdentity()
    await block.mint()
    ended = block.app.identity.store
  }
  await t.rejects(ended.ping())

  await t.rejects(startIdentity({ bcryptCost: 1 }), /bcryptCost/)
})

t.test('createMint serves an app that registered the plugin itself', async (t) => {
  const kit = await build(t)
  const mint = createMint(kit.app.identity)
  t.match(await callAs(kit, (await mint({ user: 'ann' })).headers).get('/user'), { status: 200 })
})

t.test('no password matches a user that mint created', async (t) => {
  const kit = await build(t)
  await kit.mint({ user: 'ann' })
  for (const password of ['', 'guess']) t.equal(await kit.app.identity.users.verify('ann', password), null)
})

t.test('the next mail is waited for while a process that was killed has the right to publish', async (t) => {
  const { app, clock, mails, close } = await startIdentity()
  t.teardown(close)
  await app.identity.store.collection<FeedRecord>('feed').put({ id: 'feed', generation: 'x', claim: 1, leased_until: new Date(clock.now() + 8_000).toISOString(), last: 0 })
  await app.identity.accounts.inviteUser({ account: 'ann@example.com' }, { user_id: 'operator', isAdmin: true })
  t.equal((await mails.next()).to, 'ann@example.com')
  await t.rejects(mails.next(), { message: 'no mail was sent' })
})
