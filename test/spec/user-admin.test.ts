import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { createUser, signIn, unique } from '../helpers/people.ts'
import { REFUSED, redeem } from '../helpers/redeem.ts'

const BEGIN = '2126-11-21T02:51:00.000Z'

const WRONG = { status: 400, body: { statusCode: 400, code: 'ErrParam', error: 'Bad Request' } }
const EXISTS = { status: 409, body: { statusCode: 409, code: 'USER_EXIST', error: 'Conflict' } }
const NOT_FOUND = { status: 404, body: { statusCode: 404, code: 'ErrNotFound', error: 'Not Found' } }

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const { store, users } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })

  t.test('4.3 POST /user: the response and the user', async (t) => {
    const account = unique('ann')
    const reply = await admin.post<{ data: { user_id: string } }>('/user', { data: { account, password: 'p' } })
    const { user_id } = reply.body.data
    t.equal(reply.status, 200)
    t.strictSame(reply.body, { data: { user_id } })
    t.match(user_id, /^[0-9A-HJKMNP-TV-Z]{26}[0-9A-Za-z]{8}$/, 'a ULID and 8 random characters')
    t.strictSame((await admin.get(`/user/${user_id}`)).body, {
      data: { user_id, account, created_at: BEGIN, modified_at: BEGIN, verified_at: BEGIN, roles: {}, name: '', info: {} }
    })
    t.match(await users.verify(account, 'p'), { user_id }, 'a password of one character will do')
  })

  t.test('4.3 POST /user: required fields and types; nothing is coerced', async (t) => {
    for (const [field, body] of [
      ['data', {}],
      ['data.account', { data: { password: 'p' } }],
      ['data.password', { data: { account: 'a' } }],
      ['data.account', { data: { account: 7, password: 'p' } }],
      ['data.password', { data: { account: 'a', password: 7 } }],
      ['data.password', { data: { account: 'a', password: null } }],
      ['data.name', { data: { account: 'a', password: 'p', name: null } }],
      ['data.info', { data: { account: 'a', password: 'p', info: [] } }],
      ['data.roles', { data: { account: 'a', password: 'p', roles: { admin: true } } }],
      ['data.expired_at', { data: { account: 'a', password: 'p', expired_at: BEGIN } }],
      ['expired_at', { data: { account: 'a', password: 'p' }, expired_at: 0 }],
      ['expired_at', { data: { account: 'a', password: 'p' }, expired_at: null }],
      ['disable', { data: { account: 'a', password: 'p' }, disable: true }]
    ] as const) {
      const reply = await admin.post('/user', body)
      t.match(reply, WRONG, JSON.stringify(body))
      t.match(reply.body.message, `${field}: `)
    }
    t.match(await admin.get('/user/count?account=a'), { body: { data: { count: 0 } } })
  })

  t.test('4.3 POST /user, rule 1: the account is lower-cased, then checked', async (t) => {
    for (const account of [
      'Ann', 'a', '7', 'A-_b', 'a--', '0_', 'Ann.B@Example.COM', 'a+b@c.de', `${'l'.repeat(64)}@example.com`, 'a'.repeat(254)
    ]) {
      const user_id = await createUser(admin, { account })
      t.match(await admin.get(`/user/${user_id}`), { body: { data: { account: account.toLowerCase() } } }, account)
    }
    for (const account of [
      '', ' ', '-a', '_a', 'a b', 'a.b', 'ä', 'a\n', '\na', 'a@', '@b', 'a@b', 'a@b@c.de', 'a b@c.de', 'a@c..de', 'a\u0000', 'a'.repeat(255)
    ]) {
      const reply = await admin.post('/user', { data: { account, password: 'p' } })
      t.match(reply, WRONG, JSON.stringify(account))
      t.match(reply.body.message, /^(data\.)?account: /)
    }
  })

  t.test('4.3 POST /user, rule 2: an empty password, an empty info key', async (t) => {
    const account = unique('empty')
    for (const [field, data] of [['password', { password: '' }], ['info', { password: 'p', info: { '': 1 } }]] as const) {
      const reply = await admin.post('/user', { data: { account, ...data } })
      t.match(reply, WRONG)
      t.match(reply.body.message, `${field}: `)
    }
    t.match(await admin.get(`/user/count?account=${account}`), { body: { data: { count: 0 } } })
  })

  t.test('4.3 POST /user, rule 3: an existing account gives USER_EXIST', async (t) => {
    const account = unique('twin')
    await createUser(admin, { account })
    for (const again of [account, account.toUpperCase()]) {
      t.match(await admin.post('/user', { data: { account: again, password: 'p' } }), EXISTS, again)
    }
  })

  t.test('Errors: of many concurrent requests for one account, one creates it and the others get USER_EXIST', async (t) => {
    const account = unique('race')
    const replies = await Promise.all(Array.from({ length: 10 }, () => admin.post('/user', { data: { account, password: 'p' } })))
    t.equal(replies.filter(({ status }) => status === 200).length, 1)
    for (const reply of replies.filter(({ status }) => status !== 200)) t.match(reply, EXISTS)
    t.match(await admin.get(`/user/count?account=${account}`), { body: { data: { count: 1 } } })
  })

  t.test('4.3 GET /user/count', async (t) => {
    const mark = unique('tally').replaceAll('-', '')
    for (const account of [`${mark}`, `${mark}_1`, `x${mark}-2`, `${mark}@example.com`]) await createUser(admin, { account })
    const { count: all } = (await admin.get<{ data: { count: number } }>('/user/count')).body.data
    for (const [query, count] of [
      [`?account=${mark}`, 1],
      [`?account=${mark.toUpperCase()}`, 1],
      [`?account=${mark.slice(0, -1)}`, 0],
      [`?contains=${mark}`, 4],
      [`?contains=${mark.toUpperCase()}`, 4],
      [`?contains=${mark}_`, 1],
      [`?contains=${encodeURIComponent(mark + '%')}`, 0],
      [`?contains=${encodeURIComponent(mark + '.')}`, 0],
      [`?contains=${encodeURIComponent(mark + '.*')}`, 0],
      [`?contains=${encodeURIComponent(`${mark}@example.`)}`, 1],
      [`?account=${mark}&contains=${mark}`, 1],
      [`?account=&contains=${mark}`, 4],
      [`?account=${mark}&contains=`, 1],
      ['?account=&contains=', all]
    ] as const) t.strictSame((await admin.get(`/user/count${query}`)).body, { data: { count } }, query)
    for (const query of ['?accont=x', '?account=a&account=b', '?contains[$ne]=x']) t.match(await admin.get(`/user/count${query}`), WRONG, query)
  })

  t.test('4.3 GET /user/{userId}', async (t) => {
    const user_id = await createUser(admin, {}, { expired_at: '2127-01-01T00:00:00Z' })
    await admin.patch(`/user/${user_id}`, { disable: true })
    const { body } = await admin.get<{ data: object }>(`/user/${user_id}`)
    t.strictSame(Object.keys(body.data).sort(), ['account', 'created_at', 'info', 'modified_at', 'name', 'roles', 'user_id'])
    t.match(await admin.get('/user/no-such-user'), NOT_FOUND)
  })

  t.test('4.3 DELETE /user/{userId}', async (t) => {
    const user_id = await createUser(admin)
    const session = await kit.mint({ user: user_id, refresh: true })
    t.match(await admin.delete(`/user/${user_id}`), { status: 204, body: null })
    t.match(await admin.get(`/user/${user_id}`), NOT_FOUND)
    t.match(await admin.delete(`/user/${user_id}`), NOT_FOUND)
    t.equal((await kit.inject({ url: '/api/v1/user', headers: session.headers })).statusCode, 401)
    t.match(await redeem(kit, session, session.refresh_token), REFUSED)
    await kit.app.identity.tokens.settle()
    for (const name of ['authorization_codes', 'access_tokens', 'refresh_tokens']) {
      t.equal(await store.collection(name).count({ equal: { user_id } }), 0, name)
    }
  })

  t.test('4.3 DELETE /user/{userId}: the caller\'s own id gives ErrPerm', async (t) => {
    t.match(await admin.delete(`/user/${admin.user_id}`), { status: 403, body: { statusCode: 403, code: 'ErrPerm', error: 'Forbidden' } })
    t.match(await admin.get('/user'), { status: 200 })
  })

  t.test('2 User: an account is free again when its user is deleted', async (t) => {
    const account = unique('phoenix')
    const first = await createUser(admin, { account })
    await admin.delete(`/user/${first}`)
    t.not(await createUser(admin, { account }), first)
  })
})
