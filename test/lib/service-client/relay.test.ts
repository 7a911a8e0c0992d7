import t from 'tap'
import { Dispatcher } from 'undici'
import { Relay, type RelayRequest } from '../../../lib/service-client/relay.ts'
import { startUpstream } from '../../helpers/upstream.ts'

/** Takes requests and never answers. */
class Silent extends Dispatcher {
  taken = 0

  override dispatch (): boolean {
    this.taken++
    return true
  }
}

const TIMES = { maxConnections: 1, connectTimeout: 20, headersTimeout: 20, bodyTimeout: 20 }
const upstream = { origin: 'http://127.0.0.1:9', base: '' }

function request (fields: Partial<RelayRequest> = {}): RelayRequest {
  return { method: 'GET', path: '/x', headers: {}, body: null, signal: new AbortController().signal, ...fields }
}

t.test('a request without a response is aborted', async (t) => {
  const relay = new Relay({ ...TIMES, upstream, dispatcher: new Silent() })
  await t.rejects(relay.send(request()), { code: 'ErrRsc', statusCode: 502, message: 'the upstream did not answer in time' })
})

t.test('a request whose caller has disconnected ends at once', async (t) => {
  const relay = new Relay({ ...TIMES, upstream, headersTimeout: 60_000, dispatcher: new Silent() })
  const gone = AbortSignal.abort()
  await t.rejects(relay.send(request({ signal: gone })))
  const caller = new AbortController()
  const sent = relay.send(request({ signal: caller.signal }))
  caller.abort()
  await t.rejects(sent)
})

t.test('the number of waiting requests is bounded', async (t) => {
  const dispatcher = new Silent()
  const relay = new Relay({ ...TIMES, upstream, headersTimeout: 60_000, dispatcher })
  const caller = new AbortController()
  const { signal } = caller
  const sent = Array.from({ length: 1024 }, async () => await relay.send(request({ signal })).catch(() => 'ended'))
  await t.rejects(relay.send(request()), { code: 'ErrBusy', statusCode: 503, headers: { 'retry-after': '1' } })
  t.equal(dispatcher.taken, 1024)
  caller.abort()
  await Promise.all(sent)
  const again = new AbortController()
  const next = relay.send(request({ signal: again.signal }))
  t.equal(dispatcher.taken, 1025, 'an ended request makes room')
  again.abort()
  await t.rejects(next)
})

t.test('a request that undici would refuse is ErrParam, and costs no connection', async (t) => {
  const server = await startUpstream(t, (response) => response.end('ok'))
  const relay = new Relay({ ...TIMES, headersTimeout: 5000, upstream: { origin: server.url, base: '' } })
  t.teardown(async () => await relay.close())
  for (const fields of [
    { path: '/a b' }, { path: '/\u0100' }, { path: '/\0' }, { path: '' },
    { headers: { 'x-a': 'b\r\nx-c: d' } }, { headers: { 'x-a': ['b', '\0'] } }, { headers: { 'x-a': '\u0100' } }, { headers: { 'x a': 'b' } }
  ] as Partial<RelayRequest>[]) {
    await t.rejects(relay.send(request(fields)), { code: 'ErrParam', message: 'request: cannot be forwarded' }, JSON.stringify(fields))
  }
  t.equal((await relay.send(request({ path: '/\u0021~', headers: { 'x-a': ['\t \u00ff', ''] } }))).status, 200)
})

t.test('the cause for the log contains no bytes of the response', async (t) => {
  const server = await startUpstream(t, (response) => response.socket?.end('{"clientSecret":"hunter2"}'))
  const relay = new Relay({ ...TIMES, headersTimeout: 5000, upstream: { origin: server.url, base: '' } })
  t.teardown(async () => await relay.close())
  const error = await relay.send(request()).then(() => undefined, (error: Error) => error)
  t.match(error, { code: 'ErrRsc', message: 'the upstream is unreachable' })
  const cause = error?.cause as Error
  t.match(cause.message, /HTTP/)
  t.notMatch(JSON.stringify({ ...cause, message: cause.message }), /hunter2/)
})
