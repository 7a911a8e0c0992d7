import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Json } from '../../lib/store/port.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { type Harness, askCode, eachStore } from '../oidc/harness.ts'
import { answerOf, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const OPERATOR = { user_id: 'operator', isAdmin: true }
const GONE = /no longer valid|was used|expired/
const STAYS = /You can still use the link you opened/
const OVER = /This sign-in has expired/

/** Chooses a provider on the page of a link. */
async function choose (page: Page, upstream = 'test', headers: Record<string, string> = {}): Promise<Page> {
  const { pathname, searchParams } = new URL(page.response.url)
  return await page.browser.open(pathname, {
    method: 'POST', body: new URLSearchParams({ token: searchParams.get('token') ?? '', upstream }), headers: { origin: page.browser.origin, ...headers }
  })
}

/** Completes a link with a provider, up to the page of ours that follows. */
const complete = async (page: Page, upstream?: string): Promise<Page> => await page.browser.open(await answerOf((await choose(page, upstream)).left))

function openPeople ({ kit, browser }: Harness) {
  const { store, accounts } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  let count = 0
  return {
    users,
    happenedTo: async (user: string) => (await kit.events.list({ user })).map(({ type }) => type).filter((type) => type !== 'mail.sent'),
    /** Somebody who was invited, with the link of the mail, and its page in a new browser. */
    async invite (account = `guest${++count}@example.com`, roles = {}) {
      const { user_id } = await accounts.inviteUser({ account, roles }, OPERATOR)
      const link = (await kit.mails.next({ to: account })).link!
      return { user_id, account, link, page: await browser().open(link) }
    },
    /** Somebody who has asked for an account. */
    async signUp (account = `new${++count}@example.com`) {
      await accounts.signUp(account, { ip: '192.0.2.1' })
      const link = (await kit.mails.next({ to: account })).link!
      return { account, link, page: await browser().open(link) }
    },
    read: async (user_id: string) => (await users.get(user_id))!,
    isLinked: async (user_id: string) => Object.keys((await users.get(user_id))?.ways ?? {}).length > 0,
    /** Whether a link still sets a password. */
    isGood: async (link: string) => /Your account is ready/.test((await (await browser().open(link)).submit({ password: 'a horse too' })).title)
  }
}

eachStore(t, 'an invited person completes by a provider', async (t, start) => {
  const second = await createTestUpstream()
  t.teardown(second.close)
  const apart = { id: 'apart', kind: 'oidc' as const, name: 'Apart', issuer: second.issuer, ...TEST_CLIENT }
  const harness = await start({
    signUp: true,
    factors: { roles: ['ops'] },
    upstream: { create: false },
    upstreams: [{ ...apart, link: 'never' }, { ...apart, id: 'staff', name: 'Staff', emails: 'verified', domains: ['staff.example'] }]
  })
  const { kit, browser } = harness
  const { users, invite, read, isLinked, isGood, happenedTo } = openPeople(harness)

  await t.test('the link is the proof, and is spent by the write that links', async (t) => {
    const { user_id, account, link, page } = await invite()
    t.match(page.text, /<button type="submit" name="upstream" value="test">/)
    t.notMatch(page.text, /value="apart"|<a class="button"/, 'one that never joins an account is not offered, and nothing begins by a link')
    t.match(page.response.headers.get('content-security-policy'), /form-action 'self' http:;/)
    kit.upstream({ sub: 'gia', email: 'private@elsewhere.example', email_verified: true, name: 'Gia' })
    const { left } = await choose(page)
    t.equal(left?.searchParams.get('prompt'), 'login', 'who is signed in there may be somebody else')
    const answer = await answerOf(left)
    t.notMatch(answer, new RegExp(new URL(link).searchParams.get('token')!))
    const done = await page.browser.open(answer)
    t.match(done.title, /Your account is ready/, readError(done))
    t.match(done.text, /the method you just chose/)
    const user = await read(user_id)
    t.match(user, { email: account, email_verified_at: String, account, epoch: 1, upstreams: ' test ', name: '' }, 'the address is the invited one, and the mailed link has proved it')
    t.notOk('invited_at' in user)
    t.same(await users.getBy('addresses', 'private@elsewhere.example'), null)
    t.strictSame((await happenedTo(user_id)).sort(), ['identity.linked', 'user.invited', 'user.verified'])
    t.match((await browser().open(link)).text, GONE)
    t.match((await page.submit({ password: 'a horse too' })).text, GONE)
    t.match((await page.browser.open(answer)).text, OVER, 'nor can the answer be used again')
    t.match((await through(browser(), START)).title, /Profile/, 'from then on the provider is enough')
    t.match((await kit.mails.next({ to: account })).subject, /Test was connected to your account/)
  })

  await t.test('only a form of ours begins it', async (t) => {
    const { user_id, link, page } = await invite()
    kit.upstream({ sub: 'hans' })
    t.equal((await choose(page, 'test', { origin: 'https://evil.example' })).response.status, 403)
    const token = new URL(link).searchParams.get('token')!
    for (const path of [`${START}?token=${token}`, `${START}?link=invite&ticket=${token}`]) t.match(readError(await through(page.browser, path)), /find an account for this sign-in/, 'a link signs in, and completes nothing')
    t.match(readError(await page.browser.open('/account/invitation/upstream')), OVER)
    t.equal(await isLinked(user_id), false)
    t.match((await complete(await page.browser.open(link))).title, /Your account is ready/)
  })

  await t.test('in another browser an answer is nothing', async (t) => {
    const { user_id, link, page } = await invite()
    kit.upstream({ sub: 'iris' })
    const answer = await answerOf((await choose(page)).left)
    const stranger = browser()
    t.match(readError(await stranger.open(answer)), OVER)
    await stranger.open(START)
    t.match(readError(await stranger.open(answer)), OVER)
    const held = await page.browser.fetch(answer)
    t.match(held.headers.get('location'), /\/account\/invitation\/upstream$/)
    t.match(readError(await stranger.open('/account/invitation/upstream')), OVER, 'nor is what another one has proved')
    t.match(readError(await page.browser.open('/account/sign-up/upstream')), OVER, 'and it was proved for this link only')
    t.match(readError(await page.browser.open('/account/sign-in/upstream')), OVER)
    t.equal(await isLinked(user_id), false)
    t.ok(await isGood(link))
  })

  await t.test('two invitations in one browser do not mix', async (t) => {
    const [one, two] = [await invite(), await invite()]
    const page = await one.page.browser.open(two.link)
    kit.upstream({ sub: 'one of two' })
    const first = await answerOf((await choose(one.page)).left)
    kit.upstream({ sub: 'two of two' })
    const last = await answerOf((await choose(page)).left)
    for (const answer of [last, first]) t.match((await page.browser.open(answer)).title, /Your account is ready/)
    const subjects = async (id: string) => (await kit.app.identity.heldIdentities.list(id)).map(({ subject }) => subject)
    t.strictSame([await subjects(one.user_id), await subjects(two.user_id)], [['one of two'], ['two of two']])
  })

  await t.test('an identity of somebody else stays theirs, and the link good', async (t) => {
    const { page: other } = await invite()
    kit.upstream({ sub: 'jack' })
    t.match((await complete(other)).title, /Your account is ready/)
    const { user_id, link, page } = await invite()
    const refused = await complete(page)
    t.match(readError(refused), /belongs to another account/)
    t.match(readError(refused), STAYS)
    t.equal(await isLinked(user_id), false)
    t.ok(await isGood(link))
  })

  await t.test('the rules of the provider hold, and leave the link good', async (t) => {
    const { user_id, link, page } = await invite()
    second({ sub: 'kay', email: 'kay@example.com', email_verified: true })
    const refused = await complete(page, 'staff')
    t.match(readError(refused), /sign in here with your email address at this provider/)
    t.match(readError(refused), STAYS)
    for (const id of ['apart', 'unknown', '../test']) t.match(readError(await choose(page, id)), /isn’t available here/, id)
    const cancelled = await choose(page)
    t.match(readError(await page.browser.open(`${START}/callback?${new URLSearchParams({ error: 'access_denied', state: cancelled.left!.searchParams.get('state')! })}`)), STAYS)
    const { identities, require } = kit.app.identity.upstreams!
    const [found] = (await Array.fromAsync(kit.app.identity.store.collection<{ id: string, user_id: string }>('tickets').stream())).flat().filter((ticket) => ticket.user_id === user_id)
    const claimed = { issuer: second.issuer, subject: 'kay', name: '', both: false }
    await t.rejects(identities.accept({ upstream: require('apart'), claimed }, found!.id), { name: 'UpstreamError', refusal: 'off' }, 'settings that have changed since the person went there')
    t.equal(await isLinked(user_id), false)
    t.ok(await isGood(link))
  })

  for (const [name, change] of [
    ['is disabled', { set: { disabled_at: '2020-01-01T00:00:00.000Z' } }],
    ['expires', { set: { expired_at: '2020-01-01T00:00:00.000Z' } }],
    ['gets a role', { increment: { link_epoch: 1 } }],
    ['gets another address', { set: { email: 'another@example.com' } }],
    ['has their sessions ended', { increment: { epoch: 1 } }]
  ] as [string, { set?: Record<string, Json>, increment?: Record<string, number> }][]) {
    await t.test(`somebody who ${name} meanwhile is not linked`, async (t) => {
      const { user_id, page } = await invite()
      kit.upstream({ sub: `who ${name}` })
      const answer = await answerOf((await choose(page)).left)
      await users.update(user_id, { ...change, increment: { ...change.increment, revision: 1 } })
      t.match((await page.browser.open(answer)).text, GONE)
      t.equal(await isLinked(user_id), false)
    })
  }

  await t.test('an invitation that was replaced or has ended is not completed', async (t) => {
    const { user_id, account, page } = await invite()
    kit.upstream({ sub: 'lou' })
    const answer = await answerOf((await choose(page)).left)
    const again = await invite(account)
    t.match((await page.browser.open(answer)).text, GONE)
    const late = await choose(again.page)
    kit.clock.advance(7 * 24 * 3_600_000)
    t.match((await again.page.browser.open(await answerOf(late.left))).text, OVER)
    t.match((await choose(again.page)).text, GONE)
    t.equal(await isLinked(user_id), false)
  })

  await t.test('it makes no session, and a sign-in that follows asks for the factor that is demanded', async (t) => {
    const { page } = await invite(undefined, { ops: true })
    kit.upstream({ sub: 'moe' })
    t.match((await complete(page)).title, /Your account is ready/)
    t.match((await page.browser.open('/account')).title, /Sign in/)
    t.match((await through(page.browser, START)).title, new RegExp(en.enrol.title))
  })
})

eachStore(t, 'somebody who signs up completes by a provider', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { create: false } })
  const { kit, browser } = harness
  const { users, signUp, invite, isGood, happenedTo } = openPeople(harness)
  const app = await harness.register()
  const find = async (account: string) => await users.getBy('account', account)

  await t.test('and has the address of the link', async (t) => {
    const { account, link, page } = await signUp()
    kit.upstream({ sub: 'nell', email: 'nell@elsewhere.example', email_verified: true, name: 'Nell' })
    t.match((await complete(page)).title, /Your account is ready/)
    const user = (await find(account))!
    t.match(user, { email: account, email_verified_at: String, addresses: [account], name: 'Nell', roles: {} })
    t.notOk('password' in user)
    t.strictSame(await happenedTo(user.id), ['user.signed_up', 'identity.linked'])
    t.match((await browser().open(link)).text, GONE)
    t.match((await through(browser(), START)).title, /Profile/)
  })

  await t.test('an identity in use, and an address that was taken meanwhile', async (t) => {
    const [one, two] = [await signUp(), await signUp()]
    kit.upstream({ sub: 'odo' })
    t.match((await complete(one.page)).title, /Your account is ready/)
    t.match(readError(await complete(two.page)), /belongs to another account/)
    t.equal(await find(two.account), null)
    kit.upstream({ sub: 'pia' })
    const answer = await answerOf((await choose(two.page)).left)
    await invite(two.account)
    t.match((await two.page.browser.open(answer)).text, GONE)
    t.ok(await isGood((await signUp()).link))
  })

  /** Asks for an account within a sign-in to the app. */
  async function ask (account: string): Promise<{ tab: Browser, link: string }> {
    const tab = browser()
    await (await tab.open(askCode(app, { prompt: 'create' }).url)).submit({ typed: account })
    return { tab, link: (await kit.mails.next({ to: account })).link! }
  }

  await t.test('and goes on to the app', async (t) => {
    const { tab, link } = await ask('quentin@example.com')
    kit.upstream({ sub: 'quentin' })
    const { left } = await complete(await tab.open(link))
    t.match(left?.searchParams.get('code'), /./)
    t.match((await kit.events.list({ type: 'sign_in.succeeded' })).at(-1), { user_id: (await find('quentin@example.com'))!.id, via: { upstream: 'test' } })
  })

  await t.test('and goes back to the app by themselves in another browser', async (t) => {
    const { link } = await ask('rita@example.com')
    kit.upstream({ sub: 'rita' })
    t.match((await complete(await browser().open(link))).title, /Your account is ready/)
    t.match((await through(browser(), START)).title, /Profile/)
  })
})

eachStore(t, 'an invited person whom one upstream claims', async (t, start) => {
  const second = await createTestUpstream()
  t.teardown(second.close)
  const harness = await start({
    upstream: { domains: ['example.com'], only: true, create: false },
    upstreams: [{ id: 'other', kind: 'oidc', name: 'Other', issuer: second.issuer, ...TEST_CLIENT }]
  })
  const { kit } = harness
  const { invite, isLinked } = openPeople(harness)
  const { user_id, page } = await invite()
  t.match(page.text, /sign in to this account with .*Test.* only/)
  t.match(page.text, /value="test"/)
  t.notMatch(page.text, /type="password"|value="other"/, 'nothing else is offered')
  t.match(readError(await choose(page, 'other')), /isn’t available here/)
  kit.upstream({ sub: 'sal', email: 'sally@example.com', email_verified: true })
  t.match((await complete(page)).title, /Your account is ready/)
  t.ok(await isLinked(user_id))
  t.match((await through(harness.browser(), START)).title, /Profile/)
  const stranger = await invite('tess@elsewhere.example')
  t.match(stranger.page.text, /type="password"/)
  t.match(stranger.page.text, /value="other"/, 'the others may choose')
})
