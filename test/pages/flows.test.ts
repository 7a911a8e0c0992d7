import t from 'tap'
import { askCode, getCode, startHarness } from '../oidc/harness.ts'

t.test('a signed-in user can use another account', async (t) => {
  const harness = await startHarness(t)
  const { kit, user, register, browser, post, get } = harness
  await kit.app.identity.users.create({ data: { account: 'bob', password: 'a horse too' } })
  const app = await register({ first_party: false })
  const tab = browser()
  const consent = await (await tab.open(askCode(app).url)).submit({ account: user.account, password: user.password })
  t.match(consent.text, user.account)
  t.match(consent.text, 'You’ll be sent to <bdi>app.example</bdi>')
  const link = /<a href="([^"]*)">Use another account/.exec(consent.text)?.[1] ?? ''

  const form = await tab.open(link)
  t.equal(form.title, 'Sign in')
  t.notMatch(form.text, user.account)
  const wrong = await form.submit({ account: 'bob', password: 'wrong' })
  t.match(wrong.text, 'Wrong email, username or password.')
  t.match((await wrong.submit({ account: user.account, password: user.password })).text, `<bdi>${user.account}</bdi>`, 'the same user again')

  const asBob = await (await tab.open(askCode(app, { prompt: 'login' }).url)).submit({ account: 'bob', password: 'a horse too' })
  t.match(asBob.title, 'Continue to')
  t.match(asBob.text, 'You are signed in as <strong><bdi>bob</bdi></strong>', 'the new user is asked for consent')
  t.ok((await asBob.submit({ decision: 'allow' })).left?.searchParams.has('code'))

  await t.test("which ends the previous user's token sessions of this browser", async (t) => {
    const trusted = await register()
    const own = browser()
    const code = await getCode(harness, trusted, { scope: 'openid' }, own)
    const token = String((await post('token', code, trusted)).body.access_token)
    t.equal((await get('tokeninfo', token)).status, 200)
    const page = await (await own.open(askCode(trusted, { prompt: 'login' }).url)).submit({ account: 'bob', password: 'a horse too' })
    t.ok(page.left?.searchParams.has('code'))
    t.equal((await get('tokeninfo', token)).status, 401)
  })
})

t.test('signing out without a sign-in asks nothing and needs no script', async (t) => {
  const harness = await startHarness(t)
  const { register, browser, post } = harness
  const app = await register()
  const back = new URLSearchParams({ client_id: app.client_id, post_logout_redirect_uri: app.redirect_uri, state: 's p' })
  const { response, text, title } = await browser().open(`/api/v1/auth/session/end?${back}`)
  t.equal(response.status, 200)
  t.equal(title, 'Signed out')
  t.notMatch(text, '<script')
  t.equal(response.headers.get('refresh'), '0;url=https://app.example/cb?state=s+p')
  t.match(text, '<a href="https://app.example/cb?state=s+p">')

  const third = await register({ first_party: false, name: 'Third' })
  const end = async (fields: Record<string, string>) =>
    await browser().open(`/api/v1/auth/session/end?${new URLSearchParams({ post_logout_redirect_uri: third.redirect_uri, ...fields })}`)
  const linked = await end({ client_id: third.client_id })
  t.equal(linked.response.headers.get('refresh'), null, 'a client that anyone may have registered redirects nobody')
  t.match(linked.text, 'leads to <bdi>app.example</bdi>. This service hasn’t verified that app.')
  t.match(linked.text, '<a rel="noreferrer" href="https://app.example/cb">Go back to <bdi>Third</bdi></a>')
  const { body } = await post('token', await getCode(harness, third), third)
  const hinted = await end({ id_token_hint: String(body.id_token) })
  t.equal(hinted.response.headers.get('refresh'), null, 'its author has an ID token too')
  t.match(hinted.text, 'leads to <bdi>app.example</bdi>')
  const forged = await end({ id_token_hint: `${String(body.id_token).slice(0, -8)}AAAAAAAA` })
  t.equal(forged.response.status, 400)
  t.equal(forged.response.headers.get('refresh'), null)

  const plain = await browser().open('/api/v1/auth/session/end')
  t.equal(plain.title, 'Signed out')
  t.equal(plain.response.headers.get('refresh'), null)
  t.match(plain.text, '<a href="/account">Sign in again</a>')
})

t.test('errors in a browser are pages', async (t) => {
  const { browser, register, user } = await startHarness(t, { rateLimit: 60, oidc: { signInLimit: 1, name: 'Acme <ID>' } })
  const app = await register()
  const device = await browser().open('/api/v1/auth/device')
  let page = device
  for (let attempt = 0; attempt < 11; attempt++) page = await device.submit({ user_code: 'AAAA-AAAA' })
  t.equal(page.response.status, 429)
  t.match(page.response.headers.get('content-type'), 'text/html')
  t.match(page.text, /Too many attempts\. Try again in \d+ seconds\./)

  const unknown = await browser().open('/api/v1/auth/authorize?client_id=none')
  t.match(unknown.title, 'Something went wrong - Acme &lt;ID&gt;')
  t.match(unknown.text, '<code>invalid_client</code>')

  const form = await browser().open(askCode(app).url)
  t.match(form.text, '<header><bdi>Acme &lt;ID&gt;</bdi></header>')
  await form.submit({ account: user.account, password: 'wrong' })

  const tab = browser()
  await tab.open('/api/v1/auth/session/end')
  const late = await tab.open('/api/v1/auth/session/end/confirm', { method: 'POST', body: new URLSearchParams({ xsrf: 'foreign', logout: 'yes' }) })
  t.equal(late.response.status, 400)
  t.match(late.text, 'This page has expired or was opened in another browser.')
})

t.test('a device form without its cookie is refused with a page', async (t) => {
  const { browser } = await startHarness(t)
  const { response, text } = await browser().open('/api/v1/auth/device', { method: 'POST', body: new URLSearchParams({ xsrf: 'foreign', user_code: 'AAAA-AAAA' }) })
  t.equal(response.status, 400)
  t.match(text, 'This page has expired or was opened in another browser.')
})
