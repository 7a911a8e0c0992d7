import t, { type Test } from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { KeptLine } from '../../schemas/export.ts'
import { importLines } from '../helpers/import.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { withRoles, lacksRoles, readRoles } from '../../lib/upstreams/claimed-roles.ts'
import { checkUpstreams } from '../../lib/upstreams/settings.ts'
import { countLeft, createRoleChanges } from '../../lib/upstreams/role-changes.ts'
import type { StoredUsers } from '../../lib/users/stored-users.ts'
import type { GivenUpstream, Upstream } from '../../schemas/upstream.ts'
import { type Harness, eachStore } from '../oidc/harness.ts'
import { unique } from '../helpers/people.ts'
import { enrolInSignIn } from '../pages/factors.ts'
import { addUser } from '../pages/visits.ts'
import { answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const DAY = 24 * 60 * 60_000
const REFUSED = /didn’t tell us what you’re allowed to do here/
const UNKNOWN = { message: 'sign-in with an upstream: roles' }
const OPERATOR = { user_id: 'operator', isAdmin: true }

const MAP: NonNullable<GivenUpstream['roles']> = { claim: 'realm_access.roles', map: { clerks: 'clerk', heads: ['clerk', 'head'], bosses: 'admin' } }

type Start = (options?: Parameters<Parameters<Parameters<typeof eachStore>[2]>[1]>[0]) => Promise<Harness>

async function open (start: Start, upstream: Partial<GivenUpstream> = {}, options: object = {}) {
  const harness = await start({ signUp: true, upstream: { roles: MAP, ...upstream }, ...options })
  const { kit } = harness
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const says = (sub: string, roles: unknown, more: object = {}) => kit.upstream({ sub, email: `${sub}@example.com`, email_verified: true, ...(roles !== undefined && { realm_access: { roles } }), ...more })
  const read = async (sub: string) => (await users.getBy('account', `${sub}@example.com`))!
  return {
    ...harness,
    users,
    says,
    read,
    rolesOf: async (sub: string) => Object.keys((await read(sub)).roles).sort(),
    sweep: async () => await kit.app.identity.upstreams!.roleChanges!.sweep(),
    happened: async (sub: string) => (await kit.events.list({ user: (await read(sub)).id })).filter(({ type }) => type.startsWith('user.role')).map(({ type, granted = [], removed = [] }) => `${type} +${granted.join()} -${removed.join()}`),
    /** Signs in with the provider, which says these roles. */
    async enter (sub: string, roles: unknown, more: object = {}) {
      says(sub, roles, more)
      return await through(harness.browser(), START)
    }
  }
}

eachStore(t, 'roles by a claim', async (t, start) => {
  const { kit, users, enter, read, rolesOf, sweep, happened, says, browser } = await open(start)

  await t.test('are what it says at each sign-in, and no other role is touched', async (t) => {
    t.match((await enter('kim', ['clerks', 'unknown', 'admin', '__proto__'])).title, /Profile/)
    t.strictSame(await rolesOf('kim'), ['clerk'])
    await users.update((await read('kim')).id, { set: { roles: { clerk: { desk: 4 }, gardener: true } } })
    await enter('kim', ['heads'])
    t.strictSame((await read('kim')).roles, { clerk: { desk: 4 }, gardener: true, head: true }, 'what a role has stays')
    await enter('kim', 'clerks')
    t.strictSame(await rolesOf('kim'), ['clerk', 'gardener'], 'a text is one value')
    await enter('kim', [])
    t.strictSame(await rolesOf('kim'), ['gardener'], 'an empty claim takes them')
    await users.update((await read('kim')).id, { set: { roles: { head: true } } })
    await enter('kim', [])
    t.strictSame(await rolesOf('kim'), [], 'also one that somebody gave by hand: the map owns it')
    t.strictSame(await happened('kim'), ['user.roles_changed +head -', 'user.roles_changed + -head', 'user.roles_changed + -clerk', 'user.roles_changed + -head'])
  })

  await t.test('an absent claim, or one that was too long, refuses and changes nothing', async (t) => {
    await enter('lea', ['heads'])
    // Without the fields of events, which the relay removes at any time.
    const readLea = async () => {
      const { roles, claimed_roles, modified_at, epoch, ways } = await read('lea')
      return { roles, claimed_roles, modified_at, epoch, ways }
    }
    const before = await readLea()
    for (const [name, roles, more] of [
      ['absent', undefined, {}],
      ['too long to send', undefined, { _claim_names: { realm_access: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph.example' } } }],
      ['both', ['bosses'], { _claim_names: { 'realm_access.roles': 'src1' } }],
      ['an object', { admin: true }, {}],
      ['no texts', [1, null], {}],
      ['inherited', undefined, { realm_access: 'constructor' }]
    ] as const) {
      t.match(readError(await enter('lea', roles, more)), REFUSED, name)
      t.strictSame(await readLea(), before, name)
    }
    t.match(readError(await enter('new', undefined)), REFUSED)
    t.same(await read('new'), null, 'nor is an account made')
    t.match((await enter('lea', ['heads'])).title, /Profile/)
  })

  await t.test('an answer that was overtaken by a later one gives nothing back', async (t) => {
    await enter('max', ['heads'])
    const late = browser()
    says('max', ['heads'])
    // Signed in as somebody else, so that the answer waits for a question.
    await enter('kim', [])
    says('kim', [])
    await through(late, START)
    says('max', ['heads'])
    const question = await through(late, START)
    t.match(question.title, /Switch accounts/)
    kit.clock.advance(1000)
    await enter('max', [])
    t.strictSame(await rolesOf('max'), [])
    await question.submit()
    t.strictSame(await rolesOf('max'), [], 'taken meanwhile')
  })

  await t.test('last until a sweep after the last answer, and only those of a map', async (t) => {
    await enter('nia', ['heads'])
    await users.update((await read('nia')).id, { set: { roles: { clerk: true, head: true, gardener: true } } })
    kit.clock.advance(29 * DAY)
    await sweep()
    t.strictSame(await rolesOf('nia'), ['clerk', 'gardener', 'head'])
    await enter('nia', ['clerks'])
    kit.clock.advance(29 * DAY)
    await sweep()
    t.strictSame(await rolesOf('nia'), ['clerk', 'gardener'], 'counted from the last answer')
    kit.clock.advance(DAY + 1000)
    t.ok(await sweep() > 0)
    t.strictSame(await rolesOf('nia'), ['gardener'])
    t.equal(await sweep(), 0, 'once')
    t.match((await happened('nia')).at(-1), 'user.roles_changed + -clerk')
    await enter('nia', ['clerks'])
    t.strictSame(await rolesOf('nia'), ['clerk', 'gardener'], 'who comes back has them again')
  })

  await t.test('the last administrator keeps theirs, with one event, until there is another', async (t) => {
    await enter('amy', ['bosses'])
    t.match(await read('amy'), { roles: { admin: true }, administers: true })
    await enter('amy', [])
    t.strictSame(await rolesOf('amy'), ['admin'])
    await enter('amy', [])
    kit.clock.advance(31 * DAY)
    await sweep()
    await sweep()
    t.strictSame(await rolesOf('amy'), ['admin'])
    t.equal((await happened('amy')).filter((one) => one.startsWith('user.role_kept')).length, 1)
    await enter('ben', ['bosses'])
    kit.clock.advance(31 * DAY)
    await enter('ben', ['bosses'])
    await sweep()
    t.strictSame([await rolesOf('amy'), await rolesOf('ben')], [[], ['admin']])
    t.notOk((await read('amy')).administers)
  })

  await t.test('a new person has them from the first write on, and so has who was invited', async (t) => {
    await enter('ola', ['clerks'])
    t.match(await read('ola'), { roles: { clerk: true }, claimed_roles: { test: { roles: ['clerk'] } } })
    const account = `${unique('pat')}@example.com`
    await kit.app.identity.accounts.inviteUser({ account }, OPERATOR)
    const { upstreams } = kit.app.identity
    const { id } = (await users.getBy('account', account))!
    const token = (await kit.mails.next({ to: account })).token!
    await upstreams!.identities.accept({ upstream: upstreams!.require('test'), claimed: { issuer: kit.upstream.issuer, subject: account, name: '', both: false, roles: { names: ['head'], at: kit.clock.now() } } }, hashToken(token))
    t.match((await users.get(id))!.roles, { head: true })
  })

  await t.test('an account that is joined by a sign-in to it', async (t) => {
    const harness = { kit, browser } as never
    const person = await addUser(harness, 'quin@example.com')
    const page = await enter('quin', ['clerks'])
    t.match(page.text, /An account with your email address already exists/)
    t.strictSame(await rolesOf('quin'), [], 'nothing before that')
    t.match((await page.submit({ account: person.account, password: person.password })).title, /Profile/)
    t.strictSame(await rolesOf('quin'), ['clerk'])
  })
})

eachStore(t, 'a role by a claim that demands a factor', async (t, start) => {
  const { kit, enter, rolesOf, browser } = await open(start, {}, { factors: { roles: ['head'] } })
  t.match((await enter('kim', [])).title, /Profile/)
  const page = await enter('kim', ['heads'])
  t.match(page.title, /two-step verification/, 'asks for it in the same sign-in')
  t.strictSame(await rolesOf('kim'), ['clerk', 'head'])
  t.match((await enrolInSignIn(kit.clock, page)).page.title, /Profile/)
  const tab = browser()
  t.match((await tab.open(await answerOf(await leave(tab, START)))).title, /verification code/)
})

eachStore(t, 'a role that ends the sessions of a person who is asked whether the browser changes the account', async (t, start) => {
  const { kit, enter, says, rolesOf, read, browser } = await open(start, {}, { factors: { roles: ['head'] } })
  await enter('kim', [])
  await enter('lea', [])
  /** A browser in which lea is signed in, at the question whether it is kim's. */
  async function ask (sub: string) {
    const tab = browser()
    says('lea', [])
    await through(tab, START)
    kit.clock.advance(1000)
    says(sub, ['heads'])
    const question = await through(tab, START)
    t.match(question.title, /Switch accounts/)
    return question
  }

  await t.test('is no end of that sign-in', async (t) => {
    const { epoch } = await read('kim')
    const question = await ask('kim')
    t.equal((await read('kim')).epoch, epoch + 1, 'the role has ended the sessions')
    kit.clock.advance(1000)
    t.match((await question.submit()).title, /two-step verification/)
    t.strictSame(await rolesOf('kim'), ['clerk', 'head'])
  })

  await t.test('which another end is', async (t) => {
    await enter('max', [])
    const question = await ask('max')
    kit.clock.advance(1000)
    await kit.app.identity.tokenSessions.end((await read('max')).id)
    const page = await question.submit()
    t.match(readError(page), /sign-in has expired/i, page.title)
  })
})

eachStore(t, 'an answer that takes over an account, and is asked whether the browser changes to it', async (t, start) => {
  const { kit, enter, says, browser, read } = await open(start, { domains: ['example.com'], only: true })
  await kit.app.identity.users.create({ data: { account: 'otto@example.com', password: 'a long password' } })
  await enter('lea', [])
  const tab = browser()
  says('lea', [])
  await through(tab, START)
  kit.clock.advance(1000)
  says('otto', [])
  const question = await through(tab, START)
  t.match(question.title, /Switch accounts/)
  t.equal((await read('otto')).epoch, 1, 'all sessions from before have ended')
  kit.clock.advance(1000)
  t.match((await question.submit()).title, /Profile/)
})

eachStore(t, 'an administrator by a claim', async (t, start) => {
  const { kit, enter, users, read, browser } = await open(start, { domains: ['example.com'], only: true })
  const byHand = await addUser({ kit, browser } as never, 'root@example.com')
  await users.update(byHand.user_id, { set: { roles: { admin: true }, administers: true, email: byHand.account, email_verified_at: new Date(kit.clock.now()).toISOString() } })
  await enter('amy', ['bosses'])
  const { findOnly } = kit.app.identity.upstreams!
  t.equal(findOnly(await read('amy')), 'test', 'stays under the only way')
  t.equal(findOnly((await users.get(byHand.user_id))!), undefined)
})

eachStore(t, 'a map that changes while people are signed in', async (t, start) => {
  const { kit, enter, read, rolesOf, users } = await open(start)
  const { store } = kit.app.identity
  await enter('kim', ['heads'])
  await enter('lea', ['clerks'])
  const configured = kit.app.identity.upstreams!.require('test')
  const less: Upstream = { ...configured, roles: { ...MAP, map: { clerks: 'clerk' } } }
  t.strictSame(await countLeft(store, [configured]), [])
  t.strictSame(await countLeft(store, [less]), [{ upstream: 'test', role: 'head', count: 1 }])
  t.strictSame((await countLeft(store, [])).sort((one, other) => one.role < other.role ? -1 : 1), [{ upstream: 'test', role: 'clerk', count: 2 }, { upstream: 'test', role: 'head', count: 1 }], 'an upstream that is gone')
  async function changeUser (id: string, decide: Parameters<StoredUsers['changeUser']>[1]): Promise<UserRecord> {
    const record = (await users.get(id))!
    const { set = {}, unset = [] } = (await decide(record))!
    return (await users.update(id, { set, unset, increment: { revision: 1 } }, { equal: { revision: record.revision } }))!
  }
  const changes = createRoleChanges({ stored: { users, changeUser }, upstreams: [less], roles: { admin: 'admin' }, now: kit.clock.now })
  await changes.apply(less, { names: [], at: kit.clock.now() + 1 }, await read('kim'), { upstream: 'test', subject: 'x' })
  t.strictSame(await rolesOf('kim'), ['head'], 'what has left the map stays, and what is in it goes')
  t.strictSame(await countLeft(store, [less]), [{ upstream: 'test', role: 'head', count: 1 }], 'and is still counted')
  kit.clock.advance(100 * DAY)
  await changes.sweep()
  t.strictSame([await rolesOf('kim'), await rolesOf('lea')], [['head'], []], 'no sweep takes it')
  await users.update((await read('kim')).id, { set: { roles: {} } })
  t.strictSame(await countLeft(store, [less]), [], 'until an operator has taken it')
})

eachStore(t, 'an export with hashes', async (t, start) => {
  const { kit, enter, read, rolesOf, sweep, users } = await open(start)
  const { userLines } = kit.app.identity
  await enter('kim', ['heads'])
  const { claimed_roles, roles_at } = await read('kim')
  const line = JSON.parse(await userLines.describe(await read('kim'))) as KeptLine
  const bring = async (kept: object = {}) => {
    // As in another service, which knows neither the person nor what belongs to them.
    await kit.app.identity.store.collection('credentials').deleteMany({ before: { id: '~' } })
    await users.deleteMany({ equal: { account: line.account } })
    return (await importLines(kit.app.identity, [{ ...line, id: unique('kim'), kept: { ...line.kept, ...kept } }], { kept: true, allowRoles: true })).verdicts
  }
  const ahead = new Date(kit.clock.now() + 400 * DAY).toISOString()

  await t.test('says which roles a map has given, and since when', async (t) => {
    t.match(await bring(), [{ result: 'created' }])
    t.match(await read('kim'), { claimed_roles, roles_at, roles: { clerk: true, head: true } })
  })

  await t.test('an answer that is ahead of the clock here counts as one of now', async (t) => {
    t.match(await bring({ claimed_roles: { test: { at: ahead, roles: ['clerk', 'head'] } } }), [{ result: 'created' }])
    t.match(await read('kim'), { claimed_roles: { test: { at: new Date(kit.clock.now()).toISOString() } } })
    kit.clock.advance(1000)
    await enter('kim', ['clerks'])
    t.strictSame(await rolesOf('kim'), ['clerk'])
  })

  await t.test('so that a sweep takes them here too', async (t) => {
    kit.clock.advance(30 * DAY + 1000)
    await sweep()
    t.strictSame(await rolesOf('kim'), [])
    t.notOk((await read('kim')).roles_at)
  })

  await t.test('and what no export has written is refused', async (t) => {
    for (const claimed of [{ test: { at: 'soon', roles: [] } }, { test: { at: ahead, roles: ['x'.repeat(300)] } }, { 'No Id': { at: ahead, roles: [] } }, { test: { at: ahead, roles: [], more: 1 } }]) {
      t.match(await bring({ claimed_roles: claimed }), [{ result: 'refused', field: /^kept\.claimed_roles/ }], JSON.stringify(claimed).slice(0, 60))
    }
  })
})

t.test('where a claim is read', (t) => {
  const of = (claim: string) => ({ roles: { claim, map: { staff: 'clerk' } } })
  const readOf = (claim: string, claims: object) => readRoles(of(claim), claims as never, 0)?.names
  t.strictSame(readOf('https://corp.example/roles', { 'https://corp.example/roles': ['staff'] }), ['clerk'], 'a name with dots')
  t.strictSame(readOf('a.b.c', { a: { b: { c: ['staff'] } } }), ['clerk'])
  t.throws(() => readOf('a.b', { a: ['staff'] }), UNKNOWN)
  t.throws(() => readOf('a.constructor', { a: {} }), UNKNOWN)
  t.throws(() => readOf('groups', { hasgroups: true }), UNKNOWN)
  t.equal(readRoles({}, {}, 0), undefined)
  t.equal(lacksRoles(of('a.b'), { a: {} }), true)
  t.equal(lacksRoles(of('a.b'), { a: {}, _claim_names: { a: 'x' } }), false, 'userinfo is not asked for what was too long')
  t.strictSame(readRoles(of('a.b'), withRoles(of('a.b'), { a: { other: 1 } }, { a: { b: ['staff'] } }), 0)?.names, ['clerk'], 'of userinfo')
  t.strictSame(withRoles(of('a.b'), { a: { b: [] } }, { a: { b: ['staff'] } }), { a: { b: [] } }, 'the ID token comes first')
  t.throws(() => readRoles(of('a'), withRoles(of('a'), {}, { a: ['staff'], _claim_names: { a: 'x' } }), 0), UNKNOWN)
  t.end()
})

t.test('settings', (t: Test) => {
  const given = (id: string, more: object): Upstream => ({ id, kind: 'oidc', issuer: `https://${id}.example`, clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first', ...more })
  const check = (...upstreams: Upstream[]) => () => checkUpstreams(upstreams, { signUp: true })
  const roles = { claim: 'groups', map: { a: 'clerk' } }
  t.doesNotThrow(check(given('one', { roles, roleMax: 300 }), given('two', { roles: { claim: 'groups', map: { a: 'head' } } })))
  t.throws(check(given('one', { roles }), given('two', { roles: { claim: 'x', map: { b: ['head', 'clerk'] } } })), /two: roles\.map: the upstream one gives the role clerk already/)
  t.throws(check(given('one', { roleMax: 300 })), /roleMax: needs roles/)
  t.throws(check(given('one', { kind: 'google', issuer: undefined, roles })), /roles: google has none/)
  t.end()
})
