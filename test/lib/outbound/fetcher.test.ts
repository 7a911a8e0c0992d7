import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import { isPublicAddress, readAllowedHosts } from '../../../lib/outbound/addresses.ts'
import { type OutboundError, type OutboundOptions, createOutbound } from '../../../lib/outbound/fetcher.ts'
import { createTimers } from '../../helpers/timers.ts'
import { closed, serve, startUpstream, within } from '../../helpers/upstream.ts'

const PRIVATE = [
  '0.0.0.0', '10.0.0.1', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.255.255.254', '169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.8',
  '192.0.2.1', '192.88.99.1', '192.168.1.1', '198.18.0.1', '198.19.255.255', '198.51.100.7', '203.0.113.9', '224.0.0.1', '239.255.255.250', '240.0.0.1',
  '255.255.255.255', '::', '::1', '::ffff:10.0.0.1', '::ffff:8.8.8.8', '::7f00:1', '64:ff9b::a00:1', '64:ff9b::808:808', '64:ff9b:1::1', '100::1', '2001::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:2::1', '2001:20::1', '2001:db8::1', '2002:a00:1::1', '3fff::1', '5f00::1', 'fc00::1', 'fd12:3456::1', 'fe80::1',
  'fe80::1%eth0', 'fec0::1', 'ff02::1'
]
const PUBLIC = ['1.1.1.1', '8.8.8.8', '100.63.255.255', '100.128.0.1', '172.15.0.1', '172.32.0.1', '192.0.1.1', '223.255.255.255', '2606:4700::1111', '2a00:1450::8']

function open (t: Test, options: Partial<OutboundOptions> = {}) {
  const outbound = createOutbound({ allow: [], ...options })
  t.teardown(() => outbound.close())
  const post = (url: string, signal?: AbortSignal) => within(`answer of ${url}`, outbound.fetch({ url, headers: { 'content-type': 'application/json' }, body: '{"é":1}', ...(signal && { signal }) }))
  return { ...outbound, post }
}

const local = { allow: ['127.0.0.0/8'] }

/** Resolves to any of these, in turn. */
const answerWith = (...turns: string[][]) => async () => {
  const [next = []] = turns.length > 1 ? turns.splice(0, 1) : turns
  return next.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
}

t.test('special addresses are not public, by any range', async (t) => {
  for (const address of PRIVATE) t.equal(isPublicAddress(address), false, address)
  for (const address of PUBLIC) t.equal(isPublicAddress(address), true, address)
  t.equal(isPublicAddress('example.com'), false)
})

t.test('the list of allowed hosts takes names, addresses and networks, and names a wrong entry', async (t) => {
  const { hasAddress, hasName } = readAllowedHosts(['Hooks.internal', '10.1.0.0/16', '[::1]', 'fd00::/8', '192.168.0.7'])
  for (const address of ['10.1.2.3', '::1', 'fd12::1', '192.168.0.7', '::ffff:10.1.2.3']) t.ok(hasAddress(address), address)
  for (const address of ['10.2.0.1', '::2', 'fe80::1', '192.168.0.8']) t.notOk(hasAddress(address), address)
  t.ok(hasName('hooks.internal'))
  t.notOk(hasName('other.internal'))
  for (const entry of ['', '10.0.0.0/33', '10.0.0.0/x', '10.0.0.0/8/8', 'a b', 'hooks.internal/8', 'https://a', '*.internal', '::1/129', '.internal']) {
    t.throws(() => readAllowedHosts([entry]), { message: `${entry}: must be a host, an address or a network such as 10.0.0.0/8` }, entry)
  }
})

t.test('a URL must be https, without user information and fragment, and a literal address public; an allowed one may be plain', async (t) => {
  const { checkUrl } = open(t, { allow: ['localhost', '127.0.0.0/8', '[::1]'] })
  for (const [url, called] of [
    ['https://hooks.example.com', 'https://hooks.example.com/'], ['https://8.8.8.8/a?b=c', 'https://8.8.8.8/a?b=c'], ['https://[2606:4700::1111]/', 'https://[2606:4700::1111]/'],
    ['http://localhost:8080/x', 'http://localhost:8080/x'], ['http://127.1/', 'http://127.0.0.1/'], ['http://[::1]:1/', 'http://[::1]:1/'], ['https://127.0.0.1/', 'https://127.0.0.1/']
  ] as const) t.equal(checkUrl(url), called, url)
  for (const [url, reason] of [
    ['http://hooks.example.com/', 'must be an https URL'], ['ftp://hooks.example.com/', 'must be an https URL'], ['javascript:alert(1)', 'must be an https URL'],
    ['http://10.0.0.1/', 'must be an https URL'], ['https://user@hooks.example.com/', 'must not have user information'], ['https://:secret@hooks.example.com/', 'must not have user information'],
    ['https://hooks.example.com/#a', 'must not have a fragment'], ['https://10.0.0.1/', 'must be a public address'], ['https://0x0a000001/', 'must be a public address'],
    ['https://167772161/', 'must be a public address'], ['https://[::ffff:10.0.0.1]/', 'must be a public address'], ['https://169.254.169.254/latest/meta-data', 'must be a public address'],
    ['/hooks', 'must be an absolute URL that is not too long'], [`https://hooks.example.com/${'x'.repeat(2048)}`, 'must be an absolute URL that is not too long']
  ] as const) t.throws(() => checkUrl(url), { message: reason }, url)
})

t.test('a private address is refused in the look-up of the connection, for any name', async (t) => {
  const upstream = await startUpstream(t, (response) => response.end())
  for (const address of PRIVATE) {
    const { post } = open(t, { resolve: answerWith([address]) })
    await t.rejects(post(`https://hooks.example.com:${upstream.port}/`), { code: 'EREFUSED' }, address)
  }
  t.equal(upstream.sockets.size, 0)
  const { post } = open(t)
  for (const url of [`https://127.0.0.1:${upstream.port}/`, `http://localhost:${upstream.port}/`, `https://u:p@localhost:${upstream.port}/`]) await t.rejects(post(url), { code: 'EREFUSED' }, url)
  await t.rejects(post(`https://localhost:${upstream.port}/`), { code: 'EREFUSED' }, 'by the resolver of the system')
  t.equal(upstream.sockets.size, 0)
})

t.test('a name that resolves to a private address later is refused too', async (t) => {
  const upstream = await serve(t, (_request, response) => response.writeHead(200, { connection: 'close' }).end())
  const resolve = answerWith(['127.0.0.1'], ['127.0.0.2'])
  const { checkUrl, post } = open(t, { allow: ['127.0.0.1'], resolve })
  const url = `https://hooks.example.com:${upstream.port}/`
  t.equal(checkUrl(url), url)
  const { code } = await post(url).then(() => t.fail('without TLS'), (error: OutboundError) => error) as OutboundError
  t.not(code, 'EREFUSED', 'allowed: it gets as far as TLS')
  await t.rejects(post(url), { code: 'EREFUSED' })
})

t.test('of several addresses those that are not allowed are never connected to', async (t) => {
  const upstream = await startUpstream(t, (response) => response.end())
  let connections = 0
  const forbidden = createServer((socket) => {
    connections++
    socket.destroy()
  }).listen(upstream.port, '127.0.0.2')
  await once(forbidden, 'listening')
  t.teardown(() => forbidden.close())
  const reach = async (allow: string[], addresses: string[]) => {
    const { post } = open(t, { allow, resolve: answerWith(addresses) })
    // Its port is that of both listeners, so that the address alone decides. Without a certificate, the connection fails after it was made.
    return await post(`https://a.test:${upstream.port}/`).then(() => 'answered', ({ code }: OutboundError) => code)
  }
  const plain = await reach(['127.0.0.1'], ['127.0.0.1'])
  t.not(plain, 'EREFUSED', 'the allowed address is connected to')
  t.equal(await reach(['127.0.0.1'], ['127.0.0.2', '127.0.0.1']), plain)
  t.equal(await reach(['127.0.0.1'], ['127.0.0.1', '127.0.0.2']), plain)
  t.equal(await reach(['127.0.0.1'], ['127.0.0.2']), 'EREFUSED')
  t.equal(connections, 0)
  await reach(['127.0.0.2'], ['127.0.0.2', '127.0.0.1'])
  t.equal(connections, 1, 'it would have been reached')
  const none = open(t, { allow: ['a.test'], resolve: answerWith([]) })
  await t.rejects(none.post(`http://a.test:${upstream.port}/`), { code: 'ENOTFOUND' })
})

t.test('a POST with its headers and body; the answer is a status, the time, and when to try again', async (t) => {
  const upstream = await startUpstream(t, (response, { url }) => {
    if (url === '/seconds') response.writeHead(503, { 'retry-after': '120' }).end('later')
    else if (url === '/date') response.writeHead(429, { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }).end()
    else if (url === '/far') response.writeHead(503, { 'retry-after': 'Fri, 01 Jan 20000 00:00:00 GMT' }).end()
    else if (url === '/nonsense') response.writeHead(503, { 'retry-after': 'soon' }).end()
    else response.writeHead(204).end()
  })
  const { post } = open(t, local)
  const answer = await post(`${upstream.url}/hook?a=b`)
  t.match(upstream.seen, [{ method: 'POST', url: '/hook?a=b', headers: { 'content-type': 'application/json', 'content-length': '8' }, body: Buffer.from('{"é":1}').toString('latin1') }])
  t.strictSame(Object.keys(answer), ['status', 'time'])
  t.match(answer, { status: 204, time: Number })
  t.match(await post(`${upstream.url}/seconds`), { status: 503, retryAfter: 120_000 })
  const { retryAfter = 0 } = await post(`${upstream.url}/date`)
  t.ok(retryAfter > 3_000_000 && retryAfter <= 3_600_000)
  t.match(await post(`${upstream.url}/far`), { retryAfter: 999_999_999_000 })
  t.strictSame((await post(`${upstream.url}/nonsense`)).retryAfter, undefined)
  t.equal(upstream.sockets.size, 1, 'one connection for all')
})

t.test('a redirect is an answer, and is not followed', async (t) => {
  const upstream = await startUpstream(t, (response) => response.writeHead(307, { location: '/elsewhere' }).end())
  const { post } = open(t, local)
  t.match(await post(`${upstream.url}/`), { status: 307 })
  t.equal(upstream.seen.length, 1)
})

t.test('an answer beyond 64 KiB counts, and loses its connection; a shorter one keeps it', async (t) => {
  let size = 60 * 1024
  const upstream = await startUpstream(t, (response) => {
    response.writeHead(200)
    if (size > 0) return response.end(Buffer.alloc(size))
    const more = () => {
      while (response.write(Buffer.alloc(16 * 1024)));
    }
    response.on('drain', more)
    more()
  })
  // Without a deadline: the size alone ends it.
  const { post } = open(t, { ...local, timers: createTimers() })
  t.match(await post(upstream.url), { status: 200 })
  t.equal(upstream.sockets.size, 1)
  const [socket] = upstream.sockets
  size = 0
  t.match(await post(upstream.url), { status: 200 })
  await closed('the connection of an endless answer', socket!)
})

t.test('a receiver that never answers, or not with a whole header, is given up after the time limit', async (t) => {
  for (const text of ['', 'HTTP/1.1 200 OK\r\nx: ', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(3)]) {
    const timers = createTimers()
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.write(text)
      socket.once('data', () => timers.advance(15_000))
    }).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const { post } = open(t, { ...local, timers })
    await t.rejects(post(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`), { code: 'ETIMEDOUT' }, JSON.stringify(text))
  }
})

t.test('a status counts although its body trickles; the rest is cut off after the time limit', async (t) => {
  const timers = createTimers()
  const upstream = await startUpstream(t, (response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('.', () => setImmediate(timers.advance, 15_000))
  })
  const { post } = open(t, { ...local, timers })
  const answer = await post(upstream.url).catch((error: OutboundError) => error.code)
  // The header may arrive after the end of the time.
  if (answer !== 'ETIMEDOUT') t.match(answer, { status: 200 })
  const [socket] = upstream.sockets
  if (socket !== undefined) await closed('the connection', socket)
  t.equal(upstream.sockets.size, 0)
})

t.test('a look-up that takes too long is aborted, and so is a call that its caller aborts', async (t) => {
  const timers = createTimers()
  const asked = Promise.withResolvers<void>()
  const { post } = open(t, {
    timers,
    resolve: () => {
      asked.resolve()
      return new Promise(() => {})
    }
  })
  const slow = t.rejects(post('https://hooks.example.com/'), { code: 'ETIMEDOUT' })
  await asked.promise
  timers.advance(15_000)
  await slow
  const ending = new AbortController()
  const aborted = t.rejects(post('https://hooks.example.com/', ending.signal), { code: 'EABORTED' })
  ending.abort()
  await aborted
  await t.rejects(post('https://hooks.example.com/', ending.signal), { code: 'EABORTED' })
})

t.test('close aborts the calls in flight, and refuses further ones', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, () => arrived.resolve())
  const { post, close } = open(t, local)
  const call = t.rejects(post(upstream.url), { code: 'EABORTED' })
  await arrived.promise
  await close()
  await call
  await t.rejects(post(upstream.url), { code: 'EABORTED' })
})

t.test('an idle connection that was closed meanwhile is replaced; a fresh one that fails is not', async (t) => {
  let requests = 0
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      // The second request of a connection is reset.
      if (++requests === 2) socket.resetAndDestroy()
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { post, close } = open(t, local)
  t.match(await post(url), { status: 200 })
  t.match(await post(url), { status: 200 })
  t.equal(requests, 3)
  await close()
  server.close()
  await once(server, 'close')
  await t.rejects(open(t, local).post(url), { code: 'ECONNREFUSED', message: 'no answer: ECONNREFUSED' })
})

t.test('proxy variables have no effect', async (t) => {
  const proxy = await startUpstream(t, (response) => response.end())
  const upstream = await startUpstream(t, (response) => response.end())
  for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']) {
    const former = process.env[name]
    process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : proxy.url
    t.teardown(() => {
      if (former === undefined) delete process.env[name]
      else process.env[name] = former
    })
  }
  t.match(await open(t, local).post(upstream.url), { status: 200 })
  t.equal(proxy.seen.length, 0)
  t.equal(upstream.seen.length, 1)
})

t.test('a switch of protocols is an answer, and ends the connection; a wrong header is a code', async (t) => {
  const upstream = await serve(t, () => {})
  upstream.server.on('upgrade', () => t.fail('nobody asked for it'))
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'))
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { post, fetch } = open(t, local)
  t.match(await post(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`), { status: 101 })
  await t.rejects(fetch({ url: upstream.url, headers: { x: 'a\nb' }, body: '' }), { name: 'OutboundError', code: 'ERR_INVALID_CHAR' })
})

t.test('the certificate of the receiver must be one of a known authority, and of its name', async (t) => {
  const pem = await readFile(new URL('../../fixtures/tls-hooks.pem', import.meta.url), 'utf8')
  const server = createTlsServer({ key: pem, cert: pem }, (request, response) => {
    request.resume()
    response.end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const options = { allow: ['127.0.0.1'], resolve: answerWith(['127.0.0.1']) }
  await t.rejects(open(t, options).post(`https://hooks.example.com:${port}/`), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  const authorities = getCACertificates('default')
  setDefaultCACertificates([...authorities, pem.slice(pem.indexOf('-----BEGIN CERT'))])
  t.teardown(() => setDefaultCACertificates(authorities))
  t.match(await open(t, options).post(`https://hooks.example.com:${port}/`), { status: 200 })
  await t.rejects(open(t, options).post(`https://other.example.com:${port}/`), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
})

t.test('an answer is read up to a limit, within a time of its own, as it came', async (t) => {
  const upstream = await startUpstream(t, (response, { url, method, headers }) => {
    if (url === '/long') response.end('x'.repeat(101))
    else if (url === '/endless') response.write('x')
    else if (url === '/moved') response.writeHead(302, { location: '/' }).end('moved')
    else response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'max-age=7' }).end(JSON.stringify({ method, encoding: headers['accept-encoding'] }))
  })
  const { read } = open(t, local)
  const get = async (path: string, rest: object = {}) => await within(path, read({ method: 'GET', url: upstream.url + path, headers: { 'accept-encoding': 'identity' }, limit: 100, ...rest }))
  const found = await get('/')
  t.match(found, { status: 200, type: 'application/json', headers: { 'cache-control': 'max-age=7' } })
  t.strictSame(JSON.parse(String(found.body)), { method: 'GET', encoding: 'identity' })
  t.match(await get('/moved'), { status: 302 }, 'redirects are not followed')
  await t.rejects(get('/long'), { code: 'ETOOLARGE' })
  t.match(await get('/long', { status: 201 }), { status: 200, body: { length: 0 } }, 'the body of another status is left out')
  await t.rejects(get('/endless', { timeout: 50 }), { code: 'ETIMEDOUT' })
})
