import t from 'tap'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { pageHeaders } from '../../lib/pages/headers.ts'
import { renderPage } from '../../lib/pages/index.ts'
import { createLook } from '../../lib/pages/look.ts'
import { listScripts } from '../../lib/pages/script.ts'
import { BUILT_IN } from '../../lib/pages/texts/language.ts'
import { skip, startChromium, withTab } from './chromium.ts'

/** Bytes of a page, as it is and compressed. */
const [SIZE, COMPRESSED] = [16 * 1024, 5 * 1024]

const look = createLook({ name: 'Northwind ID', helpAddress: 'help@northwind.example', termsUrl: 'https://northwind.example/terms', privacyUrl: 'https://northwind.example/privacy' })
const upstreams = (['google', 'microsoft', 'oidc', 'github', 'apple'] as const).map((kind) => ({ id: kind, kind, name: kind === 'oidc' ? 'Example Corp' : kind, to: `/to/${kind}` }))
const view = { action: '/form', xsrf: 'x', client: { name: 'Harbour Logistics' }, forgot: '/forgot', signUp: '/sign-up', passkey: { mode: 'get' as const, conditional: true, options: {} } }
const show = (count: number, language = 'en', client: { name: string, logo?: string } = view.client) => renderPage('sign-in', { ...view, client, upstreams: upstreams.slice(0, count) }, look, language, '')
/** A square logo of an app, larger than its place. */
const LOGO = `data:image/svg+xml;base64,${Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="512" height="512"/>').toString('base64')}`

t.test('the sign-in page with all providers is small', async (t) => {
  for (const language of BUILT_IN) {
    const page = show(5, language)
    t.ok(page.length <= SIZE, `${language}: ${page.length} bytes`)
    const [gzip, brotli] = [gzipSync(show(3, language)).length, brotliCompressSync(page).length]
    t.ok(gzip <= COMPRESSED, `${language}: ${gzip} bytes in gzip, with three providers`)
    t.ok(brotli <= COMPRESSED, `${language}: ${brotli} bytes in brotli, with all providers`)
  }
})

t.test('providers first, then the form, then what leads elsewhere; Cancel is last', async (t) => {
  const page = show(5)
  const places = ['/to/google', '/to/apple', 'class="divider"', 'name="account"', 'name="password"', 'type="submit">Sign in', 'data-passkey', '/forgot', '/sign-up', 'name="cancel"'].map((text) => page.indexOf(text))
  t.notMatch(places, [-1])
  t.strictSame(places, places.toSorted((one, other) => one - other))
  t.equal(page.split('<svg class="provider"').length - 1, 5)
  t.notMatch(page, /<svg[^>]*style=|<img/, 'nothing that the policy forbids')
})

t.test('in Chromium', { skip }, async (t) => {
  startChromium(t)
  let body = ''
  const serve = async (tab: Parameters<Parameters<typeof withTab>[2]>[0], page: string) => {
    body = page
    await tab.route('https://id.example/**', async (route) => await route.fulfill({ headers: { ...pageHeaders({ look, scripts: listScripts(body) }), 'content-type': 'text/html; charset=utf-8' }, body }))
    await tab.goto('https://id.example/page')
  }

  for (const language of BUILT_IN) {
    await t.test(`three providers need no scrolling: ${language}`, async (t) => await withTab(t, { viewport: { width: 1280, height: 800 }, bypassCSP: true }, async (tab) => {
      await serve(tab, show(3, language))
      await tab.evaluate("document.querySelector('[data-part=button]').hidden = false")
      t.ok(await tab.evaluate<number>('document.documentElement.scrollHeight') <= 800)
      const height = await tab.evaluate<number>("document.querySelector('main').clientHeight")
      await serve(tab, show(3, language, { ...view.client, logo: LOGO }))
      await tab.evaluate("document.querySelector('[data-part=button]').hidden = false")
      t.ok(await tab.evaluate<boolean>("document.querySelector('img.logo').clientHeight === 20"), 'the policy admits it, and it is small')
      t.ok(await tab.evaluate<number>('document.documentElement.scrollHeight') <= 800, 'with a logo of the app')
      t.equal(await tab.evaluate<number>("document.querySelector('main').clientHeight"), height, 'which takes no line of its own')
    }))
  }

  await t.test('a button shows the password, and a password is sent as one', async (t) => await withTab(t, {}, async (tab) => {
    await serve(tab, show(0))
    const field = tab.locator('#password')
    const button = tab.getByRole('button', { name: 'Show password' })
    await field.fill('correct horse')
    await button.click()
    t.equal(await field.getAttribute('type'), 'text')
    t.equal(await button.getAttribute('aria-pressed'), 'true')
    await tab.evaluate("document.querySelector('form').addEventListener('submit', (event) => event.preventDefault())")
    await tab.getByLabel('Email or username').fill('ann@example.com')
    await field.press('Enter')
    t.equal(await field.getAttribute('type'), 'password')
    t.equal(await button.getAttribute('aria-pressed'), 'false')
  }))

  await t.test('without a script there is no such button', async (t) => await withTab(t, { javaScriptEnabled: false }, async (tab) => {
    await serve(tab, show(0))
    t.equal(await tab.getByRole('button', { name: 'Show password' }).count(), 0)
  }))
})
