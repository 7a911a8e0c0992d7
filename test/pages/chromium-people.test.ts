import t, { type Test } from 'tap'
import { askCode, startHarness } from '../oidc/harness.ts'
import { de } from '../../lib/pages/texts/de.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { type Tab, findViolations, heading, openMenu, press, skip, startChromium, withTab } from './chromium.ts'

t.setTimeout(180_000)

const LOOKS = [
  { texts: en, locale: 'en-GB', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { texts: de, locale: 'de-AT', colorScheme: 'dark', viewport: { width: 390, height: 844 } }
] as const

const start = async (t: Test) => await startHarness(t, { signUp: true, passwordMin: 8 })

/** A person signs up, forgets the password and comes back, changes the address and takes that back. */
async function walk (t: Test, { texts: { links, common, signIn: entry, account: own }, ...look }: typeof LOOKS[number]): Promise<void> {
  const { kit, url } = await start(t)
  const { users } = kit.app.identity
  const OLD = 'bob@example.com'
  const NEW = 'robert@example.com'
  const open = async (tab: Tab, to: string) => await tab.goto((await kit.mails.next({ to })).link!)
  async function signIn (tab: Tab, account: string, password: string): Promise<void> {
    await tab.goto(`${url}/account`)
    await tab.getByLabel(common.account, { exact: true }).fill(account)
    await tab.getByLabel(common.password).fill(password)
    await press(tab, entry.submit)
    t.equal(new URL(tab.url()).pathname, '/account', account)
  }
  await withTab(t, { javaScriptEnabled: false, ...look }, async (tab) => {
    await tab.goto(`${url}/account`)
    await tab.getByRole('link', { name: entry.signUp }).click()
    await tab.getByLabel(links.signUp.field).fill(OLD)
    await press(tab, links.signUp.submit)
    t.equal(await heading(tab), links.sent.title)
    await open(tab, OLD)
    await tab.getByLabel(links.setPassword.field).fill('password')
    await press(tab, links.setPassword['sign-up'].submit)
    t.equal(await tab.getByRole('alert').count(), 1, 'a common password is refused, and the link stays')
    t.match(tab.complaints.splice(0), [/status of 400/])
    await tab.getByLabel(links.setPassword.field).fill('the first password')
    await press(tab, links.setPassword['sign-up'].submit)
    t.match(await users.getByAccount(OLD), { email: OLD })
    await tab.context().clearCookies()
    await signIn(tab, OLD, 'the first password')

    await tab.context().clearCookies()
    await tab.goto(`${url}/account`)
    await tab.getByRole('link', { name: entry.forgot }).click()
    await tab.getByLabel(links.forgot.field).fill(OLD)
    await press(tab, links.forgot.submit)
    await open(tab, OLD)
    await tab.getByLabel(links.setPassword.field).fill('the second password')
    await press(tab, links.setPassword.reset.submit)
    t.equal(await heading(tab), links.done.password.title)
    await tab.getByRole('link', { name: common.toAccount }).click()
    t.equal(new URL(tab.url()).pathname, '/account', 'signed in with the password that was just set')
    await kit.mails.all()

    await openMenu(tab)
    await tab.locator('nav a[href$="/email"]').click()
    await tab.getByLabel(own.newAddress).fill(NEW)
    await tab.getByLabel(own.currentPassword).fill('the second password')
    await tab.locator('main form button.primary').click()
    await open(tab, NEW)
    await press(tab, links.change.submit)
    t.equal(await heading(tab), links.done.verified.title)
    t.equal((await users.getByAccount(OLD))?.email, NEW)
    await open(tab, OLD)
    await press(tab, links.undo.submit)
    t.equal(await heading(tab), links.done.undone.title)
    t.equal((await users.getByAccount(OLD))?.email, OLD)
    t.ok((await kit.mails.next({ to: OLD })).link, 'a link for another password')
  })
}

/** Somebody asks for a change on a computer, and opens the mail on a phone that is signed in to another account. */
async function confirmOnPhone (t: Test, { texts: { links, common, signIn: entry }, ...look }: typeof LOOKS[number]): Promise<void> {
  const { kit, url, user } = await start(t)
  const { users, accounts } = kit.app.identity
  await users.create({ data: { account: 'carl', password: 'the password of carl' } })
  await accounts.changeAddress(user.user_id, 'ann@example.org')
  const { link } = await kit.mails.next({ to: 'ann@example.org' })
  await withTab(t, { javaScriptEnabled: false, ...look }, async (tab) => {
    const visited: string[] = []
    async function signIn (account: string, password: string): Promise<void> {
      await tab.getByLabel(common.account, { exact: true }).fill(account)
      await tab.getByLabel(common.password).fill(password)
      await press(tab, entry.submit)
    }
    await tab.goto(`${url}/account`)
    await signIn('carl', 'the password of carl')
    await tab.goto(link!)
    tab.on('request', (request) => visited.push(request.url()))
    t.match(await tab.locator('main').innerText(), /carl[^]*ann@example\.com|ann@example\.com[^]*carl/, 'both accounts are named')
    t.equal(await tab.getByRole('button', { name: links.change.submit, exact: true }).count(), 0, 'somebody else cannot confirm')
    await press(tab, links.change.signOut)
    t.equal(new URL(tab.url()).pathname, '/account/sign-in')
    await signIn(user.account, user.password)
    t.equal(tab.url(), `${url}/account/verify`)
    t.equal((await users.get(user.user_id))?.email, undefined, 'the sign-in alone changes nothing')
    await press(tab, links.change.submit)
    t.equal(await heading(tab), links.done.verified.title)
    t.equal((await users.get(user.user_id))?.email, 'ann@example.org')
    t.notOk(visited.some((one) => one.includes('token')), 'the token is in no URL after the link')
  })
}

t.test('in Chromium', { skip }, async (t) => {
  startChromium(t)
  for (const look of LOOKS) await t.test(`without a script: ${look.locale}, ${look.colorScheme}`, async (t) => await walk(t, look))
  for (const look of LOOKS) await t.test(`a change of address on a phone: ${look.locale}`, async (t) => await confirmOnPhone(t, look))

  await t.test('a link that was asked for in the sign-in to an app leads back to it, on another origin', async (t) => {
    const { kit, url, user, register } = await start(t)
    const app = await register({ redirectUris: ['https://app.example/cb'] })
    const { links, signIn } = en
    for (const [what, to, ask, submit] of [
      ['forgot', user.account, signIn.forgot, links.setPassword.reset.submit],
      ['sign-up', 'flo@example.com', signIn.signUp, links.setPassword['sign-up'].submit]
    ] as const) {
      await withTab(t, {}, async (tab) => {
        await tab.route('https://app.example/**', async (route) => await route.fulfill({ contentType: 'text/html', body: '<link rel="icon" href="data:,"><h1>The app</h1>' }))
        await tab.goto(url + askCode(app).url)
        await tab.getByRole('link', { name: ask }).click()
        await tab.getByLabel(links[what === 'forgot' ? 'forgot' : 'signUp'].field).fill(to)
        await press(tab, links[what === 'forgot' ? 'forgot' : 'signUp'].submit)
        await tab.goto((await kit.mails.next({ to })).link!)
        await tab.getByLabel(links.setPassword.field).fill('the password from the link')
        await press(tab, submit)
        await tab.waitForURL('https://app.example/**')
        t.equal(await heading(tab), 'The app', what)
      })
    }
  })

  await t.test('a browser with scripts that opens every link ten times, as mail scanners do, spends nothing; axe finds nothing', async (t) => {
    const { kit, url, user } = await start(t)
    const { users, accounts } = kit.app.identity
    await accounts.forgotPassword(user.account, { ip: '127.0.0.1' })
    await accounts.signUp('eve@example.com', { ip: '127.0.0.1' })
    const [reset, signUp] = [(await kit.mails.next({ to: user.account })).link!, (await kit.mails.next({ to: 'eve@example.com' })).link!]
    await withTab(t, { bypassCSP: true }, async (tab) => {
      for (const link of [reset, signUp]) {
        for (let count = 1; count < 10; count++) await tab.goto(link)
        await tab.goto(link, { waitUntil: 'networkidle' })
        t.strictSame(await findViolations(tab), [], 'axe')
      }
      for (const path of ['/account/forgot', '/account/sign-up']) {
        await tab.goto(`${url}${path}`)
        t.strictSame(await findViolations(tab), [], path)
      }
    })
    t.equal(await users.getByAccount('eve@example.com'), null)
    t.ok(await users.verify(user.account, user.password), 'the password is as it was')
    await withTab(t, { javaScriptEnabled: false }, async (tab) => {
      for (const link of [reset, signUp]) {
        await tab.context().clearCookies()
        await tab.goto(link)
        await tab.getByLabel(en.links.setPassword.field).fill('the second password')
        await tab.locator('form button[type=submit]').click()
      }
    })
    t.ok(await users.verify(user.account, 'the second password'))
    t.ok(await users.verify('eve@example.com', 'the second password'))
  })
})
