import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Fastify, { type FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { answerHalfClosed, watchConnection } from '../../plugins/connections.ts'
import { build } from '../helpers/build.ts'
import { signIn } from '../helpers/people.ts'

/** An app with one route, which waits until the test answers, and a client that sends one request to it. */
async function ask (t: Test, version = '1.1') {
  const app = Fastify()
  answerHalfClosed(app)
  const answer = Promise.withResolvers<string>()
  const arrived = Promise.withResolvers<FastifyRequest>()
  app.get('/', async (request) => {
    arrived.resolve(request)
    return await answer.promise
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo
  const client = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  t.teardown(() => client.destroy())
  client.write(`GET / HTTP/${version}\r\nHost: x\r\n\r\n`)
  const request = await arrived.promise
  return { client, request, signal: watchConnection(request), answer: answer.resolve, socket: request.raw.socket }
}

t.test('a client that ends its side after the request gets the answer', async (t) => {
  for (const [version, interim] of [['1.1', true], ['1.0', false]] as const) {
    const { client, signal, answer, socket } = await ask(t, version)
    client.end()
    await once(socket, 'end')
    t.notOk(signal.aborted)
    answer('done')
    const received = await text(client)
    t.match(received, /HTTP\/1\.[01] 200 OK\r\n[^]*\r\n\r\ndone$/, version)
    t.equal(received.startsWith('HTTP/1.1 102 '), interim, 'no interim response before HTTP/1.1 (RFC 9110, 15.2)')
    if (!signal.aborted) await once(signal, 'abort')
  }
})

t.test('a client that leaves before the answer is noticed', async (t) => {
  const { client, request, signal, answer } = await ask(t)
  client.destroy()
  await once(signal, 'abort')
  t.ok(watchConnection(request).aborted)
  answer('nobody reads this')
})

t.test('all requests of a connection share one signal, and one listener', async (t) => {
  const { request, signal, answer, socket } = await ask(t)
  const count = socket.listenerCount('close')
  for (let number = 0; number < 20; number++) t.equal(watchConnection({ raw: { socket } } as FastifyRequest), signal)
  t.equal(watchConnection(request), signal)
  t.equal(socket.listenerCount('close'), count)
  answer('done')
})

t.test('a connection that is closed already', (t) => {
  t.ok(watchConnection({ raw: { socket: { destroyed: true } } } as FastifyRequest).aborted)
  t.end()
})

t.test('the API passes the signal on with the caller, so that work for disconnected callers is dropped', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const { users, clients } = kit.app.identity
  for (const [services, method, url] of [
    [users, 'countUpTo', '/user/count'], [users, 'page', '/user/list'], [clients, 'countUpTo', '/client/count'], [clients, 'page', '/client/list']
  ] as const) {
    const calls = t.capture(services, method, services[method])
    await admin.get(url)
    t.match(calls().map(({ args }: { args: unknown[] }) => args[1]), [{ user_id: admin.user_id, signal: AbortSignal }], url)
  }
})
