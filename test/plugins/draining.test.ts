import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import Fastify from 'fastify'
import t from 'tap'
import { endConnectionsAtClose } from '../../plugins/draining.ts'
import { within } from '../helpers/upstream.ts'

/** A connection that is kept alive, and what has come in on it. */
async function open (port: number): Promise<{ socket: Socket, ask (path: string): void, got (pattern: RegExp): Promise<string>, ended: Promise<unknown> }> {
  const socket = connect(port, '127.0.0.1')
  await within('a connection', once(socket, 'connect'))
  let reply = ''
  socket.setEncoding('utf8').on('data', (part) => { reply += part }).on('error', () => {})
  return {
    socket,
    ask: (path) => { socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`) },
    async got (pattern) {
      while (!pattern.test(reply)) await within(String(pattern), once(socket, 'data'))
      return reply
    },
    ended: once(socket, 'close')
  }
}

t.test('a close waits for what runs, and for nothing else', async (t) => {
  const released = Promise.withResolvers<void>()
  const app = Fastify({ return503OnClosing: false })
  endConnectionsAtClose(app, { limit: 60_000 })
  app.get('/', () => 'fine')
  app.get('/slow', async () => {
    await released.promise
    return 'slow'
  })
  app.get('/stream', (_request, reply) => reply.send(Readable.from((async function * () {
    yield 'first '
    await released.promise
    yield 'last'
  })())))
  const port = Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)

  const [unused, used, half, slow, stream] = [await open(port), await open(port), await open(port), await open(port), await open(port)]
  used.ask('/')
  await used.got(/fine/)
  half.socket.write('GET / HTTP/1.1\r\nHost')
  stream.ask('/stream')
  await stream.got(/first/)
  slow.ask('/slow')
  // Its head is read when a later request of another connection is answered.
  used.ask('/')
  await used.got(/fine[^]*fine/)

  let closed = false
  const close = app.close().then(() => { closed = true })
  await within('the end of what runs nothing', Promise.all([unused.ended, used.ended, half.ended]))
  t.notOk(closed, 'what runs is waited for')
  released.resolve()
  t.match(await slow.got(/slow/), /\r\nconnection: close\r\n/i)
  await stream.got(/last/)
  await within('the close', close)
  await within('the end of the connections', Promise.all([slow.ended, stream.ended]))
})

t.test('a caller who sends half a request, or reads no answer, holds up the close for a while only', async (t) => {
  for (const [what, limit, path, told] of [
    ['a body that stays away', 60_000, '/body', 'connections aborted: incomplete requests'],
    ['an answer without an end', 100, '/never', 'connections aborted: not finished within 100 ms']
  ] as const) {
    const lines: string[] = []
    const app = Fastify({ return503OnClosing: false, logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
    endConnectionsAtClose(app, { limit })
    app.post('/body', () => 'never called')
    app.get('/never', (_request, reply) => { reply.hijack().raw.write('first') })
    app.get('/', () => 'fine')
    const port = Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)
    const [caller, other] = [await open(port), await open(port)]
    if (path === '/body') caller.socket.write('POST /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n')
    else caller.ask(path)
    if (path === '/never') await caller.got(/first/)
    // The head of the other's request is read after the caller's.
    other.ask('/')
    await other.got(/fine/)
    await within(`the close despite ${what}`, app.close())
    await within('the end of the connection', caller.ended)
    t.match(lines.map((line) => JSON.parse(line)), [{ msg: told, connections: 1 }], what)
  }
})
