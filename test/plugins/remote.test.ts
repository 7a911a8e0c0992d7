import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import t from 'tap'
import { Pool } from 'undici'
import type { ErrorCode } from '../../lib/errors.ts'
import { remoteAuth, type RemoteAuthOptions } from '../../plugins/remote.ts'
import { RemoteOptionsSchema } from '../../schemas/remote.ts'
import { createTestClock, startIdentity, type StartOptions } from '../../testing/index.ts'
import { serve, startUpstream, within, type Answer } from '../helpers/upstream.ts'
import { mintAll } from '../helpers/people.ts'
import { waitUntil } from '../helpers/wait.ts'

interface Teardown {
  teardown: (fn: () => unknown) => unknown
}

/** A host app with a route for each kind of guard. */
async function startHost (t: Teardown, options: RemoteAuthOptions, host: FastifyInstance = fastify()) {
  t.teardown(async () => { await host.close() })
  const clock = createTestClock()
  await host.register(remoteAuth, { now: clock.now, ...options })
  const { guard } = host.identity
  const whoami = (request: FastifyRequest) => ({ caller: request.hasCaller ? request.caller : null, isAdmin: request.isAdmin })
  host.get('/any', { onRequest: guard() }, whoami)
  host.get('/admin', { onRequest: guard({ roles: ['admin'] }) }, whoami)
  host.get('/scoped', { onRequest: guard({ scopes: ['read', 'write'] }) }, whoami)
  host.get('/users/:userId', { onRequest: guard({ roles: ['admin'], owner: true }) }, whoami)
  host.get('/open', whoami)
  const ask = async (token = 'abc', url = '/any') => await within(url, host.inject({ url, headers: { authorization: `Bearer ${token}` } }))
  const statuses = async (...tokens: string[]) => {
    const found: number[] = []
    for (const token of tokens) found.push((await ask(token)).statusCode)
    return found
  }
  return { host, clock, ask, statuses }
}

/** The service, listening. */
async function startService (t: Teardown, options: StartOptions = {}) {
  const kit = await startIdentity(options)
  t.teardown(kit.close)
  const seen: string[] = []
  let connections = 0
  kit.app.addHook('onRequest', async (request) => { seen.push(request.url) })
  kit.app.server.on('connection', () => connections++)
  const { url } = await kit.listen()
  return { kit, url, seen, connections: () => connections }
}

const INFO = { user_id: 'u1', account: 'ann', name: 'Ann', roles: {}, client_id: 'c1', scopes: ['read'] }
const JSON_TYPE = { 'content-type': 'application/json' }
const tell = (response: ServerResponse, info: object = INFO) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ data: info }))
const refuse = (response: ServerResponse) => response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end('{}')

/** A fake service; `state.answer` may be replaced. */
async function startFake (t: Teardown, first: Answer = (response) => tell(response)) {
  const state = { answer: first }
  const upstream = await startUpstream(t, async (...all) => await state.answer(...all))
  return { ...upstream, state }
}

const errorOf = (code: ErrorCode, statusCode: number) => ({ statusCode, code })
const UNAVAILABLE = { ...errorOf('ErrRsc', 503), error: 'Service Unavailable', message: 'the identity service is unavailable' }

t.test('the caller equals that of an embedded service, in all fields of tokeninfo', async (t) => {
  const { kit, url } = await startService(t)
  const { ask, host } = await startHost(t, { upstream: url })
  const { access_token, headers, user_id, client_id } = await mintAll(kit, { user: 'ann', roles: { admin: { since: 1 } }, scopes: ['read'] })
  const beside = await kit.app.identity.tokens.authenticate(access_token)
  t.strictSame((await ask(access_token)).json(), {
    caller: {
      subject: 'user',
      user: { user_id, account: 'ann', name: '', roles: { admin: { since: 1 } } },
      client: { clientId: client_id },
      token: { id: beside.token.id, scopes: ['read'] },
      isAdmin: true
    },
    isAdmin: true
  })
  t.match(beside, (await ask(access_token)).json().caller)
  t.strictSame((await host.inject({ url: '/open', headers })).json(), { caller: null, isAdmin: false })
})

t.test('the guard enforces roles, scopes and owners', async (t) => {
  const { kit, url } = await startService(t, { prefix: '/id', roles: { admin: 'root' } })
  const { ask, host } = await startHost(t, { upstream: `${url}/id/`, roles: { admin: 'root' } })
  const admin = await kit.mint({ user: 'ann', roles: ['root'] })
  const plain = await kit.mint({ user: 'bob', roles: ['admin'], scopes: ['read'] })
  const scoped = await kit.mint({ user: 'cy', scopes: ['read', 'write'] })
  for (const [who, token, path, status] of [
    ['admin', admin, '/any', 200], ['admin', admin, '/admin', 200], ['admin', admin, '/scoped', 403],
    ['plain', plain, '/any', 200], ['plain', plain, '/admin', 403], ['plain', plain, '/scoped', 403],
    ['scoped', scoped, '/scoped', 200], ['scoped', scoped, '/admin', 403],
    ['plain', plain, `/users/${plain.user_id}`, 200], ['plain', plain, `/users/${scoped.user_id}`, 403], ['admin', admin, `/users/${plain.user_id}`, 200]
  ] as const) t.equal((await ask(token.access_token, path)).statusCode, status, `${who} ${path}`)
  t.equal((await ask(plain.access_token)).json().isAdmin, false)
  t.match((await ask(plain.access_token, '/scoped')).headers, { 'www-authenticate': /^Bearer error="insufficient_scope"/ })
  for (const authorization of [undefined, 'Basic abc', 'Bearer', `Bearer ${'a'.repeat(5000)}`]) {
    const reply = await host.inject({ url: '/any', headers: authorization === undefined ? {} : { authorization } })
    t.match(reply.json(), errorOf('ErrUnknown', 401))
    t.equal(reply.headers['www-authenticate'], 'Bearer')
  }
})

t.test('a token the service refuses is refused with its challenge', async (t) => {
  const { url } = await startService(t)
  const { ask } = await startHost(t, { upstream: url })
  const reply = await ask()
  t.match(reply.json(), errorOf('ErrUnknown', 401))
  const direct = await fetch(`${url}/api/v1/auth/tokeninfo`, { headers: { authorization: 'Bearer abc' } })
  t.ok(direct.headers.get('www-authenticate'))
  t.equal(reply.headers['www-authenticate'], direct.headers.get('www-authenticate'))
  const fake = await startFake(t, (response) => response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end())
  const other = await startHost(t, { upstream: fake.url })
  t.match((await other.ask()).headers, { 'www-authenticate': /^Bearer error="invalid_token"/ })
})

t.test('concurrent requests with one token share one call', async (t) => {
  for (const [cacheTtl, questions] of [[1_000, 1], [0, 2]] as const) {
    const go = Promise.withResolvers<void>()
    const arrived = Promise.withResolvers<void>()
    const fake = await startFake(t, async (response) => {
      arrived.resolve()
      await go.promise
      tell(response)
    })
    const { ask } = await startHost(t, { upstream: fake.url, cacheTtl })
    const replies = Array.from({ length: 50 }, async () => await ask())
    await within('the question', arrived.promise)
    go.resolve()
    for (const reply of await Promise.all(replies)) t.equal(reply.statusCode, 200)
    // Without a cache, a request cannot use a call that was sent before it arrived: the later 49 share the next call.
    t.equal(fake.seen.length, questions, `cacheTtl ${cacheTtl}`)
  }
})

t.test('requests with different tokens share no call', async (t) => {
  const fake = await startFake(t, (response, { headers }) => tell(response, { ...INFO, account: headers.authorization?.slice(7) }))
  const { ask } = await startHost(t, { upstream: fake.url })
  const tokens = Array.from({ length: 50 }, (_, index) => `token${index}`)
  const accounts = await Promise.all(tokens.map(async (token) => (await ask(token)).json().caller.user.account))
  t.strictSame(accounts, tokens)
})

t.test('an answer is cached for cacheTtl, good or bad', async (t) => {
  for (const answer of [(response: ServerResponse) => tell(response), refuse]) {
    const fake = await startFake(t, answer)
    const { ask, clock } = await startHost(t, { upstream: fake.url, cacheTtl: 500 })
    for (const [step, questions] of [[0, 1], [499, 1], [1, 2], [0, 2], [500, 3]] as const) {
      clock.advance(step)
      await ask()
      t.equal(fake.seen.length, questions)
    }
  }
})

t.test('a cacheTtl of 0 caches nothing', async (t) => {
  const fake = await startFake(t)
  const { statuses } = await startHost(t, { upstream: fake.url, cacheTtl: 0 })
  t.strictSame(await statuses('a', 'a', 'a'), [200, 200, 200])
  fake.state.answer = refuse
  t.strictSame(await statuses('a', 'a'), [401, 401])
  t.equal(fake.seen.length, 5)
})

t.test('a revoked token is refused after cacheTtl, and without a cache at once', async (t) => {
  const { kit, url } = await startService(t)
  const cached = await startHost(t, { upstream: url, cacheTtl: 500 })
  const exact = await startHost(t, { upstream: url, cacheTtl: 0 })
  const { access_token, headers } = await kit.mint()
  t.equal((await cached.ask(access_token)).statusCode, 200)
  t.equal((await exact.ask(access_token)).statusCode, 200)
  t.equal((await kit.inject({ method: 'POST', url: '/api/v1/auth/logout', headers })).statusCode, 204)
  t.equal((await exact.ask(access_token)).statusCode, 401)
  cached.clock.advance(499)
  t.equal((await cached.ask(access_token)).statusCode, 200)
  cached.clock.advance(1)
  t.equal((await cached.ask(access_token)).statusCode, 401)
})

t.test('the age of an answer counts from when its request was sent', async (t) => {
  const go = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const fake = await startFake(t, async (response) => {
    arrived.resolve()
    await go.promise
    tell(response)
  })
  const { ask, clock } = await startHost(t, { upstream: fake.url, cacheTtl: 500 })
  const first = ask()
  await within('the question', arrived.promise)
  clock.advance(500)
  // Too late to share the call in flight, which may have been answered before a revocation.
  const second = ask()
  fake.state.answer = refuse
  go.resolve()
  t.equal((await first).statusCode, 200)
  t.equal((await second).statusCode, 401)
  t.equal(fake.seen.length, 2)
})

t.test('the duration of a call counts towards the age of its answer', async (t) => {
  const fake = await startFake(t)
  const { ask, clock } = await startHost(t, { upstream: fake.url, cacheTtl: 500 })
  fake.state.answer = (response) => {
    clock.advance(300)
    tell(response)
  }
  await ask()
  clock.advance(199)
  await ask()
  t.equal(fake.seen.length, 1)
  clock.advance(1)
  await ask()
  t.equal(fake.seen.length, 2)
})

t.test('the cache is bounded, and made-up tokens evict no good answer', async (t) => {
  const fake = await startFake(t, (response, { headers }) => headers.authorization?.includes('bad') ? refuse(response) : tell(response))
  const { statuses } = await startHost(t, { upstream: fake.url, cacheSize: 2 })
  const asked = async (...tokens: string[]) => {
    const before = fake.seen.length
    await statuses(...tokens)
    return fake.seen.length - before
  }
  t.equal(await asked('a', 'b', 'a', 'b'), 2)
  t.equal(await asked('bad1', 'bad2', 'bad3', 'bad3'), 3)
  t.equal(await asked('bad1'), 1, 'bad ones are bounded too')
  t.equal(await asked('a', 'b'), 0)
  t.equal(await asked('c', 'b', 'a'), 2, 'the one that was used least lately went')
  fake.state.answer = (response) => tell(response, { ...INFO, roles: { big: { text: 'x'.repeat(9_000) } } })
  t.equal(await asked('d', 'd'), 2, 'an answer past the bound of all is not kept')
})

t.test('a handler that modifies its caller affects no other request', async (t) => {
  const fake = await startFake(t)
  const host = fastify()
  const { ask } = await startHost(t, { upstream: fake.url }, host)
  host.get('/raise', { onRequest: host.identity.guard() }, ({ caller }) => {
    caller.user.roles.admin = true
    return {}
  })
  t.equal((await ask('abc', '/raise')).statusCode, 200)
  t.equal((await ask('abc', '/admin')).statusCode, 403)
  t.equal(fake.seen.length, 1)
})

t.test('an answer that says nothing about the token is 503, and not cached', async (t) => {
  const bodies: [string, Answer][] = [
    ['500', (response) => response.writeHead(500).end()],
    ['404', (response) => response.writeHead(404).end('{}')],
    ['403', (response) => response.writeHead(403).end('{}')],
    ['a redirect', (response) => response.writeHead(302, { location: '/other' }).end()],
    ['204', (response) => response.writeHead(204).end()],
    ['not JSON', (response) => response.writeHead(200, JSON_TYPE).end('<html>secret-token</html>')],
    ['null', (response) => response.writeHead(200, JSON_TYPE).end('null')],
    ['no user', (response) => tell(response, { ...INFO, user_id: undefined })],
    ['roles that are none', (response) => tell(response, { ...INFO, roles: ['admin'] })],
    ['a falsy role', (response) => tell(response, { ...INFO, roles: { admin: false } })],
    ['scopes that are none', (response) => tell(response, { ...INFO, scopes: 'read write' })],
    ['a huge body', (response) => tell(response, { ...INFO, name: 'x'.repeat(200_000) })],
    ['an endless body', (response) => {
      const more = () => { while (response.write('x'.repeat(16_384))); }
      response.on('drain', more).on('error', () => {})
      response.writeHead(200, JSON_TYPE)
      more()
    }],
    ['a broken body', (response) => {
      response.writeHead(200, { ...JSON_TYPE, 'content-length': 1_000 }).write('{')
      response.socket?.end()
    }],
    ['not HTTP', (response) => response.socket?.end('secret-token\r\n\r\n')]
  ]
  const lines: string[] = []
  const host = fastify({ logger: { level: 'info', stream: { write: (line: string) => { lines.push(line) } } } })
  const fake = await startFake(t)
  const { ask } = await startHost(t, { upstream: fake.url, cacheTtl: 0 }, host)
  for (const [name, answer] of bodies) {
    fake.state.answer = answer
    const reply = await ask('secret-token')
    t.strictSame(reply.json(), UNAVAILABLE, name)
    t.equal(reply.headers['retry-after'], '1', name)
    fake.state.answer = (response) => tell(response)
    t.equal((await ask('secret-token')).statusCode, 200, `${name}: and back`)
  }
  const text = lines.join('')
  t.match(text, 'the identity service answered 500', 'the operator is told why')
  t.match(text, 'the identity service is available again')
  t.notMatch(text, 'secret-token')
})

t.test("the service's Retry-After is passed on", async (t) => {
  for (const [status, after, expected] of [[429, '7', '7'], [503, '30', '30'], [503, 'Fri, 01 Jan 2027 00:00:00 GMT', '1'], [500, undefined, '1']] as const) {
    const fake = await startFake(t, (response) => response.writeHead(status, after === undefined ? {} : { 'retry-after': after }).end())
    const { ask } = await startHost(t, { upstream: fake.url })
    const reply = await ask()
    t.strictSame(reply.json(), UNAVAILABLE)
    t.equal(reply.headers['retry-after'], expected)
  }
})

t.test('a service that is down is 503, until it is back', async (t) => {
  const first = await startFake(t)
  const { statuses, clock } = await startHost(t, { upstream: first.url })
  t.strictSame(await statuses('a'), [200])
  await first.close()
  t.strictSame(await statuses('b', 'b', 'a'), [503, 503, 200], 'what is young is still used')
  clock.advance(1_000)
  t.strictSame(await statuses('a'), [503])
  await startUpstream(t, (response) => tell(response), first.port)
  t.strictSame(await statuses('a', 'b'), [200, 200])
})

t.test('a service that does not answer, or not to the end, is 503 in time', async (t) => {
  const begin = (response: ServerResponse) => response.writeHead(200, JSON_TYPE).write('{"data":')
  for (const [name, answer] of [
    ['nothing', () => {}],
    ['a beginning', begin],
    ['a little at a time', (response) => {
      begin(response)
      const timer = setInterval(() => response.write(' '), 5)
      response.once('close', () => clearInterval(timer))
    }]
  ] as [string, (response: ServerResponse) => void][]) {
    const silent = await serve(t, (_request, response) => answer(response))
    const { host, ask } = await startHost(t, { upstream: silent.url, timeout: 50, maxConnections: 1 })
    // The others wait for the only connection.
    for (const reply of await Promise.all(['a', 'b', 'c'].map(async (token) => await ask(token)))) t.strictSame(reply.json(), UNAVAILABLE, name)
    await host.close()
  }
})

t.test('a good answer is used up to staleTtl while the service is unavailable', async (t) => {
  const warnings: string[] = []
  const write = (line: string) => {
    const { level, msg } = JSON.parse(line)
    if (level === 40) warnings.push(msg)
  }
  const host = fastify({ logger: { stream: { write } } })
  const fake = await startFake(t)
  const { statuses, clock } = await startHost(t, { upstream: fake.url, cacheTtl: 100, staleTtl: 1_000 }, host)
  t.strictSame(await statuses('a'), [200])
  await fake.close()
  clock.advance(999)
  t.strictSame(await statuses('a', 'a', 'b'), [200, 200, 503])
  clock.advance(1)
  t.strictSame(await statuses('a'), [503], 'no longer than that')
  t.strictSame(warnings, ['the identity service is unavailable'], 'logged once')
})

t.test('one clock: with `now`, the ages of answers and of sign-ins move together', async (t) => {
  const { url, kit } = await startService(t)
  const { headers: { authorization } } = await kit.mint({ acr: 'mfa' })
  const token = authorization.slice('Bearer '.length)
  const { host, clock, ask } = await startHost(t, { upstream: url, cacheTtl: 300_000 })
  host.get('/fresh', { onRequest: host.identity.guard({ maxAge: 600 }) }, () => 'fresh')
  host.get('/strong', { onRequest: host.identity.guard({ acr: 'mfa' }) }, () => 'strong')
  for (const [minutes, status] of [[0, 200], [9, 200], [2, 401], [-2, 200]] as const) {
    clock.advance(minutes * 60_000)
    const reply = await ask(token, '/fresh')
    t.equal(reply.statusCode, status, `${minutes} minutes later`)
    if (status === 401) t.match(reply.headers['www-authenticate'], /insufficient_user_authentication.*max_age="?600/)
    t.equal((await ask(token, '/strong')).statusCode, 200)
  }
  const plain = fastify()
  t.teardown(() => plain.close())
  await plain.register(remoteAuth, { upstream: url })
  plain.get('/fresh', { onRequest: plain.identity.guard({ maxAge: 600 }) }, () => 'fresh')
  t.equal((await plain.inject({ url: '/fresh', headers: { authorization } })).statusCode, 200, 'without it, the clock of the machine')
})

t.test('with staleTtl, known callers do not wait for a service that hangs', async (t) => {
  const fake = await startFake(t)
  const { ask, statuses, clock } = await startHost(t, { upstream: fake.url, cacheTtl: 100, staleTtl: 1_000_000 })
  t.strictSame(await statuses('a'), [200])
  clock.advance(100)
  fake.state.answer = (response) => response.writeHead(500).end()
  t.strictSame(await statuses('a'), [200], 'it is down')
  const held: ServerResponse[] = []
  const asked = Promise.withResolvers<void>()
  fake.state.answer = (response) => {
    held.push(response)
    asked.resolve()
  }
  t.strictSame(await statuses('a', 'a', 'a'), [200, 200, 200])
  await within('the question beside them', asked.promise)
  t.equal(held.length, 1)
  // The service is back and refuses the token: effective from the next request.
  held.forEach(refuse)
  fake.state.answer = refuse
  const refused = await waitUntil('another answer than 200', async () => await ask('a').then(({ statusCode }) => statusCode !== 200 && statusCode))
  t.equal(refused, 401)
})

t.test('a refusal evicts the answer cached for staleTtl', async (t) => {
  const fake = await startFake(t)
  const { statuses } = await startHost(t, { upstream: fake.url, cacheTtl: 0, staleTtl: 1_000 })
  t.strictSame(await statuses('a'), [200])
  fake.state.answer = refuse
  t.strictSame(await statuses('a'), [401])
  fake.state.answer = (response) => response.writeHead(500).end()
  t.strictSame(await statuses('a'), [503])
})

t.test('connections are bounded, reused, and closed with the app', async (t) => {
  const { kit, url, seen, connections } = await startService(t)
  const { host, statuses } = await startHost(t, { upstream: url, cacheTtl: 0, maxConnections: 2 })
  const { access_token } = await kit.mint()
  t.strictSame(await statuses(access_token, access_token, 'bad', access_token, 'bad'), [200, 200, 401, 200, 401])
  await Promise.all(Array.from({ length: 20 }, async (_, index) => await statuses(`other${index}`)))
  t.equal(seen.length, 25)
  t.ok(connections() <= 2, 'refusals too leave their connection good')
  await host.close()
  await within('the end of the connections', new Promise<void>((resolve, reject) => {
    const look = () => kit.app.server.getConnections((error, count) => error ? reject(error) : count === 0 ? resolve() : setImmediate(look))
    look()
  }))
})

t.test('a connection that the service closes while it is used is replaced', async (t) => {
  let broken = 0
  const fake = await startFake(t)
  const { statuses } = await startHost(t, { upstream: fake.url, cacheTtl: 0 })
  t.strictSame(await statuses('a'), [200])
  fake.state.answer = (response) => broken++ === 0 ? response.socket?.destroy() : tell(response)
  t.strictSame(await statuses('a'), [200])
  t.equal(fake.seen.length, 3)
  fake.state.answer = (response) => response.socket?.destroy()
  t.strictSame(await statuses('a'), [503])
  t.equal(fake.seen.length, 5, 'once')
})

t.test('a dispatcher of the host is used, and not closed', async (t) => {
  const fake = await startFake(t)
  const dispatcher = new Pool(fake.url)
  t.teardown(async () => await dispatcher.destroy())
  let connections = 0
  dispatcher.on('connect', () => connections++)
  const { host, statuses } = await startHost(t, { upstream: fake.url, dispatcher })
  t.strictSame(await statuses('a'), [200])
  t.equal(connections, 1)
  await host.close()
  t.equal(dispatcher.closed, false)
  t.equal(dispatcher.destroyed, false)
  const { statusCode } = await dispatcher.request({ path: '/', method: 'GET' })
  t.equal(statusCode, 200)
})

t.test("the endpoint is found in the issuer's metadata", async (t) => {
  const fake = await startFake(t)
  const metadata: Record<string, unknown> = { issuer: fake.url }
  fake.state.answer = (response, { url, headers }) => {
    if (url !== '/.well-known/openid-configuration') return tell(response)
    t.equal(headers.authorization, undefined, 'no token goes there')
    return response.writeHead(200, JSON_TYPE).end(JSON.stringify(metadata))
  }
  const { statuses } = await startHost(t, { issuer: fake.url, cacheTtl: 0 })
  t.strictSame(await statuses('a'), [503], 'no word of it')
  metadata.token_endpoint = `${fake.url}/oauth/token`
  t.strictSame(await statuses('a'), [503], "another service's token endpoint")
  metadata.token_endpoint = `${fake.url}/id/api/v1/auth/token`
  metadata.issuer = `${fake.url}/`
  t.strictSame(await statuses('a'), [503], 'another issuer')
  metadata.issuer = fake.url
  t.strictSame(await statuses('a', 'a'), [200, 200])
  metadata.tokeninfo_endpoint = `${fake.url}/info`
  const named = await startHost(t, { issuer: fake.url, cacheTtl: 0 })
  t.strictSame(await named.statuses('a'), [200])
  t.strictSame(fake.seen.map(({ url }) => url), [
    ...Array.from({ length: 4 }, () => '/.well-known/openid-configuration'),
    '/id/api/v1/auth/tokeninfo', '/id/api/v1/auth/tokeninfo',
    '/.well-known/openid-configuration', '/info'
  ])
})

t.test("a host's own error handler gets an error with a status, a code and headers", async (t) => {
  const fake = await startFake(t)
  const host = fastify()
  const got: unknown[] = []
  host.setErrorHandler((error, _request, reply) => {
    const { statusCode, code, headers, message } = error as Error & Record<string, unknown>
    got.push({ isError: error instanceof Error, statusCode, code, headers, message })
    return reply.code(418).send('no')
  })
  const { ask, clock } = await startHost(t, { upstream: fake.url }, host)
  fake.state.answer = refuse
  t.equal((await ask()).statusCode, 418)
  t.equal((await ask()).statusCode, 418)
  clock.advance(1_000)
  fake.state.answer = (response) => response.writeHead(500).end()
  await ask()
  const refused = {
    isError: true,
    ...errorOf('ErrUnknown', 401),
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    message: 'the access token is unknown, expired or revoked'
  }
  t.strictSame(got, [refused, refused, {
    isError: true, ...errorOf('ErrRsc', 503), headers: { 'retry-after': '1' }, message: 'the identity service is unavailable'
  }])
})

t.test('a wrong option is reported by name at boot', async (t) => {
  for (const [options, message] of [
    [{}, /^option upstream: is required, or issuer$/],
    [{ upstream: 'http://a', issuer: 'http://a' }, /^option issuer: cannot be combined with upstream$/],
    [{ upstream: 'ftp://a' }, /^option upstream: must be an http or https URL$/],
    [{ issuer: 'http://u:hunter2@a' }, /^option issuer: must not hold credentials$/],
    [{ upstream: 'http://a', cacheTtl: -1 }, /^option cacheTtl: must be >= 0$/],
    [{ upstream: 'http://a', cacheSize: 0 }, /^option cacheSize: /],
    [{ upstream: 'http://a', timeout: '5' }, /^option timeout: must be integer$/],
    [{ upstream: 'http://a', roles: { boss: 'x' } }, /^option roles.boss: /],
    [{ upstream: 'http://a', prefix: '/x' }, /^option prefix: /]
  ] as [RemoteAuthOptions, RegExp][]) {
    const host = fastify()
    await t.rejects(async () => await host.register(remoteAuth, options), { message })
    await host.close()
  }
})

t.test('an inner scope may use another service', async (t) => {
  const [outer, inner] = await Promise.all([startFake(t), startFake(t, (response) => tell(response, { ...INFO, account: 'inner' }))])
  const { host, ask } = await startHost(t, { upstream: outer.url })
  await host.register(async (scope) => {
    await scope.register(remoteAuth, { upstream: inner.url })
    scope.get('/inner', { onRequest: scope.identity.guard() }, ({ caller }) => ({ caller }))
  })
  t.equal((await ask('a', '/inner')).json().caller.user.account, 'inner')
  t.equal((await ask('a', '/any')).json().caller.user.account, 'ann')
})

t.test('the options table of the guide is the options schema', async (t) => {
  const lines = readFileSync(new URL('../../docs/remote.md', import.meta.url), 'utf8').split('\n')
  const start = lines.findIndex((line) => line.startsWith('| option | default |'))
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
  const rows = lines.slice(start + 2, end).map((line) => line.split('|').slice(1, 3).map((cell) => cell.trim().replaceAll('`', '')))
  const options = Object.entries(RemoteOptionsSchema.properties).map(([name, schema]) =>
    [name, schema.default === undefined ? '' : typeof schema.default === 'object' ? JSON.stringify(schema.default) : String(schema.default)])
  t.strictSame(rows, options)
})
