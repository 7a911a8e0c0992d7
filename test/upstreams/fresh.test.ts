import t, { type Test } from 'tap'
import { type App, type Harness, askCode, eachStore } from '../oidc/harness.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { createApp } from '../../testing/kit.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { addUser, isSignedOut } from '../pages/visits.ts'
import { agree, answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const STALE = /didn’t ask you to sign in again/
const UNDATED = /doesn’t tell us when you last signed in/
const HOUR = 60 * 60

t.setTimeout(120_000)

/** What apps ask, with what the provider is then asked. */
const ASKED: { params: Record<string, string>, max_age: string }[] = [
  { params: { prompt: 'login' }, max_age: '0' },
  { params: { max_age: '60' }, max_age: '60' },
  { params: { prompt: 'login', max_age: '3600' }, max_age: '0' },
  { params: { prompt: 'login consent' }, max_age: '0' },
  { params: { max_age: '0' }, max_age: '0' }
]

const isIn = (page: Page): boolean => /./.test(page.left?.searchParams.get('code') ?? '') || /<button[^>]*value="allow"/.test(page.text)

/** Signs in to an app with the provider, by the link of the page. A new person agrees to the account. */
async function enter (browser: Browser, app: App, params: Record<string, string>): Promise<{ asked: URL, page: Page }> {
  const asked = await leave(browser, await browser.open(askCode(app, params).url))
  return { asked, page: await agree(await browser.open(await answerOf(asked))) }
}

/** Seconds since 1970 by the service's clock, that long ago. */
const ago = ({ kit }: Harness, seconds: number): number => Math.floor(kit.clock.now() / 1000) - seconds

async function makePerson (t: Test, harness: Harness, sub: string): Promise<Browser> {
  harness.kit.upstream({ sub, email: `${sub}@example.org`, email_verified: true })
  const browser = harness.browser()
  t.match((await through(browser, START)).title, /Profile/)
  return browser
}

eachStore(t, 'an app that asks for a recent sign-in', async (t, start) => {
  const lines: string[] = []
  const harness = await start({ app: createApp({ logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } }), signUp: true, upstream: {} })
  const { kit } = harness
  const app = await harness.register()
  const users = kit.app.identity.store.collection('users')
  await makePerson(t, harness, 'ann-o')

  for (const { params, max_age } of ASKED) {
    await t.test(`with ${JSON.stringify(params)}: the provider is asked, and its answer judged, in a browser without a session`, async (t) => {
      for (const [claims, isEnough] of [
        [{ auth_time: ago(harness, 20 * HOUR) }, false],
        [{ auth_time: ago(harness, 200) }, false],
        [{ auth_time: ago(harness, 0) }, true],
        [{}, true]
      ] as const) {
        kit.upstream({ sub: 'ann-o', ...claims })
        const { asked, page } = await enter(harness.browser(), app, params)
        t.match(Object.fromEntries(asked.searchParams), { prompt: 'login', max_age })
        if (isEnough) t.ok(isIn(page), `${JSON.stringify(claims)} ${readError(page)}`)
        else t.match(readError(page), STALE)
      }
    })
  }

  await t.test('a sign-in there that is recent enough for max_age is', async (t) => {
    kit.upstream({ sub: 'ann-o', auth_time: ago(harness, 3000) })
    t.ok(isIn((await enter(harness.browser(), app, { max_age: '3600' })).page))
    kit.upstream({ sub: 'ann-o', auth_time: ago(harness, 20 * HOUR) })
    t.ok(isIn((await enter(harness.browser(), app, {})).page), 'and any is for an app that does not ask')
  })

  await t.test('the clock of the provider may be a minute behind, and the log says by how much it is more', async (t) => {
    kit.upstream({ sub: 'ann-o', auth_time: ago(harness, 45) })
    t.ok(isIn((await enter(harness.browser(), app, { prompt: 'login' })).page))
    lines.length = 0
    kit.upstream({ sub: 'ann-o', auth_time: ago(harness, 360) })
    t.match(readError((await enter(harness.browser(), app, { prompt: 'login' })).page), STALE)
    const seconds = Number(/the upstream test has signed somebody in who did so (\d+) s earlier/.exec(lines.join(''))?.[1])
    t.ok(seconds > 240 && seconds <= 300, `${seconds} s`)
    t.notMatch(lines.join(''), /ann-o/)
  })

  await t.test('a clock that is minutes ahead does not make an old sign-in recent', async (t) => {
    const present = Math.floor(Date.now() / 1000)
    kit.upstream({ sub: 'ann-o', iat: present + 280, auth_time: present - 20, exp: present + 600 })
    t.match(readError((await enter(harness.browser(), app, { prompt: 'login' })).page), STALE)
    kit.upstream({ sub: 'ann-o', iat: present + 280, auth_time: present + 280, exp: present + 600 })
    t.ok(isIn((await enter(harness.browser(), app, { prompt: 'login' })).page))
  })

  await t.test('also of a new person, who gets no account', async (t) => {
    const claims = { sub: 'new', email: 'new@example.org', email_verified: true }
    kit.upstream({ ...claims, auth_time: ago(harness, 20 * HOUR) })
    t.match(readError((await enter(harness.browser(), app, { max_age: '60' })).page), STALE)
    t.equal(await users.getBy('account', 'new@example.org'), null)
    kit.upstream({ ...claims, auth_time: ago(harness, 0) })
    t.ok(isIn((await enter(harness.browser(), app, { max_age: '60' })).page))
  })

  await t.test('and where the browser is signed in to another account', async (t) => {
    for (const sub of ['ann-o', 'another new one']) {
      const browser = await makePerson(t, harness, 'ben')
      const page = await browser.open(askCode(app, { prompt: 'login', max_age: '60' }).url)
      kit.upstream({ sub, auth_time: ago(harness, 20 * HOUR) })
      const uid = new URL(page.response.url).pathname.split('/').at(-1)!
      for (const leaving of [async () => (await page.submit({ upstream: 'test' })).left, async () => await leave(browser, `${START}?uid=${uid}`)]) {
        t.match(readError(await browser.open(await answerOf(await leaving()))), STALE)
      }
      kit.upstream({ sub: 'ben' })
      t.match((await browser.open('/account')).text, /ben@example\.org/)
    }
  })

  await t.test('a link that does not ask the provider is of no use', async (t) => {
    const of = async (claims: object, sub = 'ann-o') => {
      const browser = harness.browser()
      const page = await browser.open(askCode(app, { max_age: '60' }).url)
      kit.upstream({ sub, ...claims })
      const uid = new URL(page.response.url).pathname.split('/').at(-1)!
      const asked = await leave(browser, `${START}?uid=${uid}`)
      t.equal(asked.searchParams.get('prompt'), null)
      return await browser.open(await answerOf(asked))
    }
    t.match(readError(await of({ auth_time: ago(harness, 20 * HOUR) })), STALE)
    t.match(readError(await of({})), UNDATED)
    t.match(readError(await of({ email: 'third@example.org', email_verified: true }, 'third')), STALE)
    t.equal(await users.getBy('account', 'third@example.org'), null)
  })

  await t.test('upstream= leads to the provider with the same question', async (t) => {
    const browser = harness.browser()
    const { left } = await browser.open(askCode(app, { upstream: 'test', prompt: 'login' }).url)
    t.match(Object.fromEntries(left!.searchParams), { prompt: 'login', max_age: '0' })
  })

  await t.test('a sign-in that was not recent makes no session that is', async (t) => {
    for (const claims of [{ auth_time: ago(harness, HOUR) }, {}]) {
      kit.upstream({ sub: 'ann-o', ...claims })
      const browser = harness.browser()
      t.ok(isIn((await enter(browser, app, {})).page))
      const page = await browser.open(askCode(app, { max_age: '600' }).url)
      t.equal(page.left, undefined, JSON.stringify(claims))
      t.match((await browser.open('/account/factors/add')).title, /Confirm it’s you/)
    }
  })
})

eachStore(t, 'a provider that does not say when', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const app = await harness.register()
  const { user_id, account, password } = await addUser(harness, 'pat@example.org')
  kit.upstream({ sub: 'pat', email: 'pat@example.org', email_verified: true })
  const first = harness.browser()
  const asked = await first.open(await answerOf(await leave(first, START)))
  t.match((await asked.submit({ account, password })).title, /Profile/, 'linked')

  await t.test('proves who, of somebody with a password, and not when', async (t) => {
    const browser = harness.browser()
    const listFailed = async () => await kit.events.list({ type: 'sign_in.failed', user: user_id })
    const before = (await listFailed()).length
    const { page } = await enter(browser, app, { prompt: 'login' })
    t.match(readError(page), UNDATED)
    t.match((await listFailed()).slice(before), [{ via: { upstream: 'test' }, outcome: 'failure' }], 'which is recorded')
    t.equal((await listFailed()).length, before + 1, 'once')
    t.ok(isIn(await page.submit({ account, password })), 'the same page takes the password')
    t.ok(isIn((await enter(harness.browser(), app, {})).page), 'and signs them in where nobody asks')
  })

  await t.test('nor where they confirm that it is them', async (t) => {
    const browser = harness.browser()
    await browser.open(await answerOf(await leave(browser, START)))
    const again = await browser.open('/account/methods')
    t.match(again.title, /Confirm it’s you/)
    const page = await browser.open(await answerOf((await again.submit({ upstream: 'test' })).left))
    t.match(readError(page), UNDATED)
    t.match((await browser.open('/account/methods')).title, /Confirm it’s you/)
    t.match((await page.submit({ account, password })).title, /Profile|Sign-in methods/)
    t.match((await browser.open('/account/methods')).title, /Sign-in methods/)
  })

  await t.test('and of somebody with a factor, the factor says when', async (t) => {
    const totp = await kit.totp(user_id)
    const browser = harness.browser()
    const { page } = await enter(browser, app, { prompt: 'login' })
    t.match(page.title, /second step|code/i)
    kit.clock.advance(30_000)
    t.ok(isIn(await page.submit({ code: await totp.code() })))
    const old = harness.browser()
    kit.upstream({ sub: 'pat', auth_time: ago(harness, 20 * HOUR) })
    t.match(readError((await enter(old, app, { prompt: 'login' })).page), STALE, 'not where the provider says that it was long ago')
  })
})

eachStore(t, 'a session that began with an answer without a time', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {}, oidc: { sessionMax: 12 * HOUR } })
  const { kit } = harness
  const browser = harness.browser()
  kit.upstream({ sub: 'zoe', email: 'zoe@example.org', email_verified: true })
  const began = kit.clock.now()
  await through(browser, START)

  await t.test('lasts from the answer, also where sessions last less than a day', async (t) => {
    t.match((await browser.open('/account')).title, /Profile/)
    kit.clock.advance(11 * HOUR * 1000)
    t.match((await browser.open('/account')).title, /Profile/)
  })

  await t.test('says so to its owner', async (t) => {
    const { id } = (await kit.app.identity.store.collection<UserRecord>('users').getBy('account', 'zoe@example.org'))!
    const [shown] = (await kit.app.identity.ownSessions.listBrowsers(id)).entries
    t.ok(Date.parse(shown!.signed_in_at) >= began, shown!.signed_in_at)
  })

  await t.test('and no longer', async (t) => {
    kit.clock.advance(HOUR * 1000)
    t.ok(isSignedOut(await browser.open('/account')))
  })
})
