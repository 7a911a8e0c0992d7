import t from 'tap'
import type { UserItem } from '../../schemas/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { type Api, createUser, signIn, unique } from '../helpers/people.ts'
import { REFUSED, redeem } from '../helpers/redeem.ts'

const BEGIN = '2126-11-21T02:51:00.000Z'
const LATER = '2126-11-21T02:51:01.000Z'

const WRONG = { status: 400, body: { statusCode: 400, code: 'ErrParam', error: 'Bad Request' } }
const DENIED = { status: 403, body: { statusCode: 403, code: 'ErrPerm', error: 'Forbidden' } }
const NOT_FOUND = { status: 404, body: { statusCode: 404, code: 'ErrNotFound', error: 'Not Found' } }
const DONE = { status: 204, body: null }

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const { store, users } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })
  const manager = await signIn(kit, { roles: ['manager'] })
  const service = await signIn(kit, { roles: ['service'] })
  const callers = { admin, manager, service }
  const others = { manager, service }
  t.beforeEach(() => kit.clock.set(BEGIN))

  /** The user with all times. */
  async function read (user_id: string): Promise<UserItem> {
    const { data: { account } } = (await admin.get<{ data: UserItem }>(`/user/${user_id}`)).body
    return (await admin.get<{ data: UserItem[] }>(`/user/list?account=${account}&fields=expired,disabled`)).body.data[0]!
  }
  const patch = (caller: Api, user_id: string, body?: object) => caller.patch(`/user/${user_id}`, body)

  t.test('4.3 PATCH /user/{userId}, rule 1: a missing target', async (t) => {
    for (const [name, caller] of Object.entries(callers)) {
      t.match(await patch(caller, 'no-such-user', { disable: true }), NOT_FOUND, name)
      t.match(await patch(caller, 'no-such-user', { data: { roles: { admin: true } } }), NOT_FOUND, name)
    }
  })

  t.test('4.3 PATCH /user/{userId}, rule 2: a non-admin changes nothing of an admin', async (t) => {
    const target = await signIn(kit, { roles: { admin: { since: 2020 } } })
    for (const [name, caller] of Object.entries(others)) {
      for (const body of [{ data: { roles: {} } }, { disable: true }, { disable: false }, { data: { name: 'x' } }, {}]) {
        t.match(await patch(caller, target.user_id, body), DENIED, `${name} ${JSON.stringify(body)}`)
      }
    }
    t.match(await read(target.user_id), { roles: { admin: { since: 2020 } }, disabled_at: null, modified_at: BEGIN })
    t.match(await patch(admin, target.user_id, { data: { name: 'by an admin' } }), DONE)
  })

  t.test('4.3 PATCH /user/{userId}, rule 3: verified_at', async (t) => {
    for (const [given, stored] of [
      ['2020-02-29T23:59:59Z', '2020-02-29T23:59:59.000Z'],
      ['2020-01-01T00:00:00.123456+05:30', '2019-12-31T18:30:00.123Z'],
      ['2020-01-01t00:00:00z', '2020-01-01T00:00:00.000Z'],
      ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
      ['2020-01-01T00:00:00-00:00', '2020-01-01T00:00:00.000Z']
    ] as const) {
      const user_id = await createUser(admin, {}, { expired_at: '2130-01-01T00:00:00Z' })
      t.match(await patch(admin, user_id, { data: { verified_at: given } }), DONE, given)
      t.match(await read(user_id), { verified_at: stored, expired_at: null }, 'and expired_at is cleared')
    }
    const user_id = await createUser(admin, {}, { expired_at: '2130-01-01T00:00:00Z' })
    for (const verified_at of [
      '', 'now', '2020-01-01', '2020-01-01T00:00:00', '2020-01-01 00:00:00Z', '2020-01-01T00:00Z', '2020-02-30T00:00:00Z', '2021-02-29T00:00:00Z',
      '2020-01-01T24:00:00Z', '2020-01-01T00:60:00Z', '2020-01-01T00:00:00+0100', '2020-01-01T00:00:00+24:00', '20200101T000000Z', '2020-01-01T12:00:60Z',
      '0000-01-01T00:00:00+01:00', '1577836800', ' 2020-01-01T00:00:00Z', '2020-01-01T00:00:00Z\n'
    ]) {
      const reply = await patch(admin, user_id, { data: { verified_at } })
      t.match(reply, WRONG, JSON.stringify(verified_at))
      t.match(reply.body.message, 'verified_at: ')
    }
    for (const verified_at of [null, 0, true]) t.match(await patch(admin, user_id, { data: { verified_at } }), WRONG)
    t.match(await read(user_id), { verified_at: undefined, expired_at: '2130-01-01T00:00:00.000Z', modified_at: BEGIN })
    for (const [name, caller] of Object.entries(others)) {
      t.match(await patch(caller, user_id, { data: { verified_at: BEGIN } }), WRONG, `${name}: nothing that applies`)
      t.match(await patch(caller, user_id, { data: { verified_at: BEGIN, roles: {} } }), DONE, name)
    }
    t.match(await read(user_id), { verified_at: undefined, expired_at: '2130-01-01T00:00:00.000Z' }, 'applied only for admin')
  })

  t.test('4.3 PATCH /user/{userId}, rule 4: roles', async (t) => {
    const user_id = await createUser(admin)
    for (const [name, caller] of Object.entries(others)) {
      for (const roles of [{ admin: true }, { service: true }, { clerk: true, service: { desk: 1 } }, { admin: {}, service: {} }]) {
        t.match(await patch(caller, user_id, { data: { roles } }), DENIED, `${name} grants ${Object.keys(roles)}`)
      }
      t.strictSame((await read(user_id)).roles, {})
      for (const roles of [{ clerk: { desk: 4, keys: ['a'] }, 'a.b': true }, {}, { clerk: true }, {}]) {
        t.match(await patch(caller, user_id, { data: { roles } }), DONE)
        t.strictSame((await read(user_id)).roles, roles, 'replaced as a whole')
      }
    }
    const all = { admin: true, service: { region: 'eu' }, manager: true }
    t.match(await patch(admin, user_id, { data: { roles: all } }), DONE)
    t.strictSame((await read(user_id)).roles, all, 'an admin grants any')
    t.match(await patch(admin, user_id, { data: { roles: {} } }), DONE)
    t.strictSame((await read(user_id)).roles, {}, 'and removes any')
  })

  t.test('rule 4 also covers removal: only an admin removes the service role', async (t) => {
    const user_id = await createUser(admin)
    const held = { service: { region: 'eu' }, clerk: true }
    await patch(admin, user_id, { data: { roles: held } })
    for (const [name, caller] of Object.entries(others)) {
      for (const roles of [{}, { clerk: true }, { service: true, clerk: true }, { ...held, other: true }]) {
        const reply = await patch(caller, user_id, { data: { roles } })
        t.match(reply, { ...DENIED, body: { message: 'roles: only an admin may grant or remove service' } }, `${name}: ${JSON.stringify(roles)}`)
      }
    }
    t.match(await patch(service, service.user_id, { data: { roles: {} } }), DENIED, 'not even their own')
    t.strictSame((await read(user_id)).roles, held)
  })

  t.test('rule 4 and rule 7 together: a manager cannot remove another\'s role and then disable them', async (t) => {
    const other = await signIn(kit, { roles: { manager: { since: 2020 }, clerk: true } })
    for (const [name, caller] of Object.entries(others)) {
      for (const roles of [{}, { clerk: true }, { manager: true, clerk: true }]) {
        const reply = await patch(caller, other.user_id, { data: { roles } })
        t.match(reply, { ...DENIED, body: { message: 'roles: only an admin may change or remove the role manager of another user' } }, `${name}: ${JSON.stringify(roles)}`)
      }
      t.match(await patch(caller, other.user_id, { disable: true }), DENIED, name)
      t.match(await patch(caller, other.user_id, { data: { roles: { manager: { since: 2020 } } } }), DONE, `${name}: another role of theirs`)
      await patch(admin, other.user_id, { data: { roles: { manager: { since: 2020 }, clerk: true } } })
    }
    t.match(await read(other.user_id), { roles: { manager: { since: 2020 }, clerk: true }, disabled_at: null })

    const target = await createUser(admin)
    t.match(await patch(manager, target, { data: { roles: { manager: true } } }), DONE, 'a manager still makes one')
    t.match(await patch(other, other.user_id, { data: { roles: { clerk: true } } }), DONE, 'and may stop being one')
    t.match(await patch(admin, target, { data: { roles: {} } }), DONE)
  })

  t.test('Names: role values', async (t) => {
    const user_id = await createUser(admin, {})
    for (const value of [false, null, 0, 1, '', 'yes', [], [true]]) {
      const reply = await patch(admin, user_id, { data: { roles: { clerk: value } } })
      t.match(reply, WRONG, JSON.stringify(value))
      t.match(reply.body.message, 'data.roles.clerk: ')
    }
    for (const roles of [null, [], 'admin', true]) t.match(await patch(admin, user_id, { data: { roles } }), WRONG, JSON.stringify(roles))
    t.match(await patch(admin, user_id, { data: { roles: { '': true } } }), WRONG, 'a role has a name')
    t.strictSame((await read(user_id)).roles, {})
  })

  t.test('4.3 PATCH /user/{userId}, rule 5: password, name and info are ignored for a non-admin', async (t) => {
    const account = unique('calm')
    const user_id = await createUser(admin, { account, password: 'old', name: 'old', info: { old: true } })
    const session = await signIn(kit, { user: account })
    const ignored = { password: 'new', name: 'new', info: { new: true } }
    for (const [name, caller] of Object.entries(others)) {
      for (const data of [{ password: 'new' }, { name: 'new' }, { info: {} }, ignored, { password: '' }, { info: { '': 1 } }]) {
        t.match(await patch(caller, user_id, { data }), WRONG, `${name} ${JSON.stringify(data)}: not a change`)
      }
      t.match(await patch(caller, user_id, { data: { ...ignored, roles: { clerk: true } } }), DONE, 'ignored beside a change')
      t.match(await patch(caller, user_id, { data: { password: '', info: { '': 1 }, roles: {} } }), DONE, 'whatever it holds')
    }
    t.match(await read(user_id), { name: 'old', info: { old: true } })
    t.match(await users.verify(account, 'old'), { user_id })
    t.match(await session.get('/user'), { status: 200 }, 'and no token ends')

    t.match(await patch(admin, user_id, { data: ignored }), DONE)
    t.match(await read(user_id), { name: 'new', info: { new: true, old: undefined } })
    t.match(await users.verify(account, 'new'), { user_id })
  })

  t.test('4.3 PATCH /user/{userId}, rule 6: an empty password, an empty info key', async (t) => {
    const user_id = await createUser(admin)
    for (const [field, data] of [['password', { password: '', name: 'x' }], ['info', { info: { '': 1 } }]] as const) {
      const reply = await patch(admin, user_id, { data })
      t.match(reply, WRONG)
      t.match(reply.body.message, `${field}: `)
    }
    t.match(await read(user_id), { name: '', modified_at: BEGIN })
  })

  t.test('4.3 PATCH /user/{userId}, rule 7: disable', async (t) => {
    for (const [targetName, roles, mayNot] of [
      ['a plain user', {}, []],
      ['a service', { service: true }, []],
      ['a manager', { manager: true }, ['manager', 'service']],
      ['an admin', { admin: true }, ['manager', 'service']]
    ] as const) {
      for (const [name, caller] of Object.entries(callers)) {
        const target = await signIn(kit, { roles })
        kit.clock.set(LATER)
        const denied = (mayNot as readonly string[]).includes(name)
        t.match(await patch(caller, target.user_id, { disable: true }), denied ? DENIED : DONE, `${name} disables ${targetName}`)
        t.match(await read(target.user_id), { disabled_at: denied ? null : LATER, modified_at: denied ? BEGIN : LATER })
        t.match(await target.get('/user'), { status: denied ? 200 : 401 })
        t.match(await patch(caller, target.user_id, { disable: false }), denied ? DENIED : DONE, `${name} enables ${targetName}`)
        t.match(await read(target.user_id), { disabled_at: null })
        kit.clock.set(BEGIN)
      }
    }
    const user_id = await createUser(admin)
    t.match(await patch(admin, user_id, { disable: false }), DONE, 'false is a change of one who is enabled, too')
    for (const disable of ['true', 1, null]) t.match(await patch(admin, user_id, { disable }), WRONG, JSON.stringify(disable))
  })

  t.test('Records: disabling ends the user\'s tokens, and enabling does not bring them back', async (t) => {
    const target = await signIn(kit, { refresh: true })
    await patch(admin, target.user_id, { disable: true })
    t.match(await target.get('/user'), { status: 401 })
    await patch(admin, target.user_id, { disable: false })
    t.match(await target.get('/user'), { status: 401 })
    t.match(await redeem(kit, target, target.refresh_token), REFUSED)
    t.match(await (await signIn(kit, { user: target.account })).get('/user'), { status: 200 }, 'a new one is good')
  })

  t.test('4.3 PATCH /user/{userId}, rule 8: no applied change', async (t) => {
    const user_id = await createUser(admin)
    for (const body of [{}, { data: {} }]) {
      for (const [name, caller] of Object.entries(callers)) t.match(await patch(caller, user_id, body), WRONG, `${name} ${JSON.stringify(body)}`)
    }
    t.match(await patch(admin, user_id), WRONG, 'no body')
    for (const body of [{ data: { account: 'x' } }, { data: { expired_at: BEGIN } }, { data: null }, { disabled: true }, []]) {
      t.match(await patch(admin, user_id, body), WRONG, JSON.stringify(body))
    }
    t.match(await read(user_id), { modified_at: BEGIN })
  })

  t.test('4.3 PATCH /user/{userId}, rule 9: a new password ends the target\'s tokens', async (t) => {
    const target = await signIn(kit, { refresh: true })
    t.match(await patch(admin, target.user_id, { data: { password: 'new' } }), DONE)
    t.match(await target.get('/user'), { status: 401 })
    t.match(await redeem(kit, target, target.refresh_token), REFUSED)
    await kit.app.identity.tokens.settle()
    for (const name of ['authorization_codes', 'access_tokens', 'refresh_tokens']) {
      t.equal(await store.collection(name).count({ equal: { user_id: target.user_id } }), 0, name)
    }
    t.match(await users.verify(target.account, 'new'), { user_id: target.user_id })
    t.match(await admin.get('/user'), { status: 200 }, 'the admin\'s own stay')
  })

  t.test('4.3 PATCH /user/{userId}, rule 10: success sets modified_at', async (t) => {
    for (const body of [{ data: { name: 'x' } }, { data: { roles: {} } }, { disable: true }, { disable: false }, { data: { verified_at: BEGIN } }]) {
      const user_id = await createUser(admin)
      kit.clock.set(LATER)
      t.match(await patch(admin, user_id, body), DONE, JSON.stringify(body))
      t.match(await read(user_id), { created_at: BEGIN, modified_at: LATER })
      kit.clock.set(BEGIN)
    }
  })

  t.test('everything at once', async (t) => {
    const user_id = await createUser(admin, {}, { expired_at: '2130-01-01T00:00:00Z' })
    kit.clock.set(LATER)
    t.match(await patch(admin, user_id, {
      data: { verified_at: BEGIN, roles: { clerk: true }, password: 'p', name: 'n', info: { i: 1 } }, disable: true
    }), DONE)
    t.match(await read(user_id), {
      verified_at: BEGIN, expired_at: null, disabled_at: LATER, modified_at: LATER, roles: { clerk: true }, name: 'n', info: { i: 1 }
    })
  })
})

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { managerRoles: ['clerk', 'cook'] })
  const admin = await signIn(kit, { roles: ['admin'] })
  const callers = { manager: await signIn(kit, { roles: ['manager'] }), service: await signIn(kit, { roles: ['service'] }) }

  t.test('managerRoles lists what callers without the admin role grant and remove', async (t) => {
    const { user_id } = await signIn(kit, { roles: { cook: true, 'billing-admin': { limit: 5 } } })
    const kept = { 'billing-admin': { limit: 5 } }
    for (const [name, caller] of Object.entries(callers)) {
      for (const [roles, reply] of [
        [{ ...kept, clerk: { desk: 4 } }, DONE],
        [{ ...kept, clerk: { desk: 5 }, cook: true }, DONE],
        [{ ...kept, cook: true }, DONE],
        [{ ...kept, manager: true }, DENIED],
        [{ ...kept, other: true }, DENIED],
        [{ ...kept, admin: true }, DENIED],
        [{ 'billing-admin': { limit: 6 } }, DENIED],
        [{ 'billing-admin': true }, DENIED],
        [{ clerk: true }, DENIED]
      ] as const) t.match(await caller.patch(`/user/${user_id}`, { data: { roles } }), reply, `${name}: ${JSON.stringify(roles)}`)
      t.match(await caller.get('/user'), { status: 200 })
      t.match(await caller.patch(`/user/${caller.user_id}`, { data: { roles: { [name]: true, 'billing-admin': true } } }), DENIED, `${name}: for themselves`)
    }
    t.match(await admin.get(`/user/${user_id}`), { body: { data: { roles: { cook: true, ...kept, clerk: undefined } } } })
    t.match(await admin.patch(`/user/${user_id}`, { data: { roles: { other: true } } }), DONE, 'an admin grants any')
    const reply = await callers.manager.patch(`/user/${user_id}`, { data: { roles: {} } })
    t.notMatch(reply.body.message, 'other', 'a refusal does not tell which roles the user holds')
  })
})
