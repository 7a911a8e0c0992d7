import t from 'tap'
import { IdentityError } from '../../lib/errors.ts'
import { PAGE_PATHS } from '../../lib/accounts/links.ts'
import { en } from '../../lib/pages/texts/en.ts'
import type { Browser, Page } from '../oidc/browser.ts'
import { askCode, eachStore } from '../oidc/harness.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { through } from '../upstreams/through.ts'
import { enrol, nextCode } from '../pages/factors.ts'
import { addUser, enter, isSignedOut, readXsrf } from '../pages/visits.ts'

const { links: { done }, secondStep, account } = en
const NEW = 'a password of mine'

const goOn = ({ text }: Page): string => /<a class="button primary" href="([^"]*)"/.exec(text)?.[1] ?? ''

eachStore(t, 'the sign-in after the page of a link', async (t, start) => {
  const harness = await start({ signUp: true })
  const { kit, user, browser } = harness
  const { accounts, users } = kit.app.identity
  const app = await harness.register()
  const admin = { user_id: user.user_id, isAdmin: true }
  const isIn = async (tab: Browser) => (await tab.open('/account/sessions')).title.startsWith(account.sections.sessions)

  /** A link to set a password that somebody else than the user has asked for, and its token. */
  async function askReset (account: string) {
    // Mails about changes.
    await kit.mails.all()
    await accounts.forgotPassword(account, { ip: '127.0.0.1' })
    const { link = '' } = await kit.mails.next({ to: account })
    return { link, token: new URL(link).searchParams.get('token') ?? '' }
  }

  await t.test('a reset, an invitation and a sign-up sign the browser in with the password that was just set', async (t) => {
    const ann = browser()
    const { link } = await askReset(user.account)
    const set = await (await ann.open(link)).submit({ password: NEW })
    t.equal(set.title, done.password.title)
    t.match(set.text, done.doneReset)
    t.equal(goOn(set), '/account')
    t.notOk(isSignedOut(await ann.open(goOn(set))))
    t.match((await kit.events.list({ type: 'sign_in.succeeded' })).at(-1), { target: { id: user.user_id }, amr: ['pwd'], method: { kind: 'password' } }, 'as after any sign-in')
    await users.patch(user.user_id, { data: { password: user.password } }, admin)
    t.notOk(await isIn(ann), 'a new password ends it')

    const bob = browser()
    await accounts.inviteUser({ account: 'bob@example.com', return_to: app.redirect_uri, client_id: app.client_id }, admin)
    const invited = await (await bob.open((await kit.mails.next({ to: 'bob@example.com' })).link!)).submit({ password: NEW })
    t.match(invited.text, done.done)
    t.equal(goOn(invited), app.redirect_uri)
    t.ok(await isIn(bob))

    const eve = browser()
    await (await eve.open('/account/sign-up')).submit({ typed: 'eve@example.com' })
    const made = await (await eve.open((await kit.mails.next({ to: 'eve@example.com' })).link!)).submit({ password: NEW })
    t.match(made.text, done.done)
    t.ok(await isIn(eve))
  })

  await t.test('a factor is asked for, and a user who was disabled meanwhile gets nowhere', async (t) => {
    const carl = await addUser(harness, 'carl@example.com')
    const { seed } = await enrol(kit.clock, await enter(harness, '/account/methods', browser(), carl), carl.password)
    const tab = browser()
    const set = await (await tab.open((await askReset(carl.account)).link)).submit({ password: NEW })
    t.match(set.text, done.next)
    t.notOk(await isIn(tab), 'the password alone signs nobody in')
    const step = await tab.open(goOn(set))
    t.equal(step.title, secondStep.title.totp)
    await step.submit({ code: await nextCode(kit.clock, seed) })
    t.ok(await isIn(tab))

    const { link } = await askReset(carl.account)
    const page = await tab.open(link)
    await users.patch(carl.user_id, { disable: true }, admin)
    t.equal((await page.submit({ password: NEW })).response.status, 410)
    t.notOk(await isIn(tab))
  })

  await t.test('a browser that is signed in to another account is asked, and stays there unless it agrees', async (t) => {
    const dora = await addUser(harness, 'dora@example.com')
    const tab = browser()
    await enter(harness, '/account', tab)
    const { link } = await askReset(dora.account)
    const page = await tab.open(link)
    t.match(page.text, user.account)
    const stayed = await page.submit({ password: NEW })
    t.match(stayed.text, user.account)
    t.match((await tab.open('/account')).text, user.account)
    t.ok(await users.verify(dora.account, NEW), 'the password is set')
    const switched = await (await tab.open((await askReset(dora.account)).link)).submit({ password: `${NEW} too`, switch: 'yes' })
    t.match(switched.text, done.doneReset)
    const own = await tab.open('/account')
    t.match(own.text, dora.account)
    t.notMatch(own.text, user.account)
  })

  await t.test('the form of a stranger sets a password and signs nobody in', async (t) => {
    const mallory = await addUser(harness, 'mallory@example.com')
    const action = `/account${PAGE_PATHS.reset}`
    const post = async (tab: Browser, fields: Record<string, string>, headers: Record<string, string> = {}) => (
      await tab.open(action, { method: 'POST', body: new URLSearchParams(fields), headers }))

    for (const isBegun of [false, true]) {
      const ann = browser()
      const { link, token } = await askReset(mallory.account)
      // The visitor may have the page of the sign-in open.
      if (isBegun) await ann.open('/account/sign-in')
      const theirs = readXsrf(await browser().open(link))
      for (const [name, value] of [['origin', 'https://evil.example'], ['sec-fetch-site', 'cross-site']] as const) {
        t.equal((await post(ann, { token, password: NEW, xsrf: theirs }, { [name]: value })).response.status, 403)
      }
      const set = await post(ann, { token, password: NEW, xsrf: theirs })
      t.equal(set.title, done.password.title, 'a client without these headers')
      t.match(set.text, done.password.text)
      t.notOk(await isIn(ann), 'a secret of another browser')
      const again = await askReset(mallory.account)
      await post(ann, { token: again.token, password: NEW })
      t.notOk(await isIn(ann), 'no secret')
    }

    const ann = browser()
    await enter(harness, '/account', ann)
    await post(ann, { token: (await askReset(mallory.account)).token, password: NEW, switch: 'yes' })
    t.match((await ann.open('/account')).text, user.account, 'nobody is signed out by it')
    const { token } = await askReset((await addUser(harness, 'trudy@example.com')).account)
    const { headers } = await kit.inject({ method: 'POST', url: '/api/v1/auth/reset', payload: { data: { token, password: NEW } } })
    t.equal(headers['set-cookie'], undefined, 'the API signs nobody in')
  })

  await t.test('somebody who forgot the password in the sign-in to an app goes on to it, in the same browser only', async (t) => {
    const ann = browser()
    const page = await ann.open(askCode(app).url)
    const forgot = await ann.open(/href="([^"]*\/forgot)"/.exec(page.text)?.[1] ?? '')
    await forgot.submit({ typed: user.account })
    const { link = '' } = await kit.mails.next({ to: user.account })
    t.match(new URL(link).pathname, /\/interaction\/[^/]+\/reset$/)
    const phone = browser()
    t.equal((await phone.open(link)).title, en.links.setPassword.reset.title, 'another browser has the page')
    const { left } = await (await ann.open(link)).submit({ password: NEW })
    t.ok(left?.searchParams.get('code'), 'to the app')

    await kit.mails.all()
    const mallory = browser()
    const theirs = await mallory.open(askCode(app).url)
    await (await mallory.open(/href="([^"]*\/forgot)"/.exec(theirs.text)?.[1] ?? '')).submit({ typed: user.account })
    const opened = await phone.open((await kit.mails.next({ to: user.account })).link!)
    const set = await opened.submit({ password: user.password })
    t.match(set.text, done.elsewhere)
    t.notOk(await isIn(phone), 'the browser has not begun that sign-in')
    t.ok(isSignedOut(await mallory.open(theirs.response.url)), 'nor is whoever asked for the link signed in')
    t.equal(set.left, undefined)
    await kit.mails.all()
  })

  /** Asks for a link in the sign-in to the app. */
  async function forgetIn (tab: Browser, params: Record<string, string | undefined>, account: string): Promise<Page> {
    const page = await tab.open(askCode(app, params).url)
    const forgot = await tab.open(/href="([^"]*\/forgot)"/.exec(page.text)?.[1] ?? '')
    await kit.mails.all()
    await forgot.submit({ typed: account })
    return await tab.open((await kit.mails.next({ to: account })).link!)
  }

  await t.test('somebody who is signed in and asked again goes on to the app, although the new password ends that session', async (t) => {
    const fred = await addUser(harness, 'fred@example.com')
    for (const params of [{ prompt: 'login' }, { prompt: 'login', max_age: '0' }]) {
      const tab = browser()
      await enter(harness, '/account', tab, fred)
      const { left, text } = await (await forgetIn(tab, params, fred.account)).submit({ password: fred.password = `${fred.password} again` })
      t.ok(left?.searchParams.get('code'), text)
      t.match((await tab.open('/account')).text, fred.account)
    }
  })

  await t.test('a link of another account asks first there too', async (t) => {
    const [gina, hugo] = [await addUser(harness, 'gina@example.com'), await addUser(harness, 'hugo@example.com')]
    const tab = browser()
    await enter(harness, '/account', tab, gina)
    const page = await forgetIn(tab, { prompt: 'login' }, hugo.account)
    t.match(page.text, gina.account)
    const stayed = await page.submit({ password: NEW })
    t.match(stayed.text, gina.account)
    t.match((await tab.open('/account')).text, gina.account)
    const { left } = await (await forgetIn(tab, { prompt: 'login' }, hugo.account)).submit({ password: `${NEW} too`, switch: 'yes' })
    t.ok(left?.searchParams.get('code'))
    t.match((await tab.open('/account')).text, hugo.account)
  })

  await t.test('a failure after the password was set says that it is set', async (t) => {
    const ida = await addUser(harness, 'ida@example.com')
    const tab = browser()
    const page = await tab.open((await askReset(ida.account)).link)
    const { signIns } = kit.app.identity
    const { proceed } = signIns
    signIns.proceed = async () => { throw new IdentityError('ErrBusy', 'the store is busy') }
    const set = await page.submit({ password: NEW })
    signIns.proceed = proceed
    t.equal(set.title, done.password.title)
    t.match(set.text, done.password.text)
    t.ok(await users.verify(ida.account, NEW))
  })

  await t.test('the URL of a form has no other path than that of its sign-in', async (t) => {
    const page = await browser().open('/api/v1/auth/interaction/..%2f..%2f..%2faccount%2freset%23/reset?token=x')
    t.equal(page.response.status, 400)
    t.notMatch(page.text, '..')
  })
})

eachStore(t, 'an identity that waits to be connected', async (t, start) => {
  const { kit, user, browser, register } = await start({ upstream: {} })
  const app = await register()
  kit.upstream({ sub: 'ann', email: user.account, email_verified: true })
  const tab = browser()
  const page = await through(tab, await tab.open(askCode(app).url))
  await (await tab.open(/href="([^"]*\/forgot)"/.exec(page.text)?.[1] ?? '')).submit({ typed: user.account })
  const { left } = await (await tab.open((await kit.mails.next({ to: user.account })).link!)).submit({ password: NEW })
  t.ok(left?.searchParams.get('code'))
  const found = await kit.app.identity.store.collection<UserRecord>('users').get(user.user_id)
  t.match(Object.values(found?.ways ?? {}), [{ kind: 'upstream', upstream: 'test' }], 'is connected by a new password as by the old one')
})

eachStore(t, 'a session of another account that its provider could renew', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { only: true, domains: ['corp.example'], create: true } })
  const { kit, user, browser } = harness
  const app = await harness.register()
  const { seed } = await enrol(kit.clock, await enter(harness, '/account/methods', browser()), user.password)
  kit.upstream({ sub: 'mia', email: 'mia@corp.example', email_verified: true })
  const tab = browser()
  await through(tab, await tab.open(askCode(app).url))
  kit.clock.advance(25 * 60 * 60_000)
  await kit.mails.all()
  await kit.app.identity.accounts.forgotPassword(user.account, { ip: '127.0.0.1' })
  const page = await tab.open((await kit.mails.next({ to: user.account })).link!)
  t.match(page.text, 'mia@corp.example', 'is named, although it may not go on by itself')
  const set = await page.submit({ password: NEW, switch: 'yes' })
  const step = await tab.open(goOn(set))
  t.equal(step.title, secondStep.title.totp, 'and does not pass for the second step')
  await step.submit({ code: await nextCode(kit.clock, seed) })
  t.match((await tab.open('/account')).text, user.account)
})
