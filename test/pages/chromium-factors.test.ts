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
      await tab.getByLabel('Email or username').fill(user.account)
      await tab.getByLabel('Password').fill(user.password)
      await press(tab, 'Sign in')
    }
    const signOut = async () => {
      await openMenu(tab)
      await press(tab, 'Sign out')
    }

    await signIn()
    await openMenu(tab)
    await tab.getByRole('link', { name: 'Sign-in methods' }).click()
    await tab.getByRole('link', { name: 'Set up authenticator app' }).click()
    await tab.getByLabel('Name for this app').fill('Phone')
    await tab.getByLabel('Current password').fill(user.password)
    await press(tab, 'Continue')
    t.ok((await tab.getByRole('img').boundingBox())!.width > 150, 'the QR code is shown under the policy of the page')
    secret = new URL((await tab.getByRole('link', { name: /Open the app on this device/ }).getAttribute('href'))!).searchParams.get('secret')!
    t.equal((await tab.locator('#seed').textContent())?.replaceAll(' ', ''), secret)
    await tab.getByLabel('Verification code from the app').fill(nextCode())
    await press(tab, 'Continue')

    const codes = await tab.locator('#codes code').allTextContents()
    const [download] = await Promise.all([tab.waitForEvent('download'), tab.getByRole('link', { name: 'Download codes' }).click()])
    t.equal(download.suggestedFilename(), 'recovery-codes.txt')
    downloaded = (await readFile(await download.path(), 'utf8')).split('\r\n').slice(1)
    t.strictSame(downloaded, codes)
    await tab.emulateMedia({ media: 'print' })
    t.strictSame([await tab.locator('#codes').isVisible(), await tab.locator('nav').isVisible(), await tab.getByRole('button').first().isVisible()], [true, false, false], 'the print has the codes only')
    await tab.emulateMedia({ media: 'screen' })
    await press(tab, 'Turn on two-step verification')
    t.equal(await heading(tab), 'Backup codes', 'the browser asks for the confirmation first')
    await tab.getByLabel('I saved my codes').check()
    await press(tab, 'Turn on two-step verification')
    t.match(await tab.getByRole('status').textContent(), /is on/)

    await signOut()
    await signIn()
    t.equal(await heading(tab), 'Enter your verification code')
    await tab.getByLabel('Verification code').fill(nextCode())
    await press(tab, 'Continue')
    t.equal(await heading(tab), 'Profile')

    await signOut()
    await signIn()
    await tab.getByRole('link', { name: 'Use a backup code' }).click()
    await tab.getByLabel('Backup code').fill(downloaded[0]!)
    await press(tab, 'Continue')
    t.equal(await heading(tab), 'You’re signed in with a backup code')
    t.match(await tab.locator('main').textContent(), /9 codes left/)
    await tab.getByRole('link', { name: 'Replace a lost phone or passkey' }).press('Enter')
    t.match(await tab.locator('main').textContent(), /9 codes left/)
    await tab.getByRole('link', { name: /^Manage/ }).press('Enter')
    t.equal(await tab.getByRole('button', { name: /^Remove/ }).count(), 0)
    await tab.getByRole('link', { name: /^Remove/ }).click()
    await tab.getByLabel('Current password').fill(user.password)
    await tab.getByLabel('Verification code').fill(nextCode())
    await press(tab, 'Remove')
    t.match(await tab.locator('main').textContent(), /Two-step verification is off/)
    await signOut()
    await signIn()
    t.equal(await heading(tab), 'Profile', 'the password is enough again')
  })

  await withTab(t, { bypassCSP: true }, async (tab) => {
    await tab.goto(`${harness.url}/account`)
    await tab.getByLabel('Email or username').fill(user.account)
    await tab.getByLabel('Password').fill(user.password)
    await press(tab, 'Sign in')
    for (const path of ['/methods', '/factors/new', '/password']) {
      await tab.goto(`${harness.url}/account${path}`)
      t.strictSame(await findViolations(tab), [], path)
    }
  })
})
