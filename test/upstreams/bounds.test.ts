import t from 'tap'
import { type App, type Harness, askCode, eachStore, getCode } from '../oidc/harness.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { addUser, isSignedOut } from '../pages/visits.ts'
import { answerOf, leave, readError, through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const HOUR = 60 * 60_000
const ONLY = { only: true, domains: ['corp.example'] }
const MIA = { sub: 'mia', email: 'mia@corp.example', email_verified: true }

interface SignedIn { browser: Browser, refresh: string }

async function enterApp (harness: Harness, app: App, claims: Record<string, unknown> = MIA): Promise<SignedIn> {
  harness.kit.upstream(claims)
  const browser = harness.browser()
  const { url, verifier } = askCode(app)
  const page = await through(browser, await browser.open(url))
  const code = page.left?.searchParams.get('code')
  if (typeof code !== 'string') throw new Error(readError(page))
  const { body } = await harness.post('token', { code, code_verifier: verifier, redirect_uri: app.redirect_uri, grant_type: 'authorization_code' }, app)
  return { browser, refresh: String(body.refresh_token) }
}

/** Refreshes; keeps the next refresh token. */
async function refresh (harness: Harness, app: App, signedIn: SignedIn): Promise<boolean> {
  const { status, body } = await harness.post('token', { grant_type: 'refresh_token', refresh_token: signedIn.refresh }, app)
  if (status === 200) signedIn.refresh = String(body.refresh_token)
  return status === 200
}

const isSilent = ({ left }: Page): boolean => left?.searchParams.get('prompt') === 'none'

/** What the provider says to `prompt=none` when it does not know the person. */
function forget ({ kit: { upstream } }: Harness, error = 'login_required'): void {
  upstream.answer = ({ url }, response) => {
    const { pathname, searchParams } = new URL(url!, upstream.issuer)
    if (pathname !== '/authorize' || searchParams.get('prompt') !== 'none') return false
    return Boolean(response.writeHead(303, { location: `${searchParams.get('redirect_uri')}?${new URLSearchParams({ error, state: searchParams.get('state')!, iss: upstream.issuer })}` }).end())
  }
}

eachStore(t, 'a day after the last answer of the provider by which alone somebody signs in', async (t, start) => {
  const harness = await start({ signUp: true, upstream: ONLY })
  const { kit } = harness
  const app = await harness.register()

  await t.test('the provider is asked without a page, and the session and its apps go on', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(23 * HOUR)
    t.notOk(isSignedOut(await mia.browser.open('/account')))
    t.ok(await refresh(harness, app, mia))
    kit.clock.advance(2 * HOUR)
    t.notOk(await refresh(harness, app, mia))
    t.strictSame((await harness.post('introspect', { token: mia.refresh }, app)).body, { active: false })
    const page = await mia.browser.open('/account/activity')
    t.ok(isSilent(page))
    t.equal(page.left?.searchParams.get('login_hint'), 'mia@corp.example')
    const before = (await kit.events.list({ type: 'sign_in.succeeded' })).length
    t.match((await mia.browser.open(await answerOf(page.left))).response.url, /account\/activity$/, 'where they were going')
    t.equal((await kit.events.list({ type: 'sign_in.succeeded' })).length, before, 'it is no other sign-in')
    t.ok(await refresh(harness, app, mia), 'the token that was refused is good again')
  })

  await t.test('an app gets its code in the same way, and one that asks for no page gets none', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(25 * HOUR)
    const quiet = await mia.browser.open(askCode(app, { prompt: 'none' }).url)
    t.equal(quiet.left?.origin, 'https://app.example')
    t.equal(quiet.left?.searchParams.get('error'), 'login_required')
    const page = await mia.browser.open(askCode(app).url)
    t.ok(isSilent(page))
    t.match((await mia.browser.open(await answerOf(page.left))).left?.searchParams.get('code'), /./)
    t.match((await mia.browser.open(askCode(app, { prompt: 'none' }).url)).left?.searchParams.get('code'), /./)
  })

  await t.test('somebody who signs in elsewhere keeps their apps, and the browser', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(23 * HOUR)
    await enterApp(harness, app)
    kit.clock.advance(23 * HOUR)
    t.ok(await refresh(harness, app, mia))
    t.notOk(isSignedOut(await mia.browser.open('/account')))
  })

  await t.test('a session of days at the provider is no reason to go round', async (t) => {
    const mia = await enterApp(harness, app, { ...MIA, auth_time: Math.floor(kit.clock.now() / 1000) - 5 * 24 * 3600 })
    t.notOk(isSignedOut(await mia.browser.open('/account')))
    kit.clock.advance(HOUR)
    t.ok(await refresh(harness, app, mia))
    t.notOk(isSignedOut(await mia.browser.open('/account')))
  })

  await t.test('somebody who has left gets no further, and the browser does not go round', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(25 * HOUR)
    for (const error of ['login_required', 'interaction_required', 'access_denied', 'server_error']) {
      forget(harness, error)
      const page = await mia.browser.open('/account')
      t.ok(isSilent(page), error)
      const form = await mia.browser.open(await answerOf(page.left))
      t.ok(/Confirm it’s you/.test(form.title), form.title)
      t.match(form.text, /name="upstream" value="test"/, 'with a button')
      for (const url of ['/account', '/account/sessions', askCode(app).url]) t.equal((await mia.browser.open(url)).left, undefined, `${url} within ten minutes`)
      t.notOk(await refresh(harness, app, mia))
      kit.clock.advance(11 * 60_000)
    }
    kit.upstream.answer = null
    const page = await mia.browser.open(askCode(app).url)
    t.ok(isSilent(page), 'after them it is asked again')
    t.match((await mia.browser.open(await answerOf(page.left))).left?.searchParams.get('code'), /./)
  })

  await t.test('after no for an answer, the person signs in with a button', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(25 * HOUR)
    forget(harness)
    const form = await mia.browser.open(await answerOf((await mia.browser.open(askCode(app).url)).left))
    kit.upstream(MIA)
    const { left } = await form.submit({ upstream: 'test' })
    t.equal(left?.searchParams.get('prompt'), 'login')
    t.match((await mia.browser.open(await answerOf(left))).left?.searchParams.get('code'), /./)
    t.ok(await refresh(harness, app, mia))
    kit.upstream.answer = null
  })

  await t.test('somebody else at the provider changes nobody\'s session', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(25 * HOUR)
    const count = await kit.app.identity.users.count({})
    for (const claims of [{ sub: 'nils', email: 'nils@corp.example', email_verified: true }, { ...MIA, sub: 'mia again' }]) {
      const page = await mia.browser.open('/account')
      t.ok(isSilent(page))
      kit.upstream(claims)
      t.ok(/Confirm it’s you/.test((await mia.browser.open(await answerOf(page.left))).title))
      t.notOk(await refresh(harness, app, mia))
      t.equal(await kit.app.identity.users.count({}), count, 'and makes no account')
      kit.clock.advance(11 * 60_000)
    }
    kit.upstream(MIA)
    const page = await mia.browser.open('/account')
    t.match((await mia.browser.open(await answerOf(page.left))).title, /Profile/)
  })

  await t.test('while the provider is down nothing is renewed, and the page says why', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(50 * HOUR)
    kit.upstream.answer = (_request, response) => Boolean(response.writeHead(503).end())
    const page = await mia.browser.open('/account')
    t.match(readError(page), /isn’t responding as it should/)
    t.match(page.text, /href="\/account\/sign-in/, 'with a way back')
    t.notOk(await refresh(harness, app, mia))
    kit.upstream.answer = null
    kit.clock.advance(11 * 60_000)
    t.match((await mia.browser.open(await answerOf((await mia.browser.open('/account')).left))).title, /Profile/)
    t.ok(await refresh(harness, app, mia))
  })

  await t.test('an app may give back a token that it may not use', async (t) => {
    const mia = await enterApp(harness, app)
    kit.clock.advance(25 * HOUR)
    await harness.post('revoke', { token: mia.refresh }, app)
    await enterApp(harness, app)
    t.notOk(await refresh(harness, app, mia))
  })

  await t.test('an answer that was on its way when the person signed out renews nothing', async (t) => {
    const mia = await enterApp(harness, app, { ...MIA, sid: 'r1' })
    kit.clock.advance(25 * HOUR)
    const page = await mia.browser.open('/account')
    t.ok(isSilent(page))
    const answer = await answerOf(page.left)
    const response = await fetch(`${harness.url}${START}/backchannel-logout`, { method: 'POST', body: new URLSearchParams({ logout_token: kit.upstream.logoutToken({ sid: 'r1', sub: 'mia' }) }) })
    t.equal(response.status, 200)
    await mia.browser.open(answer)
    t.ok(isSignedOut(await mia.browser.open('/account')))
    t.notOk(await refresh(harness, app, mia))
  })
})

eachStore(t, 'an app of an earlier release, which does not say by which provider it came', async (t, start) => {
  const harness = await start({ signUp: true, upstream: ONLY })
  const { kit } = harness
  const app = await harness.register()
  const mia = await enterApp(harness, app)
  const grants = kit.app.identity.store.collection<{ id: string }>('grants')
  for await (const batch of grants.stream()) for (const { id } of batch) await grants.update(id, { unset: ['upstream_proof', 'upstream_sid'] })
  t.ok(await refresh(harness, app, mia))
  kit.clock.advance(25 * HOUR)
  t.notOk(await refresh(harness, app, mia))
  await enterApp(harness, app)
  t.ok(await refresh(harness, app, mia))
})

eachStore(t, 'an app that somebody gave access by a password, before a provider alone let them in', async (t, start) => {
  const harness = await start({ signUp: true, upstream: ONLY })
  const { kit } = harness
  const app = await harness.register()
  const otto = await addUser(harness, 'otto@elsewhere.example')
  const browser = harness.browser()
  const { body } = await harness.post('token', await getCode({ ...harness, user: otto }, app, {}, browser), app)
  const signedIn = { browser, refresh: String(body.refresh_token) }
  t.ok(await refresh(harness, app, signedIn))
  const fields = { account: 'otto@corp.example', email: 'otto@corp.example', addresses: ['otto@corp.example'], email_verified_at: new Date(kit.clock.now()).toISOString() }
  await kit.app.identity.store.collection('users').update(otto.user_id, { set: fields })
  t.notOk(await refresh(harness, app, signedIn), 'gets nothing until they have signed in there')
  for (const url of ['/account', askCode(app).url]) {
    const page = await browser.open(url)
    t.match(page.text, /<button type="submit" name="upstream" value="test">/, 'the page has the button, although there is a session')
    kit.upstream({ sub: 'otto', email: 'otto@corp.example', email_verified: true })
    t.equal((await page.submit({ upstream: 'test' })).left?.origin, kit.upstream.issuer)
  }
  const there = await enterApp(harness, app, { sub: 'otto', email: 'otto@corp.example', email_verified: true })
  for (const one of [signedIn, there]) t.ok(await refresh(harness, app, one))
  kit.clock.advance(25 * HOUR)
  for (const one of [signedIn, there]) t.notOk(await refresh(harness, app, one))
})

eachStore(t, 'an upstream with bounds of its own', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { sessionMax: 3600, refreshMax: 7200 } })
  const { kit } = harness
  const app = await harness.register()
  const mia = await enterApp(harness, app)
  kit.clock.advance(61 * 60_000)
  t.ok(isSilent(await mia.browser.open('/account')))
  t.ok(await refresh(harness, app, mia))
  kit.clock.advance(HOUR)
  t.notOk(await refresh(harness, app, mia))
})

eachStore(t, 'an upstream without bounds', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const mia = await enterApp(harness, await harness.register())
  harness.kit.clock.advance(5 * 24 * HOUR)
  t.match((await mia.browser.open('/account')).title, /Profile/)
  t.match(await leave(harness.browser(), START), URL)
})
