import { getEventListeners, once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t from 'tap'
import { type Outbound, type OutboundError, createOutbound } from '../../lib/outbound/fetcher.ts'
import { findKept, watchSizes } from '../helpers/given-back.ts'
import { findFreePort } from '../helpers/port.ts'
import { createTimers } from '../helpers/timers.ts'
import { type Answer, startUpstream } from '../helpers/upstream.ts'

const TIMEOUT = 15_000

/** Bytes that a call reads at most. */
const LIMIT = 100

let arrived: () => void = () => {}

/** What the other side does, by path. */
const ANSWERS: Record<string, Answer> = {
  '/200': (response) => response.end('{}'),
  '/204': (response) => response.writeHead(204).end(),
  '/302': (response) => response.writeHead(302, { location: '/200' }).end('moved'),
  '/404': (response) => response.writeHead(404).end('x'.repeat(LIMIT - 1)),
  '/500': (response) => response.writeHead(500).end('x'.repeat(LIMIT - 1)),
  '/503': (response) => response.writeHead(503, { 'retry-after': '1' }).end(),
  '/long': (response) => response.end('x'.repeat(LIMIT + 1)),
  '/long-404': (response) => response.writeHead(404).end('x'.repeat(100_000)),
  '/cut': (response, _seen, request) => {
    response.writeHead(200, { 'content-length': '10' })
    response.write('x', () => request.socket.destroy())
  },
  '/reset': (_response, _seen, request) => request.socket.resetAndDestroy(),
  '/silent': () => arrived(),
  '/endless': (response) => {
    response.writeHead(200)
    response.write('x', () => setImmediate(arrived))
  }
}

const upstream = await startUpstream(t, (response, seen, request) => ANSWERS[seen.url]!(response, seen, request))
const switching = createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'))
}).listen(0, '127.0.0.1')
await once(switching, 'listening')
t.teardown(() => switching.close())
const nobody = await findFreePort()

const timers = createTimers()
const { opened: outbound, sizes } = await watchSizes(() => createOutbound({ allow: ['127.0.0.0/8'], timers, timeout: TIMEOUT }))
t.teardown(() => outbound.close())

/** The signal of a queue, which lives as long as the process. */
const { signal } = new AbortController()

type Call = (url: string, signal: AbortSignal) => Promise<{ status: number }>
const headers = {}
const CALLS: Record<string, Call> = {
  fetch: (url, signal) => outbound.fetch({ url, headers, body: 'x', signal }),
  read: (url, signal) => outbound.read({ method: 'GET', url, headers, limit: LIMIT, signal }),
  'read of 200 only': (url, signal) => outbound.read({ method: 'GET', url, headers, limit: LIMIT, status: 200, signal })
}

const toOutcome = async (call: Promise<{ status: number }>) => await call.then(({ status }) => status, (error: OutboundError) => error.code)

const at = (path: string) => upstream.url + path

/** Where the answer is a status or a failure, by call; one outcome where it is the same for all. */
const ENDS: [url: string, outcome: number | string | (number | string)[]][] = [
  [at('/200'), 200],
  [at('/204'), 204],
  [at('/302'), 302],
  [at('/404'), 404],
  [at('/500'), 500],
  [at('/503'), 503],
  [at('/long'), [200, 'ETOOLARGE', 'ETOOLARGE']],
  [at('/long-404'), [404, 'ETOOLARGE', 404]],
  [at('/cut'), [200, 'ECONNRESET', 'ECONNRESET']],
  [at('/reset'), 'ECONNRESET'],
  [`http://127.0.0.1:${(switching.address() as AddressInfo).port}/`, [101, 101, 101]],
  [`http://127.0.0.1:${nobody}/`, 'ECONNREFUSED'],
  ['http://10.0.0.1/', 'EREFUSED'],
  ['https://no-such-host.invalid/', 'ENOTFOUND']
]

const holders = { signals: { 'the signal of the queue': signal }, sizes: { ...sizes, 'connections of the server': upstream.sockets } }

for (const [index, [name, call]] of Object.entries(CALLS).entries()) {
  for (const [url, outcomes] of ENDS) {
    const outcome = Array.isArray(outcomes) ? outcomes[index] : outcomes
    const path = URL.parse(url)!.port === String(upstream.port) ? URL.parse(url)!.pathname : url.replace(/\d{4,}/, 'PORT')
    t.test(`${name}, ${path}: ${outcome}, and everything is given back`, async (t) => {
      const outcomes = new Set<number | string>()
      t.strictSame(await findKept(async () => outcomes.add(await toOutcome(call(url, signal))), holders), [])
      t.strictSame([...outcomes], [outcome])
    })
  }

  // The status of an endless answer counts for `fetch`, if it has arrived.
  for (const path of name === 'fetch' ? ['/silent'] : ['/silent', '/endless']) {
    t.test(`${name}, ${path}, which the caller aborts, or whose time ends: the connection closes too`, async (t) => {
      const outcomes = new Set<number | string>()
      const callers: AbortSignal[] = []
      const run = async (caller: AbortController, end: () => void) => {
        const arrival = new Promise<void>((resolve) => { arrived = resolve })
        callers.push(caller.signal)
        const answer = toOutcome(call(at(path), caller.signal))
        await arrival
        end()
        outcomes.add(await answer)
      }
      const kept = await findKept(async () => {
        const caller = new AbortController()
        await run(caller, () => caller.abort())
        await run(new AbortController(), () => timers.advance(TIMEOUT))
      }, { ...holders, times: 4 })
      t.strictSame(kept, [])
      t.equal(callers.length, 10)
      t.strictSame(callers.map((caller) => getEventListeners(caller, 'abort').length), callers.map(() => 0))
      t.strictSame([...outcomes], ['EABORTED', 'ETIMEDOUT'])
    })
  }
}

t.test('close gives back the idle connections, and those of calls in flight', async (t) => {
  const open = (): Outbound => createOutbound({ allow: ['127.0.0.0/8'] })
  t.strictSame(await findKept(async () => {
    const own = open()
    t.match(await own.fetch({ url: at('/200'), headers, body: '' }), { status: 200 })
    const arrival = new Promise<void>((resolve) => { arrived = resolve })
    const silent = toOutcome(own.fetch({ url: at('/silent'), headers, body: '', signal }))
    await arrival
    await own.close()
    t.equal(await silent, 'EABORTED')
  }, holders), [])
})
