import t from 'tap'
import { startReceiver } from '../helpers/receiver.ts'
import { type App, type Harness, askCode, eachStore, getCode } from '../oidc/harness.ts'
import type { Browser } from '../oidc/browser.ts'
import { addUser, enter, isSignedOut } from '../pages/visits.ts'
import { answerOf, leave, readError, through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const PATH = `${START}/backchannel-logout`

/** What a browser has of a sign-in with the provider, and an app of it. */
interface SignedIn { browser: Browser, access: string, refresh: string }

async function send ({ url }: Harness, token: string): Promise<{ status: number, body: string, headers: Headers }> {
  const response = await fetch(`${url}${PATH}`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) })
  return { status: response.status, headers: response.headers, body: await response.text() }
}

/** Signs in to an app with the provider. */
async function enterApp (harness: Harness, app: App, claims: Record<string, unknown>, scope = 'openid offline_access read'): Promise<SignedIn> {
  harness.kit.upstream({ email_verified: true, ...claims })
  const browser = harness.browser()
  const { url, verifier } = askCode(app, { scope })
  const page = await through(browser, await browser.open(url))
  const code = page.left?.searchParams.get('code')
  if (typeof code !== 'string') throw new Error(readError(page))
  const { body } = await harness.post('token', { code, code_verifier: verifier, redirect_uri: app.redirect_uri, grant_type: 'authorization_code' }, app)
  return { browser, access: String(body.access_token), refresh: String(body.refresh_token) }
}

/** What is left: the browser, the access token and the refresh token, each as true or false. */
async function look (harness: Harness, app: App, { browser, access, refresh }: SignedIn): Promise<string> {
  const [page, info] = [await browser.open('/account'), await harness.get('userinfo', access)]
  const renewed = refresh === 'undefined' ? { status: 400, body: {} } : await harness.post('token', { grant_type: 'refresh_token', refresh_token: refresh }, app)
  const left = [...(isSignedOut(page) ? [] : ['browser']), ...(info.status === 200 ? ['access'] : []), ...(renewed.status === 200 ? ['refresh'] : [])]
  return left.join(' ') || 'nothing'
}

const ALL = 'browser access refresh'

eachStore(t, 'a logout token of the provider', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const [app, bound] = [await harness.register(), await harness.register({ name: 'Bound' })]
  const { received, url: receiver } = await startReceiver(t)
  for (const { client_id } of [app, bound]) {
    await kit.app.identity.clients.patch(client_id, { data: { backchannelLogoutUri: `${receiver}/${client_id}` } }, { user_id: 'nobody', isAdmin: true })
  }
  const ann = (sid?: string) => ({ sub: 'ann', email: 'a@example.org', ...(sid !== undefined && { sid }) })

  await t.test('of a session ends what came of that session, and no other', async (t) => {
    const [one, two, offline] = [await enterApp(harness, bound, ann('s1'), 'openid'), await enterApp(harness, bound, ann('s2'), 'openid'), await enterApp(harness, app, ann('s1'))]
    const answer = await send(harness, kit.upstream.logoutToken({ sub: 'ann', sid: 's1' }))
    t.match(answer, { status: 200, body: '' })
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.equal(await look(harness, bound, one), 'nothing')
    t.equal(await look(harness, bound, two), 'browser access')
    t.equal(await look(harness, app, offline), 'access refresh', 'the app that was to outlast the session goes on')
    await kit.flush()
    t.strictSame(received.splice(0).map(({ path }) => path).sort(), [`/${app.client_id}`, `/${bound.client_id}`].sort(), 'our apps are told')
    const [event] = (await kit.events.list({ type: 'identity.signed_out' })).slice(-1)
    t.match(event, { via: { upstream: 'test', subject: /^[\w-]{22}$/ }, actor: { via: 'api' } })
    t.equal(event?.actor.user_id, undefined)
  })

  await t.test('of a session without a subject does the same', async (t) => {
    const one = await enterApp(harness, bound, ann('s3'), 'openid')
    t.equal((await send(harness, kit.upstream.logoutToken({ sid: 's3' }))).status, 200)
    t.equal(await look(harness, bound, one), 'nothing')
  })

  await t.test('of a person ends all that came of that identity, with what was to outlast it', async (t) => {
    const [one, two, bob] = [await enterApp(harness, app, ann('s4')), await enterApp(harness, app, ann()), await enterApp(harness, app, { sub: 'bob', email: 'b@example.org', sid: 's4b' })]
    t.equal((await send(harness, kit.upstream.logoutToken({ sub: 'ann' }))).status, 200)
    for (const signedIn of [one, two]) t.equal(await look(harness, app, signedIn), 'nothing')
    t.equal(await look(harness, app, bob), ALL, 'and nothing of anybody else')
    kit.clock.advance(1000)
    t.equal(await look(harness, app, await enterApp(harness, app, ann('s5'))), ALL, 'who signs in again is in')
  })

  await t.test('does not end what the person has proved in another way', async (t) => {
    const dora = await addUser(harness, 'dora@example.com')
    const [browser, tab] = [harness.browser(), harness.browser()]
    kit.upstream({ sub: 'dora', email: 'dora@example.com', email_verified: true, sid: 's6' })
    await (await through(browser, START)).submit({ account: dora.account, password: dora.password })
    await enter(harness, '/account', tab, dora)
    const { browser: third } = await enterApp(harness, app, { sub: 'dora', email: 'dora@example.com', sid: 's7' })
    t.equal((await send(harness, kit.upstream.logoutToken({ sub: 'dora' }))).status, 200)
    t.notOk(isSignedOut(await tab.open('/account')), 'by the password')
    t.ok(isSignedOut(await third.open('/account')))
  })

  await t.test('of a session that is not known here ends sign-ins that came without one', async (t) => {
    const [bare, named] = [await enterApp(harness, app, ann()), await enterApp(harness, app, ann('s8'))]
    t.equal((await send(harness, kit.upstream.logoutToken({ sub: 'ann', sid: 'never seen' }))).status, 200)
    t.equal(await look(harness, app, bare), 'access refresh')
    t.equal(await look(harness, app, named), ALL)
    t.equal((await send(harness, kit.upstream.logoutToken({ sid: 'never seen either' }))).status, 200, 'and without a subject nothing')
    t.equal(await look(harness, app, named), ALL)
  })
})

eachStore(t, 'what an earlier release has stored of a sign-in with a provider', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const { store } = kit.app.identity
  const app = await harness.register()
  const ann = { sub: 'ann', email: 'a@example.org', sid: 'o1' }

  /** Takes away what that release did not store. */
  async function age (): Promise<void> {
    for (const [name, fields] of [['sign_in_sessions', ['upstream_sid']], ['grants', ['upstream_sid', 'upstream_proof']]] as const) {
      for await (const batch of store.collection<{ id: string, proofs?: { session?: string, asked_at?: string }[] }>(name).stream()) {
        for (const { id, proofs } of batch) {
          const former = proofs?.map(({ session: _session, asked_at: _asked, ...proof }) => proof)
          await store.collection(name).update(id, { unset: [...fields], ...(former && { set: { proofs: former as never } }) })
        }
      }
    }
  }

  await t.test('ends with a session that nothing here has', async (t) => {
    const old = await enterApp(harness, app, ann)
    await age()
    t.equal((await send(harness, kit.upstream.logoutToken({ sub: 'ann', sid: 'o1' }))).status, 200)
    t.equal(await look(harness, app, old), 'access refresh')
  })

  await t.test('and with the person, but not what they had by a password', async (t) => {
    const old = await enterApp(harness, app, { ...ann, sid: 'o2' })
    const { body } = await harness.post('token', await getCode(harness, app), app)
    await age()
    t.equal((await send(harness, kit.upstream.logoutToken({ sub: 'ann' }))).status, 200)
    t.equal(await look(harness, app, old), 'nothing')
    t.equal((await harness.get('userinfo', String(body.access_token))).status, 200)
  })
})

/** Where a sign-in is when the token arrives. */
const STAGES: Record<string, (harness: Harness, browser: Browser, logout: () => Promise<unknown>) => Promise<{ title: string, text: string }>> = {
  async 'before the answer' (_harness, browser, logout) {
    const answer = await answerOf(await leave(browser, START))
    await logout()
    return await browser.open(answer)
  },
  async 'between the answer and the account' (harness, browser, logout) {
    harness.kit.upstream({ sub: 'new', sid: 'm1' })
    const page = await through(browser, START)
    await logout()
    const next = await page.submit({ account: 'somebody' })
    if (await harness.kit.app.identity.store.collection('users').getBy('account', 'somebody') !== null) throw new Error('an account was made')
    return next
  },
  async 'before the second factor' (harness, browser, logout) {
    await through(browser, START)
    const user = await harness.kit.app.identity.store.collection<{ id: string, account: string }>('users').getBy('account', 'm@example.org')
    const totp = await harness.kit.totp(user!.id)
    const other = harness.browser()
    const page = await through(other, START)
    await logout()
    return await page.submit({ code: await totp.code() })
  },
  async 'after the sign-in, before the app has its code' (harness, browser, logout) {
    const app = await harness.register({ first_party: false })
    const page = await through(browser, await browser.open(askCode(app).url))
    if (!page.title.startsWith('Continue to')) throw new Error(page.title)
    await logout()
    return await page.submit({ decision: 'allow' })
  }
}

for (const [about, claims] of [['a session', { sid: 'm1' }], ['a person', {}]] as const) {
  for (const [stage, run] of Object.entries(STAGES)) {
    eachStore(t, `a logout token of ${about}, ${stage}`, async (t, start) => {
      const harness = await start({ signUp: true, upstream: {} })
      const { kit } = harness
      kit.upstream({ sub: 'mia', email: 'm@example.org', email_verified: true, sid: 'm1' })
      const browser = harness.browser()
      const page = await run(harness, browser, async () => {
        for (const sub of ['mia', 'new']) {
          const { status, body } = await send(harness, kit.upstream.logoutToken({ ...(about === 'a person' && { sub }), ...claims }))
          t.equal(status, 200, body)
        }
      })
      t.notMatch(page.title, /Profile/)
      t.notMatch((page as { left?: URL }).left?.searchParams.has('code'), true)
      t.ok(isSignedOut(await browser.open('/account')), `ends it: ${page.title}`)
      kit.upstream({ sub: 'mia', email: 'm@example.org', email_verified: true, sid: 'm2' })
      kit.clock.advance(1000)
      t.notOk(isSignedOut(await through(harness.browser(), START)), 'and the next sign-in is one')
    })
  }
}
