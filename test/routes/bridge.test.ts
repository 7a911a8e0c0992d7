import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import swagger from '@fastify/swagger'
import Fastify from 'fastify'
import t from 'tap'
import { Pool } from 'undici'
import { bridge } from '../../routes/bridge.ts'
import { startBridge } from '../helpers/bridge.ts'
import { call, open, readAll, serve, startUpstream, within, type Answer } from '../helpers/upstream.ts'

const json: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'x-kept': 'yes' })
  response.end('{"data":{"clientId":"c"}}')
}

/** Requests under the prefix, and the requests that the upstream gets. */
const RELAYED = [
  { method: 'POST', at: '', to: '/api/v1/client', body: '{ "data" : {"name":"\u00e9"} }' },
  { method: 'POST', at: '/', to: '/api/v1/client', body: 'not json \u0000\u00ff' },
  { method: 'POST', at: '?a=1', to: '/api/v1/client?a=1', body: ['in ', 'chunks'] },
  { method: 'POST', at: '', to: '/api/v1/client' },
  { method: 'GET', at: '/count?user=a%20b&user=c&&x', to: '/api/v1/client/count?user=a%20b&user=c&&x' },
  { method: 'HEAD', at: '/count', to: '/api/v1/client/count' },
  { method: 'GET', at: '/list?sort=name:asc,created:desc&offset=1&limit=0&format=array', to: '/api/v1/client/list?sort=name:asc,created:desc&offset=1&limit=0&format=array' },
  { method: 'GET', at: '/list', to: '/api/v1/client/list' },
  { method: 'HEAD', at: '/list?limit=1', to: '/api/v1/client/list?limit=1' },
  { method: 'GET', at: '/abc', to: '/api/v1/client/abc' },
  { method: 'GET', at: '/abc?x=%2F%zz', to: '/api/v1/client/abc?x=%2F%zz' },
  { method: 'GET', at: '/a%3Fc%23d%20f', to: '/api/v1/client/a%3Fc%23d%20f' },
  { method: 'GET', at: '/%E2%82%AC', to: '/api/v1/client/%E2%82%AC' },
  { method: 'PATCH', at: '/abc', to: '/api/v1/client/abc', body: '{"data":{"name":"n"}}' },
  { method: 'DELETE', at: '/abc', to: '/api/v1/client/abc' },
  { method: 'DELETE', at: '/abc', to: '/api/v1/client/abc', body: 'with a body' },
  { method: 'DELETE', at: '/user/u1?z=1', to: '/api/v1/client/user/u1?z=1' }
]

t.test('every route is relayed, byte for byte', async (t) => {
  const upstream = await startUpstream(t, json)
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const { method, at, to, body } of RELAYED) {
    const headers = { 'content-type': 'application/json', authorization: 'Bearer abc' }
    const reply = await call(url + at, { method, headers, ...(body !== undefined && { body }) })
    const seen = upstream.seen.at(-1)
    const name = `${method} ${at}`
    t.equal(seen?.method, method, name)
    t.equal(seen?.url, to, name)
    t.equal(seen?.body, Buffer.from([body ?? ''].flat().join('')).toString('latin1'), name)
    t.equal(seen?.headers.authorization, 'Bearer abc', name)
    if (typeof body === 'string') t.equal(seen?.headers['content-length'], String(Buffer.byteLength(body)), name)
    t.equal(reply.status, 200, name)
    t.equal(reply.text, method === 'HEAD' ? '' : '{"data":{"clientId":"c"}}', name)
    t.equal(reply.headers['content-type'], 'application/json', name)
    t.equal(reply.headers['x-kept'], 'yes', name)
    t.ok(reply.complete, name)
  }
  t.equal(upstream.seen.length, RELAYED.length)
})

t.test('the base URL of the upstream may have a path', async (t) => {
  const upstream = await startUpstream(t, json)
  for (const base of ['/id', '/id/', '/a/b//']) {
    const { url } = await startBridge(t, { upstream: upstream.url + base })
    await call(`${url}/count`)
    t.equal(upstream.seen.at(-1)?.url, `${base.replace(/\/+$/, '')}/api/v1/client/count`)
  }
})

t.test('an upstream function is called once, at the first request', async (t) => {
  const upstream = await startUpstream(t, json)
  let asked = 0
  const { url } = await startBridge(t, { upstream: () => { asked++; return `${upstream.url}/base` } })
  t.equal(asked, 0)
  t.equal((await call(`${url}/count`)).status, 200)
  t.equal((await call(`${url}/list`)).status, 200)
  t.same(upstream.seen.map((seen) => seen.url), ['/base/api/v1/client/count', '/base/api/v1/client/list'])
  t.equal(asked, 1)
})

t.test('a path parameter that would change the path is ErrParam', async (t) => {
  const upstream = await startUpstream(t, json)
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const [method, at, name] of [
    ['GET', '/%2e%2e', 'client_id'], ['GET', '/%2e', 'client_id'], ['GET', '/', 'client_id'],
    ['DELETE', '/user/%2e%2e', 'user_id'], ['DELETE', '/user/', 'user_id']
  ] as const) {
    // A URL object would normalise the path.
    const { hostname, port } = new URL(url)
    const request = httpRequest({ hostname, port, method, path: `/clients${at}`, agent: false }).end()
    const [response] = await within('answer', once(request, 'response'))
    const reply = await readAll(response)
    t.strictSame(JSON.parse(reply.text), { statusCode: 400, code: 'ErrParam', error: 'Bad Request', message: `${name}: is not an id` }, `${method} ${at}`)
  }
  t.equal(upstream.seen.length, 0)
})

t.test('request fields: hop-by-hop ones are dropped, the others forwarded', async (t) => {
  const upstream = await startUpstream(t, json)
  const { url } = await startBridge(t, { upstream: upstream.url })
  const host = new URL(url).host
  await call(`${url}/count`, {
    headers: {
      connection: 'close, X-Listed, Keep-Alive',
      'x-listed': 'gone',
      'keep-alive': 'timeout=5',
      'proxy-authorization': 'Basic x',
      te: 'trailers',
      'x-other': 'kept',
      cookie: ['a=1', 'b=2'],
      'user-agent': 'tap',
      'accept-encoding': 'br',
      'x-request-id': 'r1',
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
      forwarded: 'for=203.0.113.7;proto=https',
      via: '1.0 front'
    }
  })
  const headers = upstream.seen[0]?.headers ?? {}
  for (const name of ['x-listed', 'keep-alive', 'proxy-authorization', 'te', 'transfer-encoding', 'cookie']) t.equal(headers[name], undefined, name)
  t.match(headers, {
    host: new URL(upstream.url).host,
    'x-other': 'kept',
    'user-agent': 'tap',
    'accept-encoding': 'br',
    'x-request-id': 'r1',
    'x-forwarded-for': '203.0.113.7, 127.0.0.1',
    'x-forwarded-host': host,
    'x-forwarded-proto': 'http',
    forwarded: `for=203.0.113.7;proto=https, for=127.0.0.1;host="${host}";proto=http`,
    via: '1.0 front, 1.1 fastify-identity'
  })
})

t.test('response fields: hop-by-hop ones are dropped, the others forwarded', async (t) => {
  const upstream = await startUpstream(t, (response) => {
    response.writeHead(200, [
      'Content-Type', 'application/problem+json; charset=utf-8',
      'Set-Cookie', 'a=1; Path=/', 'Set-Cookie', 'b=2',
      'Connection', 'X-Listed', 'X-Listed', 'gone', 'Keep-Alive', 'timeout=9', 'Proxy-Authenticate', 'Basic',
      'Upgrade', 'h2c', 'Trailer', 'X-After', 'Cache-Control', 'no-store', 'ETag', '"e"', 'X-Content-Type-Options', 'sniff', 'X-Latin', 'caf\u00e9', 'Date', 'Sat, 21 Nov 2026 00:00:00 GMT'
    ])
    response.addTrailers({ 'x-after': '1' })
    response.end('{}')
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  const { headers, text } = await call(`${url}/x`)
  for (const name of ['x-listed', 'proxy-authenticate', 'upgrade', 'trailer', 'set-cookie']) t.equal(headers[name], undefined, name)
  t.not(headers['keep-alive'], 'timeout=9')
  t.match(headers, {
    'content-type': 'application/problem+json; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    etag: '"e"',
    'x-latin': 'caf\u00e9',
    date: 'Sat, 21 Nov 2026 00:00:00 GMT'
  })
  t.equal(text, '{}')
})

t.test('cookies are forwarded both ways where the option says so', async (t) => {
  const upstream = await startUpstream(t, (response) => response.writeHead(200, { 'set-cookie': ['a=1; Path=/', 'b=2'] }).end('{}'))
  const { url } = await startBridge(t, { upstream: upstream.url, cookies: true })
  const { headers } = await call(`${url}/count`, { headers: { cookie: ['a=1', 'b=2'] } })
  t.match(headers, { 'set-cookie': ['a=1; Path=/', 'b=2'] })
  t.equal(upstream.seen[0]?.headers.cookie, 'a=1; b=2')
})

t.test('an id that would change the path where a proxy decodes it is refused', async (t) => {
  const upstream = await startUpstream(t, json)
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const at of ['/..%2Fuser', '/..%2f..%2fuser', '/a%5Cb', '/a%252fb', '/100%25', '/user/..%2f..%2fx']) {
    const reply = await call(url + at, { method: at.startsWith('/user/') ? 'DELETE' : 'GET' })
    t.match(reply, { status: 400, headers: { 'x-content-type-options': 'nosniff' } }, at)
    t.match(JSON.parse(reply.text), { code: 'ErrParam', message: /^(client|user)_id: is not an id$/ }, at)
  }
  t.equal(upstream.seen.length, 0)
})

const ANSWERS: { status: number, headers: Record<string, string>, body: string }[] = [
  { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"', 'content-type': 'application/json' }, body: '{"code":"ErrUnknown"}' },
  { status: 429, headers: { 'retry-after': '7', 'content-type': 'application/json' }, body: '{"code":"ErrLimit"}' },
  { status: 503, headers: { 'retry-after': '1', 'content-type': 'application/json' }, body: '{"code":"ErrDb"}' },
  { status: 404, headers: { 'content-type': 'text/html' }, body: '<p>no</p>' },
  { status: 500, headers: {}, body: 'no type' },
  { status: 400, headers: { 'content-length': '0' }, body: '' },
  { status: 302, headers: { location: 'https://elsewhere.example/x' }, body: '' },
  { status: 304, headers: { etag: '"e"' }, body: '' },
  { status: 204, headers: {}, body: '' },
  { status: 200, headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' }, body: '\u001f\u008b not gzip at all' }
]

t.test('errors, redirects and responses without a body are relayed unchanged', async (t) => {
  const upstream = await startUpstream(t, (response, { headers }) => {
    const { status, headers: fields, body } = ANSWERS[Number(headers['x-index'])] as typeof ANSWERS[number]
    response.writeHead(status, fields)
    response.end(body, 'latin1')
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const at of ['/abc', '/list']) {
    for (const [index, answer] of ANSWERS.entries()) {
      const reply = await call(url + at, { headers: { 'x-index': String(index) } })
      const name = `${answer.status} ${at}`
      t.equal(reply.status, answer.status, name)
      t.match(reply.headers, answer.headers, name)
      t.equal(reply.headers['content-type'], answer.headers['content-type'], name)
      t.equal(reply.body.toString('latin1'), answer.body, name)
    }
  }
})

t.test('a 204 has no Content-Length', async (t) => {
  const upstream = await serve(t, (request) => request.socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-Kept: yes\r\n\r\n'))
  const { url } = await startBridge(t, { upstream: upstream.url })
  const { status, headers } = await call(`${url}/abc`, { method: 'DELETE' })
  t.equal(status, 204)
  t.equal(headers['x-kept'], 'yes')
  t.equal(headers['content-length'], undefined)
})

t.test('HEAD has the header fields of GET, and no body', async (t) => {
  const upstream = await startUpstream(t, (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1234' })
    response.end()
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  const { headers, text } = await call(`${url}/abc`, { method: 'HEAD' })
  t.equal(headers['content-length'], '1234')
  t.equal(text, '')
  const csv = await call(`${url}/list?format=csv`, { method: 'HEAD' })
  t.equal(csv.headers['content-type'], 'text/csv; charset=utf-8')
  t.equal(csv.headers['content-length'], undefined)
})

t.test('lists vary by Accept, in addition to other fields', async (t) => {
  const upstream = await startUpstream(t, (response, { headers }) => {
    if (headers['x-vary'] !== undefined) response.setHeader('vary', headers['x-vary'])
    json(response, {} as never, {} as never)
  })
  const { url } = await startBridge(t, { upstream: upstream.url }, (app) => app.addHook('onRequest', async (request, reply) => {
    if (request.headers['x-own'] !== undefined) reply.header('vary', request.headers['x-own'])
  }))
  for (const [at, headers, vary] of [
    ['/list', {}, 'Accept'],
    ['/list', { 'x-vary': 'Origin' }, 'Accept, Origin'],
    ['/list', { 'x-vary': 'accept, origin' }, 'accept, origin'],
    ['/list', { 'x-vary': '*' }, '*'],
    ['/list', { 'x-own': 'Cookie', 'x-vary': 'Origin' }, 'Cookie, Accept, Origin'],
    ['/count', {}, undefined],
    ['/count', { 'x-own': 'Cookie', 'x-vary': 'Origin' }, 'Cookie, Origin']
  ] as const) {
    t.equal((await call(url + at, { headers })).headers.vary, vary, `${at} ${JSON.stringify(headers)}`)
  }
})

t.test('a body past the limit is 413, and never forwarded', async (t) => {
  const upstream = await startUpstream(t, json)
  const { url } = await startBridge(t, { upstream: upstream.url })
  const limit = 64 * 1024
  const expected = { statusCode: 413, code: 'ErrParam', error: 'Payload Too Large', message: 'body: must not have more than 65536 bytes' }
  for (const body of ['x'.repeat(limit + 1), ['x'.repeat(limit), 'y']]) {
    const reply = await call(url, { method: 'POST', body })
    t.strictSame(JSON.parse(reply.text), expected)
    t.equal(reply.headers.connection, 'close')
  }
  t.equal(upstream.seen.length, 0)
  for (const body of ['x'.repeat(limit), ['x'.repeat(limit - 1), 'y']]) {
    t.equal((await call(url, { method: 'POST', body })).status, 200)
    t.equal(upstream.seen.at(-1)?.body.length, limit)
    t.equal(upstream.seen.at(-1)?.headers['content-length'], String(limit))
  }
})

t.test('Expect: 100-continue is answered by the bridge', async (t) => {
  const upstream = await startUpstream(t, json)
  const { url } = await startBridge(t, { upstream: upstream.url })
  const request = httpRequest(url, { method: 'POST', agent: false, headers: { expect: '100-continue', 'content-length': '2' } })
  request.flushHeaders()
  await within('100 Continue', once(request, 'continue'))
  request.end('{}')
  const [response] = await within('answer', once(request, 'response'))
  t.equal(response.statusCode, 200)
  t.equal(upstream.seen[0]?.headers.expect, undefined)
  t.equal(upstream.seen[0]?.body, '{}')
})

t.test('the host app keeps its own parsing, errors and validation', async (t) => {
  const upstream = await startUpstream(t, json)
  const { url, root } = await startBridge(t, { upstream: upstream.url }, (app) => {
    app.post('/own', async (request) => ({ got: request.body }))
    app.get('/fails', async () => { throw Object.assign(new Error('own'), { statusCode: 418 }) })
    app.setErrorHandler((error, _request, reply) => reply.code(418).send(`host: ${(error as Error).message}`))
  })
  t.same(JSON.parse((await call(`${root}/own`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":1}' })).text), { got: { a: 1 } })
  t.equal((await call(`${root}/fails`)).text, 'host: own')
  t.equal((await call(url, { method: 'POST', headers: { 'content-type': 'text/weird' }, body: '{' })).status, 200)
  t.equal(upstream.seen.at(-1)?.body, '{')
})

t.test('scheme and host follow the trustProxy setting of the host app', async (t) => {
  const upstream = await startUpstream(t, json)
  const app = Fastify({ trustProxy: true })
  t.teardown(async () => await app.close())
  await app.register(bridge, { prefix: '/clients', upstream: upstream.url })
  const root = await app.listen({ port: 0, host: '127.0.0.1' })
  await call(`${root}/clients/count`, { headers: { 'x-forwarded-host': 'front.example', 'x-forwarded-proto': 'https' } })
  t.match(upstream.seen[0]?.headers, { 'x-forwarded-host': 'front.example', 'x-forwarded-proto': 'https' })
})

t.test('a wrong option stops the boot and is named', async (t) => {
  const upstream = 'http://identity:3000'
  for (const [options, message] of [
    [{}, /^option upstream: /],
    [{ upstream: 3 }, /^option upstream: /],
    [{ upstream: '' }, /^option upstream: /],
    [{ upstream: 'ftp://h' }, /^option upstream: must be an http or https URL$/],
    [{ upstream, escapeFormulae: 'yes' }, /^option escapeFormulae: must be boolean$/],
    [{ upstream, filename: 'a"b' }, /^option filename: /],
    [{ upstream, filename: '../x' }, /^option filename: /],
    [{ upstream, filename: 'a\r\nb: c' }, /^option filename: /],
    [{ upstream, bodyLimit: -1 }, /^option bodyLimit: /],
    [{ upstream, maxConnections: 0 }, /^option maxConnections: /],
    [{ upstream, connectTimeout: '5' }, /^option connectTimeout: must be integer$/],
    [{ upstream, headersTimeout: 0 }, /^option headersTimeout: /],
    [{ upstream, bodyTimeout: 1.5 }, /^option bodyTimeout: /],
    [{ upstream, stallTimeout: null }, /^option stallTimeout: /],
    [{ upstream, upstreams: 'x' }, /^option upstreams: /]
  ] as const) {
    const app = Fastify()
    t.teardown(async () => await app.close())
    await t.rejects(async () => await app.register(bridge, { prefix: '/x', ...options } as never), { message }, JSON.stringify(options))
  }
})

t.test('a dispatcher of the host is used, and not closed', async (t) => {
  const upstream = await startUpstream(t, json)
  const dispatcher = new Pool(upstream.url)
  t.teardown(async () => await dispatcher.close())
  const { app, url } = await startBridge(t, { upstream: upstream.url, dispatcher })
  t.equal((await open(`${url}/count`)).statusCode, 200)
  await app.close()
  t.equal(dispatcher.closed || dispatcher.destroyed, false)
})

t.test("a host with OpenAPI gets the seven operations, and the host's security scheme", async (t) => {
  const bearer = { type: 'http', scheme: 'bearer' } as const
  for (const [components, security] of [[{}, undefined], [{ securitySchemes: { bearer } }, [{ bearer: [] }]]] as const) {
    const { app } = await startBridge(t, { upstream: 'http://127.0.0.1:9', inHostDocument: true }, async (app) => await app.register(swagger, { openapi: { openapi: '3.1.0', components } }))
    const paths = app.swagger().paths as Record<string, Record<string, { operationId: string, security?: object[], responses: Record<string, { content?: object }> }>>
    const operations = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })))
    t.strictSame(Object.fromEntries(operations.map(({ name, operationId }) => [name, operationId])), {
      'post /clients/': 'bridgeCreateClient',
      'get /clients/count': 'bridgeCountClients',
      'get /clients/list': 'bridgeListClients',
      'get /clients/{client_id}': 'bridgeGetClient',
      'patch /clients/{client_id}': 'bridgePatchClient',
      'delete /clients/{client_id}': 'bridgeDeleteClient',
      'delete /clients/user/{user_id}': 'bridgeDeleteClientsOfUser'
    })
    for (const operation of operations) {
      t.strictSame(operation.security, security, operation.name)
      t.ok(operation.responses[502]?.content, `${operation.name} tells of the upstream`)
    }
    t.strictSame(Object.keys(paths['/clients/list']?.get?.responses[200]?.content ?? {}), ['application/json', 'text/csv'])
  }
})
