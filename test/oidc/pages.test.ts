import { createHash, hash } from 'node:crypto'
import t from 'tap'
import type { Page } from './browser.ts'
import { SHOW_PASSWORD } from '../../lib/pages/script.ts'
import { type App, askCode, eachStore, getCode, signIn, startHarness } from './harness.ts'

const WRONG = 'Wrong email, username or password.'

t.test('signing in', async (t) => {
  const harness = await startHarness(t)
  const { kit, user, browser, register } = harness
  const { users } = kit.app.identity
  const app = await register()
  const open = async () => await browser().open(askCode(app).url)

  await t.test('the page runs no other script than its own, cannot be framed and is not cached', async (t) => {
    const { response, text } = await open()
    t.equal(response.status, 200)
    t.match(response.headers.get('content-type'), 'text/html')
    t.match(response.headers.get('cache-control'), 'no-store')
    t.match(response.headers.get('referrer-policy'), 'same-origin')
    const policy = response.headers.get('content-security-policy') ?? ''
    t.match(policy, "default-src 'none'")
    t.match(policy, "frame-ancestors 'none'")
    t.match(policy, "form-action 'self' https:;", 'a browser applies it to the redirect to the app too')
    t.notMatch(policy, 'unsafe')
    const scripts = [...text.matchAll(/<script>([^<]*)<\/script>/g)].map(([, script]) => script)
    t.strictSame(scripts, [SHOW_PASSWORD])
    t.match(policy, `script-src 'sha256-${hash('sha256', SHOW_PASSWORD, 'base64')}';`)
    t.notMatch(text, /<script [^>]|\son\w+=|style=/)
  })

  await t.test('an attempt queues with others of its address, and is dropped when the browser disconnects', async (t) => {
    const signIn = t.capture(users, 'signIn', users.signIn)
    await (await open()).submit({ account: user.account, password: 'wrong' })
    t.match(signIn(), [{ args: [user.account, 'wrong', { key: 'address 127.0.0.1', signal: AbortSignal }] }])
  })

  await t.test('a password that is not UTF-8 is refused, and is no other password', async (t) => {
    const kept = 'p\ufffd'
    await users.create({ data: { account: 'kept', password: kept } })
    const page = await open()
    const action = /action="([^"]*)"/.exec(page.text)?.[1] ?? ''
    const send = (body: string | Buffer) => page.browser.open(action, { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } })
    for (const body of ['account=kept&password=p%E9', Buffer.from('account=kept&password=p\xe9', 'latin1'), '%ff=1&account=kept&password=p']) {
      const refused = await send(body)
      t.equal(refused.response.status, 400)
      t.match(refused.text, 'body: must be UTF-8')
    }
    t.ok((await send(`account=kept&password=${encodeURIComponent(kept)}&x=%zz`)).left, 'a percent sign that encodes nothing is text')
  })

  await t.test('a user who may not sign in gets the same page as for a wrong password', async (t) => {
    const admin = { user_id: 'x', isAdmin: true }
    const disabled = await users.create({ data: { account: 'disabled', password: 'p' } })
    await users.patch(disabled.user_id, { disable: true }, admin)
    await users.create({ data: { account: 'expired', password: 'p' }, expired_at: '2001-01-01T00:00:00Z' })
    const pages = []
    for (const [account, password] of [
      [user.account, 'wrong'], ['nobody', 'p'], ['disabled', 'p'], ['expired', 'p'], ['', ''], ['x'.repeat(300), 'p'], [user.account, 'p'.repeat(1025)]
    ] as const) {
      const page = await (await open()).submit({ account, password })
      t.match(page.text, WRONG, account.slice(0, 20))
      pages.push({ status: page.response.status, text: page.text.replaceAll(/(value|action|href)="[^"]*"/g, '') })
    }
    t.equal(new Set(pages.map((page) => JSON.stringify(page))).size, 1, 'the same page for all of them')
  })

  await t.test('the typed account is shown escaped, and the password is not shown', async (t) => {
    const account = '"><script>alert(1)</script>'
    const page = await (await open()).submit({ account, password: 'a secret' })
    t.notMatch(page.text, '<script>alert')
    t.match(page.text, '&quot;&gt;&lt;script&gt;')
    t.notMatch(page.text, 'a secret')
  })

  await t.test('a form from another site is refused', async (t) => {
    for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }]) {
      const page = await (await open()).submit({ account: user.account, password: user.password }, headers)
      t.equal(page.response.status, 403, headers.origin)
      t.equal(page.left, undefined)
    }
  })

  await t.test('another browser cannot continue the sign-in', async (t) => {
    const page = await open()
    const action = /action="([^"]*)"/.exec(page.text)?.[1] ?? ''
    const stranger = await browser().open(action)
    t.equal(stranger.response.status, 400)
    t.match(stranger.text, 'started in another browser')
    const own = await page.browser.open(action.replace(/.$/, (last) => last === 'a' ? 'b' : 'a'))
    t.equal(own.response.status, 400)
  })

  await t.test('cancelling redirects to the app with access_denied', async (t) => {
    const { left } = await (await open()).submit({ cancel: 'yes' })
    t.match(Object.fromEntries(left?.searchParams ?? []), { error: 'access_denied', state: 'abc', iss: harness.url })
  })

  await t.test('accounts are case-insensitive, and a login hint fills in the form', async (t) => {
    const page = await browser().open(askCode(app, { login_hint: 'ann@example.com' }).url)
    t.match(page.text, 'value="ann@example.com"')
    t.ok((await page.submit({ account: ' ANN@Example.com ', password: user.password })).left?.searchParams.has('code'))
  })
})

t.test('consent', async (t) => {
  const harness = await startHarness(t)
  const { register, user } = harness
  const app = await register({ first_party: false, name: 'Third <b>Party</b>' })
  const ask = (params?: Record<string, string>) => askCode(app, { scope: 'openid read', ...params }).url
  const browser = harness.browser()
  let page = await (await browser.open(ask())).submit({ account: user.account, password: user.password })
  t.match(page.title, 'Continue to Third')
  t.notMatch(page.text, '<b>')
  t.match(page.text, user.account)
  t.match(page.text, /<li>Confirm your identity<\/li>.*<li>Other access: <code>read<\/code><\/li>/s)
  const refused = await page.submit({ decision: 'deny' })
  t.equal(refused.left?.searchParams.get('error'), 'access_denied')

  page = await browser.open(ask())
  t.match(page.title, 'Continue to', 'a refusal is not remembered')
  t.ok((await page.submit({ decision: 'allow' })).left?.searchParams.has('code'))
  t.ok((await browser.open(ask())).left?.searchParams.has('code'), 'consent is remembered')
  t.match((await browser.open(ask({ scope: 'openid read write' }))).title, 'Continue to', 'another scope needs consent')
  t.match((await browser.open(ask({ prompt: 'consent' }))).title, 'Continue to')
  t.equal((await browser.open(ask({ scope: 'openid read write', prompt: 'none' }))).left?.searchParams.get('error'), 'consent_required')

  const native = await register({ first_party: false, public: true, redirectUris: ['com.example.app:/cb'] })
  for (const turn of ['first', 'next']) {
    const consent = await browser.open(askCode(native, { scope: 'openid' }).url)
    t.match(consent.title, 'Continue to', `a native app needs consent each time: ${turn}`)
    t.match(consent.response.headers.get('content-security-policy'), "form-action 'self' com.example.app:")
    await consent.submit({ decision: 'allow' })
  }
})

eachStore(t, 'prompt=select_account', async (t, start) => {
  const harness = await start()
  const { kit, user, register, browser, post } = harness
  const other = { account: 'bob@example.com', password: 'correct horse' }
  await kit.app.identity.users.create({ data: other })
  const [own, third] = [await register({ name: 'Own' }), await register({ first_party: false, name: 'Third' })]
  const ask = (app: App, params: Record<string, string> = {}) => askCode(app, { scope: 'openid profile', prompt: 'select_account', ...params })
  const whose = async (app: App, { left }: Page, verifier: string) => {
    const code = left?.searchParams.get('code') ?? 'none'
    const { body } = await post('token', { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: app.redirect_uri }, app)
    return (await harness.get('userinfo', String(body.access_token))).body.preferred_username
  }
  const enter = async (app: App) => {
    const page = await browser().open(ask(app).url)
    t.equal(page.title, 'Sign in', 'a browser without a sign-in')
    const next = await page.submit({ account: user.account, password: user.password })
    return next.title === 'Continue to Third' ? await next.submit({ decision: 'allow' }) : next
  }

  await t.test('who signs in, or decides about the app, has chosen', async (t) => {
    for (const app of [own, third]) t.ok((await enter(app)).left?.searchParams.has('code'), app === own ? 'own' : 'third')
    const tab = (await enter(own)).browser
    const page = await tab.open(ask(third).url)
    t.match(page, { title: 'Continue to Third', text: /Use another account/ }, 'consent has both')
    t.ok((await page.submit({ decision: 'allow' })).left?.searchParams.has('code'), 'one page is enough')
    t.match((await tab.open(ask(third).url)).title, 'Choose an account', 'the next time it is asked')
    const both = await tab.open(ask(third, { prompt: 'consent select_account' }).url)
    t.equal((await both.submit({ decision: 'allow' })).left?.searchParams.has('code'), true, 'consent select_account')
    const again = await tab.open(ask(own, { prompt: 'login select_account' }).url)
    t.equal(again.title, 'Sign in')
    t.ok((await again.submit({ account: user.account, password: user.password })).left?.searchParams.has('code'), 'login select_account')
  })

  await t.test('a browser with a sign-in shows the account, and goes on with it', async (t) => {
    const tab = (await enter(own)).browser
    const { url, verifier } = ask(own)
    const page = await tab.open(url)
    t.match(page, { title: 'Choose an account', left: undefined, text: /to continue to <strong><bdi>Own/ })
    t.match(page.text, user.account)
    t.equal(await whose(own, await page.submit({ decision: 'go-on' }), verifier), user.account)
    t.ok((await tab.open(ask(own, { prompt: '' }).url)).left?.searchParams.has('code'), 'no page without the prompt')
    t.equal((await tab.open(ask(own, { prompt: 'none select_account' }).url)).left?.searchParams.get('error'), 'invalid_request')
    const cancelled = await (await tab.open(url)).submit({ cancel: 'yes' })
    t.match(Object.fromEntries(cancelled.left?.searchParams ?? []), { error: 'access_denied', state: 'abc' })
    const german = await tab.open(ask(own, { ui_locales: 'de' }).url)
    t.match(german, { title: 'Konto auswählen', text: /Anderes Konto verwenden/ })
  })

  await t.test('or changes to another one, which signs the first one out', async (t) => {
    const tab = (await enter(own)).browser
    const { url, verifier } = ask(own)
    const page = await tab.open(url)
    const form = await tab.open(/href="([^"]*account=other)"/.exec(page.text)![1]!)
    t.equal(form.title, 'Sign in')
    t.equal(await whose(own, await form.submit(other), verifier), other.account)
    const next = ask(own, { prompt: '' })
    t.equal(await whose(own, await tab.open(next.url), next.verifier), other.account)
  })

  await t.test('a form of another site or browser chooses nothing', async (t) => {
    const page = await (await enter(own)).browser.open(ask(own).url)
    t.equal((await page.submit({ decision: 'go-on' }, { origin: 'https://evil.example' })).response.status, 403)
    const action = /action="([^"]*)"/.exec(page.text)?.[1] ?? ''
    t.equal((await browser().open(action)).response.status, 400)
  })
})

t.test('the consent page says in words what the app gets, and who registered or vouches for it', async (t) => {
  const harness = await startHarness(t)
  const { user, register, browser } = harness
  const open = async (app: App, scope: string) =>
    await (await browser().open(askCode(app, { scope }).url)).submit({ account: user.account, password: user.password })
  const third = await register({ first_party: false, scopes: ['read', 'account:read', 'clients:write'] })
  const page = await open(third, 'openid read account:read clients:write')
  for (const text of ['Confirm your identity', 'Other access: <code>read</code>', 'See your profile and where you are signed in', 'Register, change and delete your developer apps, and see their secrets']) {
    t.match(page.text, text)
  }
  t.match(page.text, 'This service hasn’t verified this app. Allow it only if you know and trust it.')
  t.notMatch(page.text, 'registered by', 'nobody has shown that the address is theirs')
  await harness.kit.app.identity.store.collection('users').update(user.user_id, { set: { email: 'ann@mail.example', email_verified_at: new Date().toISOString() } })
  const known = await open(third, 'openid read account:read')
  t.match(known.text, 'It was registered by somebody with an email address at <bdi>mail.example</bdi>.')
  t.notMatch(known.text.replace(/<p class="account">.*/g, ''), /ann@/, 'neither the account nor the address')
  t.notMatch(page.text, 'act for you')
  const vouched = await register({ first_party: false, scopes: ['users:read'] })
  t.match((await open(vouched, 'users:read')).text, 'This service has verified this app.')
})

t.test('too many attempts', async (t) => {
  const harness = await startHarness(t, { rateLimit: 60, oidc: { signInLimit: 3 } })
  const { user, browser, register } = harness
  const { url } = askCode(await register())
  const page = await browser().open(url)
  for (let attempt = 0; attempt < 3; attempt++) t.match((await page.submit({ account: user.account, password: 'wrong' })).text, WRONG)
  const stopped = await page.submit({ account: user.account.toUpperCase(), password: user.password })
  t.equal(stopped.response.status, 429)
  const seconds = Number(stopped.response.headers.get('retry-after'))
  t.ok(seconds > 0 && seconds <= 60, 'Retry-After is within the minute')
  t.match(stopped.text, 'Too many attempts')
  t.match((await page.submit({ account: 'another', password: 'wrong' })).text, WRONG, 'other accounts are not limited')
  let last = 200
  for (let attempt = 0; attempt < 40 && last !== 429; attempt++) last = (await page.submit({ account: `guess${attempt}`, password: 'x' })).response.status
  t.equal(last, 429, 'an address is limited across accounts')
})

t.test('requests that store something before authentication are limited by address', async (t) => {
  const harness = await startHarness(t, { rateLimit: 60, oidc: { signInLimit: 1 } })
  const app = await harness.register({ first_party: false, public: true })
  const begin = () => harness.post('device_authorization', { scope: 'openid' }, app)
  const begun = await Promise.all(Array.from({ length: 100 }, begin))
  t.strictSame([...new Set(begun.map(({ status }) => status))], [200])
  t.match(await begin(), { status: 429, body: { error: 'temporarily_unavailable', error_description: /^too many attempts, try again in \d+ s$/ } })
  const page = await harness.browser().open(askCode(app).url)
  t.equal(page.response.status, 429)
  t.match(page.response.headers.get('retry-after'), /^[1-9]\d*$/)
  t.match(page.text, 'Too many attempts')
  const { store } = harness.kit.app.identity
  t.equal((await store.collection('device_codes').count()), 100, 'refused requests store nothing')
  for (const path of ['device', 'session/end']) {
    const form = await harness.browser().open(`/api/v1/auth/${path}`)
    t.equal(form.response.status, 429, path)
    t.match(form.text, 'Too many attempts')
  }
  t.equal((await store.collection('sign_in_sessions').count()), 0)
})

t.test('the session of a form is stored for half an hour, for an hour once it was submitted, and longer after a sign-in', async (t) => {
  const harness = await startHarness(t)
  const { kit, browser, register } = harness
  const sessions = kit.app.identity.store.collection<{ id: string, created_at: string, expired_at: string }>('sign_in_sessions')
  const readLifetimes = async () => {
    const lifetimes: number[] = []
    for await (const batch of sessions.stream()) lifetimes.push(...batch.map((session) => Date.parse(session.expired_at) - kit.clock.now()))
    return lifetimes
  }
  const anonymous = browser()
  for (const path of ['device', 'session/end']) await anonymous.open(`/api/v1/auth/${path}`)
  t.same(await readLifetimes(), [1_800_000])
  await (await anonymous.open('/api/v1/auth/device')).submit({ user_code: 'AAAA-AAAA' })
  t.same(await readLifetimes(), [3_600_000])
  await getCode(harness, await register(), {}, anonymous)
  t.same(await readLifetimes(), [14 * 86_400_000])
})

t.test('response_mode=form_post: the page runs one script, which posts the answer to the app', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register()
  const check = (page: Page, status: number) => {
    t.equal(page.response.status, status)
    const [, script = ''] = /<script>([^]*?)<\/script>/.exec(page.text) ?? []
    t.match(script, 'submit()')
    const policy = page.response.headers.get('content-security-policy') ?? ''
    t.match(policy, `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}';`)
    for (const part of ["default-src 'none'", "form-action 'self' https:", "frame-ancestors 'none'"]) t.match(policy, part)
    t.notMatch(policy, 'unsafe')
    t.match(Object.fromEntries(page.response.headers), { 'x-frame-options': 'DENY', 'referrer-policy': 'same-origin', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
  }
  const browser = harness.browser()
  const answer = await signIn(harness, askCode(app, { response_mode: 'form_post', state: '<script>alert(1)</script>' }).url, browser)
  check(answer, 200)
  t.match(answer.text, /action="https:\/\/app\.example\/cb"[^]*name="code"/)
  check(await harness.browser().open(askCode(app, { response_mode: 'form_post', prompt: 'none' }).url), 400)
})

t.test('device codes', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register({ first_party: false, public: true })
  const poll = async (device_code: string) => await harness.post('token', { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code }, app)
  const begin = async () => (await harness.post('device_authorization', { scope: 'openid' }, app)).body as Record<string, string>
  let page = await harness.browser().open('/api/v1/auth/device')
  t.equal((await page.submit({ xsrf: 'guessed', user_code: 'AAAA-AAAA' })).response.status, 400)
  page = await page.browser.open('/api/v1/auth/device')
  page = await page.submit({ user_code: 'AAAA-AAAA' })
  t.match(page.text, 'We don’t know that code')
  t.match((await page.submit({ user_code: '' })).text, 'Enter the code')

  const refused = await begin()
  const form = await page.browser.open('/api/v1/auth/device').then(async (form) => await form.submit({ user_code: refused.user_code?.toLowerCase() ?? '' }))
  t.match(form.title, 'Sign in')
  t.match((await form.submit({ cancel: 'yes' })).text, 'The device wasn’t connected')
  t.match((await poll(refused.device_code ?? '')).body, { error: 'access_denied' })

  const slow = await begin()
  harness.kit.clock.advance(601_000)
  t.match((await poll(slow.device_code ?? '')).body, { error: 'expired_token' })
  t.match((await poll('unknown')).body, { error: 'invalid_grant' })
  t.ok(await getCode(harness, await harness.register()))
})
