import t from 'tap'
import { askCode, eachStore, getCode, startHarness } from '../oidc/harness.ts'
import { addUser, enter, isSignedOut, post, readXsrf } from './visits.ts'

eachStore(t, 'signing in there is signing in to apps, and the other way round', async (t, start) => {
  const harness = await start()
  const app = await harness.register()
  const tab = harness.browser()
  const home = await enter(harness, '/account', tab)
  t.equal(home.response.url, `${harness.url}/account`)
  t.equal(home.title, 'Profile')
  t.match(home.text, '<p class="who"><bdi>ann@example.com</bdi></p>')
  t.ok((await tab.open(askCode(app).url)).left?.searchParams.has('code'), 'the app asks for no password')

  const other = harness.browser()
  await getCode(harness, app, {}, other)
  t.equal((await other.open('/account')).title, 'Profile', 'and neither do the account pages')
})

eachStore(t, 'a wrong password, an unknown account and a user who may not sign in look the same', async (t, start) => {
  const harness = await start()
  const { kit } = harness
  const closed = await addUser(harness, 'closed')
  await kit.app.identity.users.patch(closed.user_id, { disable: true }, { user_id: 'admin', isAdmin: true })
  const texts = new Set<string>()
  for (const account of ['ann@example.com', 'nobody', 'closed']) {
    const page = await enter(harness, '/account', harness.browser(), { account, password: account === 'closed' ? closed.password : 'wrong' })
    t.equal(page.response.status, 400)
    texts.add(page.text.replaceAll(account, '').replaceAll(/name="(xsrf|form_id)" value="[^"]*"/g, ''))
  }
  t.equal(texts.size, 1)
  t.match([...texts][0], 'Wrong email, username or password.')
  t.equal((await kit.app.identity.store.collection('sign_ins').count()), 0, 'nothing is stored')
  t.equal((await kit.app.identity.store.collection('sign_in_sessions').count()), 0)
})

eachStore(t, 'a redirect after the sign-in stays within the account pages', async (t, start) => {
  const harness = await start()
  for (const [next, path] of [['apps', '/account/apps'], ['//evil.example', '/account'], ['https://evil.example/', '/account'], ['../api', '/account'], ['clients/a/b', '/account']] as const) {
    const page = await enter(harness, `/account/sign-in?${new URLSearchParams({ next })}`)
    t.equal(page.response.url, `${harness.url}${path}`, next)
  }
})

eachStore(t, 'the name', async (t, start) => {
  const harness = await start()
  const home = await enter(harness)
  const html = '<script>alert(1)</script>"\''
  const saved = await post(home, '/account', { name: html })
  t.match(saved.text, '<p class="done" role="status">Your name was changed.</p>')
  t.match(saved.text, 'value="&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;"')
  t.notMatch(saved.text, '<script')
  t.equal((await harness.kit.app.identity.users.get(harness.user.user_id))?.name, html)
  t.equal((await post(home, '/account', { name: 'x'.repeat(257) })).response.status, 400)
})

eachStore(t, 'the password takes the current one, and ends every other session', async (t, start) => {
  const harness = await start()
  const { user, post: call, get, browser } = harness
  const app = await harness.register()
  const elsewhere = browser()
  const { body } = await call('token', await getCode(harness, app, {}, elsewhere), app)
  const page = await enter(harness, '/account/password')
  const change = { current_password: user.password, password: 'battery staple' }
  const wrong = await post(page, '/account/password', { ...change, current_password: 'wrong' })
  t.equal(wrong.response.status, 400)
  t.match(wrong.text, 'Your current password is wrong.')
  t.match(wrong.title, /^Error: /)
  t.equal((await post(page, '/account/password', { ...change, password: '' })).response.status, 400)
  t.equal((await post(page, '/account/password', { ...change, password: 'x'.repeat(1025) })).response.status, 400)
  t.equal((await get('tokeninfo', String(body.access_token))).status, 200)

  const changed = await post(page, '/account/password', change)
  t.match(changed.text, 'Your password was changed. You were signed out everywhere else.')
  t.equal((await get('tokeninfo', String(body.access_token))).status, 401)
  t.ok(isSignedOut(await elsewhere.open('/account')), 'the other browser')
  t.equal((await changed.browser.open('/account')).title, 'Profile', 'this browser stays signed in')
  t.equal((await enter(harness, '/account', browser(), { account: user.account, password: change.password })).title, 'Profile')
  t.match((await enter(harness)).text, 'Wrong email, username or password.', 'the old one')
})

eachStore(t, 'ten minutes after the sign-in, sensitive pages ask again', async (t, start) => {
  const harness = await start()
  const { kit, user } = harness
  const { clientId } = await kit.app.identity.clients.create({ data: { name: 'Mine', redirectUris: [], scopes: [] }, credentials: true }, { user_id: user.user_id, isAdmin: false })
  const page = await enter(harness, '/account/password')
  const tab = page.browser
  kit.clock.advance(10 * 60 * 1000)
  for (const path of ['/account', '/account/sessions', '/account/apps', '/account/clients']) t.notOk(isSignedOut(await tab.open(path)), path)
  for (const path of ['/account/password', `/account/clients/${clientId}`]) {
    const asked = await tab.open(path)
    t.equal(asked.title, 'Confirm it’s you', path)
    t.match(asked.text, `value="${user.account}"`)
    t.equal((await post(page, path, { action: 'show', current_password: user.password, password: 'new' })).title, 'Confirm it’s you', 'a form too')
  }
  t.equal((await kit.app.identity.users.verify(user.account, user.password))?.user_id, user.user_id, 'nothing has changed')
  const asked = await tab.open(`/account/clients/${clientId}`)
  t.match((await post(asked, asked.response.url, { account: user.account, password: 'wrong' })).text, 'Wrong email, username or password.')
  t.equal((await post(asked, asked.response.url, { cancel: 'yes' })).title, 'Profile', 'it can be left')
  const again = await tab.open(`/account/clients/${clientId}`)
  const back = await post(again, again.response.url, { account: user.account, password: user.password })
  t.equal(back.response.url, `${harness.url}/account/clients/${clientId}`)
  t.equal(back.response.status, 200)
  t.equal((await kit.app.identity.ownSessions.listBrowsers(user.user_id)).entries.length, 1, 'it is the same session')
})

eachStore(t, 'signing in as somebody else signs the first person out', async (t, start) => {
  const harness = await start()
  const { post: call, get, kit, user, browser } = harness
  const app = await harness.register()
  const bob = await addUser(harness, 'bob')
  const tab = browser()
  const { body } = await call('token', await getCode(harness, app, { scope: 'openid' }, tab), app)
  kit.clock.advance(10 * 60 * 1000)
  const asked = await tab.open('/account/password')
  const page = await post(asked, asked.response.url, { account: 'bob', password: bob.password })
  t.match(page.text, '<p class="who"><bdi>bob</bdi></p>')
  t.equal((await get('tokeninfo', String(body.access_token))).status, 401)
  t.strictSame((await kit.app.identity.ownSessions.listBrowsers(user.user_id)).entries, [])
})

eachStore(t, 'signing out', async (t, start) => {
  const harness = await start()
  const { post: call, get } = harness
  const app = await harness.register()
  const page = await enter(harness)
  const { body } = await call('token', await getCode(harness, app, { scope: 'openid' }, page.browser), app)
  const out = await post(await page.browser.open('/account'), '/account/sign-out')
  t.equal(out.title, 'Signed out')
  t.match(out.text, '<a href="/account">Sign in again</a>')
  t.equal((await get('tokeninfo', String(body.access_token))).status, 401)
  t.equal(page.browser.cookies().length, 2, 'what is left: the account that is known here, and the secret for forms: it lets no stranger lock its user out')
  t.ok(isSignedOut(await page.browser.open('/account')))
})

eachStore(t, 'forms of other sites and of other browsers change nothing', async (t, start) => {
  const harness = await start()
  const { kit, user, browser } = harness
  const page = await enter(harness)
  const others = await enter(harness, '/account', browser(), await addUser(harness, 'mallory'))
  const forms: [string, Record<string, string>][] = [
    ['/account', { name: 'Mallory' }], ['/account/sessions', { others: 'yes' }], ['/account/sign-out', {}], ['/account/password', { current_password: user.password, password: 'hers' }], ['/account/apps', { client: 'x', confirm: 'yes' }], ['/account/clients/x', { action: 'delete' }]
  ]
  for (const [path, fields] of forms) {
    const foreign = await post(page, path, fields, { origin: 'https://evil.example' })
    t.equal(foreign.response.status, 403, `${path} of another site`)
    t.match(foreign.text, 'This form was sent from another website.')
    for (const xsrf of ['', 'guessed', readXsrf(others)]) {
      const late = await post(page, path, { ...fields, xsrf })
      t.equal(late.response.status, 400, `${path} without the secret of the browser`)
      t.match(late.text, 'This page has expired')
    }
  }
  t.equal((await kit.app.identity.users.get(user.user_id))?.name, 'Ann')
  t.equal((await page.browser.open('/account')).title, 'Profile')

  // A form that signs a visitor in to the account of the attacker.
  const victim = browser()
  const attack = (headers: Record<string, string>, xsrf: string) => victim.open('/account/sign-in', { method: 'POST', body: new URLSearchParams({ xsrf, account: user.account, password: user.password }), headers })
  const attackers = await browser().open('/account')
  t.equal((await attack({ origin: 'https://evil.example' }, readXsrf(attackers))).response.status, 403)
  t.equal((await attack({ origin: harness.url }, readXsrf(attackers))).response.status, 400, 'without its cookie')
  await victim.open('/account')
  t.equal((await attack({ origin: harness.url }, readXsrf(attackers))).response.status, 400, "with another browser's secret")
  t.ok(isSignedOut(await victim.open('/account')))
})

t.test('the account pages have a path, and can be off', async (t) => {
  const moved = await startHarness(t, { prefix: '/id', oidc: { accountPath: '/my/account' } })
  const form = await moved.browser().open('/id/my/account')
  t.equal(form.title, 'Sign in')
  t.equal((await post(form, form.response.url, { account: moved.user.account, password: moved.user.password })).response.url, `${moved.url}/id/my/account`)
  t.match((await moved.browser().open('/id/my/account/none')).title, 'Something went wrong')
  const off = await startHarness(t, { oidc: { accountPath: false } })
  t.equal((await off.browser().open('/account')).response.status, 404)
  t.notMatch((await off.browser().open('/api/v1/auth/session/end')).text, /<a href="(?!\?)/)
})

eachStore(t, 'a cookie from before the sign-in is worth nothing after it', async (t, start) => {
  const harness = await start()
  const { url, browser } = harness
  for (const path of ['/api/v1/auth/device', '/api/v1/auth/session/end', '/account']) {
    const tab = browser()
    const response = await tab.fetch(path)
    const cookie = response.headers.getSetCookie().map((line) => line.split(';')[0]).join('; ')
    await response.body?.cancel()
    t.equal((await enter(harness, '/account', tab)).title, 'Profile')
    for (const page of ['/account', '/account/password']) {
      const stolen = await fetch(`${url}${page}`, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' })
      t.notMatch(await stolen.text(), /<h1>(Profile|Change password)/, `${page} with the cookies of ${path}`)
    }
    t.equal((await tab.open('/account')).title, 'Profile')
  }
})

eachStore(t, 'a consent is no sign-in: auth_time and sensitive pages go by the time of the password', async (t, start) => {
  const harness = await start()
  const { kit, browser, user, post: call } = harness
  const app = await harness.register({ first_party: false })
  const tab = browser()
  const typed = Math.floor(Date.now() / 1000)
  const { url, verifier } = askCode(app, { scope: 'openid', max_age: '600' })
  const consent = await (await tab.open(url)).submit({ account: user.account, password: user.password })
  t.match(consent.title, /^Continue to/)
  const MINUTES = 50 * 60_000
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + MINUTES
  kit.clock.advance(MINUTES)
  const { left } = await consent.submit({ decision: 'allow' })
  const { body } = await call('token', { grant_type: 'authorization_code', code: left?.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: app.redirect_uri }, app)
  const [, claims = ''] = String(body.id_token).split('.')
  const { auth_time } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { auth_time: number }
  t.ok(auth_time - typed < 60, `auth_time is ${auth_time - typed} s after the password`)
  t.equal((await tab.open('/account/password')).title, 'Confirm it’s you', 'a sensitive page asks again')
})

eachStore(t, 'lengths are counted in characters, as the API counts them', async (t, start) => {
  const { kit, browser } = await start()
  const password = '\u{1f40e}'.repeat(600)
  await kit.app.identity.users.create({ data: { account: 'bob', password } })
  const tab = browser()
  const page = await enter({ user: { user_id: '', account: 'bob', password }, browser }, '/account/password', tab)
  t.match(page.text, '<h1>Change password</h1>')
  t.match((await post(page, '/account/password', { current_password: password, password: `${password}!` })).response.status, 200)
  t.match((await post(await tab.open('/account'), '/account', { name: '\u{1f40e}'.repeat(200) })).response.status, 200)
})
