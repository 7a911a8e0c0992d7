import rateLimit from '@fastify/rate-limit'
import sensible from '@fastify/sensible'
import swagger from '@fastify/swagger'
import fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import identity, { fastifyIdentity, openStore, COLLECTIONS, type Caller, type IdentityOptions } from '../index.ts'
import { bridge } from '../routes/bridge.ts'
import { type StartOptions, createMint, startIdentity } from '../testing/index.ts'
import { build } from './helpers/build.ts'
import { runFlow } from './helpers/flow.ts'
import { signIn } from './helpers/people.ts'

/** Hosts whose own rules differ as much as possible from ours. */
const HOSTS: Record<string, { app: () => FastifyInstance | Promise<FastifyInstance>, options?: Omit<StartOptions, 't' | 'app'> }> = {
  'a bare one': { app: () => fastify() },
  'a prefix': { app: () => fastify(), options: { prefix: '/identity/v9' } },
  'an Ajv that coerces, fills in and leaves out': {
    app: () => fastify({ ajv: { customOptions: { coerceTypes: 'array', removeAdditional: 'all', useDefaults: true, allErrors: true } } })
  },
  'compilers of its own': {
    app: () => {
      const app = fastify({ schemaErrorFormatter: () => new Error('the host says no') })
      app.setValidatorCompiler(() => () => ({ error: new Error('the host says no') }))
      app.setSerializerCompiler(() => () => '"the host\'s"')
      return app
    }
  },
  'a reply serializer of its own': {
    app: () => {
      const app = fastify()
      app.setReplySerializer(() => '"the host\'s"')
      return app
    }
  },
  'error and not-found handlers of its own': {
    app: () => {
      const app = fastify()
      app.setErrorHandler((_error, _request, reply) => reply.code(418).send('the host\'s'))
      app.setNotFoundHandler((_request, reply) => reply.code(410).send('the host\'s'))
      return app
    }
  },
  'parsers of its own': {
    app: () => {
      const app = fastify({ onProtoPoisoning: 'ignore', onConstructorPoisoning: 'ignore', bodyLimit: 10 })
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, { wrapped: body }))
      app.addContentTypeParser('*', (_request, _payload, done) => done(null, {}))
      return app
    }
  },
  'hooks everywhere': {
    app: () => {
      const app = fastify()
      app.addHook('onRequest', async (_request, reply) => { reply.header('x-host', '1') })
      app.addHook('preParsing', async (_request, _reply, payload) => payload)
      app.addHook('preValidation', (_request, _reply, done) => done())
      app.addHook('preHandler', async () => {})
      app.addHook('preSerialization', async (_request, _reply, payload) => payload)
      app.addHook('onSend', async (_request, _reply, payload) => payload)
      return app
    }
  },
  'sensible, swagger and a rate limit already registered': {
    app: async () => {
      const app = fastify()
      await app.register(sensible)
      await app.register(swagger, { openapi: { openapi: '3.0.0', info: { title: 'the host', version: '1' } } })
      await app.register(rateLimit, { global: false })
      return app
    }
  },
  'its own way with URLs, queries and HEAD': {
    app: () => fastify({
      routerOptions: {
        ignoreTrailingSlash: true,
        caseSensitive: false,
        querystringParser: (text: string) => Object.fromEntries(new URLSearchParams(text))
      },
      exposeHeadRoutes: false
    })
  },
  'no OpenAPI and no health': { app: () => fastify(), options: { openapi: false, health: false } }
}

for (const [name, { app, options }] of Object.entries(HOSTS)) {
  t.test(`the same in a host with ${name}`, async (t) => {
    const kit = await build(t, { ...options, app: await app() })
    await runFlow(t, kit, options?.prefix)
  })
}

/** What a host answers on its own: with its Ajv, its errors, its parser. */
async function observeHost (app: FastifyInstance): Promise<unknown[]> {
  app.post('/own', { schema: { body: { type: 'object', properties: { n: { type: 'integer' } } } } }, (request) => ({ got: request.body }))
  app.get('/fail', () => { throw Object.assign(new Error('mine'), { statusCode: 409 }) })
  const seen = []
  for (const request of [
    { method: 'POST', url: '/own', payload: { n: '5', left: 'out' } },
    { method: 'POST', url: '/own', payload: { n: 'x' } },
    { method: 'POST', url: '/own', payload: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    { method: 'POST', url: '/own', payload: '{"__proto__":{}}', headers: { 'content-type': 'application/json' } },
    { method: 'GET', url: '/fail' },
    { method: 'GET', url: '/nowhere' },
    { method: 'GET', url: '/api/elsewhere' }
  ] as const) {
    const { statusCode, headers: { date: _, ...headers }, body } = await app.inject(request)
    seen.push({ statusCode, headers, body })
  }
  return seen
}

t.test('a host\'s own routes are as they were', async (t) => {
  for (const [name, { app, options }] of Object.entries(HOSTS)) {
    const without = await app()
    t.teardown(() => without.close())
    const kit = await startIdentity({ t, ...options, app: await app() })
    t.strictSame(await observeHost(kit.app), await observeHost(without), name)
  }
})

t.test('a host\'s OpenAPI document of any version is the same as without the plugin', async (t) => {
  const documents = await Promise.all([false, true].map(async (isOurs) => {
    const app = fastify()
    t.teardown(() => app.close())
    await app.register(swagger, {})
    if (isOurs) {
      await app.register(identity, { database: 'sqlite::memory:', secretKey: Buffer.alloc(32).toString('base64') })
      await app.register(bridge, { prefix: '/clients', upstream: 'http://127.0.0.1:9' })
    }
    app.get('/own', { schema: { summary: 'the host\'s' } }, () => 'own')
    await app.ready()
    return app.swagger()
  }))
  t.strictSame(documents[1], documents[0])
})

t.test('a host\'s OpenAPI document that asks for our routes has them too, and our document has only ours', async (t) => {
  const app = fastify()
  await app.register(swagger, { openapi: { openapi: '3.1.0', info: { title: 'the host', version: '1' } } })
  const kit = await startIdentity({ t, app, inHostDocument: true })
  app.get('/own', { schema: { summary: 'the host\'s' } }, () => 'own')
  await app.ready()
  const paths = Object.keys(app.swagger().paths ?? {})
  t.ok(paths.includes('/own') && paths.includes('/api/v1/user/{userId}'))
  const ours = (await kit.inject('/openapi.json')).json()
  t.equal(ours.info.title, 'fastify-identity')
  t.ok('/api/v1/user/{userId}' in ours.paths && !('/own' in ours.paths))
})

t.test('the guard on a host\'s routes', async (t) => {
  const kit = await startIdentity({ t, roles: { admin: 'root' } })
  const { app } = kit
  const see = (request: { caller: Caller, hasCaller: boolean, isAdmin: boolean }) => ({ caller: request.hasCaller ? request.caller : null, isAdmin: request.isAdmin })
  app.get('/open', see)
  app.get('/any', { onRequest: app.identity.guard() }, see)
  app.get('/scoped', { onRequest: app.identity.guard({ scopes: ['orders:read', 'orders:write'] }) }, see)
  app.get('/admins', { preHandler: app.identity.guard({ roles: ['admin'] }) }, see)
  app.get('/clerks', { onRequest: app.identity.guard({ roles: ['clerk', 'admin'] }) }, see)
  app.get('/of/:userId', { onRequest: app.identity.guard({ owner: true, scopes: ['orders:read'] }) }, see)

  const all = await signIn(kit, { user: 'ann', client: 'shop', scopes: ['orders:read', 'orders:write'] })
  const some = await signIn(kit, { user: 'ann', client: 'shop', scopes: ['orders:read'] })
  const clerk = await signIn(kit, { roles: { clerk: { desk: 4 } } })
  const root = await signIn(kit, { roles: ['root'] })
  for (const [url, headers, status] of [
    ['/open', {}, 200], ['/open', { authorization: 'Bearer dead' }, 200],
    ['/any', {}, 401], ['/any', { authorization: 'Bearer dead' }, 401], ['/any', all.headers, 200],
    ['/scoped', {}, 401], ['/scoped', some.headers, 403], ['/scoped', root.headers, 403], ['/scoped', all.headers, 200],
    ['/admins', {}, 401], ['/admins', clerk.headers, 403], ['/admins', root.headers, 200],
    ['/clerks', all.headers, 403], ['/clerks', clerk.headers, 200], ['/clerks', root.headers, 200],
    [`/of/${all.user_id}`, some.headers, 200], [`/of/${all.user_id}`, root.headers, 403], [`/of/${root.user_id}`, some.headers, 403]
  ] as const) t.equal((await app.inject({ url, headers })).statusCode, status, `${url} ${status}`)

  t.strictSame((await app.inject('/open')).json(), { caller: null, isAdmin: false })
  t.strictSame((await app.inject({ url: '/any', headers: some.headers })).json(), {
    caller: {
      subject: 'user',
      user: { user_id: some.user_id, account: 'ann', name: '', roles: {} },
      client: { clientId: some.client_id, name: 'shop', scopes: ['orders:read', 'orders:write'], userId: some.user_id },
      token: {
        id: (await kit.app.identity.tokens.authenticate(some.access_token)).token.id,
        scopes: ['orders:read'],
        user_epoch: 0,
        created_at: new Date(kit.clock.now()).toISOString(),
        expired_at: new Date(kit.clock.now() + 3600_000).toISOString()
      },
      isAdmin: false
    },
    isAdmin: false
  })
  t.match((await app.inject({ url: '/any', headers: root.headers })).json(), { isAdmin: true })

  t.match(await app.inject('/any'), { statusCode: 401, headers: { 'www-authenticate': 'Bearer' } }, 'a host without an error handler of its own sends it whole')
  t.match((await app.inject('/any')).json(), { statusCode: 401, code: 'ErrUnknown', error: 'Unauthorized' })
  t.match(await app.inject({ url: '/scoped', headers: some.headers }), {
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="orders:read orders:write"' }
  })
})

t.test('two instances in sibling scopes, and one inside another, know nothing of each other', async (t) => {
  const app = fastify()
  t.teardown(() => app.close())
  const scopes: Record<string, FastifyInstance> = {}
  const options = (prefix: string): IdentityOptions => ({ database: 'sqlite::memory:', bcryptCost: 4, passwordMin: 1, prefix })
  await app.register(async (one) => {
    await one.register(identity, options('/one'))
    scopes['/one'] = one
    one.get('/one/mine', { onRequest: one.identity.guard() }, (request) => request.caller.user.account)
    await one.register(async (inner) => {
      await inner.register(identity, options('/inner'))
      scopes['/inner'] = inner
      inner.get('/inner/mine', { onRequest: inner.identity.guard() }, (request) => request.caller.user.account)
    })
  })
  await app.register(async (two) => {
    await two.register(fastifyIdentity, options('/two'))
    scopes['/two'] = two
    two.get('/two/mine', { onRequest: two.identity.guard() }, (request) => request.caller.user.account)
  })
  await app.ready()
  t.notOk(app.hasDecorator('identity'), 'a scope\'s instance stays in it')
  for (const [prefix, scope] of Object.entries(scopes)) {
    const minted = await createMint(scope.identity)({ user: `user-of${prefix.replace('/', '-')}` })
    for (const other of Object.keys(scopes)) {
      for (const path of [`${other}/api/v1/user`, `${other}/mine`]) {
        const reply = await app.inject({ url: path, headers: minted.headers })
        t.equal(reply.statusCode, other === prefix ? 200 : 401, `a token of ${prefix} at ${path}`)
        if (other === prefix) t.match(reply.body, minted.account)
      }
    }
    await runFlow(t, { ...(await startIdentity({ t })), app, inject: app.inject.bind(app), mint: createMint(scope.identity) }, prefix)
  }
})

t.test('two instances over one store share it, and leave it open', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const [one, two] = [await startIdentity({ t, store }), await startIdentity({ t, store })]
  const { headers } = await one.mint({ user: 'ann' })
  t.equal((await two.inject({ url: '/api/v1/user', headers })).statusCode, 200)
  await one.close()
  t.equal((await two.inject({ url: '/api/v1/user', headers })).statusCode, 200)
})

t.test('options', async (t) => {
  t.test('are not written to', async (t) => {
    const options: IdentityOptions = Object.freeze({ database: 'sqlite::memory:', roles: Object.freeze({ admin: 'root' }), access: Object.freeze({}) })
    const app = fastify()
    t.teardown(() => app.close())
    await app.register(identity, options)
    t.strictSame(options, { database: 'sqlite::memory:', roles: { admin: 'root' }, access: {} })
  })

  t.test('that are wrong are named at boot', async (t) => {
    for (const [options, message] of [
      [{ databse: 'sqlite::memory:' }, /^option databse: is not an option, did you mean database\?$/],
      [{ nothingLikeIt: true }, /^option nothingLikeIt: is not an option$/],
      [{ database: '' }, /option database/],
      [{ database: 'postgres://u:hunter2@h/db' }, /^the database URL has the unknown scheme 'postgres:'; it must begin with sqlite:, /],
      [{ bcryptCost: 3 }, /option bcryptCost/],
      [{ bcryptCost: '12' }, /option bcryptCost/],
      [{ prefix: 'no-slash' }, /^option prefix: must be a path such as \/identity, /],
      [{ prefix: '/slash/' }, /^option prefix: must be a path/],
      [{ roles: { boss: 'x' } }, /option roles\.boss: is not an option/],
      [{ roles: { admin: '' } }, /option roles\.admin/],
      [{ rateLimit: 0 }, /option rateLimit/],
      [{ stallTimeout: 1 }, /option stallTimeout/],
      [{ secretKey: 'hunter2' }, /the secret key must be 32 random bytes/],
      [{ production: true }, /in production a secret key must be configured/]
    ] as const) {
      const app = fastify()
      t.teardown(() => app.close())
      const error = await app.register(identity, { database: 'sqlite::memory:', ...options } as IdentityOptions).then(() => new Error('it started'), (error: Error) => error)
      t.match(error.message, message)
      t.notMatch(error.message, /hunter2/)
    }
  })
})
