import t, { type Test } from 'tap'
import { IdentityError, storeError } from '../../lib/errors.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { TestKit } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { build, forEachStore } from '../helpers/build.ts'
import { type Person, type Reply, callAs, createClient, createUser, signIn, unique } from '../helpers/people.ts'
import { type Around, wrapStore } from '../helpers/wrap-store.ts'

const CLIENT = { data: { redirectUris: [], scopes: [], name: 'n' } }

/** The service on a store whose calls go through `around` after `break`, with its log. */
async function buildFaulty (t: Test, around: Around): Promise<{ kit: TestKit, admin: Person, break: () => void, log: () => string }> {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let broken = false
  let log = ''
  const app = createApp({ logger: { level: 'warn', stream: { write: (line: string) => { log += line } } } })
  const store = wrapStore(inner, (call, run) => (broken ? around(call, run) : run()))
  const kit = await build(t, { app, store })
  const admin = await signIn(kit, { roles: ['admin'] })
  return { kit, admin, break: () => { broken = true }, log: () => log }
}

/** Every route, with a valid body and valid ids. */
function callAll (person: Person, clientId: string, userId: string): [string, () => Promise<Reply>][] {
  return [
    ['POST /client', () => person.post('/client', CLIENT)],
    ['GET /client/count', () => person.get('/client/count')],
    ['GET /client/list', () => person.get('/client/list')],
    ['GET /client/{clientId}', () => person.get(`/client/${clientId}`)],
    ['PATCH /client/{clientId}', () => person.patch(`/client/${clientId}`, { data: { name: 'new' } })],
    ['DELETE /client/{clientId}', () => person.delete(`/client/${clientId}`)],
    ['DELETE /client/user/{userId}', () => person.delete(`/client/user/${userId}`)],
    ['GET /user', () => person.get('/user')],
    ['PATCH /user', () => person.patch('/user', { data: { name: 'new' } })],
    ['POST /user', () => person.post('/user', { data: { account: unique('u'), password: 'p' } })],
    ['GET /user/count', () => person.get('/user/count')],
    ['GET /user/list', () => person.get('/user/list')],
    ['GET /user/{userId}', () => person.get(`/user/${userId}`)],
    ['PATCH /user/{userId}', () => person.patch(`/user/${userId}`, { disable: true })],
    ['DELETE /user/{userId}', () => person.delete(`/user/${userId}`)],
    ['POST /auth/logout', () => person.post('/auth/logout')]
  ]
}

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)

  t.test('7 Errors: the body of each kind, and its content type', async (t) => {
    const account = unique('twin')
    await createUser(admin, { account })
    for (const [code, statusCode, error, reply] of [
      ['ErrParam', 400, 'Bad Request', await ann.get('/client/list?sort=foo')],
      ['ErrUnknown', 401, 'Unauthorized', await callAs(kit).get('/user')],
      ['ErrPerm', 403, 'Forbidden', await ann.get('/user/list')],
      ['ErrNotFound', 404, 'Not Found', await ann.get('/client/none')],
      ['USER_EXIST', 409, 'Conflict', await admin.post('/user', { data: { account, password: 'p' } })],
      ['USER_NOT_EXIST', 422, 'Unprocessable Entity', await admin.post('/client', { data: { ...CLIENT.data, userId: 'none' } })]
    ] as const) {
      t.strictSame(reply.body, { statusCode, code, error, message: reply.body.message }, code)
      t.type(reply.body.message, 'string')
      t.equal(reply.status, statusCode)
      t.match(reply.headers['content-type'], /^application\/json(; charset=utf-8)?$/)
    }
    t.equal((await ann.get('/client/list?sort=foo')).body.message, 'sort: unknown key \'foo\', expected one of created, modified, name')
  })

  t.test('Errors: malformed JSON, a __proto__ key, another content type', async (t) => {
    const json = { 'content-type': 'application/json' }
    for (const [name, status, headers, payload] of [
      ['half a document', 400, json, '{"data":'],
      ['no document', 400, json, 'hunter2'],
      ['two documents', 400, json, '{}{}'],
      ['a trailing comma', 400, json, '{"data":{},}'],
      ['a comment', 400, json, '{}//'],
      ['an empty body', 400, json, ''],
      ['an array', 400, json, '[]'],
      ['null', 400, json, 'null'],
      ['a __proto__ key', 400, json, '{"__proto__":{"data":{}}}'],
      ['a nested __proto__ key', 400, json, '{"data":{"info":{"a":[{"__proto__":1}]}}}'],
      ['an escaped __proto__ key', 400, json, '{"data":{"info":{"\\u005f_proto__":{"x":1}}}}'],
      ['a constructor with a prototype', 400, json, '{"data":{"info":{"constructor":{"prototype":{"x":1}}}}}'],
      ['a text that is not UTF-8', 400, json, Buffer.from('{"data":{"name":"hunter2 J\xfcrgen"}}', 'latin1')],
      ['the same with its charset', 400, { 'content-type': 'application/json; charset=iso-8859-1' }, Buffer.from('{"data":{"name":"J\xfcrgen"}}', 'latin1')],
      ['a key that is not UTF-8', 400, json, Buffer.from('{"data":{"info":{"\xe9":1}}}', 'latin1')],
      ['text', 415, { 'content-type': 'text/plain' }, '{"data":{"name":"hunter2"}}'],
      ['a form', 415, { 'content-type': 'application/x-www-form-urlencoded' }, 'name=hunter2'],
      ['no type', 415, { 'content-type': '' }, '{"data":{"name":"hunter2"}}']
    ] as const) {
      const reply = await ann.send({ method: 'PATCH', url: '/user', headers, payload })
      t.match(reply, { status, body: { statusCode: status, code: 'ErrParam' } }, name)
      t.notMatch(reply.body.message, /hunter2/, 'the message does not repeat the input')
    }
    t.match((await ann.get('/user')).body, { data: { name: '', info: {} } })
  })

  t.test('Errors: harmless keys are stored unchanged', async (t) => {
    const info = { constructor: 1, prototype: { x: 1 }, toString: 'x', hasOwnProperty: null }
    t.match(await ann.patch('/user', { data: { info } }), { status: 204 })
    t.equal(JSON.stringify((await ann.get<{ data: { info: object } }>('/user')).body.data.info), JSON.stringify(info))
  })

  t.test('Errors: unknown routes give ErrNotFound, with a token or without', async (t) => {
    for (const caller of [ann, callAs(kit)]) {
      for (const [method, url] of [['GET', ''], ['GET', '/nothing'], ['GET', '/client'], ['DELETE', '/auth/tokeninfo'], ['PUT', '/user'], ['GET', '/client/a/b']] as const) {
        const reply = await caller.send({ method, url })
        t.match(reply, { status: 404, body: { statusCode: 404, code: 'ErrNotFound', error: 'Not Found' } }, `${method} ${url}`)
      }
    }
    t.match(await ann.get('/client/%E0%A4%A'), { status: 400, body: { code: 'ErrParam' } }, 'a path that cannot be decoded')
  })

  t.test('Errors: no message repeats a password, a secret or a token', async (t) => {
    const secret = 'hunter2'.padEnd(1025, '!')
    for (const reply of [
      await ann.patch('/user', { data: { password: secret } }),
      await ann.patch('/user', { data: { password: [secret] } }),
      await ann.patch('/user', { password: secret }),
      await admin.post('/user', { data: { account: 'a b', password: 'hunter2' } }),
      await admin.post('/client', { data: { ...CLIENT.data, redirectUris: ['hunter2'] } }),
      await callAs(kit, { authorization: 'Bearer hunter2' }).get('/user'),
      await callAs(kit, { authorization: 'Basic hunter2' }).get('/user')
    ]) {
      t.ok(reply.status >= 400)
      t.notMatch(JSON.stringify([reply.body, reply.headers]), /hunter2/)
    }
  })
})

t.test('ErrDb: every store call fails', async (t) => {
  const faulty = await buildFaulty(t, (call, run) => {
    if (call.method === 'getLinked' && call.collection === 'access_tokens') return run()
    throw storeError(new Error('ECONNREFUSED 10.0.0.7 /var/lib/db'))
  })
  const { kit, admin } = faulty
  const client = await createClient(admin)
  const user = await createUser(admin)
  const { refresh_token: _, ...rest } = await kit.mint({ user: admin.user_id, refresh: true })
  const session = { ...rest, ...callAs(kit, rest.headers) }
  faulty.break()
  for (const [name, call] of callAll(session, client, user)) {
    const reply = await call()
    t.match(reply, { status: 503, headers: { 'retry-after': /^[1-9]\d*$/ }, body: { statusCode: 503, code: 'ErrDb', error: 'Service Unavailable' } }, name)
    t.notMatch(JSON.stringify(reply.body), /ECONNREFUSED|10\.0|var/)
  }
  const all = faulty.log().trim().split('\n').map((line) => JSON.parse(line))
  // The other lines are from background work.
  const lines = all.filter(({ reqId }) => reqId !== undefined)
  t.ok(lines.length >= 1 && lines.length < callAll(session, client, user).length, 'an outage is logged at its begin, and not for each request')
  for (const line of lines) t.match(line, { level: 50, reqId: String, code: 'ErrDb', err: { message: 'ECONNREFUSED 10.0.0.7 /var/lib/db' } })
  t.notMatch(faulty.log(), rest.access_token)
})

t.test('ErrDb: the token look-up fails', async (t) => {
  const faulty = await buildFaulty(t, () => { throw storeError(new Error('down')) })
  faulty.break()
  t.match(await faulty.admin.get('/auth/tokeninfo'), { status: 503, headers: { 'retry-after': String, 'www-authenticate': undefined }, body: { code: 'ErrDb' } })
})

t.test('ErrDb: readiness fails, liveness does not', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  const kit = await build(t, { store: inner })
  t.equal((await kit.inject('/health/ready')).statusCode, 200)
  await inner.close()
  t.match((await kit.inject('/health/ready')).json(), { statusCode: 503, code: 'ErrDb' })
  t.equal((await kit.inject('/health/live')).statusCode, 200)
})

// An outage is logged once, with the work that met it first: so each kind of cleanup fails alone.
for (const [what, work, isBroken] of [
  ['revoked records', 'removals', (name: string) => name !== 'credentials'],
  ['the material of ways', 'users', (name: string) => name === 'credentials']
] as const) {
  t.test(`Records: a change takes effect even if the cleanup of ${what} fails`, async (t) => {
    const faulty = await buildFaulty(t, (call, run) => {
      if (call.method === 'deleteMany' && isBroken(call.collection)) throw storeError(new Error('down'))
      return run()
    })
    const { kit, admin } = faulty
    const client = await createClient(admin, {}, { credentials: true })
    const [changed, disabled, deleted, regenerated] = await Promise.all([signIn(kit), signIn(kit), signIn(kit), signIn(kit, { client })])
    faulty.break()
    for (const [name, reply, person] of [
      ['a password change', await changed.patch('/user', { data: { password: 'new' } }), changed],
      ['disabling', await admin.patch(`/user/${disabled.user_id}`, { disable: true }), disabled],
      ['deleting a user', await admin.delete(`/user/${deleted.user_id}`), deleted],
      ['regenerating a secret', await admin.patch(`/client/${client}`, { regen_secret: true }), regenerated]
    ] as const) {
      t.match(reply, { status: 204 }, name)
      t.match(await person.get('/user'), { status: 401 }, `${name}: the token is invalid`)
    }
    await kit.app.identity.tokens.settle()
    const log = faulty.log().split('\n').filter((line) => line.includes('the store is unavailable'))
    t.equal(log.length, 1, 'the failure is logged')
    t.match(log[0], `"work":"${work}"`, 'with the name of the work')
  })
}

t.test('ErrInternal: an unexpected error reveals nothing', async (t) => {
  const faulty = await buildFaulty(t, (call, run) => {
    if (call.method === 'getLinked' && call.collection === 'access_tokens') return run()
    throw new TypeError('cannot read hunter2 of /etc/passwd')
  })
  faulty.break()
  const reply = await faulty.admin.get('/user')
  t.match(reply, { status: 500, body: { statusCode: 500, code: 'ErrInternal', error: 'Internal Server Error' } })
  t.notMatch(JSON.stringify(reply.body), /hunter2|passwd|TypeError/)
  t.match(faulty.log(), /"reqId":.*cannot read hunter2/, 'the error is logged')
})

t.test('ErrLimit: password changes per minute and user', async (t) => {
  const kit = await build(t, { rateLimit: 2 })
  const ann = await kit.mint()
  const change = async (data: object, user = ann.account) => await (await signIn(kit, { user })).patch('/user', { data })
  for (let i = 0; i < 5; i++) t.match(await change({ name: `${i}` }), { status: 204 }, 'only passwords are counted')
  t.match([await change({ password: 'a' }), await change({ password: 'b' })], [{ status: 204 }, { status: 204 }])
  const reply = await change({ password: 'c' })
  t.match(reply, { status: 429, headers: { 'retry-after': /^[1-9]\d*$/ }, body: { statusCode: 429, code: 'ErrLimit', error: 'Too Many Requests' } })
  t.match(await kit.app.identity.users.verify(ann.account, 'c'), null)
  t.match(await change({ name: 'still' }), { status: 204 })
  t.match(await change({ password: 'a' }, (await kit.mint()).account), { status: 204 }, 'another user is not limited')
})

t.test('ErrBusy: the hash queue is full', async (t) => {
  const kit = await build(t, { hashQueue: 1 })
  const admin = await signIn(kit, { roles: ['admin'] })
  const replies = await Promise.all(Array.from({ length: 30 }, () => admin.post('/user', { data: { account: unique('u'), password: 'p' } })))
  const refused = replies.filter(({ status }) => status !== 200)
  t.ok(refused.length > 0 && refused.length < replies.length)
  for (const reply of refused) t.match(reply, { status: 503, headers: { 'retry-after': String }, body: { code: 'ErrBusy' } })
  t.match(await admin.get('/user/count'), { body: { data: { count: 1 + replies.length - refused.length } } })
})

t.test('7 Errors: an IdentityError that a service throws is answered with its status, message and headers', async (t) => {
  const faulty = await buildFaulty(t, (call, run) => {
    if (call.method === 'getLinked' && call.collection === 'access_tokens') return run()
    throw new IdentityError('ErrBusy', 'too many things are waiting', { headers: { 'retry-after': '7' } })
  })
  faulty.break()
  t.match(await faulty.admin.get('/user'), {
    status: 503, headers: { 'retry-after': '7' }, body: { statusCode: 503, code: 'ErrBusy', error: 'Service Unavailable', message: 'too many things are waiting' }
  })
})
