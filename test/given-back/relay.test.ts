import { randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import t from 'tap'
import { TokenInfoClient } from '../../lib/remote/token-info-client.ts'
import { RemoteTokens } from '../../lib/remote/remote-tokens.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { Relay } from '../../lib/service-client/relay.ts'
import { Exchange } from '../../routes/bridge-exchange.ts'
import { checkRow, findKept, watchSizes } from '../helpers/given-back.ts'
import { findFreePort } from '../helpers/port.ts'
import { type Answer, call, closed, open, startUpstream } from '../helpers/upstream.ts'

let arrived: () => void = () => {}

/** What the service behind the relay does, by path. */
const ANSWERS: Record<string, Answer> = {
  '/200': (response) => response.end('done'),
  '/204': (response) => response.writeHead(204).end(),
  '/500': (response) => response.writeHead(500).end('failed'),
  '/999': (response) => response.writeHead(999).end('x'),
  '/999-long': (response) => response.writeHead(999).end('x'.repeat(1_000_000)),
  '/cut': (response, _seen, request) => {
    response.writeHead(200, { 'content-length': '10' })
    response.write('x', () => request.socket.destroy())
  },
  '/reset': (_response, _seen, request) => request.socket.resetAndDestroy(),
  '/silent': () => arrived(),
  '/endless': (response) => {
    response.writeHead(200)
    response.write('x')
  },
  '/api/v1/auth/tokeninfo': (response) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('{}')
}

const upstream = await startUpstream(t, (response, seen, request) => ANSWERS[seen.url]!(response, seen, request))
const TIMES = { maxConnections: 1, connectTimeout: 2_000, headersTimeout: 60_000, bodyTimeout: 60_000 }
const relay = new Relay({ ...TIMES, upstream: { origin: upstream.url, base: '' } })
t.teardown(() => relay.close())
const { signal } = new AbortController()
const holders = { signals: { 'the signal of the caller': signal }, sizes: { 'connections of the service': upstream.sockets } }

async function send (path: string, caller = signal, by = relay): Promise<string> {
  const { status, body } = await by.send({ method: 'GET', path, headers: {}, body: null, signal: caller })
  const parts: Buffer[] = []
  for await (const part of body) {
    parts.push(part)
    if (path === '/endless') break
  }
  return `${status} ${Buffer.concat(parts).toString()}`
}

const OUTCOMES: Record<string, string> = {
  '/200': '200 done', '/204': '204 ', '/500': '500 failed', '/999': 'ErrRsc', '/999-long': 'ErrRsc', '/cut': 'ErrRsc', '/reset': 'ErrRsc', '/endless': '200 x'
}

for (const [path, outcome] of Object.entries(OUTCOMES)) {
  t.test(`a relayed request, ${path}: ${outcome}, and everything is given back`, async (t) => await checkRow(t, { call: () => send(path), outcome, ...holders }))
}

t.test('a relayed request whose caller leaves, whose service is silent or not there: everything is given back', async (t) => {
  const late = new Relay({ ...TIMES, connectTimeout: 10, headersTimeout: 20, upstream: { origin: upstream.url, base: '' } })
  const nobody = new Relay({ ...TIMES, upstream: { origin: `http://127.0.0.1:${await findFreePort()}`, base: '' } })
  t.teardown(() => Promise.all([late.close(), nobody.close()]))
  const leave = async () => {
    const caller = new AbortController()
    const arrival = new Promise<void>((resolve) => { arrived = resolve })
    const answer = send('/silent', caller.signal)
    await arrival
    caller.abort()
    return await answer
  }
  for (const call of [leave, () => send('/silent', signal, late), () => send('/200', signal, nobody)]) await checkRow(t, { call, outcome: 'ErrRsc', ...holders })
})

t.test('a relay that is closed gives back its connections', async (t) => {
  t.strictSame(await findKept(async () => {
    const own = new Relay({ ...TIMES, upstream: { origin: upstream.url, base: '' } })
    await send('/200', signal, own)
    await own.close()
  }, holders), [])
})

t.test('an exchange of the bridge, with a caller who reads and one who leaves: everything is given back', async (t) => {
  const app = Fastify()
  app.get('/*', async (request, reply) => {
    const exchange = new Exchange(relay, { stallTimeout: 60_000, cookies: false }, request, reply)
    return await exchange.run(async () => await exchange.relay(await exchange.ask(request.url)))
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  for (const path of ['/200', '/204', '/500']) t.strictSame(await findKept(async () => await call(url + path), holders), [], path)
  t.strictSame(await findKept(async () => {
    const response = await open(`${url}/endless`)
    response.destroy()
    await closed('the response', response)
  }, holders), [], 'leaves')
})

t.test('a question about a token gives everything back, and the answers of strangers are bounded', async (t) => {
  const { opened: { client, tokens }, sizes } = await watchSizes(() => {
    const client = new TokenInfoClient({ location: { upstream: { origin: upstream.url, base: '' } }, timeout: 5_000, maxConnections: 1 })
    return { client, tokens: new RemoteTokens({ client, cacheTtl: 0, staleTtl: 0, cacheSize: 5, roles: DEFAULT_ROLE_NAMES, now: Date.now, onChange: () => {} }) }
  })
  t.teardown(() => client.close())
  const ask = async () => await tokens.authenticate(randomBytes(8).toString('hex'))
  await checkRow(t, { call: ask, outcome: 'ErrUnknown', sizes: { ...sizes, ...holders.sizes } })
  const { opened: cached, sizes: caches } = await watchSizes(() => (
    new RemoteTokens({ client, cacheTtl: 60_000, staleTtl: 0, cacheSize: 5, roles: DEFAULT_ROLE_NAMES, now: Date.now, onChange: () => {} })))
  for (let index = 0; index < 12; index++) await t.rejects(async () => await cached.authenticate(`token ${index}`), { code: 'ErrUnknown' })
  t.strictSame(Object.values(caches).map(({ size }) => size).filter((size) => size > 0), [5])
})
