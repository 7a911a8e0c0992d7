import t, { type Test } from 'tap'
import { askCode, getCode, startHarness } from '../oidc/harness.ts'
import { findViolations, heading, openMenu, press, skip, startChromium, withTab } from './chromium.ts'

t.setTimeout(180_000)

/** The words of the forms, by language. */
const WORDS = {
  en: { lang: 'en-GB', account: 'Email or username', password: 'Password', signIn: 'Sign in', name: 'Name', save: 'Save', current: 'Current password', next: 'New password', change: 'Change password', end: /^Sign out\s*: /, others: 'Sign out everywhere else', disconnect: /^Disconnect\s*: /, yes: 'Disconnect', show: 'Show secret', renew: 'Create new secret', secretName: 'Secret name', lastDay: 'Last day it works', add: 'Add secret', drop: /^Remove\s*: First secret/, dropYes: 'Remove', remove: 'Delete app', signOut: 'Sign out', out: 'Signed out' },
  de: { lang: 'de-AT', account: 'E-Mail-Adresse oder Benutzername', password: 'Passwort', signIn: 'Anmelden', name: 'Name', save: 'Speichern', current: 'Aktuelles Passwort', next: 'Neues Passwort', change: 'Passwort ändern', end: /^Abmelden\s*: /, others: 'Auf allen anderen Geräten abmelden', disconnect: /^Trennen\s*: /, yes: 'Trennen', show: 'Secret anzeigen', renew: 'Neues Secret erstellen', secretName: 'Name des Secrets', lastDay: 'Letzter Gültigkeitstag', add: 'Secret hinzufügen', drop: /^Entfernen\s*: Erstes Secret/, dropYes: 'Entfernen', remove: 'App löschen', signOut: 'Abmelden', out: 'Abgemeldet' }
} as const

const LOOKS = [
  { language: 'en', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { language: 'de', colorScheme: 'dark', viewport: { width: 390, height: 844 } }
] as const

/** Goes through all of the account pages as a person does. */
async function walk (t: Test, look: typeof LOOKS[number]): Promise<void> {
  const harness = await startHarness(t)
  const { kit, user, post, get, browser } = harness
  const words = WORDS[look.language]
  const app = await harness.register({ first_party: false, name: '<img src=x onerror=alert(1)>' })
  const { clientId } = await kit.app.identity.clients.create({ data: { name: 'Mine', redirectUris: ['https://mine.example/cb'], scopes: [] }, credentials: true }, { user_id: user.user_id, isAdmin: false })
  const elsewhere = browser()
  const { body } = await post('token', await getCode(harness, app, {}, elsewhere), app)
  const token = String(body.access_token)

  await withTab(t, { javaScriptEnabled: false, locale: words.lang, colorScheme: look.colorScheme, viewport: look.viewport }, async (tab) => {
    const open = async (section: string) => {
      await openMenu(tab)
      await tab.locator(`nav a[href$="/${section}"]`).click()
    }
    const shown = async (what: string) => {
      t.equal(await tab.locator('html').getAttribute('lang'), look.language, what)
      t.equal(await tab.locator('main').getByRole('status').count(), 1, `${what}: the page says so`)
    }

    await tab.goto(`${harness.url}/account`)
    await tab.getByLabel(words.account).fill(user.account)
    await tab.getByLabel(words.password).fill(user.password)
    await press(tab, words.signIn)
    t.equal(new URL(tab.url()).pathname, '/account')

    await tab.getByLabel(words.name).fill('Ann Übel')
    await press(tab, words.save)
    await shown('name')
    t.equal((await kit.app.identity.users.get(user.user_id))?.name, 'Ann Übel')

    await open('apps')
    t.equal(await tab.locator('main img').count(), 0, 'a name is a text')
    await tab.getByRole('button', { name: words.disconnect }).click()
    await press(tab, words.yes)
    await shown('disconnected')
    t.equal((await get('tokeninfo', token)).status, 401)

    await open('sessions')
    t.equal(await tab.getByRole('button', { name: words.end }).count(), 1)
    await tab.getByRole('button', { name: words.end }).click()
    await shown('ended')
    t.match((await elsewhere.open('/account')).title, 'Sign in')
    await press(tab, words.others)
    await shown('others')

    await open('clients')
    await tab.getByRole('link', { name: 'Mine' }).click()
    await press(tab, words.show)
    const secret = await tab.locator('#secret').textContent()
    await press(tab, words.renew)
    await press(tab, words.renew)
    await shown('renewed')
    await press(tab, words.show)
    t.not(await tab.locator('#secret').textContent(), secret)
    await tab.getByLabel(words.secretName).fill('Nightly')
    await tab.getByLabel(words.lastDay).fill('2099-12-31')
    await press(tab, words.add)
    await shown('added')
    t.match(await tab.locator('#secret').textContent(), /^fi_sec_/)
    await tab.getByRole('button', { name: words.drop }).click()
    await press(tab, words.dropYes)
    await shown('secret removed')
    t.equal(await tab.locator('main ul.entries li').count(), 1)
    await press(tab, words.remove)
    await press(tab, words.remove)
    await shown('removed')
    t.equal(await kit.app.identity.store.collection('clients').get(clientId), null)

    await open('methods')
    await tab.locator('main a[href$="/password"]').click()
    await tab.getByLabel(words.current).fill(user.password)
    await tab.getByLabel(words.next).fill('battery staple')
    await press(tab, words.change)
    await shown('password')
    await openMenu(tab)
    await press(tab, words.signOut)
    t.equal(await heading(tab), words.out)
    await tab.goto(`${harness.url}${askCode(app).url}`)
    t.equal(await heading(tab), words.signIn, 'the single sign-on is over')
  })
}

t.test('in Chromium', { skip }, async (t) => {
  startChromium(t)
  for (const look of LOOKS) await t.test(`the account without a script: ${Object.values(look).slice(0, 2).join(', ')}`, async (t) => await walk(t, look))

  await t.test('axe finds nothing on the pages as they are served', async (t) => {
    const harness = await startHarness(t)
    const app = await harness.register({ name: 'Harbour', first_party: false })
    await getCode(harness, app)
    await withTab(t, { bypassCSP: true }, async (tab) => {
      await tab.goto(`${harness.url}/account`)
      t.strictSame(await findViolations(tab), [])
      await tab.getByLabel('Email or username').fill(harness.user.account)
      await tab.getByLabel('Password').fill(harness.user.password)
      await press(tab, 'Sign in')
      for (const section of ['', '/password', '/sessions', '/apps', '/clients', `/clients/${app.client_id}`]) {
        await tab.goto(`${harness.url}/account${section}`)
        t.strictSame(await findViolations(tab), [], section)
      }
    })
  })

  await t.test('times are those of the reader\'s zone, and those of UTC without a script', async (t) => {
    const harness = await startHarness(t)
    const read = async (options: object) => {
      const shown: string[] = []
      await withTab(t, { locale: 'de-DE', ...options }, async (tab) => {
        await tab.goto(`${harness.url}/account/activity`)
        await tab.getByLabel('E-Mail-Adresse oder Benutzername').fill(harness.user.account)
        await tab.getByLabel('Passwort').fill(harness.user.password)
        await press(tab, 'Anmelden')
        const time = tab.locator('time').first()
        shown.push(await time.getAttribute('datetime') ?? '', await time.textContent() ?? '', String(await tab.locator('[data-utc]').isVisible()))
      })
      return shown
    }
    const write = (time: string, timeZone: string) =>
      new Intl.DateTimeFormat('de', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23', timeZone }).format(new Date(time))
    for (const timezoneId of ['Pacific/Auckland', 'America/St_Johns']) {
      const [time = '', ...shown] = await read({ timezoneId })
      t.strictSame(shown, [write(time, timezoneId), 'false'], timezoneId)
    }
    const [time = '', ...shown] = await read({ timezoneId: 'Pacific/Auckland', javaScriptEnabled: false })
    t.strictSame(shown, [`${write(time, 'UTC')} UTC`, 'true'])
  })

  await t.test('a double click acts once, and its answer is seen: a sign-in, a secret that is shown once, a name', async (t) => {
    const harness = await startHarness(t)
    const { kit, user, url } = harness
    const actor = { user_id: user.user_id, isAdmin: false }
    const { clientId } = await kit.app.identity.clients.create({ data: { name: 'Mine', redirectUris: [], scopes: [] }, credentials: true }, actor)
    await withTab(t, {}, async (tab) => {
      const pressTwice = async (name: string) => {
        await tab.getByRole('button', { name }).dblclick({ noWaitAfter: true })
        await tab.waitForLoadState()
      }
      await tab.goto(`${url}/account`)
      await tab.getByLabel('Email or username').fill(user.account)
      await tab.getByLabel('Password').fill(user.password)
      await pressTwice('Sign in')
      await tab.waitForURL(`${url}/account`)
      t.equal(await heading(tab), 'Profile')
      await tab.goto(`${url}/account/clients/${clientId}`)
      await tab.getByLabel('Secret name').fill('deploy')
      await pressTwice('Add secret')
      await tab.getByText('we won’t show it again').waitFor()
      t.equal((await kit.app.identity.clients.listSecrets(clientId, actor)).secrets.length, 2, 'the first one, and that of both clicks')
      await tab.goto(`${url}/account`)
      await tab.getByLabel('Name').fill('Anna')
      await pressTwice('Save')
      await tab.waitForURL(`${url}/account?done=name`)
    })
    t.equal((await kit.events.list({ type: 'user.updated' })).length, 1)
    t.equal((await kit.events.list({ type: 'sign_in.succeeded' })).length, 1)
  })

  await t.test('a form of another site changes nothing, with a script either', async (t) => {
    const harness = await startHarness(t)
    await withTab(t, {}, async (tab) => {
      await tab.goto(`${harness.url}/account`)
      await tab.getByLabel('Email or username').fill(harness.user.account)
      await tab.getByLabel('Password').fill(harness.user.password)
      await press(tab, 'Sign in')
      await tab.route('https://evil.example/', async (route) => await route.fulfill({
        contentType: 'text/html',
        body: `<!DOCTYPE html><form method="post" action="${harness.url}/account"><input name="name" value="Mallory"><button>Win</button></form>`
      }))
      await tab.goto('https://evil.example/')
      await press(tab, 'Win')
      t.equal(await heading(tab), 'Something went wrong')
      t.ok(tab.complaints.splice(0).every((text) => /status of 40[03]|favicon/.test(text)))
      t.equal((await harness.kit.app.identity.users.get(harness.user.user_id))?.name, 'Ann')
    })
  })
})
