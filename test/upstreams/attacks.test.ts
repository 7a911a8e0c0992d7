import t from 'tap'
import { createTokenSessions } from '../../lib/sessions/token-sessions.ts'
import { DEFAULT_POLICY, listStanding } from '../../lib/ways/words.ts'
import { createTestRecorder } from '../helpers/events.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Proof } from '../../lib/proofs.ts'
import type { Json } from '../../lib/store/port.ts'
import { createTestUpstream, startIdentity } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { askCode, eachStore } from '../oidc/harness.ts'
import { anotherForm, Browser } from '../oidc/browser.ts'
import { addUser } from '../pages/visits.ts'
import { agree, answerOf, leave, readError, through } from './through.ts'
import { openTestChanges } from '../helpers/user-changes.ts'

const START = '/api/v1/auth/upstream/test'
const OVER = /This sign-in has expired/
const UNKNOWN = /find an account for this sign-in/

eachStore(t, 'who an answer signs in', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const users = kit.app.identity.store.collection('users')

  async function make (sub: string) {
    kit.upstream({ sub, email: `${sub}@example.com`, email_verified: true })
    const browser = harness.browser()
    t.match((await through(browser, START)).title, /Profile/)
    return { browser, user: (await users.getBy('account', `${sub}@example.com`))! }
  }

  // CVE-2026-9087 in Keycloak: the proof was bound to the provider, and not to which account there.
  await t.test('two accounts of one provider are two people, in two browsers and in one', async (t) => {
    const [gus, hal] = [await make('gus'), await make('hal')]
    kit.upstream({ sub: 'gus', email: 'hal@example.com', email_verified: true })
    const asked = await through(hal.browser, START)
    t.match(asked.title, /Switch accounts/)
    const page = await asked.submit()
    t.match(page.text, /gus@example\.com/, 'the subject decides, and not the address, nor who is signed in')
    t.notMatch(page.text, /hal@example\.com/)
    t.not(gus.user.id, hal.user.id)
    t.match(await users.get(gus.user.id), { email: 'gus@example.com', account: 'gus@example.com' }, 'an address that has changed there changes nothing here')
  })

  // spire-codex#748, lion-reader#1263: a state that was bound to no browser let anybody link their own account to a victim's.
  await t.test('an answer is good once, and in the browser that asked', async (t) => {
    kit.upstream({ sub: 'ida', email: 'ida@example.com', email_verified: true })
    const [browser, other] = [harness.browser(), harness.browser()]
    const answer = await answerOf(await leave(browser, START))
    t.match(readError(await other.open(answer)), OVER, 'a browser without a cookie')
    await other.open(START)
    t.match(readError(await other.open(answer)), OVER, 'a browser with another one')
    t.match((await agree(await browser.open(answer))).title, /Profile/, 'neither has spent it')
    t.match(readError(await browser.open(answer)), OVER, 'replayed')
    t.match(readError(await browser.open(`${START}/callback?code=x&state=unknown`)), OVER)
    t.match(readError(await browser.open(`${START}/callback?code=x`)), OVER)
  })

  // Any site may open the link of a sign-in, and the provider asks nobody: the session would change under the hands of its owner.
  await t.test('a link changes no session to another account, unless the person agrees', async (t) => {
    const { browser } = await make('vera')
    const app = await harness.register()
    const stay = async () => {
      t.match((await browser.open('/account')).text, /vera@example\.com/)
      t.match((await browser.open(askCode(app).url)).left?.searchParams.get('code'), /./)
    }
    for (const claims of [{ sub: 'gus' }, { sub: 'a stranger', email: 'stranger@example.com', email_verified: true }, { sub: 'nameless' }]) {
      kit.upstream(claims)
      for (const from of [START, askCode(app, { prompt: 'login', upstream: 'test' }).url, `${START}?next=sessions`]) {
        const page = await through(browser, from)
        t.match(page.title, /Switch accounts/, from)
        t.match(page.text, /vera@example\.com/)
        t.equal((await page.submit({}, { origin: 'https://evil.example' })).response.status, 403)
        await stay()
      }
      const page = await through(browser, START)
      t.match((await page.submit({ cancel: 'yes' })).title, /Profile|Confirm it’s you/)
      t.match(readError(await page.submit()), OVER, 'which ends it')
      await stay()
    }
    t.equal(await users.getBy('account', 'stranger@example.com'), null, 'nor is an account made')
    kit.upstream({ sub: 'gus' })
    t.match((await (await through(browser, START)).submit()).text, /gus@example\.com/)
    kit.upstream({ sub: 'vera' })
    const other = await through(browser, askCode(app, { prompt: 'login', upstream: 'test' }).url)
    t.match((await other.submit()).left?.searchParams.get('code'), /./)
    kit.upstream({ sub: 'a stranger', email: 'stranger@example.com', email_verified: true })
    t.match((await (await through(browser, START)).submit()).text, /stranger@example\.com/)
  })

  await t.test('an answer ends after ten minutes', async (t) => {
    const browser = harness.browser()
    const answer = await answerOf(await leave(browser, START))
    kit.clock.advance(10 * 60_000)
    t.match(readError(await browser.open(answer)), OVER)
  })

  await t.test('what was proved in one sign-in is nothing in another', async (t) => {
    const app = await harness.register()
    const browser = harness.browser()
    kit.upstream({ sub: 'jon', email: 'jon@example.com', email_verified: true })
    const [one, two] = [await browser.open(askCode(app).url), await browser.open(askCode(app).url)]
    const response = await browser.fetch(await answerOf(await leave(browser, one)))
    t.match(response.headers.get('location'), new URL(one.response.url).pathname)
    t.match(readError(await browser.open(`${new URL(two.response.url).pathname}/upstream`)), OVER)
    const stranger = harness.browser()
    t.match(readError(await stranger.open(response.headers.get('location')!)), /sign-in has expired/)
  })

  // Keycloak CVE-2026-1609: a disabled user still got tokens by another road.
  await t.test('a disabled user reads what everybody else without an account reads', async (t) => {
    const { user } = await make('kim')
    await users.update(user.id, { set: { disabled_at: new Date().toISOString() } })
    const page = await through(harness.browser(), START)
    t.match(page.text, UNKNOWN)
    t.same(page.browser.cookies().filter((cookie) => cookie === 'identity'), [])
    t.match((await kit.events.list({ user: user.id, type: 'sign_in.failed' })).at(-1), { outcome: 'failure', via: { upstream: 'test' } })
    await users.update(user.id, { unset: ['disabled_at'] })
  })

  await t.test('of two first sign-ins at once one makes the account', async (t) => {
    kit.upstream({ sub: 'lea', email: 'lea@example.com', email_verified: true })
    const pages = await Promise.all(Array.from({ length: 4 }, () => through(harness.browser(), START)))
    for (const page of pages) t.match(page.title, /Profile|Sign in/, readError(page))
    t.equal(await users.count({ contains: { account: 'lea@' } }), 1)
    t.match((await through(harness.browser(), START)).title, /Profile/)
  })

  await t.test('a name follows only where it should, and nothing else ever', async (t) => {
    const { user } = await make('max')
    await users.update(user.id, { set: { name: 'Maximilian', roles: { clerk: true }, info: { desk: 4 } } })
    kit.upstream({ sub: 'max', email: 'other@example.com', email_verified: true, name: 'Somebody', roles: ['admin'], groups: ['admin'] })
    await through(harness.browser(), START)
    t.match(await users.get(user.id), { name: 'Maximilian', roles: { clerk: true }, info: { desk: 4 }, email: 'max@example.com' })
  })
})

eachStore(t, 'what an upstream may not', async (t, start) => {
  const second = await createTestUpstream()
  t.teardown(second.close)
  const shop = { id: 'shop', kind: 'oidc' as const, issuer: second.issuer, emails: 'verified' as const, create: true, ...TEST_CLIENT }
  const harness = await start({ signUp: true, upstream: {}, upstreams: [{ ...shop, clients: ['another-app'] }] })
  const { kit } = harness
  const app = await harness.register()

  // RFC 9207; IETF OAuth security, 4.4: the code of one provider is redeemed at another.
  await t.test('answer for another one', async (t) => {
    const browser = harness.browser()
    const answer = await answerOf(await leave(browser, START))
    const before = second.calls.length
    t.match(readError(await browser.open(answer.replace('/upstream/test/', '/upstream/shop/'))), OVER)
    t.equal(second.calls.length, before)
    t.match(readError(await browser.open(answer)), OVER, 'the attempt is spent')
    const again = await answerOf(await leave(browser, START))
    const page = await browser.open(again.replace(/iss=[^&]*/, `iss=${encodeURIComponent(second.issuer)}`))
    t.match(readError(page), /isn’t responding as it should/, 'an answer with the issuer of another one')
    const without = await answerOf(await leave(browser, START))
    t.match(readError(await browser.open(without.replace(/&iss=[^&]*/, ''))), /isn’t responding as it should/, 'and one without')
  })

  await t.test('sign in to an app that it is not for', async (t) => {
    const browser = harness.browser()
    const page = await browser.open(askCode(app).url)
    t.notMatch(page.text, /upstream\/shop/, 'there is no link')
    t.match(page.text, /upstream\/test/)
    const uid = new URL(page.response.url).pathname.split('/').at(-1)!
    second({ sub: 'nia', email: 'nia@example.com', email_verified: true })
    t.match(readError(await through(browser, `/api/v1/auth/upstream/shop?uid=${uid}`)), /isn’t available here/)
    const session = harness.browser()
    t.match((await through(session, '/api/v1/auth/upstream/shop')).title, /Profile/)
    t.equal((await session.open(askCode(app).url)).title, 'Sign in', 'and its session does not count there')
  })

  await t.test('be started where there is none', async (t) => {
    t.match(readError(await harness.browser().open('/api/v1/auth/upstream/unknown')), /isn’t available here/)
    t.equal((await harness.browser().open(`${START}/callback`, { method: 'POST', body: new URLSearchParams({ state: 'x', code: 'y' }) })).response.status, 404, 'a form, where the provider sends none')
  })

  // Zitadel CVE-2025-64717: a disabled provider still signed in and linked.
  await t.test('count any more once the configuration has lost it', async (t) => {
    second({ sub: 'ole', email: 'ole@example.com', email_verified: true })
    const browser = harness.browser()
    t.match((await through(browser, '/api/v1/auth/upstream/shop')).title, /Profile/)
    const { store } = kit.app.identity
    const without = await startIdentity({ t, upstream: {}, store })
    const { url } = await without.listen()
    t.match(readError(await new Browser(url).open('/api/v1/auth/upstream/shop')), /isn’t available here/)
    const ole = (await store.collection<UserRecord>('users').getBy('account', 'ole@example.com'))!
    const [way] = Object.keys(ole.ways!)
    const judged = await without.app.identity.maySignIn({ user_id: ole.id, epoch: 0, proofs: [{ way: way!, kind: 'upstream', at: new Date(kit.clock.now()).toISOString() }] })
    t.match(judged, { may: false, because: 'ended' })
  })
})

eachStore(t, 'an account that somebody else may have prepared', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { link: 'verified' } })
  const { kit } = harness
  const users = kit.app.identity.store.collection('users')
  const linked = async (user_id: string) => (await kit.events.list({ type: 'identity.linked', user: user_id })).length

  async function prepare (sub: string, fields: Record<string, Json>) {
    const user = await addUser(harness, `${sub}@example.com`)
    const time = new Date(kit.clock.now()).toISOString()
    await users.update(user.user_id, { set: { email: user.account, email_verified_at: time, addresses: [user.account], operator_password: false, ...fields } })
    kit.upstream({ sub, email: user.account, email_verified: true })
    return user
  }

  await t.test('a proved address joins by itself, and its mail undoes that', async (t) => {
    const { user_id } = await prepare('pam', {})
    const browser = harness.browser()
    t.match((await through(browser, START)).title, /Profile/)
    t.equal(await linked(user_id), 1)
    const mail = await kit.mails.next({ to: 'pam@example.com' })
    t.match(mail.subject, /Test was connected to your account/)
    const undo = await harness.browser().open(mail.link!)
    t.match(undo.text, /Test<\/bdi><\/strong>, added/)
    t.match((await undo.submit()).title, /undone/)
    t.match((await browser.open('/account')).title, /Sign in/, 'whoever linked it is signed out')
    t.equal((await kit.events.list({ user: user_id, type: 'identity.unlinked' })).length, 1)
    t.match(readError(await undo.submit(anotherForm())), /used|expired/, 'once')
    t.match((await through(harness.browser(), START)).text, /An account with your email address already exists/, 'and it does not join again')
    t.equal(await linked(user_id), 1)
  })

  // Zitadel CVE-2026-56666, and classic pre-hijacking: each of these accounts asks for a sign-in to it first.
  for (const [name, fields] of [
    ['whose address was never proved here', { email_verified_at: null }],
    ['of an administrator', { roles: { admin: true } }],
    ['of a manager', { roles: { manager: true } }],
    ['of a service', { roles: { service: {} } }],
    ['that waits for its invitation', { invited_at: '2026-01-01T00:00:00.000Z' }],
    ['whose address was changed', { address_changes: [{ ticket: 'x', until: '2999-01-01T00:00:00.000Z' }] }],
    ['with a password that only an administrator knows', { operator_password: true }],
    ['with a password of which nobody knows who has set it', { operator_password: null }],
    ['with another address', { email: 'quite@another.example' }]
  ] as [string, Record<string, Json>][]) {
    await t.test(name, async (t) => {
      const sub = name.replaceAll(/[^a-z]/g, '').slice(0, 20)
      const { user_id } = await prepare(sub, fields)
      for (const field of ['email_verified_at', 'operator_password']) if (fields[field] === null) await users.update(user_id, { unset: [field] })
      const page = await through(harness.browser(), START)
      t.match(page.text, /An account with your email address already exists/)
      t.equal(await linked(user_id), 0)
    })
  }

  await t.test('with a second factor', async (t) => {
    const { user_id } = await prepare('quin', {})
    await kit.totp(user_id)
    t.match((await through(harness.browser(), START)).text, /An account with your email address already exists/)
    t.equal(await linked(user_id), 0)
  })
})

// casdoor#5315, authup#3454: the second factor was asked for on one of two roads.
eachStore(t, 'a second factor here is asked for on every road', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { factors: { acr: ['gold'], amr: ['mfa'] } } })
  const { kit } = harness
  const app = await harness.register()
  kit.upstream({ sub: 'rob', email: 'rob@example.com', email_verified: true })
  await through(harness.browser(), START)
  const rob = (await kit.app.identity.store.collection('users').getBy('account', 'rob@example.com'))!
  const totp = await kit.totp(rob.id)

  for (const road of ['account', 'app'] as const) {
    await t.test(road, async (t) => {
      const browser = harness.browser()
      const from = road === 'app' ? await browser.open(askCode(app).url) : START
      const page = await through(browser, from)
      t.match(page.title, /second step|code/i)
      t.match((await browser.open('/account')).title, /Sign in|code|step/i)
      kit.clock.advance(30_000)
      const done = await page.submit({ code: await totp.code() })
      if (road === 'app') t.match(done.left?.searchParams.get('code'), /./)
      else t.match(done.title, /Profile/)
    })
  }

  await t.test('linking', async (t) => {
    const tom = await addUser(harness, 'tom@example.com')
    const own = await kit.totp(tom.user_id)
    kit.upstream({ sub: 'tom', email: 'tom@example.com', email_verified: true, acr: 'gold' })
    const isLinked = async () => (await kit.events.list({ type: 'identity.linked', user: tom.user_id })).length > 0
    const browser = harness.browser()
    const asked = await through(browser, START)
    t.match(asked.text, /An account with your email address already exists/)
    const second = await asked.submit({ account: tom.account, password: tom.password })
    t.match(second.title, /second step|code/i, 'whatever the provider says of its factors')
    t.equal(await isLinked(), false)
    t.match((await second.submit({ code: '000000' })).text, /role="alert"/)
    t.equal(await isLinked(), false)
    kit.clock.advance(30_000)
    t.match((await second.submit({ code: await own.code() })).title, /Profile/)
    t.equal(await isLinked(), true)
    kit.upstream({ sub: 'rob' })
  })

  await t.test('unless the provider says so, and the operator trusts it in this', async (t) => {
    for (const [claims, isEnough] of [[{ acr: 'gold' }, true], [{ amr: ['mfa'] }, true], [{ acr: 'silver', amr: ['otp'] }, false]] as const) {
      kit.upstream({ sub: 'rob', ...claims })
      t.equal(/Profile/.test((await through(harness.browser(), START)).title), isEnough, JSON.stringify(claims))
    }
  })

  await t.test('nor do sessions count as such that had its word, once the operator trusts it no more', async (t) => {
    const { store, tokens } = kit.app.identity
    const changes = openTestChanges({ store, now: kit.clock.now, tokens, recorder: createTestRecorder(store, kit.clock.now), onError: (error) => { t.fail(String(error)) } })
    const open = (trusts: boolean) => createTokenSessions({
      store, now: kit.clock.now, tokens, changes, listStanding: (user, proofs) => listStanding(proofs, user, { ...DEFAULT_POLICY, allowsUpstream: () => true, trustsFactor: () => trusts })
    })
    await open(true).endBelow(rob.id, 'mfa')
    kit.upstream({ sub: 'rob', acr: 'gold' })
    const tab = harness.browser()
    const { url, verifier } = askCode(app, { upstream: 'test', scope: 'openid offline_access', prompt: 'consent' })
    const asked = await through(tab, url)
    const { left } = asked.left === undefined ? await asked.submit({ consent: 'allow' }) : asked
    const { body } = await harness.post('token', { code: left!.searchParams.get('code')!, code_verifier: verifier, redirect_uri: app.redirect_uri, grant_type: 'authorization_code' }, app)
    const refresh = async (token: unknown) => await harness.post('token', { grant_type: 'refresh_token', refresh_token: String(token) }, app)
    t.equal(await open(true).endBelow(rob.id, 'mfa'), 0)
    t.match((await tab.open('/account')).title, /Profile/)
    const { status, body: fresh } = await refresh(body.refresh_token)
    t.equal(status, 200)
    t.ok(await open(false).endBelow(rob.id, 'mfa') > 1)
    t.notMatch((await tab.open('/account')).title, /Profile/)
    t.equal((await refresh(fresh.refresh_token)).status, 400)
  })
})

eachStore(t, 'people whom one upstream claims', async (t, start) => {
  const harness = await start({ upstream: { domains: ['example.com'], only: true, create: false, link: 'confirm' } })
  const { kit } = harness
  const users = kit.app.identity.store.collection('users')
  const user = await addUser(harness, 'sue@example.com')
  await users.update(user.user_id, { set: { email: user.account, email_verified_at: new Date(kit.clock.now()).toISOString() } })
  const admin = await addUser(harness, 'root@example.com')
  await users.update(admin.user_id, { set: { email: admin.account, email_verified_at: new Date(kit.clock.now()).toISOString(), roles: { admin: true } } })
  const enter = async ({ account, password }: { account: string, password: string }) => (
    await (await harness.browser().open('/account/sign-in')).submit({ account, password, direct: 'yes' }))

  t.match(readError(await enter(user)), /with Test only/, 'the password is right, and not enough')
  t.match(readError(await enter({ ...user, password: 'wrong' })), /Wrong email, username or password/)
  t.match((await enter(admin)).title, /Profile/, 'a provider that is down locks no administrator out')
  t.match(readError(await enter(harness.user)), /with Test only/, 'a restriction needs no proof: a name of the domain is enough')
  await harness.browser().open('/account/forgot').then(async (page) => await page.submit({ typed: user.account }))
  const mail = await kit.mails.next({ to: user.account })
  t.match(mail.subject, /sign in with Test/, 'the mail for a forgotten password has no link to a new one')
  t.notMatch(mail.text, /token=/)
  kit.upstream({ sub: 'sue', email: user.account, email_verified: true })
  const page = await through(harness.browser(), START)
  t.match(page.title, /Profile/, readError(page))

  // An account keeps its name when the address of its owner changes, and companies give addresses out again.
  const una = await addUser(harness, 'una@example.com')
  await users.update(una.user_id, { set: { email: 'una.new@example.com', email_verified_at: new Date(kit.clock.now()).toISOString(), addresses: ['una@example.com', 'una.new@example.com'] } })
  kit.upstream({ sub: 'newcomer', email: 'una@example.com', email_verified: true })
  t.match(readError(await through(harness.browser(), START)), /belongs to another account/, 'the next holder of an address that somebody had')
  t.notHas(await users.get(una.user_id), { ways: {} })
  kit.upstream({ sub: 'una', email: 'una.new@example.com', email_verified: true })
  t.match((await through(harness.browser(), START)).title, /Profile/)

  // Whoever could leave the rule would keep the account after they have left the company.
  const { accounts } = kit.app.identity
  const bound = { code: 'ErrPerm', message: /with Test only/ }
  await t.rejects(accounts.changeAddress(user.user_id, 'sue@private.example'), bound)
  await accounts.changeAddress(user.user_id, 'sue.smith@example.com')
  t.match((await kit.mails.next({ to: 'sue.smith@example.com' })).link, /verify/, 'another address of the same company')
  kit.clock.advance(1000)
  await users.update(user.user_id, { set: { roles: { admin: true } } })
  await accounts.changeAddress(user.user_id, 'sue@private.example')
  await users.update(user.user_id, { set: { roles: {} } })
  await t.rejects(accounts.verifyAddress((await kit.mails.next({ to: 'sue@private.example' })).token!, user.user_id), bound, 'a link from before the rule')
  await accounts.changeAddress(admin.user_id, 'root@private.example')

  const { ways, maySignIn } = kit.app.identity
  const { id: way } = await ways.add({ user_id: user.user_id, epoch: 0 }, { kind: 'passkey', key: 'k', uv: true, rp: '127.0.0.1', material: {} })
  const at = new Date(kit.clock.now()).toISOString()
  const judge = async (...proofs: Proof[]) => await maySignIn({ user_id: user.user_id, epoch: 0, proofs })
  const identity = Object.entries((await users.get(user.user_id) as UserRecord).ways!).find(([, { kind }]) => kind === 'upstream')![0]
  t.match(await judge({ way, kind: 'passkey', uv: true, at }, { way: 'password', kind: 'password', at }), { may: false, because: 'only', upstream: 'test' }, 'a passkey and the password together are not enough')
  t.match(await judge({ way: identity, kind: 'upstream', at }, { way, kind: 'passkey', uv: true, at }), { may: true }, 'a passkey is still a second factor')
})
