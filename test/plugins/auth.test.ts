import t, { type Test } from 'tap'
import type { GuardOptions } from '../../index.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { LIMITS } from '../../schemas/common.ts'
import { startIdentity } from '../../testing/index.ts'
import { mintAll, signIn } from '../helpers/people.ts'
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
    const longest = 'a'.repeat(LIMITS.token - 'Bearer '.length)
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

t.test('no cache stores an answer, not even a refusal', async (t) => {
  const { kit } = await open(t, {})
  for (const headers of [{}, (await kit.mint()).headers]) {
    t.match(await kit.inject({ url: '/api/v1/user', headers }), { headers: { 'cache-control': 'no-store' } })
  }
})
