import t from 'tap'
import { TOTP } from 'otpauth'
import type { IdentityOptions } from '../../index.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { CredentialRecord } from '../../lib/way.ts'
import type { TestKit } from '../../testing/index.ts'
import { forEachStore, build } from '../helpers/build.ts'
import { createCli } from '../helpers/cli.ts'
import { callAs, signIn } from '../helpers/people.ts'

const STEP_UP = { status: 401, body: { code: 'ErrUnknown' }, headers: { 'www-authenticate': /^Bearer error="insufficient_user_authentication", error_description="[^"]+", acr_values="mfa", max_age="600"$/ } }
const SECURITY = ['account:read', 'account:write', 'account:security']
const LOST = { status: 404, body: { code: 'ErrNotFound' } }
const PASSWORD = 'the password'
const KEY = Buffer.alloc(32, 7).toString('base64')

const usersOf = ({ app }: TestKit) => app.identity.store.collection<UserRecord>('users')

/** Adds an authenticator app with recovery codes, as the account pages do. */
async function enrol (kit: TestKit, user_id: string) {
  const { ways, factors } = kit.app.identity
  const { epoch, account } = (await usersOf(kit).get(user_id))!
  const actor = { user_id, epoch }
  const { id, seed } = await factors.beginTotp(actor, account, 'Phone')
  const prove = async () => await factors.proveTotp(actor, id, new TOTP({ secret: seed }).generate({ timestamp: kit.clock.now() }))
  if (!await prove()) throw new Error('the code is right')
  const { id: set, codes } = await factors.prepareCodes(actor)
  await ways.name(actor, [id, set])
  return { id, seed, codes }
}

/** Begins a sign-in by the password. */
const begin = async (kit: TestKit, user_id: string) => {
  const { epoch } = (await usersOf(kit).get(user_id))!
  return { user_id, epoch, proofs: [{ way: 'password', kind: 'password' as const, at: new Date(kit.clock.now()).toISOString() }] }
}

async function makePerson (kit: TestKit, token: Parameters<TestKit['mint']>[0] = {}) {
  const person = await kit.mint()
  await usersOf(kit).update(person.user_id, { set: { password: (await usersOf(kit).get(person.user_id))!.password || '$2b$04$x' } })
  return { ...person, ...callAs(kit, (await kit.mint({ user: person.user_id, ...token })).headers), as: async (asked: typeof token) => callAs(kit, (await kit.mint({ user: person.user_id, ...asked })).headers) }
}

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { heldFactors, ways, store } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })
  const happenedTo = async (user: string) => (await kit.events.list({ user })).map(({ type }) => type).filter((type) => /^(factor|user\.sessions)/.test(type))

  await t.test('a person sees their factors, without a seed or a code', async (t) => {
    const ann = await makePerson(kit, { scopes: SECURITY })
    t.strictSame((await ann.get('/user/factors')).body, { data: { factors: [], recovery_codes: 0 } })
    const { id, seed, codes } = await enrol(kit, ann.user_id)
    const reply = await ann.get('/user/factors')
    t.match(reply.body, { data: { factors: [{ factor_id: id, kind: 'totp', name: 'Phone', created_at: /Z$/ }], recovery_codes: 10 } })
    t.strictSame(Object.keys((reply.body.data as { factors: object[] }).factors[0]!).filter((key) => !['factor_id', 'kind', 'name', 'created_at', 'last_used_at'].includes(key)), [])
    const { sealed = 'none' } = (await store.collection<CredentialRecord>('credentials').get(id))!
    for (const secret of [seed, sealed, ...codes]) t.notOk(JSON.stringify(reply.body).includes(secret))
    for (const [path, api] of [['/user', ann], [`/user/${ann.user_id}`, admin], [`/user/list?account=${ann.account}`, admin]] as const) {
      t.notMatch(JSON.stringify((await api.get(path)).body), /way|factor|totp/, `${path} has no new field`)
    }
    t.match(await (await ann.as({ scopes: ['account:read', 'account:write'] })).get('/user/factors'), { status: 403 })
  })

  await t.test('a factor is removed with a fresh sign-in by factor, and by nothing less', async (t) => {
    const ann = await makePerson(kit)
    const { id } = await enrol(kit, ann.user_id)
    const path = `/user/factors/${id}`
    for (const token of [{ scopes: SECURITY }, { scopes: SECURITY, acr: '1' as const }]) t.match(await (await ann.as(token)).delete(path), STEP_UP)
    const old = await ann.as({ scopes: SECURITY, acr: 'mfa' })
    kit.clock.advance(601_000)
    t.match(await old.delete(path), STEP_UP, 'a sign-in of eleven minutes ago')
    t.match(await (await ann.as({ scopes: ['account:write'], acr: 'mfa' })).delete(path), { status: 403 })
    t.match(await (await makePerson(kit, { scopes: SECURITY, acr: 'mfa' })).delete(path), LOST, 'of somebody else')
    const fresh = await ann.as({ scopes: SECURITY, acr: 'mfa' })
    for (const other of ['none', ...Object.entries((await usersOf(kit).get(ann.user_id))!.ways!).filter(([, { kind }]) => kind === 'recovery').map(([one]) => one)]) {
      t.match(await fresh.delete(`/user/factors/${other}`), LOST, 'recovery codes are no factor')
    }
    t.match(await fresh.send({ method: 'DELETE', url: `${path}?end_sessions=true` }), { status: 400 })
    t.match(await fresh.delete(`${path}?end_sessions=false`), { status: 204 })
    t.strictSame((await fresh.get('/user/factors')).body, { data: { factors: [], recovery_codes: 0 } }, 'the session goes on, and the codes went too')
    t.match(await fresh.delete(path), LOST)
    t.strictSame(await happenedTo(ann.user_id), ['factor.removed'])
    const { id: second } = await enrol(kit, ann.user_id)
    t.match(await fresh.delete(`/user/factors/${second}`), { status: 204 })
    t.match(await fresh.get('/user/factors'), { status: 401 }, 'otherwise all sessions end')
    t.strictSame(await happenedTo(ann.user_id), ['factor.removed', 'factor.removed', 'user.sessions_ended'])
  })

  await t.test('an administrator resets the factors of somebody else', async (t) => {
    const ann = await makePerson(kit)
    const { id } = await enrol(kit, ann.user_id)
    const path = `/user/${ann.user_id}/factors/reset`
    for (const role of ['manager', 'service', 'editor']) t.match(await (await signIn(kit, { roles: [role] })).post(path), { status: 403 }, role)
    t.match(await ann.post(path), { status: 403 }, 'their own')
    t.match(await (await ann.as({ scopes: ['users:write'] })).post(path), { status: 403 })
    t.match(await admin.post(`/user/${admin.user_id}/factors/reset`), { status: 403, body: { message: /^userId: another administrator/ } })
    t.match(await admin.post('/user/nobody/factors/reset'), LOST)
    t.strictSame((await admin.post(path)).body, { data: { removed: 1 } })
    t.match(await ann.get('/user'), { status: 401 }, 'their sessions end')
    t.equal(await store.collection('credentials').get(id), null)
    t.strictSame([(await usersOf(kit).get(ann.user_id))!.ways], [undefined])
    t.strictSame((await admin.post(path)).body, { data: { removed: 0 } }, 'again')
    t.strictSame(await happenedTo(ann.user_id), ['factor.reset', 'user.sessions_ended', 'factor.reset', 'user.sessions_ended'])
  })

  await t.test('users without a factor, or with one, are listed and counted', async (t) => {
    const [ann, bob] = [await makePerson(kit), await makePerson(kit)]
    await enrol(kit, ann.user_id)
    const list = async (query: string) => {
      const { body } = await admin.get<{ data: { user_id: string }[] }>(`/user/list?limit=0&sort=created:desc&${query}`)
      t.match((await admin.get(`/user/count?${query}`)).body, { data: { count: body.data.length } }, query)
      return body.data.map(({ user_id }) => user_id).filter((id) => [ann.user_id, bob.user_id].includes(id))
    }
    t.strictSame(await list('factor=any'), [ann.user_id])
    t.strictSame(await list('factor=none'), [bob.user_id])
    t.strictSame(await list(`factor=none&account=${ann.account}`), [])
    t.strictSame(await list(`factor=any&account=${ann.account}`), [ann.user_id])
    t.strictSame(await list(`factor=any&contains=${bob.account}`), [])
    t.match(await admin.get('/user/list?factor=some'), { status: 400 })
    await admin.post(`/user/${ann.user_id}/factors/reset`)
    t.strictSame((await list('factor=none')).sort(), [ann.user_id, bob.user_id].sort())
  })

  await t.test('an enrolment that was begun before a reset fails after it', async (t) => {
    const ann = await makePerson(kit)
    const { epoch, account } = (await usersOf(kit).get(ann.user_id))!
    const actor = { user_id: ann.user_id, epoch }
    const { id, seed } = await kit.app.identity.factors.beginTotp(actor, account)
    await heldFactors.reset(ann.user_id, { user_id: 'operator', isAdmin: true })
    await kit.app.identity.factors.proveTotp(actor, id, new TOTP({ secret: seed }).generate({ timestamp: kit.clock.now() })).catch(() => {})
    await t.rejects(ways.name(actor, [id]), { code: 'ErrUnknown' })
  })
})

const POLICIES: [IdentityOptions['factors'] & unknown, plain: object, ops: object][] = [
  ['optional', { may: true }, { may: true }],
  ['off', { may: true }, { may: true }],
  ['required', { may: false, because: 'missing' }, { may: false, because: 'missing' }],
  [{ roles: ['ops'] }, { may: true }, { may: false, because: 'missing' }]
]

t.test('the option factors says who needs a second factor, whichever road leads to a session', async (t) => {
  for (const [factors, plain, ops] of POLICIES) {
    const name = JSON.stringify(factors)
    const kit = await build(t, { factors })
    const { maySignIn, ways } = kit.app.identity
    for (const [roles, expected] of [[[], plain], [['ops'], ops]] as const) {
      const { user_id } = await kit.mint({ roles: [...roles] })
      await usersOf(kit).update(user_id, { set: { password: 'x' } })
      t.match(await maySignIn(await begin(kit, user_id)), expected, `${name}, ${roles}`)
      if (factors === 'off') {
        await t.rejects(enrol(kit, user_id), { code: 'ErrPerm', message: 'way: two-factor authentication is off, and no method can be added' })
        await t.rejects(ways.add(await begin(kit, user_id), { kind: 'passkey', material: {} }), { code: 'ErrPerm' })
        continue
      }
      await enrol(kit, user_id)
      t.match(await maySignIn(await begin(kit, user_id)), { may: false, because: 'below', demanded: 'mfa' }, `${name}: whoever has one needs it`)
    }
  }
})

t.test('with factors off, those that exist still count', async (t) => {
  const database = `sqlite:${t.testdir()}/identity.db`
  const before = await build(t, { database })
  const { user_id } = await before.mint()
  await usersOf(before).update(user_id, { set: { password: 'x' } })
  await enrol(before, user_id)
  await before.close()
  const after = await build(t, { database, factors: 'off' })
  t.match(await after.app.identity.maySignIn(await begin(after, user_id)), { may: false, because: 'below', demanded: 'mfa' })
})

t.test('a role that demands a factor ends the sessions of somebody without one', async (t) => {
  const kit = await build(t, { factors: { roles: ['ops', 'chief'] } })
  const give = async (user_id: string, roles: object) => {
    const { epoch: before } = (await usersOf(kit).get(user_id))!
    await kit.app.identity.users.patch(user_id, { data: { roles: roles as Record<string, true> } }, { user_id: 'operator', isAdmin: true })
    return (await usersOf(kit).get(user_id))!.epoch - before
  }
  const ann = await signIn(kit)
  t.equal(await give(ann.user_id, { editor: true }), 0, 'another role')
  t.match(await ann.get('/user'), { status: 200 })
  t.equal(await give(ann.user_id, { editor: true, ops: true }), 1)
  t.match(await ann.get('/user'), { status: 401 })
  t.equal(await give(ann.user_id, { ops: true, chief: true }), 0, 'it was demanded already')
  t.equal(await give(ann.user_id, { editor: true }), 0, 'a role that is taken')
  await enrol(kit, ann.user_id)
  t.equal(await give(ann.user_id, { ops: true }), 0, 'who has a factor')
  t.strictSame((await kit.events.list({ user: ann.user_id, type: 'user.sessions_ended' })).length, 1)
  const bob = await signIn(kit)
  const { epoch } = (await usersOf(kit).get(bob.user_id))!
  await kit.app.identity.users.patch(bob.user_id, { data: { roles: { ops: true }, password: PASSWORD } }, { user_id: 'operator', isAdmin: true })
  t.equal((await usersOf(kit).get(bob.user_id))!.epoch, epoch + 1, 'a write that ends them anyway')
  await t.rejects(build(t, { factors: { roles: [] } }), { message: /^option factors: must be off, optional, required, or / })
})

t.test('sessions in which less was proved end, and others stay', async (t) => {
  const kit = await build(t)
  const { tokenSessions } = kit.app.identity
  const { user_id } = await kit.mint()
  const as = async (acr?: '1' | 'mfa' | 'phr') => callAs(kit, (await kit.mint({ user: user_id, refresh: true, ...(acr && { acr }) })).headers)
  const [weak, strong, best, minted] = [await as('1'), await as('mfa'), await as('phr'), await as()]
  t.equal(await tokenSessions.endBelow(user_id, 'mfa'), 1)
  t.strictSame(await Promise.all([weak, strong, best, minted].map(async (api) => (await api.get('/user')).status)), [401, 200, 200, 200])
  t.equal(await tokenSessions.endBelow(user_id, 'phr'), 1)
  t.strictSame(await Promise.all([strong, best, minted].map(async (api) => (await api.get('/user')).status)), [401, 200, 200])
  t.equal(await tokenSessions.endBelow(user_id, 'phr'), 0)
})

t.test('the command line lists and resets factors, also those of the last administrator', async (t) => {
  const dir = t.testdir()
  const kit = await build(t, { database: `sqlite:${dir}/identity.db`, secretKey: KEY })
  const { user_id, account } = await kit.mint({ roles: ['admin'] })
  const { id } = await enrol(kit, user_id)
  const run = createCli(dir, { IDENTITY_SECRET_KEY: KEY })
  t.match((await run(`user factors list --account ${account} --json`)).json(), { data: [{ factor_id: id, kind: 'totp', name: 'Phone' }] })
  t.match((await run(`user factors list --account ${account}`)).stdout, /^FACTOR_ID +KIND +NAME +CREATED +USED/)
  t.match((await run('user list --no-factor --json')).json(), { data: [] })
  t.match((await run(`user factors reset --account ${account} --json`)).json(), { user_id, account, removed_factors: 1 })
  t.match((await run(`user factors list --account ${account} --json`)).json(), { data: [] })
  t.equal((await run(`user factors list --account ${account}`)).stdout, 'none\n')
  t.match((await run('user list --no-factor --json')).json(), { data: [{ user_id }] })
  const demanding = createCli(dir, { IDENTITY_SECRET_KEY: KEY, IDENTITY_FACTORS: 'roles:admin' })
  t.match((await demanding(`user factors reset --account ${account} --json`)).json(), { removed_factors: 0, sent: false, link: /\/account\/enrol\?token=[\w-]{43}$/ })
  t.match((await demanding(`user factors reset --account ${account}`)).stdout, /Hand the link over/)
  t.match(await run('user factors reset --account nobody'), { code: 1, stderr: '--account: no user has this account' })
  t.match((await run(`sessions end --user ${account} --below mfa --json`)).json(), { users: 1, sessions: 0 })
  t.match((await run('sessions end --all --below mfa --json')).json(), { users: 1, sessions: 0 })
  t.match(await run('sessions end --all --below 1'), { code: 2, stderr: /--below: must be mfa or phr/ })
})
