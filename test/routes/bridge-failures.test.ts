import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import t from 'tap'
import { errorBody, startBridge } from '../helpers/bridge.ts'
import { call, closed, open, readAll, serve, startUpstream, within, type Call } from '../helpers/upstream.ts'

const NDJSON = { 'content-type': 'application/x-ndjson' }
const JSON_TYPE = { 'content-type': 'application/json' }
const line = (index: number, name = 'n') => JSON.stringify({ clientId: `c${index}`, redirectUris: [], scopes: [], name }) + '\n'
/** Both ways of reading a list through the bridge. */
const LISTS = ['/list?format=array', '/list?format=csv']

const badGateway = (message: string) => errorBody(502, 'ErrRsc', 'Bad Gateway', message)
const LATE = badGateway('the upstream did not answer in time')
const UNREACHABLE = badGateway('the upstream is unreachable')
const BROKEN = badGateway('the upstream aborted its response')

/** Writes lines as fast as the client reads them. Resolves to the number of bytes when the client has disconnected. */
async function writeLines (response: ServerResponse, count: number): Promise<number> {
  const chunk = Array.from({ length: 100 }, (_, index) => line(index, 'x'.repeat(1000))).join('')
  const gone = once(response, 'close')
  let written = 0
  for (let left = count; left > 0 && !response.destroyed; left -= 100) {
    written += chunk.length
    if (!response.write(chunk)) await Promise.race([once(response, 'drain'), gone])
  }
  response.end()
  return written
}

t.test('an upstream that is down is ErrRsc, until it is back', async (t) => {
  const first = await startUpstream(t, (response) => response.writeHead(200, NDJSON).end(line(1)))
  const { url } = await startBridge(t, { upstream: first.url })
  t.equal((await call(`${url}/list`)).status, 200)
  await first.close()
  for (const at of ['/abc', ...LISTS]) {
    for (let again = 0; again < 2; again++) {
      const reply = await call(url + at)
      t.equal(reply.status, 502)
      t.equal(reply.headers['content-type'], 'application/json')
      t.strictSame(JSON.parse(reply.text), UNREACHABLE, at)
    }
  }
  t.strictSame(JSON.parse((await call(url, { method: 'POST', body: '{}' })).text), UNREACHABLE)
  await startUpstream(t, (response) => response.writeHead(200, NDJSON).end(line(1)), first.port)
  for (const at of LISTS) t.equal((await call(url + at)).status, 200, at)
})

t.test('an upstream that does not begin its response is ErrRsc, and the request to it is aborted', async (t) => {
  const sockets: Socket[] = []
  const upstream = await serve(t, (request) => sockets.push(request.socket))
  const { url } = await startBridge(t, { upstream: upstream.url, headersTimeout: 50 })
  await Promise.all(['/abc', ...LISTS].map(async (at) => {
    t.strictSame(JSON.parse((await call(url + at)).text), LATE, at)
  }))
  t.equal(sockets.length, 3)
  for (const socket of sockets) await closed('upstream request', socket)
})

t.test('an upstream that stalls is ErrRsc before the first byte, and an aborted connection after it', async (t) => {
  const upstream = await startUpstream(t, (response, { headers }) => {
    response.writeHead(200, { ...NDJSON, etag: '"e"', 'content-encoding': 'identity' })
    response.flushHeaders()
    if (headers['x-first'] !== undefined) response.write(line(1))
  })
  const { url } = await startBridge(t, { upstream: upstream.url, bodyTimeout: 50 })
  await Promise.all(LISTS.map(async (at) => {
    const [silent, broken] = await Promise.all([call(url + at), call(url + at, { headers: { 'x-first': '1' } })])
    t.strictSame(JSON.parse(silent.text), LATE, at)
    t.equal(silent.headers.etag, undefined)
    t.equal(silent.headers['content-encoding'], undefined)
    t.equal(broken.status, 200)
    t.equal(broken.complete, false, at)
    t.ok(broken.text.includes('c1'))
  }))
})

t.test('an upstream that aborts its response is ErrRsc before the first byte, and an aborted connection after it', async (t) => {
  const upstream = await startUpstream(t, async (response, { headers }) => {
    response.writeHead(200, { ...NDJSON, ...(headers['x-length'] !== undefined && { 'content-length': '100000' }) })
    response.flushHeaders()
    for (let index = 0; index < Number(headers['x-lines']); index++) {
      await new Promise((resolve) => response.write(line(index), resolve))
    }
    response.socket?.destroySoon()
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const at of LISTS) {
    for (const length of [{}, { 'x-length': '1' }] as Record<string, string>[]) {
      t.strictSame(JSON.parse((await call(url + at, { headers: { 'x-lines': '0', ...length } })).text), BROKEN)
      const reply = await call(url + at, { headers: { 'x-lines': '3', ...length } })
      t.equal(reply.status, 200)
      t.equal(reply.complete, false, `${at} ${JSON.stringify(length)}`)
    }
  }
})

t.test('an invalid record within a list aborts the connection', async (t) => {
  const good = line(1)
  const BAD: [string, Record<string, string>, string[]][] = [
    ['a line that is not JSON', NDJSON, [good, 'oops\n']],
    ['a line of another kind', NDJSON, [good, '{"user_id":"u"}\n']],
    ['the last line cut off', NDJSON, [good, good.slice(0, 9)]],
    ['a line past all bounds', NDJSON, [good, ...Array.from({ length: 20 }, () => 'x'.repeat(64 * 1024))]],
    ['a whole line past all bounds', NDJSON, [good, line(2, 'x'.repeat(1024 * 1024))]],
    ['JSON that stops', JSON_TYPE, [`{"data":[${good}`, `,${good}`]],
    ['JSON of another kind', JSON_TYPE, [`[${good}`, ',1]']],
    ['JSON with something after it', JSON_TYPE, [`[${good}`, `,${good}]]`]],
    ['a record past all bounds', JSON_TYPE, [`[${good}`, ',{"clientId":"', ...Array.from({ length: 20 }, () => 'x'.repeat(64 * 1024))]]
  ]
  const read = { go: () => {} }
  const upstream = await startUpstream(t, async (response, { headers }) => {
    const [, type, [head, ...rest]] = BAD[Number(headers['x-index'])] as typeof BAD[number]
    response.on('error', () => {})
    response.writeHead(200, type).write(head)
    // The rest is sent when the caller has received the beginning.
    await new Promise<void>((resolve) => { read.go = resolve })
    for (const part of rest) if (!response.destroyed) response.write(part)
    response.end()
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const [index, [name]] of BAD.entries()) {
    const response = await open(`${url}/list?format=csv`, { headers: { 'x-index': String(index) } })
    read.go()
    const reply = await within(name, readAll(response))
    t.equal(reply.status, 200)
    t.ok(reply.text.includes('\nc1,'), name)
    t.equal(reply.complete, false, name)
  }
})

t.test('a caller who disconnects aborts the upstream request', async (t) => {
  const upstream = await serve(t, (request, response) => {
    request.on('error', () => {})
    if (request.headers['x-begin'] !== undefined) response.writeHead(200, NDJSON).write(line(1))
  })
  const { url } = await startBridge(t, { upstream: upstream.url })
  for (const { name, at, begin } of [
    { name: 'before the response', at: '/abc' },
    { name: 'before the response, CSV', at: '/list?format=csv' },
    { name: 'in the response', at: '/list', begin: true },
    { name: 'in the response, CSV', at: '/list?format=csv', begin: true }
  ]) {
    const arrived = once(upstream.server, 'request')
    const request = httpRequest(url + at, { agent: false, headers: { ...(begin && { 'x-begin': '1' }) } })
    request.on('error', () => {})
    request.end()
    const [{ socket }] = await within(`arrival, ${name}`, arrived)
    if (begin) await within('head', once(request, 'response'))
    request.destroy()
    await closed(`upstream, ${name}`, socket)
    t.pass(name)
  }
})

/** Sends the head of a POST; resolves when the bridge has read it. */
async function beginUpload (url: string): Promise<ClientRequest> {
  const request = httpRequest(url, { method: 'POST', agent: false, headers: { expect: '100-continue', 'content-length': '10' } })
  request.on('error', () => {})
  request.flushHeaders()
  await within('100 Continue', once(request, 'continue'))
  return request
}

t.test('slow uploads take no upstream connection', async (t) => {
  const upstream = await startUpstream(t, (response) => response.writeHead(200, JSON_TYPE).end('{}'))
  const { url } = await startBridge(t, { upstream: upstream.url, maxConnections: 2 })
  const uploads = await Promise.all(Array.from({ length: 8 }, async () => await beginUpload(url)))
  for (const upload of uploads) upload.write('abc')
  t.equal((await call(`${url}/abc`)).status, 200)
  t.equal(upstream.seen.length, 1)
  for (const upload of uploads) {
    const answer = once(upload, 'response')
    upload.end('defghij')
    const [response] = await within('answer', answer)
    t.equal((await readAll(response)).status, 200)
  }
  t.strictSame(upstream.seen.slice(1).map(({ body }) => body), Array(8).fill('abcdefghij'))
})

t.test('a late or an incomplete body is never forwarded', async (t) => {
  const upstream = await startUpstream(t, (response) => response.writeHead(200, JSON_TYPE).end('{}'))
  const { url } = await startBridge(t, { upstream: upstream.url, bodyTimeout: 200 })
  const left = await beginUpload(url)
  left.write('abc')
  left.destroy()
  const late = await beginUpload(url)
  late.write('abc')
  const [response] = await within('answer', once(late, 'response'))
  t.equal(response.headers.connection, 'close')
  t.strictSame(JSON.parse((await readAll(response)).text), errorBody(408, 'ErrParam', 'Request Timeout', 'body: did not arrive in time'))
  t.equal(upstream.seen.length, 0)
})

t.test('a caller who does not read slows the upstream down, and is disconnected', async (t) => {
  const lines = 400_000
  await Promise.all(LISTS.map(async (at) => {
    const taken = Promise.withResolvers<number>()
    const upstream = await startUpstream(t, (response) => {
      response.on('error', () => {})
      response.writeHead(200, NDJSON)
      taken.resolve(writeLines(response, lines))
    })
    const { url } = await startBridge(t, { upstream: upstream.url, stallTimeout: 1500 })
    const response = await open(url + at)
    // Until then the bytes are in buffers, most of them the system's.
    const bytes = await within('end of the upstream', taken.promise)
    t.ok(bytes < 32 * 1024 * 1024, `${at}: ${bytes} of ${lines * 1000} bytes`)
    t.equal((await within('broken answer', readAll(response))).complete, false)
  }))
})

t.test('upstream connections are bounded, reused, and closed with the app', async (t) => {
  let opened = 0
  const upstream = await startUpstream(t, (response) => response.writeHead(200, JSON_TYPE).end('{}'))
  upstream.server.on('connection', () => opened++)
  const { app, url } = await startBridge(t, { upstream: upstream.url, maxConnections: 2 })
  const replies = await Promise.all(Array.from({ length: 40 }, async () => await call(`${url}/abc`)))
  t.ok(replies.every(({ status }) => status === 200))
  t.equal(upstream.seen.length, 40)
  t.ok(opened <= 2, `${opened} connections`)
  const last = [...upstream.sockets]
  t.ok(last.length > 0)
  await app.close()
  for (const socket of last) await closed('connection', socket)
})

t.test('a request that waits too long for a connection is ErrRsc', async (t) => {
  const upstream = await serve(t, (_request, response) => response.writeHead(200, NDJSON).write(line(1)))
  const { url } = await startBridge(t, { upstream: upstream.url, maxConnections: 1, connectTimeout: 50, headersTimeout: 50 })
  const holder = await open(`${url}/list`)
  t.strictSame(JSON.parse((await call(`${url}/abc`)).text), LATE)
  holder.destroy()
})

t.test('an invalid status is ErrRsc', async (t) => {
  const upstream = await serve(t, (request) => request.socket.end('HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n'))
  const { url } = await startBridge(t, { upstream: upstream.url })
  t.strictSame(JSON.parse((await call(`${url}/abc`)).text), badGateway('the upstream sent an invalid status'))
})

t.test('a response that is not HTTP is ErrRsc', async (t) => {
  const upstream = await serve(t, (request) => request.socket.end('SSH-2.0-x\r\n'))
  const { url } = await startBridge(t, { upstream: upstream.url })
  t.strictSame(JSON.parse((await call(`${url}/abc`)).text), UNREACHABLE)
})

t.test('the only connection serves the next request, however the last one ended', async (t) => {
  const upstream = await serve(t, (request, response) => {
    request.on('error', () => {})
    const mode = request.headers['x-mode']
    if (mode === 'ok') request.resume().on('end', () => response.writeHead(200, JSON_TYPE).end('{}'))
    else if (mode === 'destroy') request.socket.destroy()
    else if (mode === 'garbage') request.socket.end('garbage')
    else if (mode === 'early') response.writeHead(401).end('{}')
    else if (mode === 'empty') response.writeHead(204).end()
    else if (mode === 'part') response.writeHead(200, NDJSON).write(line(1), () => request.socket.destroy())
    else if (mode === 'begin') response.writeHead(200, NDJSON).write(line(1))
  })
  const { url } = await startBridge(t, { upstream: upstream.url, maxConnections: 1 })
  const leave = async (at: string) => (await open(url + at, { headers: { 'x-mode': 'begin' } })).destroy()
  const send = async (mode: string, options: Call = {}, at = '/list') => await call(url + at, { ...options, headers: { 'x-mode': mode } })
  const ENDS: Record<string, () => Promise<unknown>> = {
    'a complete response': async () => await send('ok'),
    'a HEAD': async () => await send('ok', { method: 'HEAD' }),
    'no content': async () => await send('empty'),
    'a lost connection': async () => await send('destroy'),
    'a response that is not HTTP': async () => await send('garbage'),
    'a partial response': async () => await send('part'),
    'a partial response, for CSV': async () => await send('part', {}, '/list?format=csv'),
    'a response before the body is read': async () => await send('early', { method: 'POST', body: ['a', 'b'.repeat(60_000)] }, ''),
    'a body that is too large': async () => await send('ok', { method: 'POST', body: ['a', 'b'.repeat(70_000)] }, ''),
    'a Content-Length that is too large': async () => await send('ok', { method: 'POST', body: 'b'.repeat(70_000) }, ''),
    'an invalid list': async () => await send('ok', {}, '/list?format=csv'),
    'a caller who disconnected': async () => await leave('/list'),
    'a caller who disconnected, CSV': async () => await leave('/list?format=csv')
  }
  for (const [name, end] of Object.entries(ENDS)) {
    await end()
    t.equal((await send('ok')).text, '{}', name)
  }
})
