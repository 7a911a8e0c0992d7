import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { listRemovals, nextCode, passCodeUsed, pathOf, readSeed } from '../pages/factors.ts'
import { addUser, enter, isSignedOut, post } from '../pages/visits.ts'
import type { Browser, Page } from './browser.ts'
import { type Harness, askCode, eachStore, signIn, startHarness } from './harness.ts'

t.setTimeout(300_000)

const { account: own, codeUsed: words, errors, secondStep } = en
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'

const isTold = ({ title }: Page): boolean => title === words.title

/** People with an authenticator app, who sign in with their recovery codes. */
function createPeople (harness: Harness) {
  const { kit, browser } = harness
  let count = 0

  /** Enters a recovery code on the page of the second step. */
  async function useCode (second: Page, code: string): Promise<Page> {
    const link = /<a href="([^"]*way=recovery)"/.exec(second.text)?.[1] ?? ''
    return await (await second.browser.open(link.replaceAll('&amp;', '&'))).submit({ code })
  }

  return async function create () {
    const user = await addUser(harness, `owner${count++}@example.com`)
    const totp = await kit.totp(user.user_id)
    const codes = [...totp.recoveryCodes]
    const as = { ...harness, user }
    const take = () => codes.shift()!
    return {
      user,
      as,
      totp,
      take,
      /** Signs in to an app with a code. */
      toApp: async (url: string, tab: Browser = browser()) => await useCode(await signIn(as, url, tab), take()),
      /** Signs in to the account with a code. */
      toAccount: async (path = '/account', tab: Browser = browser()) => await useCode(await enter(as, path, tab), take())
    }
  }
}

eachStore(t, 'after a sign-in to an app with a backup code', async (t, start) => {
  const harness = await start({ signUp: true })
  const { kit, browser, register } = harness
  const app = await register()
  const create = createPeople(harness)
  const asked = (params: Record<string, string> = {}) => askCode(app, { acr_values: '1', ...params })
  const redeem = async ({ left }: Page, { verifier }: { verifier: string }, of = app) => await harness.post('token', {
    grant_type: 'authorization_code', code: left?.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: of.redirect_uri
  }, of)

  await t.test('a page says how many are left, once, and continues to the app', async (t) => {
    const { toApp, user } = await create()
    const request = asked()
    const page = await toApp(request.url)
    t.ok(isTold(page))
    t.equal(page.left, undefined)
    t.match(page.text, '9 codes left.')
    t.match(page.text, `<a class="button" href="/account/methods" target="_blank" rel="noopener">${words.replace}</a>`, 'the sign-in stays open in this tab')
    t.notMatch(page.text, '<script')
    t.match((await page.browser.open('/account/methods')).text, '9 codes left.', 'the account needs no other sign-in')
    t.ok(isTold(await page.browser.open(page.response.url)), 'it is still there')
    const done = await page.submit()
    t.match((await redeem(done, request)).body, { access_token: String })
    t.equal((await page.submit()).left?.href, done.left?.href, 'sent twice, it is answered as before')
    t.type((await page.browser.open(asked().url)).left, URL, 'single sign-on')
    t.type((await page.browser.open(asked({ prompt: 'none' }).url)).left?.searchParams.get('code'), 'string')
    t.match(await kit.events.list({ user: user.user_id, type: 'sign_in.succeeded' }), [{ acr: 'mfa', method: { kind: 'password' } }])
  })

  await t.test('other methods have no such page, also when the session has a code', async (t) => {
    const { toApp, as, totp } = await create()
    const next = async () => {
      kit.clock.advance(30_000)
      return { code: await totp.code() }
    }
    t.type((await (await signIn(as, asked().url)).submit(await next())).left, URL)
    const { browser: tab } = await passCodeUsed(await toApp(asked().url))
    const again = await signIn(as, asked({ prompt: 'login' }).url, tab)
    t.type((await again.submit(await next())).left, URL)
  })

  await t.test('prompt=login, max_age and the consent are answered once', async (t) => {
    const { toApp } = await create()
    for (const [name, value] of [['prompt', 'login'], ['max_age', '0'], ['prompt', 'select_account']] as const) {
      t.type((await passCodeUsed(await toApp(asked({ [name]: value }).url))).left, URL, `${name}=${value}`)
    }
    const third = await register({ first_party: false })
    const request = askCode(third)
    const consent = await passCodeUsed(await toApp(request.url))
    t.match(consent.title, /^Continue to/)
    t.match((await redeem(await consent.submit({ decision: 'allow' }), request, third)).status, 200)
  })

  await t.test('the last code is said to be the last', async (t) => {
    const { toApp, take, user } = await create()
    for (let left = 10; left > 1; left--) await kit.app.identity.factors.verifyCode(user.user_id, take())
    const page = await toApp(asked().url)
    t.match(page.text, words.none)
    t.match(page.text, words.replace)
    t.type((await page.submit()).left, URL, 'and nobody is kept from going on')
  })

  await t.test('who replaces the lost method meanwhile, and signs out everywhere else, continues to the app', async (t) => {
    const { toApp, take, user } = await create()
    const request = asked()
    const page = await toApp(request.url)
    const tab = page.browser
    const proof = () => ({ current_password: user.password, code: take() })
    const list = await tab.open('/account/methods')
    const begun = await post(list, '/account/factors', { name: 'New phone', ...proof() })
    const added = await post(begun, pathOf(begun), { code: await nextCode(kit.clock, readSeed(begun)) })
    t.match(added.text, own.done['factor-more'])
    const removed = await post(added, listRemovals(added)[0]!, { ...proof(), end_sessions: 'yes' })
    t.match(removed.text, own.done['factor-removed'])
    t.equal((await kit.app.identity.store.collection<UserRecord>('users').get(user.user_id))?.epoch, 1)
    const { body } = await redeem(await page.submit(), request)
    const info = await harness.get('tokeninfo', String(body['access_token']))
    t.match(info.body['data'] ?? info.body, { acr: 'mfa', user_id: user.user_id }, 'with a token that counts')
    t.notOk(isSignedOut(await tab.open('/account')))
  })

  await t.test('it signs nobody in again: neither who has signed out, nor somebody else', async (t) => {
    const { toApp } = await create()
    const left = await toApp(asked().url)
    await post(await left.browser.open('/account'), '/account/sign-out')
    t.match((await left.browser.open(left.response.url)).text, errors.signInOver, 'the page says nothing of somebody who is signed out')
    t.match([(await left.submit()).left, isSignedOut(await left.browser.open('/account'))], [undefined, true])

    const other = await addUser(harness, 'somebody@else.example')
    const page = await toApp(asked().url)
    await post(await page.browser.open('/account'), '/account/sign-out')
    await enter({ ...harness, user: other }, '/account', page.browser)
    t.equal((await page.submit()).left, undefined)
    t.match((await page.browser.open('/account')).text, other.account, 'they stay who they are')
  })

  await t.test('who signs out after "Continue", before the browser goes on, stays signed out; who is signed in by then, stays who they are', async (t) => {
    const other = await addUser(harness, 'next@else.example')
    for (const next of [undefined, other]) {
      const { browser: tab, response: { url } } = await (await create()).toApp(asked().url)
      const form = { method: 'POST', body: new URLSearchParams(), headers: { origin: tab.origin } }
      const to = (await tab.fetch(url, form)).headers.get('location') ?? ''
      await post(await tab.open('/account'), '/account/sign-out')
      if (next !== undefined) await enter({ ...harness, user: next }, '/account', tab)
      const over = await tab.open(to)
      t.match([over.left, over.title, over.error], [undefined, errors.heading, 'invalid_request'])
      const account = await tab.open('/account')
      t.ok(next === undefined ? isSignedOut(account) : account.text.includes(next.account))
    }
  })

  await t.test('a person who was disabled or deleted, or whose password was set anew by an administrator, gets no further', async (t) => {
    const { users } = kit.app.identity
    const admin = { user_id: '', isAdmin: true }
    const ends: Record<string, (id: string) => Promise<unknown>> = {
      disabled: async (id) => await users.patch(id, { disable: true }, admin),
      'a new password': async (id) => await users.patch(id, { data: { password: 'another horse' } }, admin),
      deleted: async (id) => await users.remove(id, admin)
    }
    for (const [name, end] of Object.entries(ends)) {
      const { toApp, user } = await create()
      const page = await toApp(asked().url)
      await end(user.user_id)
      t.match((await page.browser.open(page.response.url)).text, errors.signInOver, name)
      const done = await page.submit()
      t.match([done.left?.searchParams.get('code'), isSignedOut(await page.browser.open('/account'))], [undefined, true], name)
    }
  })

  await t.test('a form of a stranger changes nothing, and no link leads out of the page', async (t) => {
    const { toApp } = await create()
    const page = await toApp(asked().url)
    const { pathname } = new URL(page.response.url)
    t.match((await page.submit({}, { origin: 'https://evil.example' })).text, errors.otherSite)
    const forged = await post({ ...page, browser: browser() } as Page, pathname)
    t.match([forged.left, forged.response.status], [undefined, 400], 'without the cookie of the sign-in')
    for (const query of ['account=other', 'way=password']) t.ok(isTold(await page.browser.open(`${pathname}?${query}`)), query)
    for (const path of [`${pathname}/forgot`, `${pathname}/sign-up`]) t.match((await page.browser.open(path)).text, errors.signInOver, path)
    t.ok(isTold(await page.browser.open(pathname)))
    const done = await post(page, `${pathname}?account=other`, { account: 'mallory', password: 'x', decision: 'deny' })
    t.type(done.left?.searchParams.get('code'), 'string', 'whatever the form has, it only continues')
  })

  await t.test('at a device too', async (t) => {
    const { toApp } = await create()
    const device = await register({ public: true })
    const { body } = await harness.post('device_authorization', { scope: 'openid' }, device)
    const tab = browser()
    const confirm = await (await tab.open('/api/v1/auth/device')).submit({ user_code: String(body['user_code']) })
    const page = await toApp((await confirm.submit()).response.url, tab)
    const consent = await passCodeUsed(page)
    t.match((await consent.submit({ decision: 'allow' })).title, /connected/)
    t.equal((await harness.post('token', { grant_type: DEVICE, device_code: String(body['device_code']) }, device)).status, 200)
  })
})

eachStore(t, 'after a sign-in to the account with a backup code', async (t, start) => {
  const harness = await start()
  const { kit, browser } = harness
  const create = createPeople(harness)

  await t.test('a page says how many are left, and continues to where the sign-in leads', async (t) => {
    const { toAccount } = await create()
    const page = await toAccount('/account/sessions')
    t.ok(isTold(page))
    t.match(page.text, '9 codes left.')
    t.match(page.text, `<a class="button" href="/account/methods">${words.replace}</a>`)
    t.match((await page.browser.open('/account')).title, own.sections.profile, 'the person is signed in')
    t.equal((await passCodeUsed(page)).title, own.sections.sessions)
    t.equal((await passCodeUsed(await toAccount())).title, own.sections.profile)
  })

  await t.test('it takes no form, counts nothing and leads nowhere else', async (t) => {
    const { toAccount, user } = await create()
    const page = await toAccount()
    t.notMatch(page.text, '<form')
    const users = kit.app.identity.store.collection<UserRecord>('users')
    const before = await users.get(user.user_id)
    const open = async (query: string, tab = page.browser) => await tab.open(`/account/sign-in/code-used?${query}`)
    for (const next of ['https://evil.example', '//evil.example', '../api', 'javascript:alert(1)', 'profile']) {
      const shown = await open(new URLSearchParams({ next }).toString())
      t.match(shown.text, 'class="button primary" href="/account"', next)
    }
    t.match((await open('next=a&next=b')).response.status, 200)
    t.equal((await post(page, '/account/sign-in/code-used')).response.status, 404)
    t.strictSame(await users.get(user.user_id), before)
    t.ok(isSignedOut(await open('', browser())), 'a stranger signs in')
  })

  await t.test('nobody else gets it', async (t) => {
    const { as, totp } = await create()
    const second = await enter(as)
    t.equal(second.title, secondStep.title.totp)
    kit.clock.advance(30_000)
    const into = await second.submit({ code: await totp.code() })
    t.equal(into.title, own.sections.profile)
    t.equal((await into.browser.open('/account/sign-in/code-used?next=sessions')).title, own.sections.sessions)
  })
})

t.test('without account pages there is nothing to replace a method with', async (t) => {
  const harness = await startHarness(t, { oidc: { accountPath: false } })
  const { toApp } = await createPeople(harness)()
  const page = await toApp(askCode(await harness.register()).url)
  t.ok(isTold(page))
  t.match(page.text, '9 codes left.')
  t.notMatch(page.text, words.replace)
  t.type((await page.submit()).left, URL)
})
