import t from 'tap'
import type { Client } from '../../schemas/client.ts'
import { forEachStore } from '../helpers/build.ts'
import { type Api, createClient, createUser, signIn, unique } from '../helpers/people.ts'
import { REFUSED, redeem } from '../helpers/redeem.ts'

/** Clients are created at BEGIN and changed at LATER: in the future of a MongoDB server, whose TTL index removes expired documents. */
const BEGIN = '2126-11-21T02:51:00.000Z'
const LATER = '2126-11-21T02:51:01.000Z'

const NOT_FOUND = { status: 404, body: { statusCode: 404, code: 'ErrNotFound', error: 'Not Found' } }
const WRONG = { status: 400, body: { statusCode: 400, code: 'ErrParam', error: 'Bad Request' } }

function body (data: object, rest: object = {}): object {
  return { data: { redirectUris: [], scopes: [], name: 'a client', ...data }, ...rest }
}

async function read (api: Api, clientId: string): Promise<Client> {
  return (await api.get<{ data: Client }>(`/client/${clientId}`)).body.data
}

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)
  const bob = await signIn(kit)
  t.beforeEach(() => kit.clock.set(BEGIN))

  t.test('2 Client: the fields of a confidential client with everything, to its owner and to an admin', async (t) => {
    const clientId = await createClient(ann, {
      redirectUris: ['https://b.example/cb', 'https://a.example/cb'], scopes: ['write', 'read'], name: 'Shöp', image: 'https://a.example/i.png'
    }, { credentials: true })
    t.match(clientId, /^[0-9A-HJKMNP-TV-Z]{26}[0-9A-Za-z]{8}$/, 'a ULID and 8 random characters')
    const { clientSecret, ...client } = await read(ann, clientId)
    t.match(clientSecret, /^[0-9A-Za-z]{16}$/)
    t.strictSame(client, {
      clientId,
      createdAt: BEGIN,
      modifiedAt: BEGIN,
      redirectUris: ['https://a.example/cb', 'https://b.example/cb'],
      scopes: ['read', 'write'],
      name: 'Shöp',
      image: 'https://a.example/i.png'
    })
    t.strictSame(await read(admin, clientId), { clientSecret, ...client, userId: ann.user_id })
  })

  t.test('2 Client: a public client has no secret, and an unset image is left out', async (t) => {
    const clientId = await createClient(ann)
    t.strictSame(Object.keys(await read(ann, clientId)).sort(), ['clientId', 'createdAt', 'modifiedAt', 'name', 'redirectUris', 'scopes'])
  })

  t.test('4.1 POST /client: the response', async (t) => {
    const reply = await ann.post<{ data: { clientId: string } }>('/client', body({}))
    t.equal(reply.status, 200)
    t.strictSame(reply.body, { data: { clientId: reply.body.data.clientId } })
    t.match(reply.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
  })

  t.test('4.1 POST /client: required fields and types; nothing is coerced', async (t) => {
    const good = body({}) as { data: object }
    const without = (name: string) => ({ data: Object.fromEntries(Object.entries(good.data).filter(([key]) => key !== name)) })
    for (const [field, wrong] of [
      ['data', {}],
      ['data.redirectUris', without('redirectUris')],
      ['data.scopes', without('scopes')],
      ['data.name', without('name')],
      ['data.redirectUris', body({ redirectUris: 'https://a.example' })],
      ['data.redirectUris[0]', body({ redirectUris: [1] })],
      ['data.scopes', body({ scopes: null })],
      ['data.name', body({ name: 1 })],
      ['data.image', body({ image: null })],
      ['data.userId', body({ userId: 7 })],
      ['data.colour', body({ colour: 'red' })],
      ['credentials', body({}, { credentials: 'true' })],
      ['secret', body({}, { secret: 'mine' })]
    ] as const) {
      const reply = await admin.post('/client', wrong)
      t.match(reply, WRONG, JSON.stringify(wrong))
      t.match(reply.body.message, `${field}: `)
    }
    t.match(await admin.send({ method: 'POST', url: '/client' }), WRONG, 'no body')
  })

  t.test('4.1 POST /client, rule 1: arrays are sorted by code point and de-duplicated', async (t) => {
    const clientId = await createClient(ann, {
      redirectUris: ['https://b.example/', 'com.example.app:/cb', 'https://B.example/', 'https://b.example/'],
      scopes: ['b', 'a', 'B', 'a', 'a:b', 'https://a.example/scope', '!']
    })
    t.match(await read(ann, clientId), {
      redirectUris: ['com.example.app:/cb', 'https://B.example/', 'https://b.example/'],
      scopes: ['!', 'B', 'a', 'a:b', 'b', 'https://a.example/scope']
    })
  })

  t.test('4.1 POST /client, rule 1: an invalid URI or scope gives ErrParam that names the item', async (t) => {
    for (const uri of [
      '', ' ', '/relative', 'example.com/cb', 'https://', 'https://a b', 'https://a.example/#fragment', 'https://a.example/#',
      'javascript:alert(1)', 'JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'blob:https://a.example/1',
      'https://a.example/\u0000', 'https://ä.example/', 'http://evil.example/cb', 'http://user:pass@x/', 'https://user:pass@x/', 'feed:javascript:alert(1)',
      'jar:x', 'chrome://x', 'about:srcdoc', 'ms-msdt:/id', 'https://x/cb?code=a&state=b', 'http://127.0.0.1:99999/cb'
    ]) {
      const reply = await ann.post('/client', body({ redirectUris: ['https://ok.example', uri] }))
      t.match(reply, WRONG, JSON.stringify(uri))
      t.match(reply.body.message, 'redirectUris[1]: ')
    }
    for (const scope of ['', ' ', 'a b', 'a"b', 'a\\b', 'é', 'a\n', '\u007f']) {
      const reply = await ann.post('/client', body({ scopes: ['ok', 'fine', scope] }))
      t.match(reply, WRONG, JSON.stringify(scope))
      t.match(reply.body.message, 'scopes[2]: ')
    }
  })

  t.test('4.1 POST /client, rule 2: the owner', async (t) => {
    for (const [name, caller, userId, owner] of [
      ['the caller', ann, undefined, ann],
      ['an admin, without a userId', admin, undefined, admin],
      ['whom an admin names', admin, bob.user_id, bob],
      ['the caller, whomever a non-admin names', ann, bob.user_id, ann],
      ['the caller, when a non-admin names nobody that exists', ann, 'no such user', ann],
      ['the caller, when a non-admin names the empty string', ann, '', ann]
    ] as const) {
      const clientId = await createClient(caller, userId === undefined ? {} : { userId })
      t.equal((await read(admin, clientId)).userId, owner.user_id, name)
    }
  })

  t.test('4.1 POST /client, rule 3: an admin\'s userId that is empty or names no user', async (t) => {
    const before = await admin.get('/client/count')
    t.match(await admin.post('/client', body({ userId: '' })), { ...WRONG, body: { ...WRONG.body, message: /^userId: / } })
    t.match(await admin.post('/client', body({ userId: 'no such user' })), {
      status: 422, body: { statusCode: 422, code: 'USER_NOT_EXIST', error: 'Unprocessable Entity' }
    })
    t.strictSame((await admin.get('/client/count')).body, before.body, 'nothing was made')
  })

  t.test('4.1 POST /client, rule 4: credentials', async (t) => {
    const secrets = await Promise.all([true, true, false, undefined].map(async (credentials) =>
      (await read(ann, await createClient(ann, {}, credentials === undefined ? {} : { credentials }))).clientSecret))
    t.match(secrets, [/^[0-9A-Za-z]{16}$/, /^[0-9A-Za-z]{16}$/, undefined, undefined])
    t.not(secrets[0], secrets[1])
  })

  t.test('4.1 GET /client/count', async (t) => {
    const [owner, other] = await Promise.all([signIn(kit), signIn(kit)])
    for (let i = 0; i < 3; i++) await createClient(owner)
    const all = (await admin.get<{ data: { count: number } }>('/client/count')).body.data.count
    for (const [name, caller, query, count] of [
      ['one\'s own', owner, '', 3],
      ['none of another\'s', other, '', 0],
      ['user is not honoured for a non-admin', other, `?user=${owner.user_id}`, 0],
      ['an admin counts an owner\'s', admin, `?user=${owner.user_id}`, 3],
      ['an owner that does not exist has none', admin, '?user=nobody-at-all', 0],
      ['an empty user counts as not given', admin, '?user=', all]
    ] as const) {
      t.strictSame((await caller.get(`/client/count${query}`)).body, { data: { count } }, name)
    }
    t.match(await admin.get('/client/count?usr=x'), WRONG)
    t.match(await admin.get('/client/count?user=a&user=b'), WRONG)
  })

  t.test('4.1 GET /client/{clientId}: a missing client and another user\'s are the same to a non-admin', async (t) => {
    const clientId = await createClient(ann)
    const replies = [await bob.get(`/client/${clientId}`), await bob.get('/client/no-such-client'), await admin.get('/client/no-such-client')]
    for (const reply of replies) t.match(reply, NOT_FOUND)
    t.strictSame(replies[0]!.body, replies[1]!.body)
    t.match(await ann.get(`/client/${clientId}`), { status: 200 })
  })

  t.test('4.1 DELETE /client/{clientId}', async (t) => {
    const clientId = await createClient(ann)
    const session = await kit.mint({ user: bob.account, client: clientId, refresh: true })
    for (const [name, caller, id] of [['another\'s', bob, clientId], ['a missing one', ann, 'no-such-client'], ['a missing one, to an admin', admin, 'no-such-client']] as const) {
      t.match(await caller.delete(`/client/${id}`), NOT_FOUND, name)
    }
    t.match(await ann.get(`/client/${clientId}`), { status: 200 }, 'nothing was removed')
    t.match(await kit.inject({ url: '/api/v1/user', headers: session.headers }), { statusCode: 200 })

    t.match(await ann.delete(`/client/${clientId}`), { status: 204, body: null })
    t.match(await ann.get(`/client/${clientId}`), NOT_FOUND)
    t.match(await ann.delete(`/client/${clientId}`), NOT_FOUND)
    t.match(await kit.inject({ url: '/api/v1/user', headers: session.headers }), { statusCode: 401 }, 'its access tokens are dead')
    t.match(await redeem(kit, session, session.refresh_token), REFUSED, 'its refresh tokens too')

    const other = await createClient(ann)
    t.match(await admin.delete(`/client/${other}`), { status: 204 }, 'an admin removes anybody\'s')
  })

  t.test('4.1 DELETE /client/{clientId}: the client of the caller\'s own token gives ErrPerm', async (t) => {
    for (const roles of [[], ['admin']]) {
      const caller = await signIn(kit, { client: unique('own'), roles })
      t.match(await caller.delete(`/client/${caller.client_id}`), { status: 403, body: { statusCode: 403, code: 'ErrPerm', error: 'Forbidden' } })
      t.match(await caller.get(`/client/${caller.client_id}`), { status: 200 })
    }
  })

  t.test('4.1 DELETE /client/user/{userId}: all of that user\'s, the caller\'s own client included', async (t) => {
    const client = unique('mine')
    const caller = await signIn(kit, { client })
    const kept = await createClient(bob)
    await Promise.all(Array.from({ length: 205 }, () => createClient(caller)))
    t.match(await caller.delete(`/client/user/${caller.user_id}`), { status: 204, body: null })
    t.strictSame((await admin.get(`/client/count?user=${caller.user_id}`)).body, { data: { count: 0 } })
    t.match(await caller.get('/user'), { status: 401 }, 'the client of the token is deleted')
    t.match(await bob.get(`/client/${kept}`), { status: 200 }, 'others\' stay')
  })

  t.test('4.1 DELETE /client/user/{userId}: an admin may, others may not', async (t) => {
    const owner = await signIn(kit)
    const clientId = await createClient(owner)
    t.match(await bob.delete(`/client/user/${owner.user_id}`), { status: 403, body: { code: 'ErrPerm' } })
    t.match(await owner.get(`/client/${clientId}`), { status: 200 })
    t.match(await admin.delete(`/client/user/${owner.user_id}`), { status: 204 })
    t.match(await owner.get(`/client/${clientId}`), NOT_FOUND)
    t.match(await admin.delete(`/client/user/${owner.user_id}`), { status: 204 }, 'again, when there are none')
    t.match(await admin.delete('/client/user/nobody-at-all'), { status: 204 })
  })

  t.test('Records: a client outlives its owner, and the owner\'s tokens do not', async (t) => {
    const owner = await createUser(admin)
    const clientId = await createClient(admin, { userId: owner })
    const his = await kit.mint({ user: owner, client: clientId })
    const others = await kit.mint({ user: bob.account, client: clientId })
    await admin.delete(`/user/${owner}`)
    t.match(await admin.get(`/client/${clientId}`), { status: 200, body: { data: { userId: owner } } })
    t.equal((await kit.inject({ url: '/api/v1/user', headers: his.headers })).statusCode, 401)
    t.equal((await kit.inject({ url: '/api/v1/user', headers: others.headers })).statusCode, 200)
  })

  t.test('4.1 PATCH /client/{clientId}: each field alone, and modifiedAt', async (t) => {
    const clientId = await createClient(ann, { redirectUris: ['https://a.example/'], scopes: ['a'], name: 'old', image: 'https://a.example/i' })
    for (const [data, expected] of [
      [{ redirectUris: [] }, { redirectUris: [] }],
      [{ scopes: ['b'] }, { scopes: ['b'] }],
      [{ name: '' }, { name: '' }],
      [{ image: 'http://b.example/i' }, { image: 'http://b.example/i' }],
      [{ image: null }, { image: undefined }],
      [{ image: null }, { image: undefined }],
      [{ name: 'new', scopes: ['c'] }, { name: 'new', scopes: ['c'] }]
    ] as const) {
      const { modifiedAt: _, ...before } = await read(ann, clientId)
      kit.clock.advance(1000)
      t.match(await ann.patch(`/client/${clientId}`, { data }), { status: 204, body: null }, JSON.stringify(data))
      const after = await read(ann, clientId)
      t.strictSame(after, JSON.parse(JSON.stringify({ ...before, ...expected, modifiedAt: new Date(kit.clock.now()).toISOString() })))
    }
  })

  t.test('4.1 PATCH /client/{clientId}, rule 1: arrays', async (t) => {
    const clientId = await createClient(ann, { scopes: ['old'] })
    await ann.patch(`/client/${clientId}`, { data: { redirectUris: ['https://b.example/', 'https://a.example/', 'https://b.example/'], scopes: ['b', 'a', 'b'] } })
    const sorted = { redirectUris: ['https://a.example/', 'https://b.example/'], scopes: ['a', 'b'] }
    t.match(await read(ann, clientId), sorted)
    for (const data of [{ redirectUris: ['relative'] }, { scopes: ['a b'] }, { image: 'ftp://a.example/' }, { name: 5 }, { userId: bob.user_id }]) {
      t.match(await ann.patch(`/client/${clientId}`, { data }), WRONG, JSON.stringify(data))
    }
    t.match(await read(ann, clientId), sorted)
  })

  t.test('4.1 PATCH /client/{clientId}, rule 2: a missing client, and another user\'s', async (t) => {
    const clientId = await createClient(ann)
    for (const [name, caller, id] of [['missing', ann, 'no-such-client'], ['another\'s', bob, clientId]] as const) {
      t.match(await caller.patch(`/client/${id}`, { data: { name: 'stolen' } }), NOT_FOUND, name)
      t.match(await caller.patch(`/client/${id}`, { regen_secret: true }), NOT_FOUND, name)
    }
    t.match(await read(ann, clientId), { name: 'a client', modifiedAt: BEGIN })
    t.match(await admin.patch(`/client/${clientId}`, { data: { name: 'by admin' } }), { status: 204 }, 'an admin changes anybody\'s')
    t.match(await read(ann, clientId), { name: 'by admin' })
  })

  t.test('4.1 PATCH /client/{clientId}, rule 3: a public client has no secret to regenerate', async (t) => {
    const clientId = await createClient(ann)
    kit.clock.set(LATER)
    t.match(await ann.patch(`/client/${clientId}`, { regen_secret: true, data: { name: 'new' } }), { ...WRONG, body: { ...WRONG.body, message: /^regen_secret: / } })
    t.match(await read(ann, clientId), { name: 'a client', modifiedAt: BEGIN, clientSecret: undefined })
  })

  t.test('4.1 PATCH /client/{clientId}, rule 4: a new secret, and the end of the client\'s tokens', async (t) => {
    const clientId = await createClient(ann, {}, { credentials: true })
    const { clientSecret } = await read(ann, clientId)
    const session = await kit.mint({ user: bob.account, client: clientId, refresh: true })
    const elsewhere = await signIn(kit, { user: bob.account })
    kit.clock.set(LATER)
    t.match(await ann.patch(`/client/${clientId}`, { regen_secret: true }), { status: 204, body: null })
    const after = await read(ann, clientId)
    t.match(after, { clientSecret: /^[0-9A-Za-z]{16}$/, modifiedAt: LATER, createdAt: BEGIN })
    t.not(after.clientSecret, clientSecret)
    t.equal((await kit.inject({ url: '/api/v1/user', headers: session.headers })).statusCode, 401)
    t.match(await redeem(kit, session, session.refresh_token), REFUSED)
    await kit.app.identity.tokens.settle()
    for (const name of ['authorization_codes', 'access_tokens', 'refresh_tokens']) {
      t.equal(await kit.app.identity.store.collection(name).count({ equal: { client_id: clientId } }), 0, name)
    }
    t.match(await elsewhere.get('/user'), { status: 200 }, 'the user\'s tokens of other clients stay')
    t.ok(await kit.mint({ user: bob.account, client: clientId }), 'and new ones are minted')
  })

  t.test('4.1 PATCH /client/{clientId}, rule 5: flag false changes nothing', async (t) => {
    const clientId = await createClient(ann, {}, { credentials: true })
    const before = await read(ann, clientId)
    const session = await kit.mint({ user: bob.account, client: clientId })
    t.match(await ann.patch(`/client/${clientId}`, { regen_secret: false }), WRONG)
    t.match(await ann.patch(`/client/${clientId}`, { regen_secret: false, data: { name: 'new' } }), { status: 204 })
    t.strictSame(await read(ann, clientId), { ...before, name: 'new' })
    t.equal((await kit.inject({ url: '/api/v1/user', headers: session.headers })).statusCode, 200)
  })

  t.test('4.1 PATCH /client/{clientId}, rule 6: a body that changes nothing gives ErrParam', async (t) => {
    const clientId = await createClient(ann)
    kit.clock.set(LATER)
    for (const empty of [{}, { data: {} }]) t.match(await ann.patch(`/client/${clientId}`, empty), WRONG, JSON.stringify(empty))
    t.match(await ann.patch(`/client/${clientId}`), WRONG, 'no body')
    t.match(await read(ann, clientId), { modifiedAt: BEGIN })
  })
})
