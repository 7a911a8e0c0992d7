import t, { type Test } from 'tap'
import type { Happening } from '../../../lib/events/types.ts'
import type { Actor } from '../../../lib/roles.ts'
import { busyError, storeError } from '../../../lib/errors.ts'
import { checkManagerRoles, createManagerRules, findAdminsRole } from '../../../lib/users/manager-rules.ts'
import { createPasswordRules } from '../../../lib/users/password-rules.ts'
import { isTaken } from '../../../lib/users/addresses.ts'
import { DEFAULT_ROLE_NAMES } from '../../../lib/roles.ts'
import { type UserRecord, findMailbox, listAddresses } from '../../../lib/records/user.ts'
import type { Roles } from '../../../lib/roles.ts'
import { SILENT_FAILURES } from '../../helpers/events.ts'
import { BEGIN, openRules } from '../../helpers/services.ts'

// The rules by themselves; test/spec has them through the interface.

const ADMIN: Actor = { user_id: 'admin', isAdmin: true }
const MANAGER: Actor = { user_id: 'manager', isAdmin: false }
const NAMES = { admin: 'root', manager: 'chief', service: 'robot' }

const toUser = (roles: Roles, fields: Partial<UserRecord> = {}): UserRecord => ({
  id: 'target', account: 'target', created_at: BEGIN, modified_at: BEGIN, roles, password: '', name: '', info: {}, epoch: 0, revision: 0, ...fields
})

t.test('what callers without the admin role may not do to whom', async (t) => {
  const check = createManagerRules(NAMES)
  const grant = (roles: Roles) => ({ data: { roles } })
  const refused: Record<string, [Roles, Parameters<typeof check>[1], string, Actor?]> = {
    'change an admin': [{ root: true }, {}, 'userId: only an admin may change an admin'],
    'make an admin': [{}, grant({ root: true }), 'roles: only an admin may grant or remove root'],
    'make a service': [{}, grant({ robot: true }), 'roles: only an admin may grant or remove robot'],
    'take a service its role': [{ robot: true }, grant({}), 'roles: only an admin may grant or remove robot'],
    'change the role of a service': [{ robot: true }, grant({ robot: true }), 'roles: only an admin may grant or remove robot'],
    'take another manager their role': [{ chief: true }, grant({}), 'roles: only an admin may change or remove the role chief of another user'],
    'change the role of another manager': [{ chief: { desk: 1 } }, grant({ chief: true }), 'roles: only an admin may change or remove the role chief of another user'],
    'take their owner the role, as a client': [{ chief: true }, grant({}), 'roles: only an admin may change or remove the role chief of another user', { user_id: 'target', isAdmin: false, isUser: false }],
    'disable a manager': [{ chief: true }, { disable: true }, 'disable: only an admin may disable or enable a manager'],
    'enable a manager': [{ chief: true }, { disable: false }, 'disable: only an admin may disable or enable a manager']
  }
  for (const [name, [roles, body, message, actor = MANAGER]] of Object.entries(refused)) {
    t.throws(() => check(toUser(roles), body, actor), { code: 'ErrPerm', message }, name)
    t.doesNotThrow(() => check(toUser(roles), body, ADMIN), `an admin: ${name}`)
  }
  const allowed: Record<string, [Roles, Parameters<typeof check>[1], Actor?]> = {
    'grant other roles': [{}, grant({ clerk: true, admin: true })],
    'take other roles': [{ clerk: true }, grant({})],
    'make a manager': [{}, grant({ chief: true })],
    'leave a manager their role': [{ chief: { desk: 1 } }, grant({ chief: { desk: 1 }, clerk: true })],
    'stop being one': [{ chief: true }, grant({}), { user_id: 'target', isAdmin: false }],
    'disable others': [{ clerk: true, robot: true }, { disable: true }],
    'name no roles': [{ robot: true }, { data: { name: 'x' } }],
    'name nothing': [{ chief: true }, {}]
  }
  for (const [name, [roles, body, actor = MANAGER]] of Object.entries(allowed)) t.doesNotThrow(() => check(toUser(roles), body, actor), name)
})

t.test('which roles managers may grant, where the operator names them', async (t) => {
  const check = createManagerRules(NAMES, ['clerk', 'guest'])
  const refused = { code: 'ErrPerm', message: 'roles: only an admin may grant, change or remove a role that managers may not grant' }
  for (const [before, after] of [[{}, { boss: true }], [{ boss: true }, {}], [{ boss: { desk: 1 } }, { boss: { desk: 2 } }], [{}, { clerk: true, boss: true }]] as [Roles, Roles][]) {
    t.throws(() => check(toUser(before), { data: { roles: after } }, MANAGER), refused)
  }
  for (const [before, after] of [[{}, { clerk: true }], [{ clerk: true }, { guest: true }], [{ boss: { desk: 1 } }, { boss: { desk: 1 }, clerk: true }], [{}, {}]] as [Roles, Roles][]) {
    t.doesNotThrow(() => check(toUser(before), { data: { roles: after } }, MANAGER))
  }
  t.throws(() => createManagerRules(NAMES, [])(toUser({}), { data: { roles: { clerk: true } } }, MANAGER), refused)
  for (const role of ['root', 'robot']) {
    t.equal(findAdminsRole(NAMES, ['clerk', role]), role)
    t.throws(() => checkManagerRoles(NAMES, ['clerk', role]), { message: `option managerRoles: must not contain ${role}, which only an admin grants` })
  }
  for (const roles of [undefined, [], ['clerk', 'chief', 'admin']]) t.doesNotThrow(() => checkManagerRoles(NAMES, roles))
  t.doesNotThrow(() => checkManagerRoles(DEFAULT_ROLE_NAMES))
})

t.test('which passwords are refused', async (t) => {
  const check = createPasswordRules({ min: 8, serviceName: 'Acme Straße' })
  const ann = { account: 'ann.lee@example.com', email: 'Ann@Home.example' }
  for (const [password, reason] of [
    ['', 'short'], ['1234567', 'short'], ['\u{1F600}'.repeat(7), 'short'], ['password', 'common'], ['ＰａｓｓＷｏｒｄ', 'common'],
    ['ANN.LEE@example.com', 'name'], ['ann@home.EXAMPLE', 'name'], ['ACME STRASSE', 'name']
  ] as const) await t.rejects(check(password, ann), { code: 'ErrParam', reason }, password)
  await t.rejects(check('\ud800 is no character', ann), { code: 'ErrParam', message: 'password: must be well-formed Unicode' })
  for (const password of ['wide orange lamp', '        ', '\u{1F600}'.repeat(8), 'password orange', 'x'.repeat(1000)]) t.equal(await check(password, ann), password)
  const lax = createPasswordRules({ min: 1 })
  for (const password of ['p', 'password', 'ann.lee@example.com']) t.equal(await lax(password, ann), password)
  await t.rejects(lax('', ann), { code: 'ErrParam', reason: 'short' })
  const plain = createPasswordRules({ min: 2 })
  t.equal(await plain('wide orange lamp', { account: '' }), 'wide orange lamp')
  await t.rejects(plain('ann', { account: 'ann' }), { code: 'ErrParam', reason: 'name' })
  await t.rejects(plain('qwerty', { account: '' }), { code: 'ErrParam', reason: 'common', message: 'password: is one of the most common passwords' })
})

t.test('addresses: which are somebody\'s alone, and where mails go', async (t) => {
  t.strictSame(listAddresses('ann', 'ann@example.com'), ['ann@example.com'])
  t.strictSame(listAddresses('ann@example.com', 'ann@example.com'), ['ann@example.com'])
  t.strictSame(listAddresses('ann@example.com', 'other@example.com'), ['ann@example.com', 'other@example.com'])
  t.strictSame(listAddresses('ann'), [])
  t.equal(findMailbox({ account: 'ann', email: 'ann@example.com' }), 'ann@example.com')
  t.equal(findMailbox({ account: 'ann@example.com', email: 'other@example.com' }), 'other@example.com')
  t.equal(findMailbox({ account: 'ann@example.com' }), 'ann@example.com')
  t.equal(findMailbox({ account: 'ann' }), undefined)
  const { users, records } = await openRules(t)
  const { user_id } = await users.create({ data: { account: 'ann@example.com', password: 'p' } })
  for (const account of ['ann@example.com', 'ANN@example.com']) {
    t.equal(await isTaken(records.users, account), true)
    t.equal(await isTaken(records.users, account, user_id), false, "the user's own")
    t.equal(await isTaken(records.users, account, 'another'), true)
  }
  t.equal(await isTaken(records.users, 'bob@example.com'), false)
  await records.users.update(user_id, { set: { email: 'new@example.com', addresses: ['ann@example.com', 'new@example.com'] } })
  t.match(await users.verify('NEW@example.com', 'p'), { user_id })
  await t.rejects(users.create({ data: { account: 'new@example.com', password: 'p' } }), { code: 'USER_EXIST' })
})

async function openAnn (t: Test, options: Parameters<typeof openRules>[1] = {}) {
  const events: Happening[] = []
  const rules = await openRules(t, { record: (happening) => { events.push(happening) }, ...options })
  const { user_id } = await rules.users.create({ data: { account: 'ann', password: 'old' } })
  return { ...rules, user_id, events, patch: async (body: Parameters<typeof rules.users.patch>[1], actor = ADMIN) => await rules.users.patch(user_id, body, actor) }
}

t.test('the events of a user', async (t) => {
  const { users, patch, events, user_id: id } = await openAnn(t)
  t.strictSame(events.splice(0), [{ type: 'user.created', id, granted: [] }])
  await users.create({ data: { account: 'root', password: 'p' } }, { id: 'root', roles: { admin: true, clerk: true } })
  t.strictSame(events.splice(0), [{ type: 'user.created', id: 'root', granted: ['admin', 'clerk'] }])
  await patch({ data: { name: 'Ann', info: { a: 1 }, roles: { clerk: true, guest: true } } })
  t.match(await users.require(id), { name: 'Ann', info: { a: 1 }, roles: { clerk: true, guest: true } })
  t.strictSame(events.splice(0), [{ type: 'user.updated', id, changed: ['info', 'name'] }, { type: 'user.roles_changed', id, granted: ['clerk', 'guest'], removed: [] }])
  await patch({ data: { roles: { clerk: { desk: 1 }, boss: true } } }, MANAGER)
  t.strictSame(events.splice(0), [{ type: 'user.roles_changed', id, granted: ['boss'], removed: ['guest'] }])
  await patch({ data: { password: 'new' } })
  t.strictSame(events.splice(0), [{ type: 'user.password_changed', id }])
  await patch({ data: { verified_at: BEGIN } })
  t.strictSame(events.splice(0), [{ type: 'user.updated', id, changed: ['verified_at'] }])
  await patch({ disable: false })
  t.strictSame(events.splice(0), [], 'it was not disabled')
  await patch({ disable: true })
  t.strictSame(events.splice(0), [{ type: 'user.disabled', id }])
  await patch({ disable: false })
  t.strictSame(events.splice(0), [{ type: 'user.enabled', id }])
  await users.patchOwn(id, { data: { name: 'Own' } })
  t.strictSame(events.splice(0), [{ type: 'user.updated', id, changed: ['name'] }])
  await users.unlock(id)
  t.strictSame(events.splice(0), [{ type: 'user.unlocked', id }])
  await t.rejects(users.unlock('nobody'), { code: 'ErrNotFound' })
  await users.remove(id, ADMIN)
  t.strictSame(events.splice(0), [{ type: 'user.deleted', id }])
})

t.test('a manager changes roles and the state of a user, and nothing else', async (t) => {
  const { patch, records, user_id, advance } = await openAnn(t)
  advance(1000)
  const data = { name: 'x', info: { a: 1 }, password: 'theirs', verified_at: BEGIN }
  await t.rejects(patch({ data }, MANAGER), { code: 'ErrParam', message: 'body: must contain a change' })
  const before = await records.users.get(user_id)
  await patch({ data: { ...data, roles: { clerk: true } } }, MANAGER)
  t.strictSame(await records.users.get(user_id), { ...before, roles: { clerk: true }, modified_at: '2126-11-21T02:51:01.000Z', revision: 1, link_epoch: 1 }, 'a new role ends links')
  await patch({ disable: true }, MANAGER)
  t.match(await records.users.get(user_id), { disabled_at: '2126-11-21T02:51:01.000Z', epoch: 1 })
  await patch({ disable: false }, MANAGER)
  t.notOk('disabled_at' in (await records.users.get(user_id))!)
  for (const empty of [{}, { data: {} }]) await t.rejects(patch(empty), { code: 'ErrParam', message: 'body: must contain a change' })
})

t.test('an operator\'s mark ends the expiry', async (t) => {
  const { users, records } = await openAnn(t)
  const { user_id } = await users.create({ data: { account: 'guest', password: 'p' }, expired_at: '2130-01-01T01:00:00+01:00' })
  t.match(await records.users.get(user_id), { expired_at: '2130-01-01T00:00:00.000Z', verified_at: undefined })
  await users.patch(user_id, { data: { name: 'x' } }, ADMIN)
  t.match(await records.users.get(user_id), { expired_at: '2130-01-01T00:00:00.000Z' })
  await users.patch(user_id, { data: { verified_at: BEGIN } }, ADMIN)
  t.match(await records.users.get(user_id), { verified_at: BEGIN })
  t.notOk('expired_at' in (await records.users.get(user_id))!)
})

t.test('a new password takes the current one, where the token is not the operator\'s', async (t) => {
  const { users, records, user_id } = await openAnn(t)
  const app: Actor = { user_id, isAdmin: false, isUnrestricted: false }
  const set = (data: object, actor?: Actor) => users.patchOwn(user_id, { data }, actor)
  await t.rejects(set({ password: 'new' }, app), { code: 'ErrParam', message: 'current_password: is required with a new password' })
  await t.rejects(set({ password: 'new', current_password: 'wrong' }, app), { code: 'ErrParam', message: 'current_password: is wrong' })
  await t.rejects(set({ password: 'new', current_password: 'wrong' }), { code: 'ErrParam', message: 'current_password: is wrong' })
  t.match(await records.users.get(user_id), { password: 'strong old', epoch: 0 })
  t.strictSame(await set({ name: 'x', current_password: 'wrong' }, app), { epoch: 0 }, 'nothing to protect')
  t.strictSame(await set({ password: 'new', current_password: 'old' }, app), { epoch: 1 })
  t.strictSame(await set({ password: 'newer' }, { ...app, isUnrestricted: true }), { epoch: 2 })
  t.strictSame(await set({ password: 'newest' }), { epoch: 3 })
  t.notOk('current_password' in (await records.users.get(user_id))!)
  for (const actor of [{ ...app, isUnrestricted: true }, { user_id, isAdmin: true }]) await users.confirm(actor, { password: undefined })
  await users.confirm(app, { password: 'newest' })
  await t.rejects(users.confirm(app, { password: 'old' }), { code: 'ErrParam', message: 'current_password: is wrong' })
  await t.rejects(users.confirm(app, { password: undefined }), { code: 'ErrParam' })
  await t.rejects(users.confirm({ ...app, user_id: 'nobody' }, { password: 'newest' }), { code: 'ErrNotFound' })
  await t.rejects(users.confirm({ ...app, confirm: async () => { throw new Error('revoked') } }, { password: 'newest' }), { message: 'revoked' })
})

t.test('a new password must differ from the account, wherever it is set', async (t) => {
  const { users, user_id, patch } = await openAnn(t, { passwordMin: 2 })
  const refused = { code: 'ErrParam', reason: 'name' }
  await t.rejects(users.create({ data: { account: 'Bobby', password: 'bobby' } }), refused)
  await t.rejects(users.patchOwn(user_id, { data: { password: 'ANN' } }), refused)
  await t.rejects(patch({ data: { password: 'ann' } }), refused)
})

t.test('the changes that end the sessions of a user and notify the clients', async (t) => {
  const told: unknown[] = []
  const { users, patch, tokens, records, user_id } = await openAnn(t, {
    logouts: { enqueueForSession: async () => {}, enqueueForUser: async (...args) => { told.push(args) } }
  })
  const act = async (change: () => Promise<unknown>) => {
    const { epoch } = (await records.users.get(user_id))!
    await tokens.issue({ token: 'token', ttl: 60 }, { user_id, client_id: 'app', user_epoch: epoch, client_epoch: 0 })
    await change()
    await tokens.settle()
    const left = await records.tokens.count()
    for await (const batch of records.tokens.stream({})) for (const { id } of batch) await records.tokens.delete(id)
    return [left, ...told.splice(0)]
  }
  const told_ = (epoch?: number) => [user_id, epoch, { atOnce: true }]
  t.strictSame(await act(() => patch({ data: { name: 'x', roles: {} } })), [1])
  t.strictSame(await act(() => users.patchOwn(user_id, { data: { name: 'y' } })), [1])
  t.strictSame(await act(() => users.patchOwn(user_id, { data: { password: 'new' } })), [0, told_(1)])
  t.strictSame(await act(() => patch({ data: { password: 'newer' } })), [0, told_(2)])
  t.strictSame(await act(() => patch({ disable: true })), [0, told_(3)])
  t.strictSame(await act(() => patch({ disable: false })), [1])
  t.strictSame(await act(() => users.remove(user_id, ADMIN)), [0, told_()])
})

t.test('failed sign-ins are recorded by the name that was typed, and nothing else is', async (t) => {
  const failed: unknown[] = []
  let broken = false
  const { users, user_id, patch } = await openAnn(t, {
    failures: { ...SILENT_FAILURES, recordSignIn: (id, typed, { reason, isKnown }) => { failed.push([id, typed, reason, isKnown]) } },
    passwords: {
      verify: async (password, stored) => {
        if (broken) throw busyError('password hashes')
        return stored === `strong ${password}`
      }
    }
  })
  await users.verify('ann', 'old')
  t.strictSame(failed.splice(0), [])
  await users.verify('Ann', 'wrong')
  await users.signIn('NOBODY', 'old')
  t.strictSame(failed.splice(0), [[user_id, 'ann', 'wrong_password', false], [undefined, 'nobody', 'no_account', false]])
  await patch({ disable: true })
  await users.verify('ann', 'old')
  t.strictSame(failed.splice(0), [[user_id, 'ann', 'disabled', true]], 'known: the password was right')
  await users.verify('ann', 'wrong')
  t.strictSame(failed.splice(0), [[user_id, 'ann', 'wrong_password', false]])
  await patch({ disable: false })
  for (const [account, password] of [['a'.repeat(255), 'old'], ['ann', 'x'.repeat(1025)]] as const) t.equal(await users.verify(account, password), null)
  t.strictSame(failed.splice(0), [], 'texts that are longer than any')
  broken = true
  await t.rejects(users.verify('ann', 'old'), { code: 'ErrBusy' })
  t.strictSame(failed.splice(0), [], 'no fault of the user')
  broken = false
  for (let made = 0; made < 20; made++) await users.verify('ann', 'wrong')
  failed.length = 0
  await t.rejects(users.verify('ann', 'old'), { code: 'ErrLimit', reason: 'paused' })
  t.strictSame(failed.splice(0), [[user_id, 'ann', 'paused', false]], 'one that was not even compared')
})

t.test('the longest names and passwords are compared', async (t) => {
  const { users } = await openAnn(t)
  const account = `${'a'.repeat(64)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.example`
  const longest = 'a'.repeat(254)
  for (const [name, password] of [[longest, 'x'.repeat(1024)], [account.slice(0, 254), 'p']] as const) {
    const { user_id } = await users.create({ data: { account: name, password } })
    t.match(await users.verify(name, password), { user_id })
  }
})

t.test('a browser that is known is not locked out by strangers, until it has failed too often', async (t) => {
  const { users, user_id, patch, records } = await openAnn(t)
  const known = { browser: 'hers', user_id, epoch: 0 }
  const lockOut = async () => {
    for (let made = 0; made < 20; made++) await users.signIn('ann', 'guess')
    await t.rejects(users.signIn('ann', 'old'), { code: 'ErrLimit', reason: 'paused' })
  }
  await lockOut()
  for (const other of [undefined, { ...known, user_id: 'bob' }, { ...known, epoch: 1 }]) {
    await t.rejects(users.signIn('ann', 'old', undefined, other), { code: 'ErrLimit' }, JSON.stringify(other))
  }
  t.match(await users.signIn('ann', 'old', undefined, known), { user_id })
  for (let made = 0; made < 10; made++) t.equal(await users.signIn('ann', 'wrong', undefined, known), null)
  await t.rejects(users.signIn('ann', 'old', undefined, known), { code: 'ErrLimit', reason: 'paused' }, 'as any other browser then')
  await patch({ disable: false })
  t.match(await users.signIn('ann', 'old', undefined, known), { user_id }, 'the count of all is open')
  t.equal(await users.signIn('nobody', 'old', undefined, known), null)
  t.equal((await records.users.get(user_id))?.password, 'strong old')
})

t.test('a failure of the store at a known browser is no reason to try again', async (t) => {
  let broken = false
  let compared = 0
  const { users, user_id } = await openAnn(t, {
    around: ({ collection, method }, run) => {
      if (broken && collection === 'attempts' && method !== 'get') throw storeError(new Error('disk full'))
      if (broken && collection === 'attempts') compared++
      return run()
    }
  })
  broken = true
  await t.rejects(users.signIn('ann', 'old', undefined, { browser: 'hers', user_id, epoch: 0 }), { code: 'ErrDb' })
  t.equal(compared, 1)
})

t.test('wrong current passwords are counted, apart from those of sign-ins', async (t) => {
  const { users, user_id } = await openAnn(t)
  const app: Actor = { user_id, isAdmin: false, isUnrestricted: false }
  for (let made = 0; made < 20; made++) await t.rejects(users.confirm(app, { password: 'wrong' }), { code: 'ErrParam' })
  await t.rejects(users.confirm(app, { password: 'old' }), { code: 'ErrLimit' })
  t.match(await users.verify('ann', 'old'), { user_id })
  for (const open of [() => users.patch(user_id, { disable: false }, ADMIN), () => users.unlock(user_id), () => users.openNewPassword(user_id)]) {
    await open()
    await users.confirm(app, { password: 'old' })
    for (let made = 0; made < 20; made++) await t.rejects(users.confirm(app, { password: 'wrong' }), { code: 'ErrParam' })
    await t.rejects(users.confirm(app, { password: 'old' }), { code: 'ErrLimit' })
  }
  await users.patch(user_id, { disable: false }, MANAGER)
  await users.patch(user_id, { data: { name: 'x' } }, ADMIN)
  await t.rejects(users.confirm(app, { password: 'old' }), { code: 'ErrLimit' }, 'nobody opened it')
  await users.openNewPassword('nobody')
})
