import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ClientRequest } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, type Socket, createServer, getDefaultAutoSelectFamily, setDefaultAutoSelectFamily } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import { type OutboundOptions, createOutbound } from '../../../lib/outbound/fetcher.ts'
import { startUpstream } from '../../helpers/upstream.ts'

function open (t: Test, options: Partial<OutboundOptions> = {}) {
  const outbound = createOutbound({ allow: ['127.0.0.1'], ...options })
  t.teardown(() => outbound.close())
  const get = async (url: string, rest: object = {}) => await outbound.read({ method: 'GET', url, headers: {}, limit: 100, ...rest })
  const post = async (url: string) => await outbound.fetch({ url, headers: {}, body: '' })
  return { ...outbound, get, post }
}

/** The sockets of the requests that this process sends from now on. */
function watchSockets (t: Test): Socket[] {
  const sockets: Socket[] = []
  const finished = channel('http.client.response.finish')
  const note = (message: unknown) => { sockets.push((message as { request: ClientRequest }).request.socket!) }
  finished.subscribe(note)
  t.teardown(() => finished.unsubscribe(note))
  return sockets
}

/** A server with a certificate that this process trusts. @returns its URL */
async function startSecure (t: Test): Promise<string> {
  const pem = await readFile(new URL('../../fixtures/tls-hooks.pem', import.meta.url), 'utf8')
  const authorities = getCACertificates('default')
  setDefaultCACertificates([...authorities, pem.slice(pem.indexOf('-----BEGIN CERT'))])
  const server = createTlsServer({ key: pem, cert: pem }, (request, response) => {
    request.resume()
    response.end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => {
    setDefaultCACertificates(authorities)
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return `https://hooks.example.com:${(server.address() as AddressInfo).port}/`
}

t.test('a request on an idle connection that was closed meanwhile is sent again with its method, headers and body', async (t) => {
  const requests: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    let text = ''
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part
      if (!text.endsWith('end')) return
      requests.push(text)
      text = ''
      if (requests.length === 2) socket.resetAndDestroy()
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    })
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { get } = open(t)
  await get(url, { body: 'first end' })
  t.match(await get(url, { headers: { 'x-name': 'value' }, body: 'second end' }), { status: 200 })
  t.equal(requests.length, 3)
  t.match(requests[1], /^GET \/ HTTP\/1\.1\r\nx-name: value\r\n.*\r\n\r\nsecond end$/s)
  t.equal(requests[2], requests[1])
})

t.test('the connection of an answer of 64 KiB is used again, and that of a longer one is closed', async (t) => {
  for (const [bytes, connections] of [[0, 1], [1000, 1], [64 * 1024, 1], [64 * 1024 + 1, 2]] as const) {
    const upstream = await startUpstream(t, (response) => response.end(Buffer.alloc(bytes)))
    const { post } = open(t)
    let made = 0
    upstream.server.on('connection', () => { made++ })
    for (let sent = 0; sent < 2; sent++) t.match(await post(upstream.url), { status: 200 })
    t.equal(made, connections, `${bytes} bytes`)
  }
})

t.test('an answer may be as long as the limit', async (t) => {
  const upstream = await startUpstream(t, (response, { url }) => response.end('x'.repeat(Number(url.slice(1)))))
  const { get } = open(t)
  t.equal((await get(`${upstream.url}/100`)).body.length, 100)
  await t.rejects(get(`${upstream.url}/101`), { code: 'ETOOLARGE' })
})

t.test('Retry-After is seconds or a date of HTTP, and nothing else', async (t) => {
  let value = ''
  const upstream = await startUpstream(t, (response) => response.writeHead(503, { 'retry-after': value }).end())
  const { post } = open(t)
  for (value of ['x12', '12x', '-1', '1.5', '1234567890', '2999-01-01T00:00:00Z', 'Thu, soon', 'x Thu, 01 Jan 2998 00:00:00 GMT']) {
    t.equal((await post(upstream.url)).retryAfter, undefined, value)
  }
  for (value of ['0', '999999999']) t.equal((await post(upstream.url)).retryAfter, Number(value) * 1000, value)
  value = 'Thu, 01 Jan 1970 00:00:00 GMT'
  t.equal((await post(upstream.url)).retryAfter, 0, 'a date in the past')
})

t.test('an address that is not allowed is left out too where Node tries a single address', async (t) => {
  const former = getDefaultAutoSelectFamily()
  setDefaultAutoSelectFamily(false)
  t.teardown(() => setDefaultAutoSelectFamily(former))
  const url = await startSecure(t)
  const sockets = watchSockets(t)
  const resolve = async () => ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 }))
  t.match(await open(t, { resolve }).post(url), { status: 200 })
  t.strictSame(sockets.map(({ remoteAddress }) => remoteAddress), ['127.0.0.1'])
})

t.test('close ends idle connections, with TLS and without', async (t) => {
  const secure = await startSecure(t)
  const plain = await startUpstream(t, (response) => response.end())
  const sockets = watchSockets(t)
  const { post, close } = open(t, { resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
  await post(plain.url)
  await post(secure)
  t.strictSame(sockets.map(({ destroyed }) => destroyed), [false, false], 'kept')
  await close()
  t.strictSame(sockets.map(({ destroyed }) => destroyed), [true, true])
})
