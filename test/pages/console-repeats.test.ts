import { randomBytes } from 'node:crypto'
import t from 'tap'
import { ACCESS } from '../../plugins/access-table.ts'
import { eachStore } from '../oidc/harness.ts'
import { type ApiCall, type Form, FORMS, Things, enterAs, listForms, readAlert, readStore, sendForm, startConsole, toOperations } from './console-forms.ts'
import { isSignedOut } from './visits.ts'

// Each form of the console that is sent again, and each form of a page that stays open while its reader loses what they may.

t.setTimeout(480_000)

const DONE = 'Already sent'

/** Milliseconds after which an answer is no longer kept. */
const LATER = 31_000

/** What support staff may. */
const SUPPORT = Object.entries(ACCESS).filter(([, { roles = [] }]) => roles.includes('support')).map(([name]) => name)

const toId = () => randomBytes(16).toString('base64url')

const readTitle = (text: string) => /<title>([^<]*)/.exec(text)?.[1] ?? ''

/** What a page shows once. */
const readShown = (text: string): string | undefined => /<div class="secret-shown".*?<code>([^<]*)<\/code>/s.exec(text)?.[1]

/** The calls that may have changed something. */
const listWrites = (calls: readonly ApiCall[]) => calls.filter(({ method }) => method !== 'GET').map(({ access, status }) => `${access} ${status}`)

eachStore(t, 'each form of the console that is sent again makes one change', async (t, start) => {
  const console = await startConsole(t, start)
  const { kit, takeCalls } = console
  const things = await Things.create(console)
  for (const { key, form } of listForms(console.pages)) {
    await t.test(key, async (t) => {
      const door = await enterAs(console, ['admin'])
      const send = async (filled: Form, id: string) => await sendForm(door, filled, id)
      const filled = await FORMS[key]!(things)
      const id = toId()
      takeCalls()
      const [first, second] = await Promise.all([send(filled, id), send(filled, id)])
      const writes = listWrites(takeCalls())
      t.ok(first.status < 400, `works: ${first.status} ${readAlert(first)}`)
      t.strictSame([second.status, second.to, second.text === first.text], [first.status, first.to, true], 'a double click has one answer')
      const isRead = form.isFree === true || key.endsWith(' reveal')
      t.equal(writes.length, isRead ? 0 : 1, `one change: ${writes.join(', ')}`)
      if (!isRead) t.ok(toOperations(form.needs).some((operation) => writes[0]?.startsWith(`${operation} `)), `of what it needs: ${writes.join()}`)
      const after = await readStore(console)
      takeCalls()
      const again = await send(filled, id)
      t.strictSame([again.status, again.to, readShown(again.text)], [first.status, first.to, readShown(first.text)], 'within 30 s it is answered as the first')
      const { browser } = door
      await browser.open(filled.to)
      takeCalls()
      const reloaded = await send(filled, id)
      t.strictSame(listWrites(takeCalls()), [], 'nothing is done after a reload')
      t.equal(readShown(reloaded.text), undefined, 'and nothing shown')
      t.ok(reloaded.status === 303 ? reloaded.to === first.to : readTitle(reloaded.text) === DONE, `it says what was done: ${reloaded.status} ${readTitle(reloaded.text)}`)
      t.strictSame(await readStore(console), after, 'one change is stored')
      const other = await FORMS[key]!(things)
      const otherId = toId()
      const once = await send(other, otherId)
      t.ok(once.status < 400, `works: ${once.status} ${readAlert(once)}`)
      const before = await readStore(console)
      kit.clock.advance(LATER)
      takeCalls()
      const late = await send(other, otherId)
      t.strictSame(takeCalls(), [], 'nothing is asked of the API later')
      t.ok(late.status === 303 ? late.to === once.to : readTitle(late.text) === DONE, `later it says what was done: ${late.status} ${readTitle(late.text)}`)
      const secret = readShown(once.text)
      if (secret !== undefined) t.notOk(late.text.includes(secret), 'the secret is shown no more')
      t.equal(readShown(late.text), undefined)
      t.strictSame(await readStore(console), before, 'nor is anything changed')
    })
  }
})

eachStore(t, 'the open pages of an administrator do nothing once they are none', async (t, start) => {
  const console = await startConsole(t, start)
  const { kit, pages, takeCalls } = console
  const { users, store } = kit.app.identity
  const operator = { user_id: 'operator', isAdmin: true }
  const things = await Things.create(console)
  const entries = listForms(pages)
  const forms = new Map<string, Form>()
  for (const { key } of entries) forms.set(key, await FORMS[key]!(things))
  const setRoles = async (user_id: string, roles: Record<string, true>) => await users.patch(user_id, { data: { roles } }, operator)
  const CASES: Readonly<Record<string, { take: (user_id: string) => Promise<unknown>, mayStill?: string }>> = {
    demoted: { take: async (user_id) => await setRoles(user_id, {}) },
    'made support staff': { take: async (user_id) => await setRoles(user_id, { support: true }), mayStill: 'support' },
    'given another role': { take: async (user_id) => await setRoles(user_id, { editor: true }) },
    disabled: { take: async (user_id) => await users.patch(user_id, { disable: true }, operator) },
    expired: { take: async (user_id) => await store.collection('users').update(user_id, { set: { expired_at: new Date(kit.clock.now() - 1000).toISOString() } }) },
    'signed out everywhere': { take: async (user_id) => await kit.inject({ method: 'DELETE', url: `/api/v1/user/${user_id}/sessions`, headers: (await kit.mint({ roles: ['admin'] })).headers }) },
    deleted: { take: async (user_id) => await users.remove(user_id, operator) }
  }
  for (const [name, { take, mayStill }] of Object.entries(CASES)) {
    await t.test(name, async (t) => {
      const door = await enterAs(console, ['admin'])
      await take(door.user_id)
      const own = mayStill === undefined
        ? []
        : entries.filter(({ form, page }) =>
          [form.needs, page.needs].every((needs) => toOperations(needs).length === 0 || toOperations(needs).some((operation) => SUPPORT.includes(operation))))
      const before = await readStore(console)
      takeCalls()
      for (const { key, form } of entries.filter((entry) => !own.includes(entry))) {
        const sent = await sendForm(door, forms.get(key)!)
        t.ok([303, 403, 404].includes(sent.status), `${key}: ${sent.status} ${readAlert(sent)}`)
        if (sent.status === 303) t.match(sent.to, /^\/account\/sign-in\?/, `${key} leads to the sign-in page`)
        else t.match(readAlert(sent), /^Page not found|administrators and support staff/, key)
        t.equal(readShown(sent.text), undefined, `${key} shows nothing`)
        if (form.isFree === true) t.notMatch(sent.headers.getSetCookie().join(), 'identity_zone')
      }
      t.strictSame(takeCalls(), [], 'no operation is called')
      t.strictSame(await readStore(console), before, 'and nothing is changed')
      if (mayStill === undefined && name !== 'demoted' && name !== 'given another role') t.ok(isSignedOut(await door.browser.open('/admin')))
    })
  }
})
