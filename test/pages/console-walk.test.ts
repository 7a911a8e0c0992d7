import t, { type Test } from 'tap'
import { ACCESS, type Operation } from '../../plugins/access-table.ts'
import type { AccessRule } from '../../schemas/options.ts'
import { SECTIONS } from '../../routes/console/sections.ts'
import type { Page } from '../oidc/browser.ts'
import { eachStore } from '../oidc/harness.ts'
import { type Console, type Entry, type Form, FORMS, PAGES, Things, enterAs, listForms, readAlert, readForms, readStore, sendForm, startConsole, toOperations } from './console-forms.ts'
import { readSections } from './console-visits.ts'

// Every page and every form of the console, as everybody, beside the access table. The list of them comes from the service.

t.setTimeout(480_000)

const ROLES: Readonly<Record<string, string[]>> = { plain: [], support: ['support'], manager: ['manager'], administrator: ['admin'], service: ['service'] }

/** Rules that a host may set: the pages follow them, and no list of their own. */
const OVERRIDES = {
  getStatus: { roles: ['admin', 'support'] },
  listEvents: { roles: ['support'] },
  listJobs: { roles: ['admin', 'manager'] },
  retryJobs: { roles: ['admin'] },
  listSettings: { roles: ['service'] },
  sendTestMail: { roles: ['service'] },
  createUser: { roles: ['manager', 'admin'] },
  deleteUser: { roles: ['admin', 'manager'] },
  unlockUser: { roles: ['admin'] },
  find: { roles: ['admin', 'service'] }
} satisfies Partial<Record<Operation, AccessRule>>

type Overrides = Partial<Record<Operation, AccessRule>>

/** Whether the access table admits one of these roles. What everybody may do about themselves opens no page. */
function isAdmitted (roles: readonly string[], name: Operation, overrides: Overrides): boolean {
  const rule: AccessRule = overrides[name] ?? ACCESS[name]!
  return (rule.roles ?? (rule.any === true ? ['admin'] : [])).some((role) => roles.includes(role))
}

const mayOne = (roles: readonly string[], needs: readonly Operation[], overrides: Overrides): boolean =>
  needs.length === 0 || needs.some((name) => isAdmitted(roles, name, overrides))

const isPlain = (roles: readonly string[]) => roles.length === 0

const CLOSED = /administrators and support staff/
const MISSING = /^Page not found/

/** What a page shows is what its reader may do: its sections, and its forms. */
function checkShown (t: Test, page: Page, entries: readonly Entry[], roles: readonly string[], overrides: Overrides): void {
  const url = new URL(page.response.url).pathname
  const sections = SECTIONS.filter(({ section, needs }) => section !== 'overview' && mayOne(roles, needs, overrides)).map(({ section }) => section)
  const [navigation = ''] = /<nav.*?<\/nav>/s.exec(page.text) ?? []
  t.strictSame(readSections({ text: navigation }).filter((name) => name !== 'zone'), sections, `${url}: sections`)
  for (const { action } of readForms(page)) {
    const known = entries.filter((entry) => entry.action === action)
    t.ok(known.some(({ form, page: { needs } }) => mayOne(roles, toOperations(form.needs), overrides) && mayOne(roles, toOperations(needs), overrides)),
      `${url}: the form '${action}' is shown to who may send it`)
  }
}

async function walkPages (t: Test, things: Things, roles: readonly string[], door: Page, overrides: Overrides): Promise<void> {
  const { pages, takeCalls } = things.console
  const entries = listForms(pages)
  for (const { path, needs } of pages) {
    for (const url of await PAGES[path]!(things)) {
      takeCalls()
      const page = await door.browser.open(`/admin${url}`)
      const calls = takeCalls()
      if (isPlain(roles)) {
        t.match([page.response.status, readAlert(page)], [403, CLOSED], url)
        t.strictSame(calls, [], `${url}: calls`)
      } else if (!mayOne(roles, toOperations(needs), overrides)) {
        t.match([page.response.status, readAlert(page)], [404, MISSING], url)
        t.strictSame(calls, [], `${url}: calls`)
      } else {
        t.equal(page.response.status, 200, url)
        for (const { access, status } of calls) t.not(status, 403, `${url}: ${access} is asked of who may call it alone`)
        checkShown(t, page, entries, roles, overrides)
      }
    }
  }
}

/** Sends a form that the roles admit: it works, or the API refuses it and the page says why. */
async function checkSent (t: Test, console: Console, { key, form }: Entry, filled: Form, door: Page, { roles, overrides }: { roles: readonly string[], overrides: Overrides }): Promise<void> {
  console.takeCalls()
  const sent = await sendForm(door, filled)
  const calls = console.takeCalls()
  const needs = toOperations(form.needs)
  if (sent.status < 400) {
    t.ok(sent.status === 200 ? /<div class="secret-shown"/.test(sent.text) : /[?&]done=[\w-]+$/.test(sent.to), `${key}: works: ${sent.status} ${sent.to}`)
    if (form.isFree !== true) t.ok(calls.some(({ access, status }) => needs.includes(access as Operation) && status < 400), `${key}: calls what it needs: ${JSON.stringify(calls)}`)
  } else {
    t.not(readAlert(sent), '', `${key}: the page says why: ${sent.status}`)
    t.ok(sent.status < 500, `${key}: ${sent.status}`)
    t.not(roles.includes('admin') && Object.keys(overrides).length === 0, true, `${key}: an administrator may: ${sent.status} ${readAlert(sent)}`)
  }
  for (const { access } of calls) {
    t.ok(needs.includes(access as Operation) || isAdmitted(roles, access as Operation, overrides) || ACCESS[access]?.any === true, `${key}: ${access} is what the form needs, or what its sender may`)
  }
}

for (const [name, overrides] of [['as it is', {}], ['with overrides', OVERRIDES]] as const) {
  eachStore(t, `the console holds to the access table ${name}`, async (t, start) => {
    const console = await startConsole(t, start, { access: overrides })
    const { pages, others, takeCalls } = console
    const entries = listForms(pages)
    await t.test('each page and each form has a row of this walk, and each form names what it needs', async (t) => {
      t.strictSame(pages.map(({ path }) => path).sort(), Object.keys(PAGES).sort())
      t.strictSame(entries.map(({ key }) => key).sort(), Object.keys(FORMS).sort())
      // Unknown paths answer with a page that says so.
      t.strictSame(others, ['/admin/*', '/admin/sign-out'], 'nothing else takes a form')
      for (const { key, form } of entries) {
        t.equal(form.needs === undefined || toOperations(form.needs).length === 0, form.isFree === true, `${key} names its operations`)
        for (const operation of toOperations(form.needs)) t.ok(Object.hasOwn(ACCESS, operation), `${key}: ${operation}`)
      }
    })
    const things = await Things.create(console)
    const shared = new Map<string, Form>()
    const prepare = async (key: string) => await FORMS[key]!(things)
    if (name === 'as it is') for (const { key } of entries) shared.set(key, await prepare(key))
    for (const [role, roles] of Object.entries(ROLES)) {
      await t.test(role, async (t) => {
        const door = await enterAs(console, roles)
        await walkPages(t, things, roles, door, overrides)
        const refused = entries.filter(({ form, page }) =>
          isPlain(roles) || !mayOne(roles, toOperations(form.needs), overrides) || !mayOne(roles, toOperations(page.needs), overrides))
        for (const { key } of refused) {
          if (!shared.has(key)) shared.set(key, await prepare(key))
        }
        const before = await readStore(console)
        takeCalls()
        for (const { key } of refused) {
          const sent = await sendForm(door, shared.get(key)!)
          t.match([sent.status, readAlert(sent)], isPlain(roles) ? [403, CLOSED] : [404, MISSING], `${key} is not theirs`)
        }
        t.strictSame(takeCalls(), [], 'no operation is called')
        t.strictSame(await readStore(console), before, 'and nothing is changed')
        for (const entry of entries.filter((one) => !refused.includes(one))) {
          await checkSent(t, console, entry, await prepare(entry.key), door, { roles, overrides })
        }
      })
    }
  })
}
