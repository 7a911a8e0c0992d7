import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Json } from '../../lib/store/port.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { withoutIds } from '../oidc/browser.ts'
import { type Harness, askCode, eachStore } from '../oidc/harness.ts'
import { addUser } from '../pages/visits.ts'
import { answerOf, readError, through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const ONLY = /with Test only/
const OPERATOR = { user_id: 'operator', isAdmin: true }

function openPeople (harness: Harness) {
  const { kit, browser } = harness
  const users = kit.app.identity.store.collection<UserRecord>('users')
  return {
    users,
    read: async (user_id: string) => (await users.get(user_id))!,
    /** Signs in with a password, as somebody who has chosen to. */
    enter: async ({ account, password }: { account: string, password: string }) => await (await browser().open('/account/sign-in')).submit({ account, password, direct: 'yes' }),
    async enterAs (sub: string, email: string) {
      kit.upstream({ sub, email, email_verified: true })
      return await through(browser(), START)
    },
    async add (account: string, fields: Record<string, Json> = {}) {
      const user = await addUser(harness, account)
      await users.update(user.user_id, { set: fields })
      return user
    },
    now: () => new Date(kit.clock.now()).toISOString()
  }
}

eachStore(t, 'people whom the operator made and one upstream claims', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { domains: ['corp.example'], only: true, create: true } })
  const { kit, browser } = harness
  const { users, read, enter, enterAs, add, now } = openPeople(harness)
  const { accounts, ways, users: service } = kit.app.identity

  for (const [name, account, fields] of [
    ['by a name, without an address', 'otto@corp.example', {}],
    ['by an address that nobody has proved', 'otto-2', { email: 'otto-2@corp.example', addresses: ['otto-2@corp.example'] }]
  ] as [string, string, Record<string, Json>][]) {
    // Whoever knew the password that an administrator has given, or made the account with this address, was in it until now.
    await t.test(`${name}: what was there before goes with the first sign-in`, async (t) => {
      const user = await add(account, { ...fields, invited_at: now(), enrol_ticket: 'x', first_factors: [{ ticket: 'x', until: '2999-01-01T00:00:00.000Z', ways: [] }] })
      const address = (fields['email'] ?? account) as string
      t.match(readError(await enter(user)), ONLY)
      const before = await kit.mint({ user: user.user_id, scopes: ['account:read'] })
      t.equal((await kit.inject({ url: '/api/v1/user', headers: before.headers })).statusCode, 200)
      await users.update(user.user_id, { set: { email: 'for a moment@other.example' }, increment: { revision: 1 } })
      await users.update(user.user_id, fields['email'] === undefined ? { unset: ['email'] } : { set: fields })
      await ways.add({ user_id: user.user_id, epoch: null }, { kind: 'totp', material: { step: 1 } })
      await ways.add({ user_id: user.user_id, epoch: null }, { kind: 'passkey', key: `key of ${account}`, uv: true, rp: '127.0.0.1', material: {} })
      await ways.add({ user_id: user.user_id, epoch: null }, { kind: 'upstream', upstream: 'another', issuer: 'https://other.example', key: `identity of ${account}`, material: { issuer: 'https://other.example', subject: '1' } })
      await accounts.sendVerification(user.user_id)
      const { link } = await kit.mails.next({ to: address })
      const page = await enterAs(`sub of ${account}`, address)
      t.match(page.title, /Profile/, readError(page))
      const record = await read(user.user_id)
      t.match(record, { account, email: address, email_verified_at: String, addresses: [address] })
      t.strictSame(Object.values(record.ways!).map(({ kind, upstream }) => [kind, upstream]), [['upstream', 'test']])
      for (const field of ['password', 'has_factor', 'invited_at', 'enrol_ticket', 'first_factors', 'address_changes']) t.notOk(Object.hasOwn(record, field), field)
      t.strictSame(record.way_keys?.length, 1)
      t.match(record.lost_identities, [{ upstream: 'another' }])
      t.equal((await kit.inject({ url: '/api/v1/user', headers: before.headers })).statusCode, 401, 'all sessions and tokens end')
      t.match((await browser().open(link!)).text, /no longer valid|was used|expired/, 'and the links')
      const mail = await kit.mails.next({ to: address })
      t.match(mail.subject, /you now sign in with Test/)
      t.match(mail.text, /Your password and your other sign-in methods were removed/)
      const types = (await kit.events.list({ user: user.user_id })).map(({ type }) => type)
      for (const type of ['identity.linked', 'identity.unlinked', 'user.verified', 'user.sessions_ended'] as const) t.ok(types.includes(type), type)
      t.match((await enterAs(`the next ${account}`, address)).text, /give them this code/, 'and the account has its owner now')
    })
  }

  await t.test('an account with another address is claimed, and never joined by its name', async (t) => {
    const user = await add('una@corp.example', { email: 'una@private.example', email_verified_at: now(), addresses: ['una@corp.example', 'una@private.example'] })
    t.match(readError(await enter(user)), ONLY, 'the name is enough to be claimed')
    t.match(readError(await enterAs('a colleague', 'una@corp.example')), /belongs to another account/)
    t.notOk((await read(user.user_id)).ways)
    await users.update(user.user_id, { unset: ['email_verified_at'] })
    t.match(readError(await enterAs('a colleague', 'una@corp.example')), /belongs to another account/, 'nor where nobody has proved it')
  })

  await t.test('two matches are none', async (t) => {
    const one = await add('vic@corp.example', { email: 'vic@corp.example', email_verified_at: now() })
    const two = await add('vic-2', { email: 'vic@corp.example', addresses: [] })
    await users.update(one.user_id, { unset: ['addresses'] })
    await users.update(two.user_id, { set: { addresses: ['vic@corp.example'] } })
    t.match(readError(await enterAs('vic', 'vic@corp.example')), /belongs to another account/)
    for (const { user_id } of [one, two]) t.notOk((await read(user_id)).ways)
    t.ok((await read(one.user_id)).password)
  })

  await t.test('an account that has lost an identity there asks an administrator first', async (t) => {
    const user = await add('wim@corp.example')
    const { id } = await ways.add({ user_id: user.user_id, epoch: null }, { kind: 'upstream', upstream: 'test', issuer: kit.upstream.issuer, key: 'of wim before', material: { issuer: kit.upstream.issuer, subject: 'x' } })
    await ways.change(user.user_id, () => ({ remove: [id] }))
    t.match(readError(await enterAs('wim', 'wim@corp.example')), /give them this code/)
    t.ok((await read(user.user_id)).password, 'nothing has changed')
  })

  await t.test('administrators and services are excepted, and a disabled account stays closed', async (t) => {
    for (const role of ['admin', 'service']) {
      const user = await add(`${role}@corp.example`, { roles: { [role]: true } })
      t.match((await enter(user)).title, /Profile/, role)
      t.match((await enterAs(role, user.account)).text, /An account with your email address already exists/)
    }
    const user = await add('xena@corp.example', { disabled_at: now() })
    t.match(readError(await enterAs('xena', user.account)), /find an account for this sign-in/)
    t.match(await read(user.user_id), { password: String })
    t.notOk((await read(user.user_id)).ways, 'and nothing is joined to it')
  })

  await t.test('of two first sign-ins at once one joins', async (t) => {
    const user = await add('yan@corp.example')
    kit.upstream({ sub: 'yan', email: user.account, email_verified: true })
    const pages = await Promise.all(Array.from({ length: 4 }, () => through(browser(), START)))
    t.ok(pages.some((page) => /Profile/.test(page.title)))
    t.equal(Object.keys((await read(user.user_id)).ways!).length, 1)
    t.match((await through(browser(), START)).title, /Profile/)
  })

  await t.test('an app goes on', async (t) => {
    const user = await add('zoe@corp.example')
    const app = await harness.register()
    kit.upstream({ sub: 'zoe', email: user.account, email_verified: true })
    const tab = browser()
    t.match((await through(tab, await tab.open(askCode(app).url))).left?.searchParams.get('code'), /./)
  })

  await t.test('whoever is held gets a link to the sign-in, and none for a password', async (t) => {
    const user = await add('abe@corp.example')
    await (await browser().open('/account/forgot')).submit({ typed: user.account })
    t.match((await kit.mails.next({ to: user.account })).link, /\/account\/sign-in$/)
    await accounts.recoverUser(user.user_id, OPERATOR)
    t.match((await kit.mails.next({ to: user.account })).link, /\/account\/sign-in$/)
    await users.update(user.user_id, { set: { account: 'abe', held_by: 'test' }, unset: ['addresses'] })
    t.match((await accounts.recoverUser(user.user_id, OPERATOR)).link, /\/account\/sign-in$/, 'also where it is handed over')
  })

  await t.test('the undo of an address never leads out', async (t) => {
    const user = await add('bob', { email: 'bob@private.example', email_verified_at: now(), addresses: ['bob@private.example'] })
    t.match((await enter(user)).title, /Profile/)
    await accounts.changeAddress(user.user_id, 'bob@corp.example')
    await accounts.verifyAddress((await kit.mails.next({ to: 'bob@corp.example' })).token!, user.user_id)
    const undo = await kit.mails.next({ to: 'bob@private.example' })
    await enterAs('bob', 'bob@corp.example')
    await accounts.undo(undo.token!)
    t.match(await read(user.user_id), { email: 'bob@private.example', held_by: 'test' })
    const mails = [await kit.mails.next({ to: 'bob@private.example' })]
    t.match(mails[0], { subject: /recent changes were undone/, link: /\/account\/sign-in$/ })
    await accounts.forgotPassword('bob', { ip: '192.0.2.1' })
    t.match((await kit.mails.next({ to: 'bob@private.example' })).link, /\/account\/sign-in$/)
    await service.patch(user.user_id, { data: { email: 'bob@elsewhere.example' } }, OPERATOR)
    t.notOk((await read(user.user_id)).held_by, 'an administrator takes it away')
  })
})

eachStore(t, 'an address in a domain that one upstream claims', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { domains: ['corp.example'], only: true, create: true } })
  const { kit, browser } = harness
  const { add, enterAs } = openPeople(harness)
  const app = await harness.register()
  const begin = async (account: string, from = '/account/sign-in') => await (await browser().open(from)).submit({ account, password: 'whatever it is' })

  await t.test('leads to its provider before any password is compared, and says the same of every account', async (t) => {
    const known = await add('yara@corp.example')
    const hashed = await add('zoe@corp.example')
    const pages = []
    for (const account of [known.account, 'nobody@corp.example', ' ZOE@Corp.Example ']) {
      const page = await begin(account)
      t.equal(page.response.status, 200)
      t.match(page.text, /You sign in to .* with <bdi>Test<\/bdi>/)
      t.match(page.text, `href="${START}?login_hint=`)
      pages.push(withoutIds(page.text).replaceAll(/name="xsrf" value="[^"]*"/g, '').replaceAll(account.trim(), '').replaceAll(encodeURIComponent(account.trim()), ''))
    }
    t.equal(new Set(pages).size, 1)
    t.equal((await kit.events.list({ user: hashed.user_id, type: 'sign_in.failed' })).length, 0)
    t.equal((await enterAs('yara', known.account)).title, 'Profile')
  })

  await t.test('in the sign-in to an app too, and comes back to it', async (t) => {
    const tab = browser()
    const page = await (await tab.open(askCode(app).url)).submit({ account: 'yara@corp.example', password: 'x' })
    kit.upstream({ sub: 'yara', email: 'yara@corp.example', email_verified: true })
    const href = /<a class="button primary" href="([^"]*)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const { left } = await tab.open(href)
    t.equal(left?.searchParams.get('login_hint'), 'yara@corp.example')
    t.ok((await tab.open(await answerOf(left))).left?.searchParams.get('code'))
    const cancelled = await (await (await browser().open(askCode(app).url)).submit({ account: 'yara@corp.example', password: 'x' })).submit({ cancel: 'yes' })
    t.equal(cancelled.error, 'access_denied')
  })

  await t.test('whom the rule does not concern goes on with a password, and an address elsewhere is not led anywhere', async (t) => {
    const user = await add('root@corp.example', { roles: { admin: true } })
    const asked = await (await begin(user.account)).submit({ direct: 'ask' })
    t.match(asked.text, `value="${user.account}"`, 'the address is filled in')
    const wrong = await asked.submit({ account: user.account, password: 'wrong' })
    t.match(readError(wrong), en.errors.wrongPassword)
    t.equal((await wrong.submit({ account: user.account, password: user.password })).title, 'Profile')
    t.match(readError(await begin('nobody@other.example')), en.errors.wrongPassword)
    t.match(readError(await begin('a name')), en.errors.wrongPassword)
  })
})

t.test('an address is led nowhere in the sign-in to an app that its provider is not for', async (t) => {
  const { startHarness } = await import('../oidc/harness.ts')
  const harness = await startHarness(t, { upstream: { domains: ['corp.example'], only: true, clients: ['another'] } })
  const page = await (await harness.browser().open(askCode(await harness.register()).url)).submit({ account: 'yara@corp.example', password: 'x' })
  t.match(readError(page), en.errors.wrongPassword)
})
