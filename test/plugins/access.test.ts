import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RouteOptions } from 'fastify'
import t, { type Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { enforceAccess } from '../../plugins/access.ts'
import { startIdentity } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

/** A service in memory that counts how often it asks the store about a token. */
async function open (t: Test, app = createApp(), wait?: () => Promise<unknown>) {
  let lookups = 0
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, ({ collection, method }, run) => {
    if (collection !== 'access_tokens' || method !== 'getLinked') return run()
    lookups++
    return wait === undefined ? run() : wait().then(run)
  })
  const kit = await startIdentity({ t, app, store, rateLimit: false })
  return { kit, lookups: () => lookups }
}

t.test('a route without a row, or with an unknown one, fails at boot', async (t) => {
  for (const config of [undefined, {}, { access: 'nothing' }, { access: 'constructor' }]) {
    const { kit } = await open(t)
    kit.app.register(async (scope) => {
      enforceAccess(scope, {})
      scope.get('/forgotten', { ...(config && { config }) }, () => 'open to all')
    })
    await t.rejects(async () => await kit.app.ready(), { message: 'GET /forgotten has no row in the access table' }, JSON.stringify(config))
  }
})

t.test('a guard asks once before the body, and again after it, because an upload may take long', async (t) => {
  const { kit, lookups } = await open(t)
  const { tokens } = kit.app.identity
  let meanwhile = async () => {}
  const schema = { body: { type: 'object' } }
  const reached: string[] = []
  kit.app.register(async (scope) => {
    enforceAccess(scope, { createUser: { any: true } })
    // Where a request waits for its body.
    scope.addHook('preParsing', async () => { await meanwhile() })
    scope.get('/read', { config: { access: 'getProfile' } }, async ({ url }) => reached.push(url))
    scope.post('/write', { config: { access: 'patchProfile' }, schema }, async ({ url }) => reached.push(url))
    scope.post('/act', { config: { access: 'patchProfile' }, schema: { querystring: { type: 'object' } } }, async ({ url }) => reached.push(url))
    scope.post('/plain', { config: { access: 'patchProfile' } }, async ({ url }) => reached.push(url))
  })
  const send = async (method: 'GET' | 'POST', url: string) => {
    const { headers, access_token } = await kit.mint()
    const before = lookups()
    const { statusCode } = await kit.inject({ method, url, headers, ...(method === 'POST' && { payload: {} }) })
    const after = lookups()
    meanwhile = async () => await tokens.revoke((await tokens.authenticate(access_token)).token)
    const revoked = await kit.inject({ method, url, headers, ...(method === 'POST' && { payload: {} }) })
    meanwhile = async () => {}
    return [statusCode, after - before, revoked.statusCode]
  }
  t.strictSame(await send('POST', '/write'), [200, 2, 401])
  t.strictSame(reached, ['/write'], 'the handler of the revoked token did not run')
  for (const [method, url] of [['GET', '/read'], ['POST', '/act'], ['POST', '/plain']] as const) t.strictSame(await send(method, url), [200, 1, 200], url)
})

t.test('over HTTP, a guard asks again only where the body had not arrived with the answer of the store', async (t) => {
  let count = 0
  const answers = () => count
  const { kit, lookups } = await open(t, createApp(), async () => {
    await sleep(20)
    count++
  })
  const { tokens } = kit.app.identity
  kit.app.register(async (scope) => {
    enforceAccess(scope, { createUser: { any: true } })
    scope.post('/write', { config: { access: 'patchProfile' }, schema: { body: { type: 'object' } } }, async () => 'written')
  })
  const { url } = await kit.listen()
  async function write (beforeLast: (access_token: string) => Promise<unknown>, isSlow = true): Promise<[status: number | undefined, lookups: number]> {
    const { headers, access_token } = await kit.mint()
    const [before, answered] = [lookups(), answers()]
    const sent = request(`${url}/write`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json', 'content-length': 2 } })
    const responded = once(sent, 'response')
    if (isSlow) {
      sent.write('{')
      while (answers() === answered) await sleep(10)
      await beforeLast(access_token)
      sent.end('}')
    } else sent.end('{}')
    const [response] = await responded as [IncomingMessage]
    response.resume()
    return [response.statusCode, lookups() - before]
  }
  t.strictSame(await write(async () => {}, false), [200, 1])
  t.strictSame(await write(async () => {}), [200, 2])
  t.match(await write(async (token) => await tokens.revoke((await tokens.authenticate(token)).token)), [401])
})

t.test('hooks that the host gives every route run in the API too, after the guard', async (t) => {
  for (const asArray of [true, false]) {
    const ran: string[] = []
    const note = (name: string) => async (request: { hasCaller: boolean }) => { ran.push(`${name} ${request.hasCaller}`) }
    const app = createApp()
    // As @fastify/rate-limit does.
    app.addHook('onRoute', (route: RouteOptions) => {
      const [first, second] = [note('onRequest'), note('preValidation')]
      route.onRequest = asArray ? [first] : first
      route.preValidation = asArray ? [second] : second
    })
    const { kit } = await open(t, app)
    const { headers } = await kit.mint()
    const change = () => kit.inject({ method: 'PATCH', url: '/api/v1/user', headers, payload: { data: { name: 'Ann' } } })
    t.equal((await change()).statusCode, 204)
    t.strictSame(ran.splice(0), ['onRequest true', 'preValidation true'])
    t.equal((await kit.inject({ url: '/api/v1/user', headers })).statusCode, 200)
    t.strictSame(ran.splice(0), ['onRequest true', 'preValidation true'])
    t.equal((await kit.inject({ url: '/api/v1/user' })).statusCode, 401)
    t.strictSame(ran, [], 'a refused request goes no further')
  }
})

t.test('the configuration of a route stays beside the admission', async (t) => {
  const { kit } = await open(t)
  kit.app.register(async (scope) => {
    enforceAccess(scope, {})
    scope.get('/configured', { config: { access: 'getProfile', rateLimit: false } as object }, async ({ routeOptions: { config } }) => Object.keys(config).sort())
  })
  const { headers } = await kit.mint()
  t.strictSame((await kit.inject({ url: '/configured', headers })).json(), ['access', 'admission', 'method', 'rateLimit', 'url'])
})

t.test('an override replaces the rule of a row, never its scope', async (t) => {
  const { kit } = await open(t)
  const { app: { identity: { tokens, clients, users } } } = kit
  kit.app.register(async (scope) => {
    enforceAccess(scope, { getUser: { any: true } })
    scope.get('/user', { config: { access: 'getUser' } }, async ({ caller }) => caller.user.user_id)
    scope.get('/count', { config: { access: 'countUsers' } }, async () => 1)
  })
  const { user_id } = await users.create({ data: { account: 'ann', password: 'p' } })
  const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'app' } }, { user_id, isAdmin: true })
  const ask = async (url: string, scopes: string[]) => {
    const { access_token } = await tokens.mint({ user_id, client_id, scopes })
    return (await kit.inject({ url, headers: { authorization: `Bearer ${access_token}` } })).statusCode
  }
  t.equal(await ask('/user', ['users:read']), 200)
  t.equal(await ask('/user', ['account:read']), 403)
  t.equal(await ask('/count', ['users:read']), 403, 'another row stays')
})

t.test('an override of an unknown row fails at boot', async (t) => {
  for (const name of ['nothing', 'constructor']) {
    const { kit } = await open(t)
    kit.app.register(async (scope) => enforceAccess(scope, { [name]: { any: true } }))
    await t.rejects(async () => await kit.app.ready(), { message: new RegExp(`^access\\.${name}: no such row, expected one of createClient, `) })
  }
})

t.test('an override of a row that admits every token fails at boot', async (t) => {
  for (const name of ['getTokenInfo', 'logout']) {
    const { kit } = await open(t)
    kit.app.register(async (scope) => enforceAccess(scope, { [name]: { roles: ['admin'] } }))
    await t.rejects(async () => await kit.app.ready(), { message: `access.${name}: cannot be overridden, because every valid token may call it` })
  }
})
