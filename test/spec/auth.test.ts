import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { type Reply, callAs, createClient, createUser, signIn, unique } from '../helpers/people.ts'
import { REFUSED, redeem } from '../helpers/redeem.ts'

const BEGIN = '2126-11-21T02:51:00.000Z'

const UNKNOWN = { status: 401, body: { statusCode: 401, code: 'ErrUnknown', error: 'Unauthorized' } }
const INVALID = { ...UNKNOWN, headers: { 'www-authenticate': 'Bearer error="invalid_token", error_description="the access token is unknown, expired or revoked"' } }

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const { store } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })
  t.beforeEach(() => kit.clock.set(BEGIN))
  const ask = (headers: Record<string, string>): Promise<Reply> => callAs(kit, headers).get('/auth/tokeninfo')

  t.test('4.2 GET /auth/tokeninfo: the user and the client of the token', async (t) => {
    const account = unique('ann')
    const user_id = await createUser(admin, { account, name: 'Ann', info: { secret: 1 } })
    const client_id = await createClient(admin, { scopes: ['write', 'read'], name: 'shop' }, { credentials: true })
    const { headers } = await kit.mint({ user: account, client: client_id, roles: { clerk: { desk: 4 }, service: true } })
    const reply = await ask(headers)
    t.match(reply, { status: 200, headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' } })
    t.strictSame(reply.body, { data: { user_id, account, name: 'Ann', roles: { clerk: { desk: 4 }, service: true }, client_id, scopes: ['read', 'write'] } })
  })

  t.test('4.2 GET /auth/tokeninfo: changes since the token was minted', async (t) => {
    const client_id = await createClient(admin, { scopes: ['a', 'b'] })
    const all = await signIn(kit, { client: client_id })
    const some = await signIn(kit, { client: client_id, scopes: ['b'] })
    const none = await signIn(kit, { client: client_id, scopes: [] })
    const scopes = async (person: typeof all) => (await person.get<{ data: { scopes: string[] } }>('/auth/tokeninfo')).body.data.scopes
    t.strictSame([await scopes(all), await scopes(some), await scopes(none)], [['a', 'b'], ['b'], []], 'narrowed to the token\'s own')
    await admin.patch(`/client/${client_id}`, { data: { scopes: ['b', 'c'] } })
    t.strictSame([await scopes(all), await scopes(some), await scopes(none)], [['b', 'c'], ['b'], []])
    await admin.patch(`/client/${client_id}`, { data: { scopes: ['c'] } })
    t.strictSame([await scopes(all), await scopes(some), await scopes(none)], [['c'], [], []], 'never more than the client\'s')
    await admin.patch(`/user/${all.user_id}`, { data: { name: 'New', roles: { clerk: true } } })
    t.match(await all.get('/auth/tokeninfo'), { body: { data: { name: 'New', roles: { clerk: true } } } })
  })

  t.test('4.2 POST /auth/logout, rule 1: no header, or one that is not a bearer token', async (t) => {
    for (const [name, headers, challenge] of [
      ['no header', {}, 'Bearer'],
      ['an empty header', { authorization: '' }, 'Bearer'],
      ['another scheme', { authorization: 'Basic YTpi' }, 'Bearer'],
      ['the scheme alone', { authorization: 'Bearer' }, 'Bearer'],
      ['the scheme and spaces', { authorization: 'Bearer   ' }, 'Bearer'],
      ['a token alone', { authorization: admin.access_token }, 'Bearer'],
      ['a scheme that begins like it', { authorization: `Bearers ${admin.access_token}` }, 'Bearer'],
      ['two tokens', { authorization: `Bearer ${admin.access_token} x` }, 'Bearer'],
      ['a list', { authorization: `Bearer ${admin.access_token}, Basic YTpi` }, 'Bearer'],
      ['a token of no token\'s characters', { authorization: 'Bearer a"b' }, 'Bearer'],
      ['a token that is too long', { authorization: `Bearer ${'a'.repeat(8000)}` }, 'Bearer']
    ] as const) {
      for (const [method, url] of [['POST', '/auth/logout'], ['GET', '/auth/tokeninfo']] as const) {
        t.match(await callAs(kit, headers).send({ method, url }), { ...UNKNOWN, headers: { 'www-authenticate': challenge } }, `${name}: ${url}`)
      }
    }
    t.match(await ask(admin.headers), { status: 200 }, 'the session has not ended')
  })

  t.test('5 Authentication: valid forms of the header', async (t) => {
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'Bearer    ']) {
      t.match(await ask({ authorization: scheme + admin.access_token }), { status: 200 }, scheme)
    }
    t.match(await callAs(kit).get(`/auth/tokeninfo?access_token=${admin.access_token}`), UNKNOWN, 'a token in the query is ignored')
  })

  t.test('4.2 POST /auth/logout, rules 2 and 3: the access token and the linked refresh token end', async (t) => {
    const session = await signIn(kit, { refresh: true })
    const other = await signIn(kit, { user: session.account, refresh: true })
    t.match(await session.post('/auth/logout'), { status: 204, body: null })
    t.match(await session.get('/user'), INVALID)
    t.match(await redeem(kit, session, session.refresh_token), REFUSED)
    t.match(await session.post('/auth/logout'), INVALID, 'a second logout is refused')
    t.match(await other.get('/user'), { status: 200 }, 'other sessions stay valid')
    await kit.app.identity.tokens.settle()
    for (const name of ['access_tokens', 'refresh_tokens', 'grants']) {
      t.equal(await store.collection(name).count({ equal: { user_id: session.user_id } }), 1, `${name}: only those of the other session are left`)
    }
    t.match(await redeem(kit, other, other.refresh_token), { status: 200 })
  })

  t.test('4.2 POST /auth/logout: a token without a refresh token', async (t) => {
    const session = await signIn(kit)
    t.match(await session.send({ method: 'POST', url: '/auth/logout', headers: { 'content-type': 'application/json' } }), { status: 204, body: null }, 'an empty body with a content type is accepted')
    t.match(await session.get('/user'), INVALID)
  })

  t.test('4.2 POST /auth/logout: after a refresh, the old access token and the new pair end together', async (t) => {
    const session = await signIn(kit, { refresh: true })
    const { body: pair } = await redeem(kit, session, session.refresh_token)
    const renewed = { authorization: `Bearer ${pair.access_token}` }
    t.match(await session.get('/user'), { status: 200 })
    t.match(await callAs(kit, renewed).post('/auth/logout'), { status: 204 })
    t.match(await ask(renewed), INVALID)
    t.match(await session.get('/user'), INVALID)
    t.match(await redeem(kit, session, pair.refresh_token), REFUSED)
  })

  t.test('5 Authentication: an invalid token', async (t) => {
    /** Uses the token often enough that its look-up is cached. */
    const use = async <T extends { headers: Record<string, string> }>(session: T): Promise<T> => {
      for (let time = 0; time < 3; time++) t.match(await ask(session.headers), { status: 200 })
      return session
    }
    const invalid = {
      'was never minted': async () => ({ authorization: `Bearer ${'a'.repeat(43)}` }),
      'is the stored hash of a valid one': async () => {
        const { access_token } = await kit.mint()
        const id = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(access_token))).toString('base64url')
        t.ok(await store.collection('access_tokens').get(id))
        return { authorization: `Bearer ${id}` }
      },
      'has expired': async () => {
        const { headers } = await use(await kit.mint({ ttl: 10 }))
        kit.clock.advance(10_000)
        return headers
      },
      'was logged out': async () => {
        const session = await use(await signIn(kit))
        await session.post('/auth/logout')
        return session.headers
      },
      'is a refresh token': async () => ({ authorization: `Bearer ${(await kit.mint({ refresh: true })).refresh_token}` }),
      'belongs to a deleted user': async () => {
        const session = await use(await signIn(kit))
        await admin.delete(`/user/${session.user_id}`)
        return session.headers
      },
      'belongs to a disabled user': async () => {
        const session = await use(await signIn(kit))
        await admin.patch(`/user/${session.user_id}`, { disable: true })
        return session.headers
      },
      'belongs to a user past expired_at': async () => {
        const account = unique('brief')
        await createUser(admin, { account }, { expired_at: '2126-11-21T02:51:01Z' })
        const session = await use(await signIn(kit, { user: account }))
        kit.clock.advance(999)
        t.match(await session.get('/user'), { status: 200 }, 'valid before expired_at')
        kit.clock.advance(1)
        return session.headers
      },
      'belongs to a deleted client': async () => {
        const clientId = await createClient(admin)
        const { headers } = await kit.mint({ client: clientId })
        await admin.delete(`/client/${clientId}`)
        return headers
      }
    }
    for (const [name, make] of Object.entries(invalid)) {
      kit.clock.set(BEGIN)
      const headers = await make()
      const replies = [await ask(headers), await callAs(kit, headers).post('/auth/logout'), await callAs(kit, headers).delete('/client/x')]
      for (const reply of replies) t.match(reply, INVALID, `a token that ${name}`)
      t.equal(replies[0]!.body.message, 'the access token is unknown, expired or revoked', 'the message does not reveal the cause')
    }
  })

  t.test('Records: a token is 32 random bytes, and only its hash is stored', async (t) => {
    const { access_token, refresh_token, user_id } = await kit.mint({ refresh: true })
    for (const token of [access_token, refresh_token!]) {
      t.match(token, /^[\w-]{43}$/)
      t.equal(Buffer.from(token, 'base64url').length, 32)
    }
    for (const name of ['access_tokens', 'refresh_tokens', 'grants']) {
      for await (const batch of store.collection(name).stream({ filter: { equal: { user_id } } })) {
        for (const token of [access_token, refresh_token!]) t.notMatch(JSON.stringify(batch), token, name)
      }
    }
  })

  t.test('decisions: authentication runs before the body is read', async (t) => {
    for (const [method, url] of [['POST', '/client'], ['PATCH', '/client/x'], ['POST', '/user'], ['PATCH', '/user'], ['PATCH', '/user/x']] as const) {
      for (const payload of ['{', '{"data":{"x":1}}', 'x'.repeat(100_000)]) {
        const headers = { 'content-type': 'application/json' }
        t.match(await callAs(kit, headers).send({ method, url, payload }), UNKNOWN, `${method} ${url}`)
      }
      t.match(await callAs(kit, { 'content-type': 'text/xml' }).send({ method, url, payload: '<x/>' }), UNKNOWN)
    }
    t.match(await callAs(kit).get('/client/list?limit=x'), UNKNOWN)
  })
})
