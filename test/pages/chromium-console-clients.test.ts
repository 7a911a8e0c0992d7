import t from 'tap'
import { de } from '../../lib/pages/texts/de.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { startHarness } from '../oidc/harness.ts'
import { createTestKey } from '../helpers/assertions.ts'
import { OVERFLOW, SMALL, type Tab, findViolations, heading, press, setDetails, skip, startChromium, takePicture, withTab } from './chromium.ts'
import { LONG } from './look.ts'

t.setTimeout(300_000)

const WIDTHS = [360, 1280]

t.test('the pages of clients fit, work without a script and are accessible', { skip }, async (t) => {
  startChromium(t)
  const harness = await startHarness(t, { console: { path: '/admin' }, oidc: { documents: { hosts: ['agent.example'] } } })
  const { kit, url, user } = harness
  const { clients, serviceTokens, store } = kit.app.identity
  await store.collection('users').update(user.user_id, { set: { roles: { admin: true } } })
  const admin = { user_id: user.user_id, isAdmin: true }
  const redirectUris = ['https://shop.example/callback', 'com.example.shop:/cb', `https://shop.example/${LONG}`]
  const { clientId } = await clients.create({ data: { name: LONG, redirectUris, scopes: ['read', 'write'], first_party: true, image: 'https://shop.example/logo.png' }, credentials: true }, admin)
  await clients.addSecret(clientId, { data: { name: 'Nightly report', expiresAt: '2099-01-01T00:00:00Z' } }, admin)
  await clients.patch(clientId, { data: { jwks: { keys: [(await createTestKey('ES256')).jwk] }, claims: { tenant: { from: 'attributes.tenant', in: ['id_token', 'jwt'] } } } }, admin)
  await serviceTokens.add(clientId, { data: { name: 'SCIM', scopes: ['read'] } }, admin)
  const agent = kit.agent({ client_name: 'An agent' })
  await agent.authorize(user)
  await (await kit.app.identity.documents!.load()).block('https://agent.example/blocked.json')

  async function signIn (tab: Tab, { common, signIn: entry, console: own }: typeof en | typeof de = en): Promise<void> {
    await tab.goto(`${url}/admin/clients`)
    await tab.getByLabel(common.account, { exact: true }).fill(user.account)
    await tab.getByLabel(common.password).fill(user.password)
    await press(tab, entry.submit)
    t.equal(await heading(tab), own.clients.title)
  }

  await t.test('without a script: a client is registered, and its secret shown', async (t) => {
    await withTab(t, { javaScriptEnabled: false, locale: 'en-GB', viewport: { width: 360, height: 800 } }, async (tab) => {
      await signIn(tab)
      await tab.locator('summary', { hasText: en.console.clients.create }).click()
      await tab.getByLabel(en.console.clients.name, { exact: true }).fill('Till')
      await tab.getByLabel(en.console.clients.redirectUris).fill('https://till.example/cb')
      await tab.getByLabel('Confidential').check()
      await press(tab, en.console.clients.create)
      t.equal(await heading(tab), 'Till')
      const { clientSecret } = await clients.require(/clients\/([^/"]+)\/token/.exec(await tab.content())?.[1] ?? '', admin)
      t.equal(await tab.locator('.secret-shown code').textContent(), clientSecret)
      t.equal(await tab.evaluate(OVERFLOW), 0)
      await takePicture(tab, 'console-client-registered-light-360')
      await tab.getByRole('link', { name: en.console.clients.preview.title }).click()
      await tab.getByLabel(en.console.clients.preview.person).fill(user.user_id)
      await press(tab, en.console.clients.preview.submit)
      t.equal(await tab.getByText(en.console.clients.preview.allowed).count(), 1)
    })
  })

  const pages = [
    ['clients', '/admin/clients'],
    ['documents', '/admin/clients?kind=documents'],
    ['client', `/admin/clients/${clientId}`],
    ['document', `/admin/clients/${encodeURIComponent(agent.clientId)}`],
    ['preview', `/admin/clients/${clientId}/token?user_id=${user.user_id}&scope=openid+profile+other`]
  ] as const

  for (const [language, locale, texts] of [['en', 'en-GB', en], ['de', 'de-AT', de]] as const) {
    await t.test(`each page fits: ${language}`, async (t) => {
      await withTab(t, { bypassCSP: true, reducedMotion: 'reduce', locale }, async (tab) => {
        await signIn(tab, texts)
        for (const [name, path] of pages) {
          await tab.goto(url + path)
          for (const [state, isOpen] of [['closed', false], ['open', true]] as const) {
            await tab.evaluate(setDetails(isOpen))
            for (const width of WIDTHS) {
              await tab.setViewportSize({ width, height: 800 })
              t.equal(await tab.evaluate(OVERFLOW), 0, `${name}, ${state}, ${width}: no horizontal scrolling`)
              t.strictSame(await tab.evaluate(SMALL), [], `${name}, ${state}, ${width}: targets are large enough`)
              for (const colorScheme of ['light', 'dark'] as const) {
                await tab.emulateMedia({ colorScheme })
                await takePicture(tab, `console-${name}-${language}-${state}-${colorScheme}-${width}`)
              }
            }
          }
          if (language !== 'en') continue
          for (const colorScheme of ['light', 'dark'] as const) {
            await tab.emulateMedia({ colorScheme })
            t.strictSame(await findViolations(tab), [], `${name}, ${colorScheme}: axe reports no violation`)
          }
        }
      })
    })
  }
})
