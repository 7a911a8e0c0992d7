import t from 'tap'
import { startHarness, type Harness } from '../oidc/harness.ts'
import { heading, press, skip, startChromium, takePicture, typeIn, withTab } from './chromium.ts'
import { startExample, startTerminalExample, startWebExample } from './examples.ts'

t.test('in Chromium', { skip }, async (t) => {
  startChromium(t)

  await t.test('a user signs in from a server app, without scripts', async (t) => {
    const harness = await startHarness(t)
    const app = await harness.register({ first_party: false, name: 'Server app' })
    const origin = await startWebExample(t, harness, app, 'server-app/app.js', ['/callback', '/'])
    await withTab(t, { javaScriptEnabled: false }, async (tab) => {
      await tab.goto(origin)
      await tab.getByRole('link', { name: 'Sign in' }).click()
      t.equal(await heading(tab), 'Sign in')
      await typeIn(tab, { ...harness.user, password: 'wrong' })
      t.equal(await tab.getByRole('alert').textContent(), 'Wrong email, username or password.')
      t.equal(await tab.getByLabel('Password').inputValue(), '', 'the password field is empty again')
      // Chromium logs a response with an error status.
      t.match(tab.complaints.splice(0), [/status of 400/])
      await tab.getByLabel('Password').fill(harness.user.password)
      await press(tab, 'Sign in')
      t.equal(await heading(tab), 'Continue to Server app')
      await takePicture(tab, 'flow-consent')
      await press(tab, 'Allow')
      t.equal(new URL(tab.url()).origin, origin)
      const tokenInfo = JSON.parse(await tab.locator('pre').textContent() ?? '').data
      t.match(tokenInfo, { account: harness.user.account, client_id: app.client_id }, 'the token works in tokeninfo')

      await press(tab, 'Sign out')
      t.equal(await heading(tab), 'Sign out?')
      await press(tab, 'Sign out')
      t.equal(tab.url(), `${origin}/`)
      t.equal(await tab.getByRole('link', { name: 'Sign in' }).count(), 1)
      await tab.getByRole('link', { name: 'Sign in' }).click()
      t.equal(await heading(tab), 'Sign in', 'the browser is signed out too')
      await press(tab, 'Cancel')
      t.equal(tab.url(), `${origin}/`)
    })
  })

  await t.test('a user signs in on a device', async (t) => {
    const harness = await startHarness(t)
    const app = await harness.register({ first_party: false, public: true, name: 'My CLI' })
    const example = startTerminalExample(t, harness, app, 'cli/cli.js')
    const [, address = '', code = ''] = await example.seen(/Open (\S+) and enter (\S+)/)
    await withTab(t, { viewport: { width: 390, height: 844 }, javaScriptEnabled: false }, async (tab) => {
      await tab.goto(address)
      const field = tab.getByLabel('Code on your device')
      await field.fill('BBBB-BBBB')
      await press(tab, 'Continue')
      t.match(await tab.getByRole('alert').textContent(), 'We don’t know that code.')
      await field.fill(code.toLowerCase().replace('-', ' '))
      await press(tab, 'Continue')
      await typeIn(tab, harness.user)
      t.equal(await heading(tab), 'Continue to My CLI')
      t.equal(await tab.getByText(code).count(), 1)
      await takePicture(tab, 'flow-device-consent')
      await press(tab, 'Allow')
      t.equal(await heading(tab), 'Device connected')
      await takePicture(tab, 'flow-device-done')
      const { code: exit, text } = await example.ended()
      t.match(text, `Signed in as ${harness.user.account}\nSigned out\n`)
      t.equal(exit, 0)
    })
  })

  await t.test('a user signs in from a single-page app', async (t) => {
    const harness = await startHarness(t)
    const app = await harness.register({ first_party: false, public: true })
    const origin = await startWebExample(t, harness, app, 'single-page-app/server.js', ['/'])
    await withTab(t, {}, async (tab) => {
      await tab.goto(origin)
      await press(tab, 'Sign in')
      await typeIn(tab, harness.user)
      await press(tab, 'Allow')
      await tab.getByText(`Signed in as ${harness.user.account}`).waitFor()
      const info = tab.locator('#info', { hasText: 'user_id' })
      t.match(JSON.parse(await info.textContent() ?? '').data, { user_id: harness.user.user_id, client_id: app.client_id })
      await press(tab, 'Sign out')
      // The app has a button of the same name, and leaves only after it has revoked its token.
      await tab.getByRole('heading', { name: 'Sign out?' }).waitFor()
      await press(tab, 'Sign out')
      await tab.getByText('You are not signed in.').waitFor()
      t.equal(tab.url(), `${origin}/`)
      await press(tab, 'Sign in')
      await press(tab, 'Cancel')
      await tab.getByText('You did not sign in.').waitFor()
    })
  })
})

t.test('a backend service acts as a service account', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register({ first_party: false, redirectUris: [], scopes: ['users:read'] })
  await harness.mark(app, { roles: { admin: true } })
  const { code, text } = await startTerminalExample(t, harness, app, 'backend-service/service.js').ended()
  t.equal(code, 0, text)
  t.match(JSON.parse(text), { me: { client_id: app.client_id, subject: 'client', roles: { admin: true }, scopes: ['users:read'] }, users: 1 })
})

t.test('a resource server admits tokens that were requested for it', async (t) => {
  const audience = 'https://orders.example.com'
  const scopes = { 'orders:read': 'read your orders', 'orders:report': 'count the orders of everybody' }
  const harness = await startHarness(t, { resources: [{ id: audience, name: 'Orders', scopes }] })
  const { kit, url, user, register, post } = harness
  const app = await register({ first_party: false, scopes: Object.keys(scopes) })
  const example = startExample(t, 'resource-server/server.js', { ISSUER: url, PORT: '0' })
  const [, origin = ''] = await example.seen(/(http:\/\/127\.0\.0\.1:\d+)/)
  const get = async (path: string, token: string) => {
    const response = await fetch(origin + path, { headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: await response.json() }
  }
  const mint = async (resource?: string) => {
    const { access_token } = await kit.mint({ user: user.user_id, client: app.client_id, ...(resource !== undefined && { resource, scopes: ['orders:read'] }) })
    return access_token
  }
  const own = await mint(audience)
  t.match(await get('/orders', own), { status: 200, body: { orders: [{ of: user.account }], by: app.client_id } })
  t.equal((await get('/report', own)).status, 403, "a user's token is not a client's")
  t.equal((await get('/orders', await mint())).status, 401, 'nor is a token for the service itself admitted, even the operator\'s')
  const { body } = await post('token', { grant_type: 'client_credentials', scope: 'orders:report' }, app)
  t.match(await get('/report', String(body.access_token)), { status: 200, body: { orders: 1, by: app.client_id } })
  t.equal((await get('/orders', String(body.access_token))).status, 403, "a client's token is not a user's")
})

t.test('an example without a client id points to its README', async (t) => {
  for (const file of ['server-app/app.js', 'single-page-app/server.js', 'cli/cli.js', 'backend-service/service.js']) {
    const harness = { url: 'http://127.0.0.1:1' } as Harness
    const { code, text } = await startTerminalExample(t, harness, { client_id: '', client_secret: '', redirect_uri: '' }, file).ended()
    t.equal(code, 1)
    t.match(text, 'see README.md beside this file', file)
  }
})
