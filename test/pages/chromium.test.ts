import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { askCode, startHarness } from '../oidc/harness.ts'
import { heading, press, skip, startChromium, typeIn, withTab } from './chromium.ts'

const WRONG = 'Wrong email, username or password.'

/** A server that answers each path with a page or a redirect. As `localhost` it is a different site than as 127.0.0.1. */
async function startSite (t: Test, answer: (url: URL) => { html: string } | { location: string }): Promise<number> {
  const server = createServer((request, response) => {
    const reply = answer(new URL(request.url ?? '/', 'http://localhost'))
    if ('location' in reply) response.writeHead(303, { location: reply.location }).end()
    else response.writeHead(200, { 'content-type': 'text/html' }).end(`<!DOCTYPE html><link rel="icon" href="data:,">${reply.html}`)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

t.test('in Chromium', { skip }, async (t) => {
  startChromium(t)

  await t.test('signing in with the keyboard and a screen reader', async (t) => {
    const harness = await startHarness(t)
    const port = await startSite(t, () => ({ html: '<h1>The app</h1>' }))
    const app = await harness.register({ first_party: false, redirectUris: [`http://localhost:${port}/cb`] })
    await withTab(t, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }, async (tab) => {
      const { keyboard } = tab
      const session = await tab.context().newCDPSession(tab)
      /** The focused element in the accessibility tree. */
      async function readFocused () {
        const { nodes } = await session.send('Accessibility.getFullAXTree')
        const node = nodes.find(({ role, properties }) => role?.value !== 'RootWebArea' && properties?.some(({ name, value }) => name === 'focused' && value.value === true))
        return {
          name: node?.name?.value, description: node?.description?.value, invalid: node?.properties?.find(({ name }) => name === 'invalid')?.value.value
        }
      }
      await tab.goto(harness.url + askCode(app).url)
      t.match(await readFocused(), { name: 'Email or username' })
      await keyboard.type(harness.user.account)
      await keyboard.press('Tab')
      await keyboard.type('wrong')
      await keyboard.press('Enter')
      await tab.getByRole('alert').waitFor()
      t.match(await tab.title(), /^Error: /)
      t.strictSame(await readFocused(), { name: 'Password', description: WRONG, invalid: 'true' })
      t.match(tab.complaints.splice(0), [/status of 400/])
      await keyboard.type(harness.user.password)
      await keyboard.press('Enter')
      await tab.getByRole('heading', { name: 'Continue to The App' }).waitFor()
      const order = []
      for (let step = 0; step < 3; step++) {
        await keyboard.press('Tab')
        order.push((await readFocused()).name)
        t.not(await tab.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none', 'the focus is visible')
      }
      t.strictSame(order, ['Use another account', 'Allow', 'Deny'])
      await keyboard.press('Shift+Tab')
      await keyboard.press('Enter')
      await tab.waitForURL(/\/cb\?code=/)
    })
  })

  await t.test('the policy allows the redirect back to the app', async (t) => {
    const harness = await startHarness(t)
    const elsewhere = await startSite(t, () => ({ html: '<h1>Home of the app</h1>' }))
    const port = await startSite(t, () => ({ location: `http://127.0.0.1:${elsewhere}/` }))
    for (const [what, registered, asked] of [
      ['an app that redirects to another origin', `http://localhost:${port}/cb`, `http://localhost:${port}/cb`],
      ['a loopback app on any port', 'http://127.0.0.1/cb', `http://127.0.0.1:${port}/cb`]
    ] as const) {
      const app = await harness.register({ first_party: false, public: true, redirectUris: [registered] })
      await withTab(t, {}, async (tab) => {
        await tab.goto(harness.url + askCode(app, { redirect_uri: asked }).url)
        await typeIn(tab, harness.user)
        await press(tab, 'Allow')
        await tab.waitForURL(`http://127.0.0.1:${elsewhere}/`)
        t.equal(await heading(tab), 'Home of the app', what)
      })
    }
    const app = await harness.register({ first_party: false, public: true, redirectUris: ['com.example.app:/cb'] })
    await withTab(t, {}, async (tab) => {
      await tab.goto(harness.url + askCode(app).url)
      await typeIn(tab, harness.user)
      // No app on this machine handles the scheme, but Chromium requests it only if the policy allows the redirect.
      const redirect = tab.waitForRequest(/^com\.example\.app:/)
      await press(tab, 'Allow')
      t.match((await redirect).url(), /^com\.example\.app:\/cb\?code=/)
    })
  })

  await t.test('a signed-in user can use another account', async (t) => {
    const harness = await startHarness(t)
    await harness.kit.app.identity.users.create({ data: { account: 'bob', password: 'a horse too' } })
    const app = await harness.register({ first_party: false })
    await withTab(t, {}, async (tab) => {
      await tab.goto(harness.url + askCode(app).url)
      await typeIn(tab, harness.user)
      await tab.getByRole('link', { name: 'Use another account' }).click()
      await typeIn(tab, { account: 'bob', password: 'a horse too' })
      t.match(await tab.getByText('You are signed in as').textContent(), 'bob')
    })
  })

  await t.test('forms from other origins are refused', async (t) => {
    const harness = await startHarness(t)
    const home = await startSite(t, () => ({ html: '<h1>The app</h1>' }))
    const app = await harness.register({ redirectUris: [`http://127.0.0.1:${home}/cb`] })
    let form = ''
    const port = await startSite(t, () => ({ html: `${form}<button form="f">Win a prize</button>` }))
    await withTab(t, {}, async (tab) => {
      await tab.goto(harness.url + askCode(app).url)
      const signInUrl = tab.url()
      // Another port is the same site, so cookies are sent from 127.0.0.1 and not from localhost.
      for (const host of ['localhost', '127.0.0.1']) {
        form = `<form id="f" method="post" action="${signInUrl}"><input name="account" value="${harness.user.account}"><input name="password" value="${harness.user.password}"></form>`
        await tab.goto(`http://${host}:${port}/`)
        await press(tab, 'Win a prize')
        t.equal(await heading(tab), 'Something went wrong', `signing in from ${host}`)
        t.match(tab.complaints.splice(0), [/status of 40[03]/])
      }
      await tab.goto(signInUrl)
      t.equal(await heading(tab), 'Sign in', 'the sign-in is still pending')

      await typeIn(tab, harness.user)
      t.equal(await heading(tab), 'The app')
      const signedIn = async () => {
        await tab.goto(harness.url + askCode(app).url)
        return tab.url().startsWith(`${app.redirect_uri}?code=`)
      }
      t.ok(await signedIn())
      for (const path of ['session/end/confirm', 'device']) {
        for (const host of ['localhost', '127.0.0.1']) {
          await tab.goto(`${harness.url}/api/v1/auth/${path.replace('/confirm', '')}`)
          form = `<form id="f" method="post" action="${harness.url}/api/v1/auth/${path}"><input name="xsrf" value="guessed"><input name="logout" value="yes"><input name="user_code" value="BBBB-BBBB"></form>`
          await tab.goto(`http://${host}:${port}/`)
          await press(tab, 'Win a prize')
          t.equal(await heading(tab), 'Something went wrong', `${path} from ${host}`)
          t.equal(await tab.getByRole('alert').count(), 1)
          t.match(tab.complaints.splice(0), [path === 'device' ? /status of 403/ : /status of 400/])
          t.ok(await signedIn(), 'the browser is still signed in')
        }
      }
    })
  })

  await t.test('no page can be framed', async (t) => {
    const harness = await startHarness(t)
    const port = await startSite(t, () => ({ html: `<iframe src="${harness.url}/api/v1/auth/device"></iframe>` }))
    await withTab(t, {}, async (tab) => {
      await tab.goto(`http://127.0.0.1:${port}/`)
      t.equal(await tab.frameLocator('iframe').getByRole('textbox').count(), 0)
      t.match(tab.complaints.splice(0).join('\n'), 'frame-ancestors')
    })
  })
})
