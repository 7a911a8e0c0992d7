import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { StartOptions } from '../../testing/index.ts'
import { startHarness } from '../oidc/harness.ts'
import { type Tab, heading, press, skip, startChromium, typeIn, withTab } from './chromium.ts'
import { enter } from './visits.ts'
import { CONSOLE, PASSWORD, withMails } from './console-visits.ts'

t.setTimeout(300_000)

const { console: own, account: ofAccount } = en
const ROOT = { user_id: 'root', isAdmin: true }

/** A service with an administrator, who has a verified address, and a person with a password. */
async function start (t: Parameters<typeof startHarness>[0], options: StartOptions) {
  const harness = await startHarness(t, { ...CONSOLE, ...options })
  const { users, events } = harness.kit.app.identity
  const boss = { account: 'root@example.com', password: PASSWORD }
  const { user_id: bossId } = await users.create({ data: boss })
  await users.patch(bossId, { data: { roles: { admin: true }, email: boss.account, email_verified: true } }, ROOT)
  const { user_id } = await users.create({ data: { account: 'mill@example.com', password: PASSWORD, name: 'Ann Miller' } })
  return {
    harness,
    boss,
    bossId,
    user_id,
    users,
    async count (type: string, user = user_id): Promise<number> {
      await events.flush()
      let found = 0
      for await (const batch of events.list({ type, user, limit: 0 })) found += batch.length
      return found
    }
  }
}

/** What a person sees of an action of a page, which is closed at first. */
const find = (tab: Tab, label: string) => tab.locator('details.act').filter({ has: tab.locator('summary', { hasText: new RegExp(`^${label}( |$)`) }) }).first()

/** Opens an action, fills in its fields, and presses its button. */
async function run (tab: Tab, label: string, fields: Record<string, string> = {}): Promise<void> {
  const act = find(tab, label)
  if (await act.getAttribute('open') === null) await act.locator('summary').click()
  for (const [name, value] of Object.entries(fields)) await act.getByLabel(name, { exact: true }).fill(value)
  await act.getByRole('button', { name: label }).click()
}

const status = async (tab: Tab) => await tab.locator('main').getByRole('status').first().textContent()
const open = async (tab: Tab, section: keyof typeof own.sections) => await tab.getByRole('link', { name: own.sections[section], exact: true }).click()

/** The response of a refused form is a complaint of the browser. */
const forgive = (tab: Tab, code: number) => {
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((text) => !text.includes(`status of ${code}`)))
}

async function search (tab: Tab, text: string): Promise<void> {
  await tab.getByLabel(own.search, { exact: true }).fill(text)
  await tab.getByRole('search').getByRole('button').click()
}

const WINDOW = { javaScriptEnabled: false, locale: 'en-GB', viewport: { width: 1280, height: 900 } }

t.test('an administrator helps somebody who is locked out, without a script and without email', { skip }, async (t) => {
  startChromium(t)
  const { harness, boss, user_id, users, count } = await start(t, { mail: undefined })
  for (let attempt = 0; attempt < 101; attempt++) {
    await users.verify('mill@example.com', 'wrong').catch(() => null)
    harness.kit.clock.advance(3_600_000)
  }
  await withTab(t, WINDOW, async (tab) => {
    await tab.goto(`${harness.url}/admin`)
    await typeIn(tab, boss)
    t.equal(await heading(tab), own.sections.overview)
    t.equal(await tab.getByText(own.overview.ready).count(), 1)

    await t.test('they find the person by beginnings of words, and by the id', async (t) => {
      await search(tab, 'mill an')
      t.equal(await heading(tab), own.found.title)
      await tab.getByRole('link', { name: 'Ann Miller' }).click()
      t.equal(await heading(tab), 'Ann Miller')
      await search(tab, user_id)
      await tab.getByRole('link', { name: 'Ann Miller' }).click()
      t.equal(new URL(tab.url()).pathname, `/admin/people/${user_id}`)
      await open(tab, 'people')
      await tab.getByLabel(own.people.search).fill('nobody')
      await press(tab, own.people.find)
      t.equal(await tab.getByText(own.people.empty).count(), 1)
    })

    await t.test('they read why, and unlock', async (t) => {
      await tab.goto(`${harness.url}/admin/people/${user_id}`)
      t.match(await tab.locator('main .can').textContent(), 'mill@example.com can’t sign in now.')
      t.match(await tab.locator('main .mark-list').textContent(), /too many wrong passwords in a row.*What helps: unlock the account, below\./s)
      const first = await tab.locator('main > :nth-child(2)').textContent()
      t.match(first, 'can’t sign in now', 'it stands first')
      await run(tab, own.person.unlock)
      t.equal(await status(tab), own.done.unlocked)
      t.match(await tab.locator('main .can').textContent(), 'mill@example.com can sign in now.')
      t.ok(await users.verify('mill@example.com', PASSWORD))
      t.equal(await count('user.unlocked'), 1)
    })

    await t.test('a recovery link is shown, and the same one after a reload', async (t) => {
      await run(tab, own.person.recover)
      const link = await tab.locator('.secret-shown code').textContent() ?? ''
      t.match(link, /^http.*token=/)
      await tab.reload()
      t.equal(await tab.locator('.secret-shown code').textContent(), link)
      await tab.goto(`${harness.url}/admin/people/${user_id}`)
      t.equal(await tab.locator('.secret-shown').count(), 0, 'another visit does not show it')
      t.equal(await count('user.recovery_started'), 1)
    })

    await t.test('they sign out', async (t) => {
      await press(tab, ofAccount.signOut)
      await tab.goto(`${harness.url}/admin`)
      t.equal(await tab.getByLabel('Password').count(), 1)
    })
  })
})

t.test('an administrator changes people, without a script', { skip }, async (t) => {
  startChromium(t)
  const { harness, boss, user_id, users, count } = await start(t, await withMails([]))
  const path = `${harness.url}/admin/people/${user_id}`
  await withTab(t, WINDOW, async (tab) => {
    await tab.goto(path)
    await typeIn(tab, boss)
    t.equal(await heading(tab), 'Ann Miller', 'the sign-in leads to the page')

    await t.test('the name', async (t) => {
      await run(tab, own.person.editProfile, { [own.people.name]: '<b>Ann</b>' })
      t.equal(await status(tab), own.done.saved)
      t.equal(await heading(tab), '<b>Ann</b>')
      t.equal((await users.get(user_id))?.name, '<b>Ann</b>')
    })

    await t.test('the roles: what is no JSON, then a conflict that shows both values, then they are saved', async (t) => {
      const typed = '{ "editor": true }'
      await run(tab, own.person.editRoles, { [own.person.roles]: '{ "editor"' })
      t.match(await tab.getByRole('alert').textContent(), 'roles')
      t.equal(await tab.getByLabel(own.person.roles, { exact: true }).inputValue(), '{ "editor"', 'what was typed is there')
      forgive(tab, 400)
      await users.patch(user_id, { data: { roles: { writer: true } } }, ROOT)
      await run(tab, own.person.editRoles, { [own.person.roles]: typed })
      t.equal(await tab.getByRole('alert').textContent(), own.conflict)
      forgive(tab, 412)
      const compared = await tab.locator('main .facts').first().textContent() ?? ''
      t.match(compared, new RegExp(`${own.person.roles}: ${own.conflictNow}.*writer.*${own.person.roles}: ${own.conflictTyped}.*editor`, 's'))
      t.strictSame((await users.get(user_id))?.roles, { writer: true })
      await run(tab, own.person.editRoles)
      t.equal(await status(tab), own.done.saved)
      t.strictSame((await users.get(user_id))?.roles, { editor: true })
    })

    await t.test('disable, then enable', async (t) => {
      await run(tab, own.person.disable)
      t.equal(await status(tab), own.done.disabled)
      t.match(await tab.locator('main .can').textContent(), 'can’t sign in')
      await run(tab, own.person.enable)
      t.equal(await status(tab), own.done.enabled)
      t.match(await tab.locator('main .can').textContent(), 'can sign in')
    })

    await t.test('a session ends', async (t) => {
      const elsewhere = harness.browser()
      await enter(harness, '/account', elsewhere, { account: 'mill@example.com', password: PASSWORD })
      await tab.goto(path)
      t.equal(await tab.locator('[aria-labelledby=sessions] .entries li').count(), 1)
      await run(tab, own.person.end)
      t.equal(await status(tab), own.done.session)
      t.equal(await tab.getByText(own.person.sessionsNone).count(), 1)
      t.match((await elsewhere.open('/account')).title, 'Sign in')
    })

    await t.test('a person is created once, by a double click, a reload and the way back', async (t) => {
      await open(tab, 'people')
      const act = find(tab, own.people.create)
      await act.locator('summary').click()
      await act.getByLabel(own.people.account).fill('new@example.com')
      await act.getByLabel(own.people.name, { exact: true }).fill('New')
      await act.getByLabel(own.people.password).fill(PASSWORD)
      await act.getByRole('button').dblclick()
      await tab.getByRole('heading', { level: 1, name: 'New' }).waitFor()
      t.equal(await heading(tab), 'New')
      await tab.reload()
      const created = await users.getByAccount('new@example.com')
      t.equal(await count('user.created', created?.user_id), 1)
      await tab.goBack()
      t.equal(await heading(tab), own.people.title, 'the way back leads to the list')
      t.equal(await tab.getByRole('link', { name: 'new@example.com' }).count(), 1)
      t.equal(await count('user.created', created?.user_id), 1)
    })

    await t.test('one is invited, and deleted with the account typed', async (t) => {
      await tab.goto(`${harness.url}/admin/people`)
      await run(tab, own.people.invite, { [own.people.account]: 'guest@example.com', [own.people.name]: 'Guest' })
      t.equal(await status(tab), own.done.invited)
      t.match(await tab.locator('main .mark-list').textContent(), 'have not accepted the invitation')
      await run(tab, own.person.inviteAgain)
      t.equal(await status(tab), own.done.invited)
      await run(tab, own.person.remove, { [own.person.typed]: 'someone@example.com' })
      t.match(await tab.getByRole('alert').textContent(), 'must be the account')
      forgive(tab, 400)
      t.ok(await users.getByAccount('guest@example.com'))
      await run(tab, own.person.remove, { [own.person.typed]: 'guest@example.com' })
      t.equal(await status(tab), own.done.deleted)
      t.equal(await users.getByAccount('guest@example.com'), null)
    })
  })
})

t.test('an administrator looks after the service, without a script', { skip }, async (t) => {
  startChromium(t)
  const refused = Object.assign(new Error('refused'), { responseCode: 550 })
  const { harness, boss, bossId, users, user_id } = await start(t, await withMails([refused]))
  const { accounts } = harness.kit.app.identity
  await accounts.outbox?.settle()
  await users.patch(user_id, { disable: true }, ROOT)
  await withTab(t, WINDOW, async (tab) => {
    await tab.goto(`${harness.url}/admin`)
    await typeIn(tab, boss)

    await t.test('the overview leads to the mail that was given up, which is sent again', async (t) => {
      t.match(await tab.locator('[aria-labelledby=attention]').first().textContent(), 'Emails could not be sent: 1')
      await tab.getByRole('link', { name: own.overview.more }).click()
      t.equal(await heading(tab), own.sections.jobs)
      t.match(await tab.locator('main .entries').textContent(), /Failed.*Last failure: 550/s)
      t.notMatch(await tab.locator('main .entries').textContent(), 'Next attempt', 'none is to come')
      await run(tab, own.jobs.retry)
      t.equal(await status(tab), own.done.retried)
      await accounts.outbox?.settle()
      await tab.goto(`${harness.url}/admin/jobs`)
      t.equal(await tab.getByText(own.jobs.empty).count(), 1)
    })

    await t.test('events with filters, a wrong one included', async (t) => {
      await open(tab, 'events')
      await tab.getByLabel(own.events.type, { exact: true }).fill('user.disabled')
      await tab.getByLabel(own.events.user).fill(user_id)
      await press(tab, own.events.submit)
      t.equal(await tab.locator('main .entries li').count(), 1)
      await tab.getByText(own.events.json).click()
      t.match(await tab.locator('.whole pre').textContent(), '"type": "user.disabled"')
      await tab.goto(`${harness.url}/admin/events?from=tomorrow`)
      t.match(await tab.getByRole('alert').textContent(), 'from')
      t.equal(await tab.getByLabel(own.events.from, { exact: true }).inputValue(), 'tomorrow')
      forgive(tab, 400)
    })

    await t.test('settings, and a test email', async (t) => {
      await open(tab, 'settings')
      t.match(await tab.locator('main .entries').textContent(), /oidc\.issuer\s*http:\/\/localhost/)
      await run(tab, own.settings.mail)
      t.equal(await status(tab), own.done['mail-sent'])
      await accounts.outbox?.settle()
      await tab.goto(`${harness.url}/admin/people/${bossId}`)
      t.match(await tab.locator('[aria-labelledby=mails]').first().textContent(), /Sent\s+test/)
    })

    await t.test('the zone of times', async (t) => {
      await tab.getByRole('link', { name: 'Times: UTC' }).click()
      await tab.getByLabel(own.zone.field).selectOption('Asia/Tokyo')
      await press(tab, own.zone.submit)
      t.equal(await status(tab), own.done.zone)
      t.equal(await tab.getByRole('link', { name: 'Times: Asia/Tokyo' }).count(), 1)
      await tab.goto(`${harness.url}/admin/people/${bossId}`)
      t.match(await tab.locator('main time').first().textContent(), 'GMT+9')
    })

    await t.test('they sign out, and the way back shows nothing', async (t) => {
      await press(tab, ofAccount.signOut)
      await tab.getByRole('navigation', { name: own.navigation }).waitFor({ state: 'detached' })
      await tab.goBack()
      t.equal(await tab.getByLabel('Password').count(), 1)
      t.equal(await tab.getByText(boss.account).count(), 0)
    })
  })
})
