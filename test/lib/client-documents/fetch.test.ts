import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createDocumentFetch } from '../../../lib/client-documents/fetch.ts'
import { createHosts } from '../../../lib/client-documents/hosts.ts'
import { createOutbound } from '../../../lib/outbound/fetcher.ts'

// A hostile host of documents, over TLS with its own authority. Its name resolves to what each test injects.

const PUBLIC = '127.0.0.1'
const pem = await readFile(new URL('../../fixtures/tls-hooks.pem', import.meta.url), 'utf8')
const authorities = getCACertificates('default')
setDefaultCACertificates([...authorities, pem.slice(pem.indexOf('-----BEGIN CERT'))])
t.teardown(() => setDefaultCACertificates(authorities))

/** Serves by path, and counts connections. */
async function serve (t: Test, listener: RequestListener) {
  const server = createTlsServer({ key: pem, cert: pem }, listener)
  const seen = { connections: 0 }
  server.on('connection', () => { seen.connections++ })
  server.listen(0, PUBLIC)
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { ...seen, seen, origin: `https://hooks.example.com:${(server.address() as AddressInfo).port}` }
}

const toAddresses = (addresses: string[]) => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))

function open (t: Test, { addresses = [[PUBLIC]], allow = [PUBLIC] }: { addresses?: string[][], allow?: string[] } = {}) {
  const asked = { count: 0 }
  const outbound = createOutbound({ allow, resolve: async () => toAddresses(addresses[Math.min(asked.count++, addresses.length - 1)]!) })
  t.teardown(() => outbound.close())
  const { getDocument } = createDocumentFetch({ read: outbound.read, hosts: createHosts('*') })
  return { asked, get: async (url: string) => await getDocument(new URL(url)) }
}

const write = (client_id: string, rest: object = {}) => JSON.stringify({ client_id, client_name: 'An agent', redirect_uris: [new URL('/cb', client_id).href], ...rest })

t.test('a document is fetched without compression, and is fresh as long as its host says, within bounds', async (t) => {
  const headers: (string | undefined)[] = []
  const { origin } = await serve(t, ({ url = '', headers: sent }, response) => {
    headers.push(String(sent['accept-encoding']), String(sent.accept))
    const control = decodeURIComponent(url.slice(1))
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', ...(control !== 'none' && { 'cache-control': control }) }).end(write(origin + url))
  })
  const { get } = open(t)
  for (const [control, minutes] of [
    ['none', 60], ['max-age=7200', 120], ['public, max-age="7200"', 120], ['max-age=1', 5], ['max-age=99999999', 1440], ['no-store', 5], ['max-age=7200, no-cache', 5], ['s-maxage=7200', 60], ['max-age=x', 60]
  ] as const) t.equal((await get(`${origin}/${encodeURIComponent(control)}`)).lifetime, minutes * 60_000, control)
  t.strictSame([...new Set(headers)], ['identity', 'application/json'])
})

t.test('a hostile host: each answer is refused by its rule, within its time, and the loop goes on', async (t) => {
  const bomb = gzipSync(Buffer.alloc(10_000_000))
  let bytes = 0
  const { origin } = await serve(t, ({ url = '' }, response) => {
    const json = { 'content-type': 'application/json' }
    const [, kind] = url.split('/')
    if (kind === 'slow') response.writeHead(200, json).write('{')
    else if (kind === 'drip') setInterval(() => response.write(' '), 100).unref()
    else if (kind === 'huge') {
      response.writeHead(200, json)
      const chunk = Buffer.alloc(64 * 1024, ' ')
      const more = () => { while (bytes < 10_000_000 && !response.destroyed && response.write(chunk)) bytes += chunk.length }
      response.on('drain', more)
      more()
    } else if (kind === 'bomb') response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(bomb)
    else if (kind === 'gzip') response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync(write(origin + url)))
    else if (kind === 'redirect') response.writeHead(302, { location: `${origin}/good` }).end()
    else if (kind === 'inside') response.writeHead(302, { location: 'https://169.254.169.254/latest' }).end()
    else if (kind === 'created') response.writeHead(201, json).end(write(origin + url))
    else if (kind === 'missing') response.writeHead(404, { 'content-type': 'text/html' }).end('x'.repeat(20_000))
    else if (kind === 'broken') response.writeHead(500).end('x'.repeat(20_000))
    else if (kind === 'html') response.writeHead(200, { 'content-type': 'text/html' }).end(write(origin + url))
    else if (kind === 'typeless') response.writeHead(200).end(write(origin + url))
    else if (kind === 'long') response.writeHead(200, json).end(write(origin + url, { x: 'x'.repeat(5_120) }))
    else if (kind === 'cut') response.writeHead(200, { ...json, 'content-length': '500' }).write('{', () => response.destroy())
    else if (kind !== 'silent') response.writeHead(200, json).end(write(origin + url))
  })
  const { get } = open(t)
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const begun = performance.now()
  const rules = {
    slow: ['unreachable', 'ETIMEDOUT', 'down'],
    drip: ['unreachable', 'ETIMEDOUT', 'down'],
    silent: ['unreachable', 'ETIMEDOUT', 'down'],
    huge: ['size', '', 'refused'],
    bomb: ['size', '', 'refused'],
    gzip: ['encoding', 'gzip', 'refused'],
    redirect: ['status', '302', 'refused'],
    inside: ['status', '302', 'refused'],
    created: ['status', '201', 'refused'],
    missing: ['status', '404', 'gone'],
    broken: ['status', '500', 'down'],
    html: ['type', 'text/html', 'refused'],
    typeless: ['type', '', 'refused'],
    long: ['size', '', 'refused'],
    cut: ['unreachable', 'ECONNRESET', 'down']
  }
  await Promise.all(Object.entries(rules).map(async ([kind, [rule, value, state]]) => {
    await t.rejects(get(`${origin}/${kind}`), { name: 'DocumentError', rule, value, state }, kind)
  }))
  delay.disable()
  t.ok(performance.now() - begun < 15_000, 'each within its time')
  t.ok(bytes < 8_000_000, 'a huge answer is not read to its end')
  t.comment(`p99 of the loop: ${Math.round(delay.percentile(99) / 1e6)} ms`)
  t.match(await get(`${origin}/good`), { body: { client_name: 'An agent' } })
})

t.test('no connection is made to a private address, whatever name leads there, also when it changes between two look-ups', async (t) => {
  // A listener at each address that the resolver answers: the loopback network stands for the inside of a data centre.
  const inside = ['127.0.0.2', '127.7.7.7', '::1']
  let connections = 0
  const { origin, seen } = await serve(t, ({ url = '' }, response) => {
    response.writeHead(200, { 'content-type': 'application/json', connection: 'close' }).end(write(origin + url, { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: `${origin}/keys` }))
  })
  const port = Number(new URL(origin).port)
  for (const address of inside) {
    const listener = createServer((socket) => {
      connections++
      socket.destroy()
    }).listen(port, address)
    await once(listener, 'listening').catch(() => t.comment(`${address} is not on this machine`))
    t.teardown(() => listener.close())
  }
  const special = [...inside, '169.254.169.254', '10.0.0.1', '192.168.1.1', '::ffff:127.0.0.2', 'fd00::1', 'fe80::1', '0.0.0.0', '64:ff9b::7f00:2', '100.64.0.1']
  for (const address of special) await t.rejects(open(t, { addresses: [[address]] }).get(`${origin}/a`), { name: 'DocumentError', rule: 'address' }, address)
  for (const host of ['127.0.0.2', '[::1]', '[::ffff:127.0.0.2]', '2130706434', '0x7f000002']) {
    await t.rejects(open(t, { addresses: [['127.0.0.2']] }).get(`https://${host}:${port}/a`), { name: 'DocumentError', rule: 'address' }, host)
  }
  t.equal(seen.connections, 0)
  // The first look-up is public, and the second, for the keys, is not.
  const { get, asked } = open(t, { addresses: [[PUBLIC], ['127.0.0.2']] })
  await t.rejects(get(`${origin}/a`), { name: 'DocumentError', rule: 'address' })
  t.equal(asked.count, 2)
  t.equal(seen.connections, 1, 'only the public one')
  t.equal(connections, 0, 'none at a private address')
})

t.test('the certificate of the host must be of its name', async (t) => {
  const { origin } = await serve(t, ({ url = '' }, response) => { response.end(write(origin + url)) })
  await t.rejects(open(t).get(`https://other.example.com:${new URL(origin).port}/a`), { name: 'DocumentError', rule: 'unreachable', value: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  setDefaultCACertificates(authorities)
  await t.rejects(open(t).get(`${origin}/a`), { name: 'DocumentError', rule: 'unreachable', value: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
})
