import { readFile } from 'node:fs/promises'
import t from 'tap'
import { TOTP } from 'otpauth'
import { startHarness } from '../oidc/harness.ts'
import { findViolations, heading, openMenu, press, skip, startChromium, withTab } from './chromium.ts'

t.setTimeout(180_000)

const PERIOD = 30_000

t.test('second factors in Chromium, without a script', { skip }, async (t) => {
  startChromium(t)
  const harness = await startHarness(t)
  const { kit, user } = harness
  let secret = ''
  let downloaded: string[] = []

  /** The next code of the app. */
  function nextCode (): string {
    kit.clock.advance(PERIOD)
    return new TOTP({ secret }).generate({ timestamp: kit.clock.now() })
  }

  await withTab(t, { javaScriptEnabled: false, locale: 'en-GB', viewport: { width: 390, height: 844 } }, async (tab) => {
    const signIn = async () => {
      await tab.goto(`${harness.url}/account`)
      await tab.getByLabel('Account').fill(user.account)
      await tab.getByLabel('Password').fill(user.password)
      await press(tab, 'Sign in')
    }
    const signOut = async () => {
      await openMenu(tab)
      await press(tab, 'Sign out')
    }

    await signIn()
    await openMenu(tab)
    await tab.getByRole('link', { name: 'Second factor' }).click()
    await tab.getByLabel('Name of the app').fill('Phone')
    await tab.getByLabel('Current password').fill(user.password)
    await press(tab, 'Add an authenticator app')
    t.ok((await tab.getByRole('img').boundingBox())!.width > 150, 'the QR code is shown under the policy of the page')
    secret = new URL((await tab.getByRole('link', { name: /Open it here/ }).getAttribute('href'))!).searchParams.get('secret')!
    t.equal((await tab.locator('#seed').textContent())?.replaceAll(' ', ''), secret)
    await tab.getByLabel('Code that the app shows').fill(nextCode())
    await press(tab, 'Continue')

    const codes = await tab.locator('#codes code').allTextContents()
    const [download] = await Promise.all([tab.waitForEvent('download'), tab.getByRole('link', { name: 'Download the codes' }).click()])
    t.equal(download.suggestedFilename(), 'recovery-codes.txt')
    downloaded = (await readFile(await download.path(), 'utf8')).split('\r\n').slice(1)
    t.strictSame(downloaded, codes)
    await tab.emulateMedia({ media: 'print' })
    t.strictSame([await tab.locator('#codes').isVisible(), await tab.locator('nav').isVisible(), await tab.getByRole('button').first().isVisible()], [true, false, false], 'the print has the codes only')
    await tab.emulateMedia({ media: 'screen' })
    await press(tab, 'Turn the second factor on')
    t.equal(await heading(tab), 'Recovery codes', 'the browser asks for the confirmation first')
    await tab.getByLabel('I have kept the codes').check()
    await press(tab, 'Turn the second factor on')
    t.match(await tab.getByRole('status').textContent(), /is on/)

    await signOut()
    await signIn()
    t.equal(await heading(tab), 'Enter the code of your app')
    await tab.getByLabel('Code of the app').fill(nextCode())
    await press(tab, 'Continue')
    t.equal(await heading(tab), 'Profile')

    await signOut()
    await signIn()
    await tab.getByRole('link', { name: 'Use a recovery code' }).click()
    await tab.getByLabel('Recovery code').fill(downloaded[0]!)
    await press(tab, 'Continue')
    await tab.goto(`${harness.url}/account/factors`)
    t.match(await tab.locator('main').textContent(), /9 codes are left/)
    await tab.getByRole('link', { name: /^Remove/ }).click()
    await tab.getByLabel('Current password').fill(user.password)
    await tab.getByLabel('Code of your second factor').fill(nextCode())
    await press(tab, 'Remove')
    t.match(await tab.locator('main').textContent(), /You have no second factor/)
    await signOut()
    await signIn()
    t.equal(await heading(tab), 'Profile', 'the password is enough again')
  })

  await withTab(t, { bypassCSP: true }, async (tab) => {
    await tab.goto(`${harness.url}/account`)
    await tab.getByLabel('Account').fill(user.account)
    await tab.getByLabel('Password').fill(user.password)
    await press(tab, 'Sign in')
    await tab.goto(`${harness.url}/account/factors`)
    t.strictSame(await findViolations(tab), [])
  })
})
