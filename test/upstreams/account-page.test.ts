import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { eachStore } from '../oidc/harness.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { addUser, enter, post } from '../pages/visits.ts'
import { answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const OVER = /This sign-in has expired/

eachStore(t, 'the page of the ways to sign in', async (t, start) => {
  const second = await createTestUpstream()
  t.teardown(second.close)
  const harness = await start({
    signUp: true,
    upstream: { link: 'confirm' },
    upstreams: [{ id: 'shop', kind: 'oidc', name: 'Shop', issuer: second.issuer, ...TEST_CLIENT }, { id: 'apart', kind: 'oidc', name: 'Apart', link: 'never', issuer: second.issuer, ...TEST_CLIENT }]
  })
  const { kit } = harness
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const identitiesOf = async (user_id: string) => (await kit.app.identity.heldIdentities.list(user_id)).map(({ upstream, subject }) => `${upstream} ${subject}`)

  let count = 0

  const arrive = async (browser: Browser, user: { account: string, password: string }) => await enter(harness, '/account', browser, user)

  async function visit () {
    const user = await addUser(harness, `person-${count++}`)
    const browser = harness.browser()
    await arrive(browser, user)
    const toAdd = async (upstream = 'test') => await browser.open(`/account/identities/add?upstream=${upstream}`)
    return {
      user,
      browser,
      open: async () => await browser.open('/account/methods'),
      toAdd,
      /** Asks to connect an identity, with the proof. */
      add: async (upstream?: string, fields: Record<string, string> = {}) => await send(await toAdd(upstream), { current_password: user.password, ...fields })
    }
  }

  /** Sends the form of a page, which leads to itself or to the provider. */
  const send = async (page: Page, fields: Record<string, string>) => await post(page, new URL(page.response.url).pathname + new URL(page.response.url).search, fields)

  await t.test('connects an identity, which then signs in', async (t) => {
    const { user, browser, open, toAdd, add } = await visit()
    const page = await open()
    t.match(page.title, /Sign-in methods/)
    t.notMatch(page.text, /Connect <[^>]*>Apart/, 'an upstream that never joins an account is not offered')
    const form = await toAdd()
    t.match(form.response.headers.get('content-security-policy'), /form-action 'self' http:;/, 'the form may lead to the provider')
    kit.upstream({ sub: 'ada' })
    for (const current_password of ['', 'wrong']) {
      t.match(await send(form, { current_password }), { left: undefined, response: { status: 400 } }, 'a fresh sign-in is not enough for who has a password')
    }
    const { left } = await send(form, { current_password: user.password })
    t.equal(left?.searchParams.get('prompt'), 'login', 'who is signed in there may be somebody else')
    const linked = await browser.open(await answerOf(left))
    t.match(linked.text, /role="status">The account is connected/)
    t.strictSame(await identitiesOf(user.user_id), ['test ada'])
    t.match((await kit.events.list({ user: user.user_id, type: 'identity.linked' })).at(-1), { via: { upstream: 'test' }, actor: { user_id: user.user_id } })
    t.match((await through(harness.browser(), START)).text, new RegExp(user.account))
    // kratos#3909: the same provider twice.
    kit.upstream({ sub: 'ada at work' })
    await browser.open(await answerOf((await add()).left))
    t.strictSame(await identitiesOf(user.user_id), ['test ada', 'test ada at work'])
    await browser.open(await answerOf((await add()).left))
    t.strictSame((await identitiesOf(user.user_id)).length, 2, 'one that is connected already stays as it is')
    t.match((await toAdd('apart')).text, /isn’t available here/)
  })

  await t.test('a GET links nothing', async (t) => {
    const { user, browser, toAdd, add } = await visit()
    kit.upstream({ sub: 'the attacker' })
    for (const path of ['/account/identities/add?upstream=test', '/account/identities/linked', '/account/identities/linked?upstream=test']) t.equal((await browser.open(path)).left, undefined)
    await through(browser, START)
    await browser.open('/account/identities/linked')
    t.strictSame(await identitiesOf(user.user_id), [], 'a sign-in by a link, whose answer is then brought to the page that links')
    t.equal((await toAdd()).left, undefined)
    const forged = await browser.fetch('/account/identities/add?upstream=test', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' }, body: new URLSearchParams({ current_password: user.password }) })
    t.equal(forged.status, 403, 'a form of another site')
    t.match((await add('test', { xsrf: 'x' })).text, /page has expired/, 'a form without the secret of the session')
    t.strictSame(await identitiesOf(user.user_id), [])
  })

  // devtrack#341, lion-reader#1263: forced linking, by an answer that was bound to no session.
  await t.test('an answer links in the session that asked, and in no other', async (t) => {
    const { user: victim, browser: theirs } = await visit()
    const { user, browser, add } = await visit()
    kit.upstream({ sub: 'eve' })
    const answer = await answerOf((await add()).left)
    t.match(readError(await theirs.open(answer)), OVER, 'in another browser')
    t.strictSame(await identitiesOf(victim.user_id), [])
    await post(await browser.open('/account'), '/account/sign-out')
    await arrive(browser, victim)
    await browser.open(answer)
    t.strictSame([await identitiesOf(victim.user_id), await identitiesOf(user.user_id)], [[], []], 'in another session of the same browser')
  })

  await t.test('an identity of somebody else stays theirs', async (t) => {
    const [one, two] = [await visit(), await visit()]
    kit.upstream({ sub: 'shared' })
    for (const { browser, add } of [one, two]) {
      const page = await browser.open(await answerOf((await add()).left))
      if (browser === two.browser) t.match(page.text, /belongs to another account/)
    }
    t.strictSame([await identitiesOf(one.user.user_id), await identitiesOf(two.user.user_id)], [['test shared'], []])
  })

  await t.test('asks for a fresh sign-in', async (t) => {
    const { browser, user, toAdd } = await visit()
    const page = await toAdd()
    kit.clock.advance(601_000)
    t.match((await send(page, { current_password: user.password })).title, /Confirm it’s you/)
    t.match((await browser.open('/account/methods')).title, /Confirm it’s you/)
  })

  await t.test('disconnects with the password, and keeps the last way', async (t) => {
    const { user, browser, open, add } = await visit()
    kit.upstream({ sub: 'una' })
    await browser.open(await answerOf((await add()).left))
    const toRemove = async () => await browser.open(/href="([^"]*identities\/remove[^"]*)"/.exec((await open()).text)![1]!.replaceAll('&amp;', '&'))
    const form = await toRemove()
    t.match(form.text, /<h1>Disconnect/)
    t.match((await send(form, { current_password: 'wrong', end_sessions: 'yes' })).text, /role="alert"/)
    t.strictSame(await identitiesOf(user.user_id), ['test una'])
    const other = harness.browser()
    await arrive(other, user)
    t.match((await send(await toRemove(), { current_password: user.password, end_sessions: 'yes' })).text, /role="status">The account is disconnected/)
    t.strictSame(await identitiesOf(user.user_id), [])
    t.match((await other.open('/account')).title, /Sign in/, 'all other sessions end')
    t.match((await open()).title, /Sign-in methods/, 'and this one goes on')
    t.match((await browser.open('/account/identities/remove?id=none')).response.status, 404)
  })

  // kratos#3387, supabase#46509.
  await t.test('of somebody without a password, whose fresh sign-in is the proof', async (t) => {
    const browser = harness.browser()
    kit.upstream({ sub: 'ivy', email: 'ivy@example.com', email_verified: true })
    await through(browser, START)
    const again = await browser.open('/account/methods')
    t.match(again.title, /Confirm it’s you/, 'a provider that was not told to ask, and says no time, proves who they are, and not when')
    t.match((await browser.open(await answerOf((await send(again, { upstream: 'test' })).left))).title, /Sign-in methods/)
    const { id } = (await users.getBy('account', 'ivy@example.com'))!
    const remove = async (nth = 0) => {
      const page = await browser.open('/account/methods')
      const links = [...page.text.matchAll(/href="([^"]*identities\/remove[^"]*)"/g)]
      const form = await browser.open(links[nth]![1]!.replaceAll('&amp;', '&'))
      t.notMatch(form.text, /type="password"/, 'nothing is asked for that they do not have')
      return await send(form, { end_sessions: 'yes' })
    }
    const connect = async () => await browser.open(await answerOf((await send(await browser.open('/account/identities/add?upstream=shop'), {})).left))
    t.match((await remove()).text, /only sign-in method/)
    second({ sub: 'ivy at the shop' })
    await connect()
    t.strictSame(await identitiesOf(id), ['test ivy', 'shop ivy at the shop'])
    t.match((await remove(1)).text, /role="status">The account is disconnected/)
    t.match((await remove()).text, /only sign-in method/)
    await connect()
    t.match((await remove()).title, /Confirm it’s you/, 'who removes what they have signed in with signs in by what is left')
    t.strictSame(await identitiesOf(id), ['shop ivy at the shop'])
    t.match((await through(browser, '/api/v1/auth/upstream/shop')).title, /Profile|Confirm/)
    kit.clock.advance(601_000)
    t.match((await browser.open('/account/methods')).title, /Confirm it’s you/)
  })
})

// ihub#2279, matrix-authentication-service#1569: the provider signed the former person in again, without a question.
eachStore(t, 'after a sign-out', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  kit.upstream({ sub: 'zoe', email: 'zoe@example.com', email_verified: true })
  const browser = harness.browser()
  const askedWith = async () => (await leave(browser, START)).searchParams.get('prompt')
  t.equal(await askedWith(), null)
  t.match((await through(browser, START)).title, /Profile/)
  for (const [name, signOut] of [
    ['on the account pages', async () => await post(await browser.open('/account'), '/account/sign-out')],
    ['by an app', async () => await (await browser.open('/api/v1/auth/session/end')).submit({ logout: 'yes' })]
  ] as const) {
    await t.test(name, async (t) => {
      t.match((await browser.open('/account')).title, /Profile/)
      await signOut()
      t.match((await browser.open('/account')).title, /Sign in/)
      t.equal(await askedWith(), 'login', 'the next sign-in asks')
      t.equal(await askedWith(), 'login', 'until somebody has signed in')
      await through(browser, START)
      t.equal(await askedWith(), null)
    })
  }
})
