import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import Fastify from 'fastify'
import t from 'tap'
import { allowLong, handleMalformed, refuseExpectations } from '../../plugins/malformed.ts'
import { within } from '../helpers/upstream.ts'

const app = Fastify({ clientErrorHandler: handleMalformed })
refuseExpectations(app)
app.get('/', () => 'fine')
app.get('/stream', (_request, reply) => reply.header('content-length', '1000').send(Readable.from((async function * () {
  yield 'a part'
  await new Promise(() => {})
})())))

let port = 0
t.before(async () => { port = Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port) })
t.teardown(() => app.close())

/** What comes back for these bytes, until the server ends the connection. */
async function send (bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.end(bytes)
  return await within('the end of the connection', text(socket))
}

t.test('input that is not HTTP is answered in the common error format', async (t) => {
  for (const [bytes, statusCode, error, message] of [
    ['GARBAGE\r\n\r\n', 400, 'Bad Request', 'request: is not valid HTTP'],
    ['GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n', 400, 'Bad Request', 'request: is not valid HTTP'],
    ['GET / HTTP/1.1\r\nHost: a\r\nExpect: foo\r\n\r\n', 417, 'Expectation Failed', 'expect: only 100-continue is known'],
    ['POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc', 400, 'Bad Request', 'request: is not valid HTTP'],
    [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'Request Header Fields Too Large', 'headers: are too large']
  ] as const) {
    const reply = await send(bytes)
    const [head = '', body = ''] = reply.split('\r\n\r\n')
    t.equal(head.split('\r\n')[0], `HTTP/1.1 ${statusCode} ${error}`)
    t.match(head, /^Content-Type: application\/json$/mi)
    t.match(head, /^Connection: close$/mi)
    t.equal(head.match(/^Content-Length: (\d+)$/mi)?.[1], String(Buffer.byteLength(body)))
    t.strictSame(JSON.parse(body), { statusCode, code: 'ErrParam', error, message })
  }
})

t.test('a request may take long where its route allows it, and the next one of its connection may not', (t) => {
  const [socket, response, next] = [new PassThrough(), new EventEmitter(), new EventEmitter()]
  const allow = (raw: EventEmitter) => allowLong({ raw: { socket } } as never, { raw } as never)
  const expire = () => handleMalformed.call(app, Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }) as never, socket as never)
  for (const one of [response, next]) {
    allow(one)
    expire()
    t.equal(socket.destroyed, false, 'it may go on')
    one.emit('close')
  }
  expire()
  t.equal(socket.destroyed, true, 'the next one is refused')
  t.end()
})

t.test('nothing is written into a response that has begun', async (t) => {
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n')
  let reply = ''
  socket.setEncoding('utf8').on('data', (part) => { reply += part })
  while (!reply.endsWith('a part')) await within('the beginning of the response', once(socket, 'data'))
  socket.write('GARBAGE\r\n\r\n')
  await within('the end of the connection', once(socket, 'close'))
  t.match(reply, /\r\n\r\na part$/)
})
