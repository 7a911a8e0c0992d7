import { renameSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { buildApp, getUrl } from '../app.ts'
import { readConfig } from '../config.ts'
import { call } from './helpers/upstream.ts'

/** Builds the app on an in-memory store, and collects its log. */
async function start (t: { teardown: (fn: () => unknown) => unknown }, env: Record<string, string> = {}) {
  const lines: string[] = []
  const config = readConfig({ DATABASE_URL: 'sqlite::memory:', IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1', ...env })
  const app = await buildApp(config, { logStream: { write: (line) => lines.push(line) } })
  t.teardown(() => app.close())
  return { app, log: () => lines.map((line) => JSON.parse(line)) }
}

t.test('an unknown route and an invalid path have the common error body', async (t) => {
  const { app } = await start(t)
  for (const [url, statusCode, code, message] of [
    ['/nope?access_token=hunter2', 404, 'ErrNotFound', 'path: no such route for GET'],
    ['/api/v1/nope', 404, 'ErrNotFound', 'path: no such route for GET'],
    ['/api/v1/client/%zz', 400, 'ErrParam', 'path: is not a valid URL path']
  ] as const) {
    const reply = await app.inject(url)
    const error = statusCode === 404 ? 'Not Found' : 'Bad Request'
    t.strictSame(reply.json(), { statusCode, code, error, message }, url)
    t.equal(reply.statusCode, statusCode)
    t.match(reply.headers['content-type'], /^application\/json/)
  }
})

t.test('a method that a path does not have is 404 too, whatever the type of the body', async (t) => {
  const { app } = await start(t)
  for (const [method, url, headers, payload] of [
    ['QUERY', '/api/v1/client/x', {}],
    ['QUERY', '/nope', { 'content-type': 'text/plain' }, 'x'],
    ['POST', '/api/v1/nope', { 'content-type': 'text/plain' }, 'x'],
    ['POST', '/nope', { 'content-type': 'application/json' }, '{'],
    ['POST', '/nope', { 'content-type': 'application/json' }, 'x'.repeat(70_000)],
    ['OPTIONS', '/api/v1/auth/token', {}],
    ['OPTIONS', '/api/v1/auth/token', { origin: 'https://app.example' }],
    ['OPTIONS', '/.well-known/openid-configuration', {}]
  ] as const) {
    const reply = await app.inject({ method: method as 'POST', url, headers, ...(payload !== undefined && { payload }) })
    t.strictSame(reply.json(), { statusCode: 404, code: 'ErrNotFound', error: 'Not Found', message: `path: no such route for ${method}` }, `${method} ${url}`)
    t.equal(reply.statusCode, 404)
  }
})

t.test('HTTP/1.1 without Host is refused in the form of every error, and HTTP/1.0 needs none', async (t) => {
  const { app } = await start(t)
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  for (const [version, path, status] of [['1.1', '/health/live', '400 Bad Request'], ['1.1', '/nowhere', '400 Bad Request'], ['1.0', '/health/live', '200 OK']] as const) {
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`GET ${path} HTTP/${version}\r\nConnection: close\r\n\r\n`)
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    t.match(head, `HTTP/1.1 ${status}`)
    t.match(head, /\r\nx-request-id: /i)
    if (version === '1.1') t.strictSame(JSON.parse(body), { statusCode: 400, code: 'ErrParam', error: 'Bad Request', message: 'host: is required' })
  }
})

t.test('the start may wait for a migration as long as that takes', async (t) => {
  t.equal((await start(t)).app.initialConfig.pluginTimeout, 0)
})

t.test('the root lists the service\'s paths', async (t) => {
  const { app } = await start(t)
  const told = (await app.inject('/')).json<Record<string, string>>()
  t.strictSame(Object.keys(told), ['service', 'docs', 'openapi', 'metadata', 'health'])
  for (const path of Object.values(told).slice(1)) t.equal((await app.inject(path)).statusCode, 200, path)
  const { app: bare } = await start(t, { IDENTITY_OPENAPI: 'off', IDENTITY_OIDC: 'off' })
  t.strictSame((await bare.inject('/')).json(), { service: 'fastify-identity', health: '/health/ready' })
})

t.test('an empty id is named', async (t) => {
  const { app } = await start(t)
  const { access_token } = await app.identity.bootstrap()
  const reply = await app.inject({ url: '/api/v1/client/', headers: { authorization: `Bearer ${access_token}` } })
  t.match(reply.json(), { statusCode: 400, code: 'ErrParam', message: 'clientId: must not be empty' })
})

t.test('ids may be as long as the schemas allow', async (t) => {
  const { app } = await start(t)
  const { access_token } = await app.identity.bootstrap()
  const headers = { authorization: `Bearer ${access_token}` }
  for (const [length, status] of [[128, 404], [129, 400], [256, 400]] as const) {
    t.equal((await app.inject({ url: `/api/v1/client/${'x'.repeat(length)}`, headers })).statusCode, status, `${length} characters`)
  }
})

t.test('with an https issuer the service sends Strict-Transport-Security', async (t) => {
  for (const [env, expected] of [[{ IDENTITY_ISSUER: 'https://id.example' }, 'max-age=31536000'], [{}, undefined], [{ IDENTITY_OIDC: 'off' }, undefined]] as const) {
    const { app } = await start(t, env)
    for (const url of ['/health/live', '/nope', ...('IDENTITY_OIDC' in env ? [] : ['/api/v1/auth/device', '/.well-known/openid-configuration'])]) {
      t.equal((await app.inject(url)).headers['strict-transport-security'], expected, url)
    }
  }
})

t.test("a request has an id: the caller's where it is safe to log", async (t) => {
  const { app, log } = await start(t)
  for (const [given, expected] of [
    ['abc-1.2_3', /^abc-1\.2_3$/],
    ['x'.repeat(65), /^[\da-f-]{36}$/],
    ['a b', /^[\da-f-]{36}$/],
    ['{"a":1}', /^[\da-f-]{36}$/]
  ] as const) {
    const reply = await app.inject({ url: '/nope', headers: { 'x-request-id': given } })
    t.match(reply.headers['x-request-id'], expected, given)
    t.equal(log().at(-1).reqId, reply.headers['x-request-id'])
  }
})

t.test('parts that are off have no routes', async (t) => {
  const { app } = await start(t, { IDENTITY_BRIDGE_PREFIX: 'off', IDENTITY_OPENAPI: 'off' })
  for (const url of ['/bridge/client/list', '/openapi.json', '/docs']) t.equal((await app.inject(url)).statusCode, 404, url)
  t.equal((await app.inject('/health/live')).statusCode, 200)
})

t.test('the bridge has its prefix, and relays to the configured upstream', async (t) => {
  const behind = await start(t)
  const upstream = await behind.app.listen({ port: 0, host: '127.0.0.1' })
  const { app, log } = await start(t, { IDENTITY_BRIDGE_PREFIX: '/relay', IDENTITY_BRIDGE_UPSTREAM: upstream })
  const { access_token } = await behind.app.identity.bootstrap()
  const reply = await app.inject({ url: '/relay/count', headers: { authorization: `Bearer ${access_token}`, 'x-request-id': 'one' } })
  t.same(reply.json(), { data: { count: 2 } })
  const completed = ({ msg }: { msg?: string }) => msg === 'request completed'
  t.match(log().findLast(completed), { reqId: 'one', req: { route: '/relay/count' } })
  t.match(behind.log().findLast(completed), { reqId: 'one', req: { route: '/api/v1/client/count' } }, 'one id in both logs')
})

t.test('only a trusted proxy sets the client address', async (t) => {
  for (const [trusted, remoteAddress] of [['off', '127.0.0.1'], ['10.0.0.0/8', '127.0.0.1'], ['loopback', '192.0.2.7']] as const) {
    const { app, log } = await start(t, { IDENTITY_TRUST_PROXY: trusted })
    await app.inject({ url: '/nope', headers: { 'x-forwarded-for': '192.0.2.7' } })
    t.match(log().at(-1), { req: { remoteAddress } }, trusted)
  }
})

t.test('the URL of the app on this machine', async (t) => {
  for (const [host, expected] of [['0.0.0.0', /^http:\/\/127\.0\.0\.1:\d+$/], ['127.0.0.1', /^http:\/\/127\.0\.0\.1:\d+$/]] as const) {
    const { app } = await start(t, { LOG_LEVEL: 'silent' })
    await app.listen({ port: 0, host })
    t.match(getUrl(app), expected, host)
    t.equal((await call(`${getUrl(app)}/health/live`)).status, 200)
  }
  for (const [address, expected] of [['::', 'http://[::1]:80'], ['::1', 'http://[::1]:80'], ['fd00::1', 'http://[fd00::1]:80']] as const) {
    t.equal(getUrl({ server: { address: () => ({ address, family: 'IPv6', port: 80 }) } } as never), expected)
  }
})

t.test('a store that cannot be opened fails the start with the reason', async (t) => {
  const dir = t.testdir({ file: '' })
  await t.rejects(buildApp(readConfig({ DATABASE_URL: `sqlite:${dir}/file/x.db`, LOG_LEVEL: 'silent' })), /key file .*\/secret\.key: it cannot be read/)
})

t.test('a database file that is removed while it is open: nothing is served, the service is not ready, and one fatal line says why', async (t) => {
  const directory = t.testdir({})
  const database = `${directory}/identity.db`
  const { app, log } = await start(t, { DATABASE_URL: `sqlite:${database}`, IDENTITY_DATA_DIR: directory, LOG_LEVEL: 'warn' })
  const { access_token } = await app.identity.bootstrap()
  const headers = { authorization: `Bearer ${access_token}` }
  const ask = async () => ({
    tokeninfo: (await app.inject({ url: '/api/v1/auth/tokeninfo', headers })).statusCode,
    list: (await app.inject({ url: '/api/v1/user/list', headers })).statusCode,
    ready: (await app.inject('/health/ready')).statusCode,
    live: (await app.inject('/health/live')).statusCode
  })
  t.strictSame(await ask(), { tokeninfo: 200, list: 200, ready: 200, live: 200 })
  renameSync(database, `${database}.moved`)
  await nextTurn()
  for (let time = 0; time < 3; time++) t.strictSame(await ask(), { tokeninfo: 503, list: 503, ready: 503, live: 200 })
  const fatal = log().filter(({ level }) => level === 60)
  t.match(fatal, [{ msg: /the store is lost/, err: { type: 'StoreLostError', message: /identity\.db was removed/ } }])
  t.equal(fatal.length, 1)
})
