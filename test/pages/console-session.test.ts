import t from 'tap'
import { eachStore } from '../oidc/harness.ts'
import type { Page } from '../oidc/browser.ts'
import { addUser, enter, post } from './visits.ts'

const PATH = '/admin'
const MINUTE = 60_000
const isSignedOut = (page: Page) => new URL(page.response.url).pathname === '/account/sign-in'
const CLOSED = /administrators and support staff/

eachStore(t, 'the session of the console', async (t, start) => {
  const harness = await start({ console: { path: PATH }, roles: { support: 'support' }, oidc: { sessionTtl: 14 * 24 * 3600 } })
  const { kit, user, browser } = harness
  const { users, ownSessions } = kit.app.identity
  const operator = { user_id: '', isAdmin: true }
  const setRoles = async (user_id: string, roles: Record<string, true>) => await users.patch(user_id, { data: { roles } }, operator)
  const boss = await addUser(harness, 'boss@example.com')
  const spare = await addUser(harness, 'spare@example.com')
  for (const { user_id } of [boss, spare]) await setRoles(user_id, { admin: true })
  const open = async (who: { account: string, password: string } = boss, path = PATH, tab = browser()) => ({ tab, page: await enter(harness, path, tab, who) })
  const target = await addUser(harness, 'target')
  const targetPath = `${PATH}/people/${target.user_id}`
  const isDisabled = async () => (await kit.app.identity.store.collection<{ id: string, disabled_at?: string }>('users').get(target.user_id))?.disabled_at !== undefined
  const isOpen = (page: Page) => page.response.status === 200 && page.text.includes('class="own console"')

  await t.test('who may open it', async (t) => {
    const { page } = await open()
    t.ok(isOpen(page), 'an administrator signs in and is there')
    t.match(page.response.headers.get('content-security-policy'), /default-src 'none'; style-src 'sha256-/)
    t.notMatch(page.response.headers.get('content-security-policy'), 'script-src')
    t.notMatch(page.text, '<script')
    t.equal(page.response.headers.get('cache-control'), 'no-store')
    const plain = await open(user, targetPath)
    t.equal(plain.page.response.status, 403)
    t.match(plain.page.text, CLOSED)
    t.notMatch(plain.page.text, 'target', 'a plain account learns nothing of what exists')
    const nowhere = await plain.tab.open(`${PATH}/people/nobody`)
    t.equal(nowhere.text.replaceAll(/sha256-\S+|form_id" value="[^"]*|xsrf" value="[^"]*/g, ''), plain.page.text.replaceAll(/sha256-\S+|form_id" value="[^"]*|xsrf" value="[^"]*/g, ''))
    const helper = await addUser(harness, 'helper')
    await setRoles(helper.user_id, { support: true })
    t.ok(isOpen((await open(helper)).page), 'so do support staff')
    await setRoles(helper.user_id, { editor: true })
  })

  await t.test('a page leads back to itself after the sign-in', async (t) => {
    const { page } = await open(boss, targetPath)
    t.equal(new URL(page.response.url).pathname, targetPath)
    const tab = browser()
    for (const next of ['console//evil.example', 'console/\\evil', 'https://evil.example', 'console?x', 'console/..//evil']) {
      const form = await tab.open(`/account/sign-in?next=${encodeURIComponent(next)}`)
      const after = await post(form, form.response.url, { account: boss.account, password: boss.password })
      t.equal(new URL(after.response.url).origin, browser().origin, next)
      await post(await tab.open('/account'), '/account/sign-out')
    }
  })

  await t.test('it ends after 15 minutes without a request, and after 8 hours', async (t) => {
    const { tab } = await open()
    kit.clock.advance(14 * MINUTE)
    t.ok(isOpen(await tab.open(PATH)))
    kit.clock.advance(14 * MINUTE)
    t.ok(isOpen(await tab.open(PATH)), 'each request gives 15 minutes')
    kit.clock.advance(15 * MINUTE)
    t.ok(isSignedOut(await tab.open(PATH)), 'then the sign-in page asks again')
    const other = await open()
    for (let spent = 0; spent < 8 * 60 - 14; spent += 14) {
      kit.clock.advance(14 * MINUTE)
      await other.tab.open(PATH)
    }
    kit.clock.advance(14 * MINUTE)
    t.ok(isSignedOut(await other.tab.open(PATH)))
  })

  await t.test('it ends with the sign-in session, the epoch and the role', async (t) => {
    const ends: [string, () => Promise<unknown>][] = [
      ['the session of the browser is ended', async () => {
        for (const { uid } of (await ownSessions.listBrowsers(boss.user_id)).entries) await ownSessions.endBrowser(boss.user_id, uid)
      }],
      ['all sessions are ended', async () => await kit.app.identity.userSessions.endAll(boss.user_id, { user_id: spare.user_id, isAdmin: true })],
      ['the person is disabled', async () => {
        await users.patch(boss.user_id, { disable: true }, operator)
        await users.patch(boss.user_id, { disable: false }, operator)
      }],
      ['the password is changed by an administrator', async () => await users.patch(boss.user_id, { data: { password: boss.password } }, operator)]
    ]
    for (const [name, end] of ends) {
      const { tab, page } = await open()
      const form = await tab.open(targetPath)
      t.ok(isOpen(page), name)
      await end()
      const sent = await post(form, targetPath, { action: 'disable' })
      t.notOk(isOpen(sent), `${name}: a form of an open page does nothing`)
      t.notOk(await isDisabled())
      t.ok(isSignedOut(await tab.open(PATH)), name)
    }
    const { tab } = await open()
    const form = await tab.open(targetPath)
    await setRoles(boss.user_id, { editor: true })
    const sent = await post(form, targetPath, { action: 'disable' })
    t.equal(sent.response.status, 403, 'the form of an administrator who was demoted meanwhile does nothing')
    t.match(sent.text, CLOSED)
    t.notOk(await isDisabled())
    await setRoles(boss.user_id, { admin: true })
  })

  await t.test('changes need a proof of the last ten minutes, and reading and signing out do not', async (t) => {
    const { tab } = await open()
    kit.clock.advance(11 * MINUTE)
    const page = await tab.open(targetPath)
    t.match(page.text, 'You signed in more than ten minutes ago')
    t.ok(isSignedOut(await post(page, targetPath, { action: 'disable' })))
    t.notOk(await isDisabled())
    const form = await tab.open(`/account/sign-in?next=${encodeURIComponent(`console/people/${target.user_id}`)}`)
    const again = await post(form, form.response.url, { account: boss.account, password: boss.password })
    t.equal(new URL(again.response.url).pathname, targetPath)
    t.match((await post(again, targetPath, { action: 'disable' })).text, 'The account was disabled.')
    t.ok(await isDisabled())
    await users.patch(target.user_id, { disable: false }, operator)
    kit.clock.advance(11 * MINUTE)
    const out = await post(await tab.open(PATH), `${PATH}/sign-out`)
    t.match(out.text, 'signed out')
    t.ok(isSignedOut(await tab.open(PATH)))
    t.ok(isSignedOut(await tab.open('/account')), 'the browser is signed out with it')
  })

  await t.test('the cookie opens nothing else', async (t) => {
    const { tab } = await open()
    const cookie = tab.cookies().find((value) => value.startsWith('v1.')) ?? ''
    t.not(cookie, '')
    const { statusCode } = await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${cookie}` } })
    t.equal(statusCode, 401, 'no bearer token')
    const opens = async (pair: string, path: string) => !isSignedOut(await browser().open(path, { headers: { cookie: pair } }))
    for (const name of ['_session', 'identity_sign_in', 'identity_session']) t.notOk(await opens(`${name}=${cookie}`, '/account'), `no cookie ${name}`)
    const altered = cookie.slice(0, 60) + (cookie[60] === 'A' ? 'B' : 'A') + cookie.slice(61)
    t.notOk(await opens(`identity_console=${altered}`, PATH))
    const thief = { open: async (path: string) => await browser().open(path, { headers: { cookie: `identity_console=${cookie}` } }) }
    const page = await thief.open(targetPath)
    t.ok(isOpen(page), 'the cookie alone is the session')
    t.equal((await post(await tab.open(targetPath), targetPath, { action: 'disable', xsrf: 'x' })).response.status, 400, 'a form takes the secret of its page')
    t.equal((await post(await tab.open(targetPath), targetPath, { action: 'disable' }, { origin: 'https://evil.example' })).response.status, 403, 'and its origin')
    t.notOk(await isDisabled())
  })

  await t.test('events say that a change came from the console', async (t) => {
    const { tab } = await open()
    await post(await tab.open(targetPath), targetPath, { action: 'disable' })
    await kit.flush()
    const read = async (query: object) => (await Array.fromAsync((await kit.app.identity.events.page({ ...query, limit: 1 })).batches)).flat()[0]?.actor
    t.strictSame(await read({ type: 'user.disabled', user: target.user_id }), { via: 'console', user_id: boss.user_id })
    t.strictSame(await read({ type: 'console.entered', user: boss.user_id }), { via: 'console', user_id: boss.user_id })
    await users.patch(target.user_id, { disable: false }, operator)
  })
})

eachStore(t, 'a console that demands a second factor', async (t, start) => {
  const harness = await start({ console: { path: PATH, acr: 'mfa', adminNetworks: ['127.0.0.0/8', '::1'] } })
  const { kit, user, browser } = harness
  const boss = await addUser(harness, 'boss@example.com')
  await kit.app.identity.users.patch(boss.user_id, { data: { roles: { admin: true } } }, { user_id: '', isAdmin: true })
  const tab = browser()
  const first = await enter(harness, PATH, tab, boss)
  t.match(first.text, /two-step verification/i, 'who has none adds one in that sign-in')
  t.notOk(first.text.includes('class="own console"'))
  const plain = await enter(harness, PATH, browser(), user)
  t.match(plain.text, CLOSED, 'a plain account adds none')
})

eachStore(t, 'a console for some networks', async (t, start) => {
  const harness = await start({ console: { path: PATH, adminNetworks: ['10.0.0.0/8'] } })
  const page = await harness.browser().open(PATH)
  t.equal(page.response.status, 404)
  t.equal(page.text, (await harness.browser().open('/nothing')).text.replace('/nothing', PATH), 'it is a path that there is not')
})
