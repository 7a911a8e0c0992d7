import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { Readable } from 'node:stream'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { storeError } from '../../lib/errors.ts'
import { handleError } from '../../plugins/errors.ts'
import { RequestLog, SERIALIZERS, chooseRequestId } from '../../plugins/logging.ts'
import { startIdentity } from '../../testing/index.ts'
import { within } from '../helpers/upstream.ts'

const SECRETS = /hunter2/

interface Line { level: number, msg: string, [field: string]: unknown }

const logs = new WeakMap<FastifyInstance, Line[]>()

/** An app that logs as the service does. */
function start (t: { teardown: (fn: () => unknown) => unknown }, routes: (app: FastifyInstance) => void, level = 'info', callers = true) {
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  const stream = {
    write (line: string) {
      lines.push(JSON.parse(line))
      for (const look of waiting) look()
    }
  }
  const app = Fastify({
    logger: { level, serializers: SERIALIZERS, stream },
    logController: new RequestLog({ callers }),
    genReqId: chooseRequestId,
    frameworkErrors: handleError
  })
  logs.set(app, lines)
  app.setErrorHandler(handleError)
  t.teardown(() => app.close())
  routes(app)
  const logged = (msg: string) => within(`the line "${msg}"`, new Promise<Line>((resolve) => {
    const look = () => {
      const found = lines.find((line) => line.msg === msg)
      if (found !== undefined) resolve(found)
    }
    waiting.add(look)
    look()
  }))
  return { app, lines, logged }
}

t.test('one line for each request: no query, no header, no body', async (t) => {
  const { app, lines } = start(t, (app) => app.post('/item/:id', () => ({ secret: 'hunter2' })))
  await app.inject({
    method: 'POST',
    url: '/item/7?password=hunter2',
    headers: { authorization: 'Bearer hunter2', cookie: 'a=hunter2', 'user-agent': 'hunter2' },
    payload: { password: 'hunter2' }
  })
  t.equal(lines.length, 1)
  t.match(lines[0], {
    level: 30,
    msg: 'request completed',
    req: { method: 'POST', path: '/item/7', route: '/item/:id', remoteAddress: '127.0.0.1' },
    res: { statusCode: 200 }
  })
  t.notMatch(JSON.stringify(lines), SECRETS)
})

t.test('the line of an authenticated request has the ids of the user and the client, unless that is turned off', async (t) => {
  for (const callers of [true, false]) {
    const kit = await startIdentity({ t, app: start(t, () => {}, 'info', callers).app })
    const lines: Line[] = logs.get(kit.app) ?? []
    const { headers, user_id, client_id } = await kit.mint({ user: 'ann@logged.example' })
    await kit.inject({ url: '/api/v1/auth/tokeninfo', headers })
    await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${'x'.repeat(43)}` } })
    const [own, unknown] = lines.filter(({ msg }) => msg === 'request completed')
    t.strictSame([own?.user_id, own?.client_id], callers ? [user_id, client_id] : [undefined, undefined])
    t.notOk(Object.hasOwn(unknown ?? {}, 'user_id'))
    t.notMatch(JSON.stringify(lines), 'logged.example', 'never the account')
  }
})

t.test('at a higher level a request is not logged, and a failure is', async (t) => {
  const { app, lines } = start(t, (app) => {
    app.get('/', () => 'fine')
    app.get('/quiet', { logLevel: 'error' }, () => 'fine')
    app.get('/failing', () => { throw storeError(new Error('lost')) })
  }, 'warn')
  for (const path of ['/', '/quiet', '/nowhere']) await app.inject(path)
  t.strictSame(lines, [])
  await app.inject('/failing')
  t.match(lines, [{ level: 50, reqId: /./, err: { message: 'lost' } }])
})

t.test('a long path is cut, and an invalid one is logged', async (t) => {
  const { app, lines } = start(t, () => {})
  await app.inject(`/${'x'.repeat(1000)}`)
  t.match(lines[0], { req: { path: `/${'x'.repeat(255)}` }, res: { statusCode: 404 } })
  await app.inject('/%zz?hunter2')
  t.match(lines[1], { req: { path: '/%zz' }, res: { statusCode: 400 } })
  t.notMatch(JSON.stringify(lines), SECRETS)
})

t.test('a failure is logged with its causes, and without the fields that a driver attaches', async (t) => {
  const cause = Object.assign(new Error('connect mongodb://ann:hunter2@host:27017/db failed'), { code: 'ECONNREFUSED', document: { password: 'hunter2' } })
  const { app, lines } = start(t, (app) => app.get('/', () => { throw storeError(new Error('lost', { cause })) }))
  t.equal((await app.inject('/')).statusCode, 503)
  t.match(lines[0], {
    level: 50,
    code: 'ErrDb',
    err: { type: 'Error', message: 'lost', stack: /^Error: lost\n/, cause: { message: 'connect mongodb://***@host:27017/db failed', code: 'ECONNREFUSED' } }
  })
  t.match(lines[1], { msg: 'request completed', res: { statusCode: 503 }, reqId: lines[0]?.reqId })
  t.notMatch(JSON.stringify(lines), SECRETS)
})

t.test('circular causes and thrown values that are not errors are logged', async (t) => {
  const round = new Error('round')
  round.cause = round
  const { app, lines } = start(t, (app) => {
    app.get('/round', () => { throw round })
    app.get('/text', () => { throw 'hunter2' }) // eslint-disable-line no-throw-literal
  })
  await app.inject('/round')
  t.equal(JSON.stringify(lines[0]).match(/"message":"round"/g)?.length, 5)
  await app.inject('/text')
  t.match(lines[2], { err: { type: 'string' } })
  t.notMatch(JSON.stringify(lines), SECRETS)
})

t.test('an aborted response is logged, with the reason where it was not the reader', async (t) => {
  const { app, logged, lines } = start(t, (app) => {
    app.get('/endless', (_request, reply) => reply.send(new Readable({ read () { this.push('x'.repeat(1024)) } })))
    app.get('/failing', (_request, reply) => {
      let sent = false
      return reply.send(new Readable({
        read () {
          if (sent) this.destroy(new Error('the store is gone'))
          else this.push('[')
          sent = true
        }
      }))
    })
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const request = httpRequest(`${url}/endless`, { agent: false }).end()
  const [response] = await within('the response', once(request, 'response'))
  response.on('error', () => {})
  response.destroy()
  t.match(await logged('request aborted'), { level: 30, req: { path: '/endless' } })
  t.notOk(lines.some(({ level }) => level > 30), 'a reader who disconnects is not a failure')

  await fetch(`${url}/failing`).then((reply) => reply.text()).catch(() => {})
  t.match(await logged('response failed after its first byte'), { level: 40, err: { message: 'the store is gone' } })
})
