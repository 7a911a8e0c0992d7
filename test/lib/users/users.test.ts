import t from 'tap'
import { storeError } from '../../../lib/errors.ts'
import { DuplicateKeyError } from '../../../lib/store/port.ts'
import { BEGIN, openRules } from '../../helpers/services.ts'

// What no route shows; test/spec/user*.test.ts has the rules of the interface.

const ADMIN = { user_id: 'admin', isAdmin: true }
const MANAGER = { user_id: 'manager', isAdmin: false }
const NOT_FOUND = { code: 'ErrNotFound', message: 'userId: no such user' }
const newUser = (account: string) => ({ data: { account, password: 'old' } })

t.test('finds a user by id and by account, in any case', async (t) => {
  const { users } = await openRules(t)
  const { user_id } = await users.create(newUser('Ann'))
  const ann = { user_id, account: 'ann', created_at: BEGIN, modified_at: BEGIN, verified_at: BEGIN, roles: {}, name: '', info: {}, attributes: undefined, email: undefined, email_verified_at: undefined, email_verified_by: undefined }
  const { user_id: _, ...profile } = ann
  t.strictSame(await users.get(user_id), ann)
  t.strictSame(await users.require(user_id), ann)
  t.strictSame(await users.getByAccount('ANN'), ann)
  t.strictSame(await users.requireProfile(user_id), profile)
  for (const find of [users.get, users.getByAccount]) t.equal(await find('nobody'), null)
  for (const find of [users.require, users.requireProfile]) await t.rejects(find('nobody'), NOT_FOUND)
  const listed = []
  for await (const batch of users.list()) listed.push(...batch)
  t.strictSame(listed, [ann])
})

t.test('a user who does not exist is not changed and not removed', async (t) => {
  const { users } = await openRules(t)
  for (const data of [{ name: 'x' }, { password: 'x' }]) await t.rejects(users.patchOwn('nobody', { data }), NOT_FOUND)
  await t.rejects(users.patch('nobody', { data: { name: 'x', verified_at: 'never' } }, ADMIN), NOT_FOUND)
  await t.rejects(users.remove('nobody', ADMIN), NOT_FOUND)
})

t.test('create: what bootstrap and the command line give', async (t) => {
  const { users, records } = await openRules(t)
  await users.create(newUser('ann'), { id: 'given', roles: { admin: true }, bootstrap: 'admin' })
  t.strictSame(await records.users.get('given'), {
    id: 'given', created_at: BEGIN, modified_at: BEGIN, verified_at: BEGIN, account: 'ann', roles: { admin: true }, password: 'strong old', operator_password: true, name: '', info: {}, bootstrap: 'admin', administers: true, words: ['ann'], epoch: 0, revision: 0
  })
  const { user_id } = await users.create({ ...newUser('bob'), expired_at: '2127-01-01T00:00:00Z' })
  t.strictSame(Object.keys(await records.users.get(user_id) ?? {}).sort(), [
    'account', 'created_at', 'epoch', 'expired_at', 'id', 'info', 'modified_at', 'name', 'operator_password', 'password', 'revision', 'roles', 'words'
  ], 'fields that are not given are absent')
  await t.rejects(users.create(newUser('eve'), { bootstrap: 'admin' }), DuplicateKeyError, 'the slot is taken, which is not the account')
  await t.rejects(users.create(newUser('eve'), { id: user_id }), DuplicateKeyError)
})

t.test('create: the account is checked before the hash, and the unique index decides', async (t) => {
  let hashes = 0
  let fail = () => {}
  const rules = await openRules(t, {
    around: ({ method }, run) => {
      if (method === 'insert') fail()
      return run()
    },
    passwords: { hash: async () => `strong ${hashes++}` }
  })
  const exists = { code: 'USER_EXIST', message: 'account: a user with this account exists' }
  await rules.users.create(newUser('ann'))
  await t.rejects(rules.users.create(newUser('ANN')), exists)
  t.equal(hashes, 1)
  for (const field of ['account', 'addresses']) {
    fail = () => { throw new DuplicateKeyError(field) }
    await t.rejects(rules.users.create(newUser('bob')), exists, 'another request was first')
  }
  fail = () => { throw storeError(new Error('disk full')) }
  await t.rejects(rules.users.create(newUser('bob')), { code: 'ErrDb' })
})

t.test('the hashes of API calls take turns by the caller, and only while the caller waits', async (t) => {
  const turns: unknown[] = []
  const { users } = await openRules(t, {
    passwords: {
      hash: async (password, turn) => {
        turns.push(turn)
        return `strong ${password}`
      },
      verify: async (_password, _stored, turn) => {
        turns.push(turn)
        return true
      }
    }
  })
  const { signal } = new AbortController()
  const { user_id } = await users.create(newUser('ann'), { actor: { ...ADMIN, signal } })
  const actor = { user_id, isAdmin: false, isUnrestricted: false, signal }
  await users.patchOwn(user_id, { data: { password: 'new', current_password: 'old' } }, actor)
  await users.patch(user_id, { data: { password: 'new' } }, { ...ADMIN, signal })
  await users.patchOwn(user_id, { data: { password: 'new' } })
  t.same(turns, [
    { key: 'user admin', group: 'known', signal }, { key: `user ${user_id}`, group: 'known', signal }, { key: `user ${user_id}`, group: 'known', signal }, { key: 'user admin', group: 'known', signal },
    { key: `user ${user_id}`, group: 'known', signal: undefined }
  ])
})

t.test('an actor who was revoked during the hash changes nothing', async (t) => {
  const { users, records } = await openRules(t)
  const { user_id } = await users.create(newUser('ann'), { actor: ADMIN })
  const confirm = async () => { throw new Error('revoked') }
  const before = await records.users.get(user_id)
  await t.rejects(users.create(newUser('bob'), { actor: { ...ADMIN, confirm } }), /revoked/)
  await t.rejects(users.patchOwn(user_id, { data: { password: 'new' } }, { user_id, isAdmin: false, epoch: 0, confirm }), /revoked/)
  await t.rejects(users.patch(user_id, { data: { password: 'new' } }, { ...ADMIN, confirm }), /revoked/)
  t.equal(await records.users.count(), 1)
  t.strictSame(await records.users.get(user_id), before)
  await users.patchOwn(user_id, { data: { password: 'new' } }, { user_id, isAdmin: false, epoch: 0 })
  await t.rejects(users.patchOwn(user_id, { data: { password: 'newer' } }, { user_id, isAdmin: false, epoch: 0 }), { code: 'ErrUnknown' })
  t.match(await records.users.get(user_id), { password: 'strong new', epoch: 1, revision: 1 })
})

t.test('a caller who may not change the target is refused before any other check', async (t) => {
  const { users } = await openRules(t)
  const { user_id } = await users.create(newUser('root'), { roles: { admin: true } })
  const confirm = () => { t.fail('asked again') }
  const wrong = { clerk: false } as unknown as Record<string, true>
  await t.rejects(users.patch(user_id, { data: { roles: wrong } }, { ...MANAGER, confirm }), { code: 'ErrPerm', message: 'userId: only an admin may change an admin' })
  await t.rejects(users.patch(user_id, { data: { roles: wrong } }, ADMIN), { code: 'ErrParam' })
})

t.test('a patch gives up after eight attempts', async (t) => {
  let reads = 0
  const { users, records } = await openRules(t, {
    around: ({ method }, run) => {
      if (method === 'get') reads++
      return method === 'update' ? null : run()
    }
  })
  const { user_id } = await users.create(newUser('ann'))
  await t.rejects(users.patchOwn(user_id, { data: { info: { key: 'x' } } }), { code: 'ErrBusy', statusCode: 503, headers: { 'retry-after': '1' } })
  t.equal(reads, 8)
  t.match(await records.users.get(user_id), { name: '', revision: 0 })
})

t.test('who may sign in', async (t) => {
  const compared: unknown[] = []
  const { users, advance } = await openRules(t, {
    passwords: {
      verify: async (password, stored) => {
        compared.push(stored)
        return stored === `strong ${password}`
      }
    }
  })
  const { user_id } = await users.create({ ...newUser('ann'), expired_at: '2126-11-21T02:52:00Z' })
  t.strictSame(await users.signIn('ANN', 'old'), { user_id, epoch: 0 })
  t.match(await users.verify('ann', 'old'), { user_id })
  for (const method of [users.signIn, users.verify]) {
    t.equal(await method('nobody', 'old'), null)
    t.equal(await method('ann', 'wrong'), null)
  }
  t.strictSame(compared.slice(2), [undefined, 'strong old', undefined, 'strong old'], 'a password is compared for an unknown account too')
  await users.patch(user_id, { disable: true }, ADMIN)
  t.equal(await users.signIn('ann', 'old'), null, 'disabled')
  await users.patch(user_id, { disable: false }, ADMIN)
  t.strictSame(await users.signIn('ann', 'old'), { user_id, epoch: 1 })
  advance(60_000)
  t.equal(await users.signIn('ann', 'old'), null, 'expired')
})

t.test('an account that does not exist has no password', async (t) => {
  const { users } = await openRules(t, { passwords: { verify: async () => true } })
  t.equal(await users.signIn('nobody', 'old'), null)
})

t.test('a user is not removed by their own hand', async (t) => {
  const { users } = await openRules(t)
  const { user_id } = await users.create(newUser('ann'))
  await t.rejects(users.remove(user_id, { user_id, isAdmin: true }), { code: 'ErrPerm' })
  await users.remove(user_id, ADMIN)
  t.equal(await users.count(), 0)
})

t.test('a sign-in makes the same store calls and hashes as often for known and unknown accounts', async (t) => {
  const calls: string[] = []
  let isWatched = false
  const { users, tokens, advance } = await openRules(t, {
    around: ({ collection, method }, run) => {
      if (isWatched) calls.push(`${collection}.${method}`)
      return run()
    },
    passwords: { verify: async () => calls.push('verify') < 0 }
  })
  const { user_id } = await users.create({ data: { account: 'ann', password: 'p' } })
  const { user_id: disabled } = await users.create({ data: { account: 'off', password: 'p' } })
  await users.patch(disabled, { disable: true }, { user_id, isAdmin: true })
  await tokens.settle()
  const watch = async (account: string) => {
    calls.length = 0
    isWatched = true
    const outcome = await users.verify(account, 'wrong').catch(({ reason }) => reason)
    isWatched = false
    return [outcome, ...calls]
  }
  for (let made = 0; made < 110; made++) {
    const known = await watch('ann')
    if (made === 0) t.strictSame(known, [null, 'users.getBy', 'users.getBy', 'attempts.get', 'attempts.insert', 'verify'])
    if (made === 1) t.strictSame(known, [null, 'users.getBy', 'users.getBy', 'attempts.get', 'attempts.update', 'verify'])
    if (made === 109) t.strictSame(known, ['closed', 'users.getBy', 'users.getBy', 'attempts.get'])
    for (const account of ['nobody', 'off']) t.strictSame(await watch(account), known, `${account}, attempt ${made}`)
    advance(15 * 60_000)
  }
})

t.test('failures at all names of a user are one count, which is opened for all', async (t) => {
  const { users, records } = await openRules(t, { passwords: { verify: async () => false } })
  const { user_id } = await users.create({ data: { account: 'ann', password: 'p' } })
  const names = ['ann', 'ann@example.com'] as const
  await records.users.update(user_id, { set: { email: names[1], email_verified_at: '2126-01-01T00:00:00.000Z', addresses: [names[1]] } })
  for (let made = 0; made < 20; made++) t.equal(await users.verify(names[made % 2]!, 'wrong'), null, `attempt ${made}`)
  for (const name of names) await t.rejects(users.verify(name, 'wrong'), { code: 'ErrLimit', reason: 'paused' })
  await users.unlock(user_id)
  for (const name of names) t.equal(await users.verify(name, 'wrong'), null)
})

t.test('concurrent changes of roles all take effect', async (t) => {
  const { users } = await openRules(t)
  const { user_id } = await users.create(newUser('ann'))
  await Promise.all(['a', 'b', 'c'].map(async (role) => await users.changeRoles(user_id, (held) => ({ ...held, [role]: true }), ADMIN)))
  t.strictSame((await users.get(user_id))?.roles, { a: true, b: true, c: true })
  await t.rejects(users.changeRoles(user_id, () => ({ admin: true }), MANAGER), { code: 'ErrPerm' })
  await t.rejects(users.changeRoles('nobody', (held) => held, ADMIN), NOT_FOUND)
})
