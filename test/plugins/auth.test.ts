import fastify from 'fastify'
import t, { type Test } from 'tap'
import type { GuardOptions } from '../../index.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { Roles } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createToken } from '../../lib/crypto/random-token.ts'
import { decorateRequests } from '../../plugins/auth.ts'
import { LIMITS } from '../../schemas/common.ts'
import { startIdentity } from '../../testing/index.ts'
import { type Api, callAs, mintAll, signIn } from '../helpers/people.ts'
import { type Around, wrapStore } from '../helpers/wrap-store.ts'

const NAMES = { admin: 'root', manager: 'chief', service: 'robot' }

/** A service in memory, with a route for each rule that answers what its handler knows of the caller. */
async function open (t: Test, rules: Record<string, GuardOptions>, around: Around = (_call, run) => run()) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
  t.teardown(() => inner.close())
  const kit = await startIdentity({ t, store: wrapStore(inner, around), roles: NAMES, rateLimit: false })
  for (const [name, rule] of Object.entries(rules)) {
    kit.app.get(`/${name}/:userId`, { onRequest: kit.app.identity.guard(rule) }, async ({ caller, isAdmin }) => ({ account: caller?.user.account, isAdmin }))
  }
  const ask = async (url: string, authorization?: string) => {
    const reply = await kit.inject({ url, headers: authorization === undefined ? {} : { authorization } })
    return { status: reply.statusCode, challenge: reply.headers['www-authenticate'], body: reply.json() }
  }
  return { kit, ask }
}

const STORES: Record<string, Around> = {
  'a store that answers at once': (_call, run) => run(),
  'a store that answers later': ({ method }, run) => (method === 'getLinked' ? Promise.resolve(run()) : run())
}

for (const [store, around] of Object.entries(STORES)) {
  t.test(`the guard with ${store}: who passes`, async (t) => {
    const { kit, ask } = await open(t, {
      everyone: {},
      any: { any: true, roles: ['admin'] },
      admin: { roles: ['admin'] },
      own: { roles: ['clerk', 'manager'] },
      owner: { owner: true },
      either: { owner: true, roles: ['admin'] },
      one: { scopes: ['read'] },
      both: { scopes: ['read', 'write'] },
      strict: { roles: ['admin'], scopes: ['read'] },
      inherited: { roles: ['constructor'] }
    }, around)
    const people = {
      plain: await mintAll(kit, { user: 'plain', scopes: [] }),
      clerk: await mintAll(kit, { user: 'clerk', roles: ['clerk'], scopes: ['read'] }),
      chief: await mintAll(kit, { user: 'chief', roles: ['chief'], scopes: ['write', 'read'] }),
      root: await mintAll(kit, { user: 'root', roles: ['root'], scopes: ['read'] }),
      admin: await mintAll(kit, { user: 'admin', roles: ['admin', 'manager'], scopes: ['write'] })
    }
    const everyone = Object.keys(people)
    for (const [route, passing] of [
      ['everyone', everyone], ['any', everyone], ['admin', ['root']], ['own', ['clerk', 'chief']], ['owner', ['plain']], ['either', ['plain', 'root']],
      ['one', ['clerk', 'chief', 'root']], ['both', ['chief']], ['strict', ['root']], ['inherited', []]
    ] as const) {
      for (const [name, { headers }] of Object.entries(people)) {
        const reply = await ask(`/${route}/${people.plain.user_id}`, headers.authorization)
        const passes = (passing as readonly string[]).includes(name)
        t.match(reply, passes ? { status: 200, body: { account: name, isAdmin: name === 'root' } } : { status: 403, body: { code: 'ErrPerm' } }, `${route} as ${name}`)
      }
    }
    t.match(await ask('/both/x', people.root.headers.authorization), {
      challenge: 'Bearer error="insufficient_scope", scope="read write"', body: { message: 'the access token lacks a scope: read write' }
    })
    t.equal((await ask('/admin/x', people.plain.headers.authorization)).challenge, undefined)
  })

  t.test(`the guard with ${store}: headers`, async (t) => {
    const { kit, ask } = await open(t, { everyone: {} }, around)
    const { access_token } = await kit.mint({ user: 'ann' })
    const get = (authorization?: string) => ask('/everyone/x', authorization)
    for (const header of [`Bearer ${access_token}`, `bearer ${access_token}`, `BEARER   ${access_token}`, `Bearer ${access_token} `]) {
      t.match(await get(header), { status: 200, body: { account: 'ann' } }, header.replace(access_token, 'TOKEN'))
    }
    t.match(await get(), { status: 401, challenge: 'Bearer', body: { code: 'ErrUnknown', message: 'authorization: is required' } })
    const longest = 'a'.repeat(LIMITS.accessToken)
    for (const header of ['', 'Bearer', 'Bearer ', `Basic ${access_token}`, access_token, `xBearer ${access_token}`, `Bearer${access_token}`,
      `Bearer ${access_token} x`, `Bearer ${access_token},`, 'Bearer a"b', `Bearer ${longest}a`]) {
      t.match(await get(header), { status: 401, challenge: 'Bearer', body: { code: 'ErrUnknown', message: 'authorization: must be a bearer token' } }, header.replace(access_token, 'TOKEN').slice(0, 20))
    }
    for (const header of ['Bearer a', 'Bearer a-._~+/b==', `Bearer ${access_token.slice(1)}`, `Bearer ${longest}`]) {
      t.match(await get(header), { status: 401, challenge: /^Bearer error="invalid_token"/, body: { code: 'ErrUnknown' } }, header.slice(0, 20))
    }
  })
}

t.test('a store that fails is no refusal', async (t) => {
  for (const fail of [() => { throw new Error('down') }, () => Promise.reject(new Error('down'))]) {
    let down = false
    const { kit, ask } = await open(t, { everyone: {} }, ({ method }, run) => (down && method === 'getLinked' ? fail() : run()))
    const { headers } = await kit.mint()
    t.match(await ask('/everyone/x', headers.authorization), { status: 200 })
    down = true
    t.match(await ask('/everyone/x', headers.authorization), { status: 500 })
  }
})

t.test('a caller whose rights end while a request waits', async (t) => {
  let meanwhile = async () => {}
  const { kit } = await open(t, {}, ({ collection, method }, run) => collection === 'users' && method === 'getBy' ? meanwhile().then(run) : run())
  const { users, tokens } = kit.app.identity
  const operator = { user_id: 'operator', isAdmin: true }
  const create = async (account: string, act: (user_id: string) => Promise<unknown>, roles = ['root']) => {
    const boss = await signIn(kit, { roles })
    meanwhile = async () => { await act(boss.user_id) }
    const reply = await boss.post('/user', { data: { account, password: 'p' } })
    meanwhile = async () => {}
    return { reply, exists: await users.getByAccount(account) !== null }
  }
  t.match(await create('ann', async () => {}), { reply: { status: 200 }, exists: true }, 'nothing ends')
  t.match(await create('bob', (id) => users.patch(id, { data: { roles: { clerk: true } } }, operator)), {
    reply: { status: 403, body: { code: 'ErrPerm' } }, exists: false
  }, 'the role')
  t.match(await create('eve', async (id) => {
    tokens.deleteOfUser(id)
    await tokens.settle()
  }), { reply: { status: 401, body: { code: 'ErrUnknown' } }, exists: false }, 'the token')
  t.match(await create('joe', (id) => users.patch(id, { data: { roles: { root: {}, clerk: true } } }, operator)), { reply: { status: 200 }, exists: true }, 'another role comes')
})

t.test('a change of the profile that comes after the end of its token is refused, however late that was', async (t) => {
  let meanwhile = async () => {}
  const { kit } = await open(t, {}, ({ collection, method }, run) => collection === 'users' && method === 'get' ? meanwhile().then(run) : run())
  const { users } = kit.app.identity
  const change = async (act: (user_id: string) => Promise<unknown>) => {
    const ann = await signIn(kit)
    // After the guard, at the last read before the write.
    meanwhile = async () => {
      meanwhile = async () => {}
      await act(ann.user_id)
    }
    const { status } = await ann.patch('/user', { data: { name: 'written by a thief' } })
    return [status, (await users.require(ann.user_id)).name]
  }
  const operator = { user_id: 'operator', isAdmin: true }
  t.strictSame(await change(async () => {}), [204, 'written by a thief'])
  t.strictSame(await change((id) => users.patch(id, { data: { password: 'new' } }, operator)), [401, ''])
  t.strictSame(await change((id) => users.patch(id, { data: { name: 'by an admin' } }, operator)), [204, 'written by a thief'])
})

t.test('an administrator who becomes a manager while a request waits has no more power than a manager', async (t) => {
  let meanwhile = async () => {}
  const { kit } = await open(t, {}, ({ collection, method }, run) => collection === 'users' && method === 'get' ? meanwhile().then(run) : run())
  const { users } = kit.app.identity
  const operator = { user_id: 'operator', isAdmin: true }
  for (const [roles, status] of [[{ chief: true }, 403], [{ root: true }, 204], [{ root: true, chief: true }, 204]] as [Roles, number][]) {
    const boss = await signIn(kit, { roles: ['root', 'chief'] })
    const target = await signIn(kit)
    meanwhile = async () => {
      meanwhile = async () => {}
      await users.patch(boss.user_id, { data: { roles } }, operator)
    }
    t.match(await boss.patch(`/user/${target.user_id}`, { data: { roles: { root: true } } }), { status }, JSON.stringify(roles))
    t.strictSame((await users.require(target.user_id)).roles, status === 403 ? {} : { root: true })
  }
})

t.test('an app acts with the scopes of its token, a client with no account', async (t) => {
  const { kit } = await open(t, {})
  const { tokens, clients } = kit.app.identity
  const { user_id } = await kit.mint({ user: 'ann', roles: ['root'] })
  const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: ['clients:write', 'users:read'], name: 'own' }, credentials: true }, { user_id, isAdmin: true })
  const call = async (fields: object): Promise<Api> => {
    const token = createToken()
    await tokens.issue({ token, ttl: 60, fields }, { user_id, client_id, user_epoch: 0, client_epoch: (await kit.app.identity.store.collection<ClientRecord>('clients').get(client_id))!.epoch })
    return callAs(kit, { authorization: `Bearer ${token}` })
  }
  const { clientId: mine } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'mine' }, credentials: true }, { user_id, isAdmin: false })
  const showsSecret = async (api: Api) => {
    const { status, body } = await api.get<{ data: { clientSecret?: string } }>(`/client/${mine}`)
    t.equal(status, 200)
    return body.data.clientSecret !== undefined
  }
  t.equal(await showsSecret(await call({ operator: 'unrestricted' })), true)
  t.equal(await showsSecret(await call({ scopes: ['clients:write'], operator: 'narrowed' })), true)
  t.equal(await showsSecret(await call({ scopes: ['clients:read'], operator: 'narrowed' })), false)
  await clients.patch(client_id, { data: { roles: { root: true } } }, { user_id, isAdmin: true })
  t.equal(await showsSecret(await call({ scopes: ['clients:write', 'users:read'], kind: 'ClientCredentials' })), false, 'it is not its owner')

  const change = { data: { password: 'new' } }
  const own = { user_id, isAdmin: false }
  t.match(await (await call({ scopes: ['account:write'], operator: 'narrowed' })).patch('/user', change), { status: 403, body: { message: 'the access token lacks a scope: account:security' } }, 'this user has no password')
  t.match(await (await call({ operator: 'unrestricted' })).patch('/user', change), { status: 204 })
  t.ok(await clients.require(mine, own))
})

t.test('the caller of a request, before a guard and after a refusal', async (t) => {
  const app = fastify()
  t.teardown(() => app.close())
  decorateRequests(app)
  // As a second instance, or the remote plugin, in a scope of the same host.
  app.register(async (scope) => { decorateRequests(scope) })
  app.get('/', async (request) => {
    let message = ''
    try {
      t.notOk(request.caller)
    } catch (error) {
      message = (error as Error).message
    }
    return { hasCaller: request.hasCaller, isAdmin: request.isAdmin, message }
  })
  t.strictSame((await app.inject('/')).json(), { hasCaller: false, isAdmin: false, message: 'request.caller: no guard has authenticated this request' })

  const { kit, ask } = await open(t, { boss: { roles: ['admin'] } })
  const seen: unknown[] = []
  kit.app.addHook('onResponse', async ({ hasCaller, isAdmin }) => { seen.push([hasCaller, isAdmin]) })
  for (const roles of [[], ['root']]) await ask('/boss/x', (await kit.mint({ roles })).headers.authorization)
  await ask('/boss/x')
  t.strictSame(seen, [[true, false], [true, true], [false, false]])
})

t.test('no cache stores an answer, not even a refusal', async (t) => {
  const { kit } = await open(t, {})
  for (const headers of [{}, (await kit.mint()).headers]) {
    t.match(await kit.inject({ url: '/api/v1/user', headers }), { headers: { 'cache-control': 'no-store' } })
  }
})
