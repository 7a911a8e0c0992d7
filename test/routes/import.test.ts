import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import type { ImportVerdict } from '../../schemas/import.ts'
import { type TestKit, startIdentity } from '../../testing/index.ts'
import { storeError } from '../../lib/errors.ts'
import { openStore } from '../../lib/store/index.ts'
import { endConnectionsAtClose } from '../../plugins/draining.ts'
import { handleMalformed } from '../../plugins/malformed.ts'
import { createApp } from '../../testing/kit.ts'
import { build } from '../helpers/build.ts'
import { BCRYPT } from '../helpers/import.ts'
import { signIn, unique } from '../helpers/people.ts'
import { waitUntil, within } from '../helpers/wait.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

const PATH = '/api/v1/user/import?source=old'
const TYPE = { 'content-type': 'application/x-ndjson' }

const parseLines = <T = ImportVerdict>(body: string): T[] => body.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as T)

async function post (kit: TestKit, headers: Record<string, string>, payload: string | Buffer, path = PATH) {
  return await kit.inject({ method: 'POST', url: path, headers: { ...headers, ...TYPE }, payload })
}

/** A request over a socket, of which the test sends and reads part by part. */
async function open (t: Test, kit: TestKit, headers: Record<string, string>): Promise<{ call: ClientRequest, answer: Promise<IncomingMessage>, next: () => Promise<ImportVerdict> }> {
  const url = new URL(PATH, await kit.app.listen({ host: '127.0.0.1', port: 0 }))
  const call = request(url, { method: 'POST', headers: { ...headers, ...TYPE } })
  call.on('error', () => {})
  t.teardown(() => call.destroy())
  const answer = once(call, 'response').then(([response]) => response as IncomingMessage)
  let lines: AsyncIterator<string> | undefined
  async function * read () {
    let rest = ''
    for await (const chunk of await answer) {
      const parts = (rest + String(chunk)).split('\n')
      rest = parts.pop()!
      yield * parts
    }
  }
  return {
    call,
    answer,
    async next () {
      const { done, value } = await (lines ??= read()).next()
      if (done === true) throw new Error('the answer has ended')
      return JSON.parse(value) as ImportVerdict
    }
  }
}

t.test('lines in, verdicts out, with the name of the run', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const lines = [{ account: 'ann', password: { hash: BCRYPT } }, { account: 'ann' }, { account: 'bob', extra: 1 }]
  const reply = await post(kit, admin.headers, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n\n{"account":"eve"}`)
  t.equal(reply.statusCode, 200)
  t.match(reply.headers, { 'content-type': /^application\/x-ndjson/, 'identity-import-run': /^\w{34}$/ })
  t.match(parseLines(reply.body), [
    { line: 1, result: 'created' }, { line: 2, result: 'same' }, { line: 3, result: 'refused', field: 'extra', reason: 'is not a known field' }, { line: 5, result: 'created' }
  ])
  const again = await post(kit, admin.headers, lines.map((line) => JSON.stringify(line)).join('\r\n'), `${PATH}&dry_run=true`)
  t.match(parseLines<object>(again.body).at(-1), { report: { created: 0, same: 2, refused: 1, refusals: { extra: 1 } } })
  const odd = ['constructor', 'constructor', '__proto__', '__proto__'].map((name) => `{"account":"x","${name}":{}}`)
  const { report } = parseLines<{ report: { refusals: object } }>((await post(kit, admin.headers, odd.join('\n'), `${PATH}&dry_run=true`)).body).at(-1)!
  t.strictSame(Object.entries(report.refusals), [['constructor', 2], ['__proto__', 2]])
  t.match((await post(kit, admin.headers, '', `${PATH}&on_conflict=merge`)).json(), { statusCode: 400, message: /^on_conflict: / })
  t.match((await post(kit, admin.headers, '', '/api/v1/user/import')).json(), { statusCode: 400, message: 'source: is required' })
  t.match((await kit.inject({ method: 'POST', url: PATH, headers: admin.headers, payload: { account: 'x' } })).json(), { statusCode: 415, message: 'content-type: must be application/x-ndjson' })
  t.match((await signIn(kit, { roles: ['manager'] }).then((manager) => post(kit, manager.headers, ''))).json(), { statusCode: 403 })
})

t.test('a hostile line is refused by itself, and the next one counts', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  const hash = (text: string) => JSON.stringify({ account: unique('x'), password: { hash: text } })
  const hostile: [line: string | Buffer, field: string | undefined, reason: RegExp][] = [
    ['{', undefined, /not JSON/],
    ['[]', 'line', /type object/],
    ['null', 'line', /type object/],
    [Buffer.from([0x7b, 0xff, 0x7d]), undefined, /not UTF-8/],
    [`{"account":"${'a'.repeat(1_000_000)}"}`, undefined, /longer than 65536 bytes/],
    ['{"account":"a\\u0000b"}', 'account', /must be an email/],
    ['{"account":"a\u0000b"}', undefined, /not JSON/],
    ['{"account":"ok","name":"\\ud800"}', 'name', /well-formed/],
    ['{"account":"ok","info":{"x":"\\udfff"}}', 'info', /well-formed/],
    ['{"account":"ok","external":{"old":"\\ud800"}}', 'external.old', /well-formed/],
    ['{"account":"ok","external":{"old":"a\\u0000b"}}', 'external.old', /control/],
    ['{"account":"ok","external":{"a b":"x"}}', 'external.a b', /known/],
    ['{"account":"ok","external":{"__proto__":"x"}}', 'external.__proto__', /known/],
    [`{"account":"ok","info":${deep(40)}}`, 'info', /deeper/],
    [`{"account":"ok","info":${deep(9_000)}}`, 'info', /deeper/],
    [`${'['.repeat(30_000)}${']'.repeat(30_000)}`, 'line', /type object/],
    ['{"account":"ok","info":{"__proto__":{"isAdmin":true}}}', 'info', /__proto__/],
    ['{"account":"ok","__proto__":{"roles":{}}}', '__proto__', /known/],
    ['{"account":"ok","roles":{"admin":true}}', 'roles', /needs --allow-roles \(over HTTP allow_roles=true\)/],
    ['{"account":"ok","roles":{"editor":false}}', 'roles.editor', /allowed values/],
    ['{"account":"ok","user_id":"x"}', 'user_id', /known/],
    ['{"account":"ok","created_at":"2999-01-01T00:00:00Z"}', 'created_at', /future/],
    ['{"account":"ok","created_at":"yesterday"}', 'created_at', /RFC 3339/],
    ['{"account":"ok","identities":[{"issuer":"i","subject":"a\\u0000b"}]}', 'identities[0].subject', /control/],
    ['{"account":"ok","totp":[{"secret":"JBSWY3DPEHPK3PXP","digits":8}]}', 'totp[0].digits', /must be 6/],
    ['{"account":"ok","totp":[{"secret":"JBSWY3DPEHPK3PXP","algorithm":"SHA256"}]}', 'totp[0].algorithm', /SHA1/],
    ['{"account":"ok","totp":[{"secret":"JBSWY3DPEHPK3"}]}', 'totp[0].secret', /80 bits/],
    [hash('$2b$31$gf4IYRMe1fpobadzhBQuVeKG3WfQTr8gRT26PJaWqBF1VHoccHkMi'), 'password', /would take about/],
    [hash('$argon2id$v=19$m=4194304,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b0dWRWJTmaaJObG'), 'password', /m is above/],
    [hash('pbkdf2_sha256$50000000$abcdefghijkl$tQCL+b1vBSRthu98g7ljsPivdZaTFd+1YoCXL8gtI+Q='), 'password', /would take about/],
    [hash('abcdefgh$2b$31$gf4IYRMe1fpobadzhBQuVeKG3WfQTr8gRT26PJaWqBF1VHoccHkMi'), 'password', /would take more/],
    [hash('md5$saltsalt12$402481f8cfa551e34fb6b23fd70ca453'), 'password', /weak/],
    [hash('hunter2'), 'password', /unknown/],
    ['{"account":"ok","password":"plain"}', 'password', /type object/],
    ['{"account":"ok","password":{"scheme":"plain","hash":"x"}}', 'password.scheme', /unknown/],
    ['{"account":"ok","password":{"scheme":"pbkdf2","hash":"x"}}', 'password.digest', /required/]
  ]
  const payload = Buffer.concat(hostile.flatMap(([line], index) => [Buffer.from(line), Buffer.from(`\n{"account":"good-${index}"}\n`)]))
  const verdicts = parseLines((await post(kit, admin.headers, payload)).body)
  t.equal(verdicts.length, 2 * hostile.length)
  for (const [index, [line, field, reason]] of hostile.entries()) {
    const { result, field: named, reason: given } = verdicts[2 * index]!
    t.match([result, named, given], ['refused', field, reason], String(line).slice(0, 80))
    t.match(verdicts[2 * index + 1], { line: 2 * index + 2, result: 'created' })
  }
  t.equal(({} as { isAdmin?: boolean }).isAdmin, undefined)
  t.equal((await admin.get('/user/list?account=ok')).body.data instanceof Array && await kit.app.identity.users.getByAccount('ok'), null)
})

t.test('verdicts come while lines arrive, whatever the pieces', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const { call, answer, next } = await open(t, kit, admin.headers)
  call.write('{"account":"first"}\n{"account":"sec')
  t.match(await next(), { line: 1, result: 'created' })
  t.equal((await answer).statusCode, 200)
  call.write('ond"}')
  call.write('\n')
  t.match(await next(), { line: 2, result: 'created' })
  t.match((await post(kit, admin.headers, '')).json(), { statusCode: 503, code: 'ErrBusy' }, 'a second import waits')
  call.end('{"account":"third"}')
  t.match(await next(), { line: 3, result: 'created' })
  await t.rejects(next())
  t.equal((await answer).complete, true)
})

t.test('a client that leaves, or whose token is revoked, ends the run at the next batch', async (t) => {
  const kit = await build(t)
  const { users, events } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })
  const boss = await signIn(kit, { roles: ['admin'] })
  const first = await open(t, kit, boss.headers)
  first.call.write('{"account":"before"}\n')
  t.match(await first.next(), { result: 'created' })
  await users.patch(boss.user_id, { disable: true }, { user_id: admin.user_id, isAdmin: true })
  first.call.write('{"account":"after"}\n')
  await t.rejects(first.next(), 'the answer is cut')
  t.equal((await first.answer).complete, false)
  t.equal(await users.getByAccount('after'), null)

  const url = new URL(PATH, `http://127.0.0.1:${(kit.app.server.address() as { port: number }).port}`)
  const call = request(url, { method: 'POST', headers: { ...admin.headers, ...TYPE } })
  call.on('error', () => {})
  call.write('{"account":"mine"}\n')
  const [response] = await once(call, 'response') as [IncomingMessage]
  await once(response, 'data')
  call.destroy()
  await waitUntil('the end of the import that was cut off', async () => {
    await events.flush()
    return (await kit.events.list({ type: 'users.imported' })).length >= 2
  })
  t.equal((await post(kit, admin.headers, '{"account":"mine"}')).statusCode, 200, 'there is room again')
})

t.test('a store that fails before the first verdict is a 503, and later the end of the connection', async (t) => {
  const inner = await openStore('sqlite::memory:')
  t.teardown(() => inner.close())
  let left = 0
  const store = wrapStore(inner, ({ collection, method }, run) => {
    if (collection === 'users' && method === 'insert' && left-- <= 0) throw storeError(new Error('the disk is full'))
    return run()
  })
  left = Infinity
  const kit = await startIdentity({ t, store })
  const admin = await signIn(kit, { roles: ['admin'] })
  left = 0
  const line = (account: string) => `${JSON.stringify({ account, password: { hash: BCRYPT } })}\n`
  const reply = await post(kit, admin.headers, line('ann'))
  t.equal(reply.statusCode, 503)
  t.match(reply.body, /ErrDb/)
  t.match(reply.headers, { 'retry-after': String })
  left = 1
  const { call, answer, next } = await open(t, kit, admin.headers)
  call.write(line('bob'))
  t.match(await next(), { line: 1, result: 'created' })
  call.write(line('eve'))
  t.equal((await answer).statusCode, 200)
  await t.rejects(next())
})

t.test('an import that a shutdown ends before its first verdict gets 503, and later the end of the connection', async (t) => {
  for (const [body, status] of [['', 503], ['{"account":"on', 503], ['{"account":"one"}\n{"account":"tw', 200]] as const) {
    const app = createApp()
    endConnectionsAtClose(app, { limit: 60_000 })
    // Not `build`: what checks responses asks the app, which closes.
    const kit = await startIdentity({ t, app })
    const admin = await signIn(kit, { roles: ['admin'] })
    const arrived = once(app.server, 'request')
    const { call, answer, next } = await open(t, kit, { ...admin.headers, connection: 'keep-alive' })
    call.write(body === '' ? ' ' : body)
    await within('the request', arrived)
    if (status === 200) t.match(await next(), { result: 'created' })
    const closed = within('the close', kit.app.close())
    const response = await within('the answer', answer)
    t.equal(response.statusCode, status, body)
    if (status === 200) {
      await t.rejects(within('the end', next()), 'the sender does not know how far it came')
    } else {
      t.match(response.headers, { connection: 'close', 'retry-after': String })
      t.match(JSON.parse(await text(response)), { code: 'ErrDb', message: 'the service is shutting down' })
    }
    await closed
  }
})

t.test('an import may take longer than other requests', async (t) => {
  const app = fastify({ requestTimeout: 300, clientErrorHandler: handleMalformed, http: { connectionsCheckingInterval: 50, headersTimeout: 200 } })
  const kit = await build(t, { app, stallTimeout: 20_000 })
  const admin = await signIn(kit, { roles: ['admin'] })
  const { call, next } = await open(t, kit, admin.headers)
  const late = once(app.server, 'clientError')
  call.write('{"account":"one"}\n')
  t.match(await next(), { line: 1, result: 'created' })
  t.match(await late, [{ code: 'ERR_HTTP_REQUEST_TIMEOUT' }])
  call.end('{"account":"two"}\n')
  t.match(await next(), { line: 2, result: 'created' })
})

t.test('a byte-order mark is skipped, however the body arrives', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  t.match(parseLines((await post(kit, admin.headers, '\ufeff{"account":"one"}\n{"account":"two"}')).body), [{ line: 1, result: 'created' }, { line: 2, result: 'created' }])
  t.strictSame(parseLines((await post(kit, admin.headers, '\ufeff')).body), [], 'no line')
  t.match(parseLines((await post(kit, admin.headers, '{"account":"four"}\n\ufeff{"account":"five"}')).body), [{ result: 'created' }, { result: 'refused' }], 'only at the beginning')
  const { call, next } = await open(t, kit, admin.headers)
  const body = Buffer.from('\ufeff{"account":"six"}\n')
  for (const byte of [...body.subarray(0, 4)].map((one) => Buffer.from([one]))) {
    call.write(byte)
    await new Promise(setImmediate)
  }
  call.end(body.subarray(4))
  t.match(await next(), { line: 1, result: 'created' })
})

t.test('somebody who was deleted comes back with again=true only', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const [brought] = parseLines((await post(kit, admin.headers, '{"account":"leaver"}')).body)
  await kit.app.identity.users.remove(brought!.user_id!, { user_id: '', isAdmin: true })
  t.match(parseLines((await post(kit, admin.headers, '{"account":"leaver"}')).body), [{ result: 'refused', field: 'account', reason: /again=true/ }])
  t.match(parseLines((await post(kit, admin.headers, '{"account":"leaver"}', `${PATH}&again=true`)).body), [{ result: 'created' }])
})

t.test('a sender that sends no line for too long is cut off', async (t) => {
  const kit = await build(t, { stallTimeout: 1_000 })
  const admin = await signIn(kit, { roles: ['admin'] })
  const { call, next } = await open(t, kit, admin.headers)
  call.write('{"account":"one"}\n{"account":"tw')
  t.match(await next(), { result: 'created' })
  const drip = setInterval(() => call.write(' '), 100)
  await t.rejects(next())
  clearInterval(drip)
  t.equal((await post(kit, admin.headers, '{"account":"three"}')).statusCode, 200)
})
