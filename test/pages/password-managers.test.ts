import t from 'tap'
import type { PageName, Pages } from '../../lib/pages/index.ts'
import { renderPage } from '../../lib/pages/index.ts'
import { createLook } from '../../lib/pages/look.ts'
import { skip, startChromium, withTab } from './chromium.ts'

const action = '/form'
const ACCOUNT = 'ann@example.com'
const view = { base: '/account', sections: ['profile', 'methods', 'email', 'delete'], account: ACCOUNT, xsrf: 'x' } as const

/** Every page with a field for a password, but for the sign-in, where the account is typed. */
const ROWS: { [Name in PageName]: [name: Name, data: Pages[Name], what: string] }[PageName][] = [
  ['set-password', { action, token: 'x', purpose: 'sign-up', account: ACCOUNT, min: 8 }, 'a sign-up'],
  ['set-password', { action, token: 'x', purpose: 'reset', account: ACCOUNT, min: 8 }, 'a reset'],
  ['set-password', { action, token: 'x', purpose: 'invite', account: ACCOUNT, min: 8 }, 'an invitation'],
  ['account-password', { ...view, section: 'methods', mayRemove: true }, 'a change of the password'],
  ['account-email', { ...view, section: 'email', email: ACCOUNT, typed: 'new@example.com' }, 'a change of the address'],
  ['account-delete', { ...view, section: 'delete' }, 'a deletion']
]

/** The fields of the form with the password that a program can fill in, in order. */
const FIELDS = `[...document.querySelector('input[type=password]').form.elements]
  .filter(({ type }) => type !== 'hidden' && type !== 'submit').map(({ type, autocomplete, value }) => [type, autocomplete, value])`

t.test('a password manager finds the account beside every password, and no other text in its place', { skip, timeout: 120_000 }, async (t) => {
  startChromium(t)
  await withTab(t, { bypassCSP: true }, async (tab) => {
    const advice: string[] = []
    const session = await tab.context().newCDPSession(tab)
    await session.send('Log.enable')
    session.on('Log.entryAdded', ({ entry }) => advice.push(entry.text))
    let body = ''
    await tab.route('https://id.example/**', async (route) => await route.fulfill({ contentType: 'text/html; charset=utf-8', body }))
    async function show (text: string): Promise<void> {
      body = text
      await tab.goto('https://id.example/page', { waitUntil: 'networkidle' })
    }
    await show('<!DOCTYPE html><link rel="icon" href="data:,"><title>x</title><form><input type="hidden" autocomplete="username" value="ann"><input type="password" autocomplete="new-password"></form>')
    t.match(advice.splice(0).join('\n'), 'Password forms should have (optionally hidden) username fields', 'Chromium complains of a field that managers do not see')

    for (const [name, data, what] of ROWS) {
      await show(renderPage(name, data as never, createLook(), 'en'))
      t.strictSame(advice.splice(0), [], `${what}: Chromium has no advice`)
      const fields = await tab.evaluate<string[][]>(FIELDS)
      const index = fields.findIndex(([type]) => type === 'password')
      t.strictSame(fields[index - 1], ['text', 'username', ACCOUNT], `${what}: the field before the password is the account`)
      const [field] = await tab.locator('input[autocomplete=username]').all()
      const { width = 2, height = 2 } = await field!.boundingBox() ?? {}
      t.ok(width <= 1 && height <= 1, `${what}: people see it in the text only`)
      t.equal(await field!.isEditable(), false, `${what}: it cannot be changed`)
      for (let presses = 0; presses < fields.length + 12; presses++) {
        await tab.keyboard.press('Tab')
        if (await tab.evaluate("document.activeElement.autocomplete === 'username'")) t.fail(`${what}: the keyboard does not stop at it`)
      }
    }
  })
})
