import t from 'tap'
import type { Profile } from '../../schemas/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { type Api, createUser, signIn, unique } from '../helpers/people.ts'
import { REFUSED, redeem } from '../helpers/redeem.ts'

/** Users are created at BEGIN and changed at LATER. */
const BEGIN = '2126-11-21T02:51:00.000Z'
const LATER = '2126-11-21T02:51:01.000Z'

const WRONG = { status: 400, body: { statusCode: 400, code: 'ErrParam', error: 'Bad Request' } }

async function readProfile (api: Api): Promise<Profile> {
  return (await api.get<{ data: Profile }>('/user')).body.data
}

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const { store, users } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })
  t.beforeEach(() => kit.clock.set(BEGIN))

  t.test('4.3 GET /user: the caller\'s own profile', async (t) => {
    const account = unique('ann')
    await createUser(admin, { account, name: 'Ann Ähre', info: { theme: { dark: true }, 'a.b': [1, null], $c: '' } })
    const ann = await signIn(kit, { user: account, roles: { clerk: { desk: 4 }, manager: true } })
    t.strictSame((await ann.get('/user')).body, {
      data: {
        account,
        created_at: BEGIN,
        modified_at: BEGIN,
        verified_at: BEGIN,
        roles: { clerk: { desk: 4 }, manager: true },
        name: 'Ann Ähre',
        info: { theme: { dark: true }, 'a.b': [1, null], $c: '' }
      }
    })
  })

  t.test('4.3 GET /user: verified_at is absent when unset; name and info have defaults', async (t) => {
    const account = unique('new')
    await createUser(admin, { account }, { expired_at: '2127-01-01T00:00:00Z' })
    const profile = await readProfile(await signIn(kit, { user: account }))
    t.strictSame(profile, { account, created_at: BEGIN, modified_at: BEGIN, roles: {}, name: '', info: {} })
  })

  t.test('4.3 PATCH /user: name and info, and rule 4: success sets modified_at', async (t) => {
    const ann = await signIn(kit)
    const before = await readProfile(ann)
    for (const data of [{ name: 'Ann' }, { info: { a: 1 } }, { info: {} }, { name: '', info: { b: { c: [] } } }]) {
      kit.clock.advance(1000)
      t.match(await ann.patch('/user', { data }), { status: 204, body: null })
      const after = await readProfile(ann)
      t.match(after.modified_at, new Date(kit.clock.now()).toISOString())
      for (const [key, value] of Object.entries(data)) t.strictSame(after[key as 'info'], value, 'replaced as a whole')
    }
    t.strictSame(await readProfile(ann), { ...before, name: '', info: { b: { c: [] } }, modified_at: new Date(kit.clock.now()).toISOString() })
  })

  t.test('4.3 PATCH /user, rule 1: an empty password, an info with an empty key, and values of a wrong type', async (t) => {
    const ann = await signIn(kit)
    for (const [field, data] of [
      ['password', { password: '' }],
      ['info', { info: { '': 1 } }],
      ['info', { name: 'new', info: { a: 1, '': null } }],
      ['data.info', { info: [] }],
      ['data.info', { info: null }],
      ['data.info', { info: 'text' }],
      ['data.name', { name: null }],
      ['data.password', { password: 12345678 }],
      ['data.account', { account: 'other' }],
      ['data.roles', { roles: { admin: true } }],
      ['data.verified_at', { verified_at: LATER }]
    ] as const) {
      const reply = await ann.patch('/user', { data })
      t.match(reply, WRONG, JSON.stringify(data))
      t.match(reply.body.message, `${field}: `)
    }
    t.match(await ann.patch('/user', { data: { name: 'x' }, disable: true }), WRONG)
    t.match(await readProfile(ann), { name: '', info: {}, modified_at: BEGIN, roles: {} })
  })

  t.test('4.3 PATCH /user, rule 2: a body that changes nothing', async (t) => {
    const ann = await signIn(kit)
    kit.clock.set(LATER)
    for (const body of [{ data: {} }, {}]) t.match(await ann.patch('/user', body), WRONG, JSON.stringify(body))
    t.match(await ann.patch('/user'), WRONG, 'no body')
    t.equal((await readProfile(ann)).modified_at, BEGIN)
  })

  t.test('4.3 PATCH /user, rule 3: a new password, stored as a salted hash, ends all the caller\'s tokens', async (t) => {
    const account = unique('ann')
    const user_id = await createUser(admin, { account, password: 'old password' })
    const sessions = await Promise.all([kit.mint({ user: account, refresh: true }), kit.mint({ user: account, client: unique('phone'), refresh: true })])
    const ann = await signIn(kit, { user: account })
    kit.clock.set(LATER)
    t.match(await ann.patch('/user', { data: { password: 'n€w password' } }), { status: 204, body: null })

    t.match(await ann.get('/user'), { status: 401, body: { code: 'ErrUnknown' } }, 'the token that changed it too')
    for (const session of sessions) {
      t.equal((await kit.inject({ url: '/api/v1/user', headers: session.headers })).statusCode, 401)
      t.match(await redeem(kit, session, session.refresh_token), REFUSED)
    }
    await kit.app.identity.tokens.settle()
    for (const name of ['authorization_codes', 'access_tokens', 'refresh_tokens']) {
      t.equal(await store.collection(name).count({ equal: { user_id } }), 0, name)
    }
    t.match(await admin.get('/user'), { status: 200 }, 'others\' tokens stay')
    t.equal(await users.verify(account, 'old password'), null)
    t.match(await users.verify(account, 'n€w password'), { user_id, modified_at: LATER })
    const { password } = await store.collection<{ id: string, password: string }>('users').get(user_id) ?? {}
    t.match(password, /^[0-9A-Za-z]{8}\$2[ab]\$04\$[./0-9A-Za-z]{53}$/, '8 characters of salt and a bcrypt hash')
  })

  t.test('2 User: the same password has another salt and another hash for each user', async (t) => {
    const ids = await Promise.all([createUser(admin, { password: 'same' }), createUser(admin, { password: 'same' })])
    const stored = await Promise.all(ids.map(async (id) => (await store.collection<{ id: string, password: string }>('users').get(id))?.password ?? ''))
    t.not(stored[0]?.slice(0, 8), stored[1]?.slice(0, 8))
    t.not(stored[0]?.slice(8), stored[1]?.slice(8))
  })

  t.test('Records: a password counts in full, past 72 bytes and past a NUL', async (t) => {
    for (const [password, other] of [['a'.repeat(72) + 'b', 'a'.repeat(72) + 'c'], ['a\u0000b', 'a\u0000c'], ['ü'.repeat(1024), 'ü'.repeat(1023)]] as const) {
      const account = unique('long')
      await createUser(admin, { account, password })
      t.equal(await users.verify(account, other), null)
      t.match(await users.verify(account.toUpperCase(), password), { account })
    }
  })

  t.test('2 User: a password is never returned', async (t) => {
    const account = unique('secretive')
    const user_id = await createUser(admin, { account, password: 'hush-hush' })
    const own = await signIn(kit, { user: account })
    const replies = [
      await own.get('/user'), await admin.get(`/user/${user_id}`), await admin.get(`/user/list?account=${account}&fields=expired,disabled,password`),
      await own.get('/auth/tokeninfo')
    ]
    for (const reply of replies) {
      t.equal(reply.status, 200)
      t.notMatch(JSON.stringify(reply.body), /password|hush|\$2[ab]\$|epoch|revision/)
    }
  })
})
