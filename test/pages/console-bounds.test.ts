import t, { type Test } from 'tap'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Page } from '../oidc/browser.ts'
import { eachStore } from '../oidc/harness.ts'
import { Things, enterAs, startConsole } from './console-forms.ts'
import { readEntries, readPager } from './console-visits.ts'

// Pages of the console about people and clients of which there is very much.

t.setTimeout(240_000)

/** Bytes of a page at most. */
const MOST = 200 * 1024

const WIDE = '\u3042'.repeat(256)

function checkSize (t: Test, page: Page, what: string): void {
  t.equal(page.response.status, 200, what)
  t.ok(Buffer.byteLength(page.text) < MOST, `${what}: ${Buffer.byteLength(page.text)} bytes`)
}

/** The links of the pager, by their words. */
const readWords = ({ text }: Page) => [...(/<nav class="pager" aria-label.*?<\/nav>/s.exec(text.replace(/<nav class="pager kinds".*?<\/nav>/s, ''))?.[0] ?? '').matchAll(/>(\w+)<\/a>/g)].map(([, word]) => word)

eachStore(t, 'pages of the console stay short', async (t, start) => {
  const console = await startConsole(t, start)
  const { kit } = console
  const { store } = kit.app.identity
  const things = await Things.create(console)
  const door = await enterAs(console, ['admin'])
  const open = async (path: string) => await door.browser.open(`/admin${path}`)
  const user_id = await things.person()
  const clientId = await things.client()
  const users = store.collection<UserRecord>('users')
  const clients = store.collection<ClientRecord>('clients')
  const client = (await clients.get(clientId))!

  await t.test('of somebody with 500 roles', async (t) => {
    await users.update(user_id, { set: { roles: Object.fromEntries(Array.from({ length: 500 }, (_none, index) => [`role-of-a-team-${index}`, true as const])) } })
    const page = await open(`/people/${user_id}`)
    checkSize(t, page, 'the person')
    for (const role of ['role-of-a-team-0', 'role-of-a-team-499']) t.match(page.text, role)
  })

  await t.test('of somebody with 1,000 clients, page by page', async (t) => {
    await clients.insertMany(Array.from({ length: 1000 }, (_none, index) => ({ ...client, id: `client-${index}`, userId: user_id, name: `Shop ${String(index).padStart(4, '0')}` })))
    checkSize(t, await open(`/people/${user_id}`), 'the person')
    const first = await open(`/clients?user=${user_id}`)
    checkSize(t, first, 'the first page')
    t.match(first.text, '1000 entries')
    t.strictSame([readEntries(first).length, readWords(first)], [25, ['Next']])
    const second = await door.browser.open(readPager(first, 'next'))
    checkSize(t, second, 'the second page')
    t.match(readEntries(second)[0], /^Shop 0025/)
    t.strictSame(readWords(second), ['First', 'Previous', 'Next'])
    t.strictSame(readEntries(await door.browser.open(readPager(second, 'prev'))), readEntries(first))
    const seen = new Set<string>()
    let page = first
    for (let pages = 0; pages < 41; pages++) {
      for (const entry of readEntries(page)) seen.add(entry)
      const next = readPager(page, 'next')
      if (next === '') break
      page = await door.browser.open(next)
    }
    t.equal(seen.size, 1000, 'each is on one page')
    t.strictSame(readWords(page), ['First', 'Previous'])
    checkSize(t, await open('/clients?search=shop'), 'a search')
    checkSize(t, await open('/find?q=shop'), 'the search box')
  })

  await t.test('of people, and of names of 256 wide characters', async (t) => {
    const record = (await users.get(await things.person()))!
    await users.insertMany(Array.from({ length: 300 }, (_none, index) => ({ ...record, id: `user-${index}`, account: `many-${String(index).padStart(3, '0')}`, addresses: [], words: ['many', String(index).padStart(3, '0')], name: WIDE })))
    await clients.insertMany(Array.from({ length: 60 }, (_none, index) => ({ ...client, id: `wide-${index}`, userId: 'user-1', name: WIDE })))
    await clients.update(clientId, { set: { userId: 'user-1', name: WIDE } })
    const list = await open('/people?search=many')
    checkSize(t, list, 'people')
    t.strictSame([readEntries(list).length, readWords(list)], [25, ['Next']])
    t.strictSame(readWords(await door.browser.open(readPager(list, 'next'))), ['First', 'Previous', 'Next'])
    const person = await open('/people/user-1')
    checkSize(t, person, 'the person')
    t.equal(person.title.includes(WIDE), true, 'the whole name is shown')
    for (const path of ['/clients?user=user-1', `/clients/${clientId}`, `/clients/${clientId}/token`, '/find?q=many', '/people?search=any-&within=yes']) checkSize(t, await open(path), path)
  })

  await t.test('of a client with as much as it may have, and of many events', async (t) => {
    const list = (make: (index: number) => string, length: number) => Array.from({ length }, (_none, index) => make(index))
    await clients.update(clientId, {
      set: {
        scopes: list((index) => `scope-${index}`, 100),
        redirectUris: list((index) => `https://shop.example/cb/${index}`, 100),
        secrets: list(String, 10).map((id) => ({ id, name: WIDE, last4: 'abcd', hash: 'x', created_at: client.createdAt })) as NonNullable<ClientRecord['secrets']>
      }
    })
    checkSize(t, await open(`/clients/${clientId}`), 'the client')
    for (let count = 0; count < 60; count++) await kit.app.identity.users.patch(user_id, { data: { name: `Name ${count}` } }, { user_id: 'operator', isAdmin: true })
    await kit.flush()
    checkSize(t, await open(`/people/${user_id}`), 'the person')
    const events = await open(`/events?user=${user_id}`)
    checkSize(t, events, 'events')
    t.strictSame(readWords(events), ['Next'])
    t.strictSame(readWords(await door.browser.open(readPager(events, 'next'))), ['First', 'Previous', 'Next'])
  })

  await t.test('of jobs', async (t) => {
    const at = new Date(kit.clock.now() + 3_600_000).toISOString()
    const created_at = new Date(kit.clock.now()).toISOString()
    await store.collection('deliveries').insertMany(Array.from({ length: 500 }, (_none, index) =>
      ({ id: `job-${index}`, kind: 'forgot', state: 'failed', due_at: at, claim: 0, attempts: 3, ends_at: at, created_at, expired_at: at, failure: '550', user_id })))
    const page = await open('/jobs')
    checkSize(t, page, 'jobs')
    t.match(page.text, 'There are more. This page shows the first 50 of each state.')
    checkSize(t, await open(`/people/${user_id}`), 'the person to whom they are')
  })
})
