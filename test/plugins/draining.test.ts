import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import Fastify from 'fastify'
import t from 'tap'
import { endConnectionsAtClose, watchRest } from '../../plugins/draining.ts'
import { within } from '../helpers/upstream.ts'

/** A keep-alive connection, and the text received on it. */
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

t.test('a close waits for responses in flight, and for nothing else', async (t) => {
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
  // Once a later request is answered, the head of this one has been read.
  used.ask('/')
  await used.got(/fine[^]*fine/)

  let closed = false
  const close = app.close().then(() => { closed = true })
  await within('the end of idle connections', Promise.all([unused.ended, used.ended, half.ended]))
  t.notOk(closed, 'responses in flight are waited for')
  released.resolve()
  t.match(await slow.got(/slow/), /\r\nconnection: close\r\n/i)
  await stream.got(/last/)
  await within('the close', close)
  await within('the end of the connections', Promise.all([slow.ended, stream.ended]))
})

t.test('an incomplete request or an endless response delays the close only for a while', async (t) => {
  for (const [what, limit, path, message] of [
    ['a missing body', 60_000, '/body', 'connections aborted: incomplete requests'],
    ['a missing body after a request that was watched', 60_000, '/body', 'connections aborted: incomplete requests'],
    ['an endless response', 100, '/never', 'connections aborted: not finished within 100 ms']
  ] as const) {
    const lines: string[] = []
    const app = Fastify({ return503OnClosing: false, logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
    endConnectionsAtClose(app, { limit })
    app.post('/body', () => 'never called')
    app.get('/never', (_request, reply) => { reply.hijack().raw.write('first') })
    app.get('/', () => 'fine')
    app.get('/watched', (request) => watchRest(request).aborted ? 'late' : 'watched')
    const port = Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)
    const [caller, other] = [await open(port), await open(port)]
    if (what.endsWith('watched')) {
      caller.ask('/watched')
      await caller.got(/watched/)
    }
    if (path === '/body') caller.socket.write('POST /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n')
    else caller.ask(path)
    if (path === '/never') await caller.got(/first/)
    // Once this request is answered, the head of the other has been read.
    other.ask('/')
    await other.got(/fine/)
    await within(`the close despite ${what}`, app.close())
    await within('the end of the connection', caller.ended)
    t.match(lines.map((line) => JSON.parse(line)), [{ msg: message, connections: 1 }], what)
  }
})
