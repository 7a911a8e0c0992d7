import t, { type Test } from 'tap'
import { ENDS_SESSIONS, type EventType } from '../../lib/events/types.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Event } from '../../schemas/event.ts'
import { eachStore, startHarness } from '../oidc/harness.ts'
import { TwiceBrowser } from '../oidc/twice-browser.ts'
import { post } from '../pages/visits.ts'
import { FORMS, openScene } from './forms.ts'

t.setTimeout(400_000)

function describeEvent ({ type, actor }: Event, person: string | undefined): string {
  if (actor.user_id === undefined) return type
  return `${type} by ${actor.user_id === person ? 'them' : 'somebody else'}`
}

/** Sends every form of the table, and checks the events that it leads to. */
async function walk (t: Test, { scene, routes, requests, secrets }: Awaited<ReturnType<typeof openScene>>, address: string | undefined, tabs: TwiceBrowser[] = []): Promise<void> {
  t.strictSame([...routes].sort(), Object.keys(FORMS).sort(), 'the table has every form')
  const { kit } = scene
  const users = kit.app.identity.store.collection<UserRecord>('users')
  // Mails are sent by the service, at any time after the form.
  const listCaused = async () => (await kit.events.list()).filter(({ type }) => type !== 'mail.sent')
  const readEpochs = async () => new Map((await Array.fromAsync(users.stream())).flat().map(({ id, epoch }) => [id, epoch]))
  for (const [route, cases] of Object.entries(FORMS)) {
    for (const [what, leads, prepare] of cases) {
      const name = `${route}: ${what}`
      const act = await prepare(scene)
      const before = (await listCaused()).length
      const epochs = await readEpochs()
      requests.clear()
      for (const tab of tabs) tab.isOn = true
      const person = await act().catch((error: unknown) => { throw new Error(name, { cause: error }) })
      t.strictSame(tabs.flatMap(({ different }) => different), [], `${name}: a repeat sees what the first one does`)
      tabs.length = 0
      t.ok([...requests.values()].includes(`POST ${route}`), `${name}: the form was sent`)
      const events = (await listCaused()).slice(before)
      t.strictSame(events.map((event) => describeEvent(event, person)), leads, name)
      for (const [id, epoch] of await readEpochs()) {
        if (epoch === (epochs.get(id) ?? epoch)) continue
        t.ok(events.some(({ type, user_id }) => user_id === id && ENDS_SESSIONS.has(type as EventType)), `${name}: its event has the apps told that the sessions ended`)
      }
      for (const { type, actor: { via }, request_id = '', user_id, target, outcome, ...event } of events) {
        t.strictSame({ via, address: event.address, known: requests.has(request_id) }, { via: 'page', address, known: true }, `${name}: ${type} has its origin`)
        t.equal(user_id === undefined, target.kind === 'unknown', `${name}: ${type} is about an account`)
        t.equal(outcome, /failed$/.test(type) ? 'failure' : 'success')
      }
    }
  }
  const text = JSON.stringify(await kit.events.list())
  t.ok(secrets.size > 100, 'there were secrets')
  for (const secret of secrets) if (secret === '' || text.includes(secret)) t.fail(`the events have '${secret}'`)
  if (address !== '127.0.0.1') t.notOk(text.includes('127.0.0.1'))
}

eachStore(t, 'every form of a page has its events: who did it, where, and no secret', async (t, start) => {
  await walk(t, await openScene(start), '127.0.0.1')
})

t.test('every form of a page that is sent twice at once acts once, and both see the same', async (t) => {
  const tabs: TwiceBrowser[] = []
  const scene = await openScene((options) => startHarness(t, options), (origin) => {
    const tab = new TwiceBrowser(origin)
    tabs.push(tab)
    return tab
  })
  await walk(t, scene, '127.0.0.1', tabs)
})

for (const [addresses, address] of [['net', '127.0.0.0/24'], ['off', undefined]] as const) {
  t.test(`events of forms have addresses by the operator's setting: ${addresses}`, async (t) => {
    await walk(t, await openScene((options) => startHarness(t, { database: 'sqlite::memory:', addresses, ...options })), address)
  })
}

t.test('failures beyond ten are one event with their number of addresses, and the last one', async (t) => {
  const { scene: { kit, add, browser } } = await openScene((options) => startHarness(t, options))
  const [person, other] = [await add(), await add()]
  const attempt = async (account: string) => {
    const form = await browser().open('/account')
    await post(form, form.response.url, { account, password: 'wrong' })
  }
  await attempt(other.account)
  for (let count = 0; count < 12; count++) await attempt(person.account)
  await kit.app.identity.failures.flush()
  const events = await kit.events.list({ type: 'sign_in.failed', user: person.user_id })
  t.equal(events.length, 11)
  t.match(events[9], { actor: { via: 'page' }, address: '127.0.0.1', request_id: String, count: undefined })
  t.strictSame(events[10], { ...events[10], actor: { via: 'page' }, count: 2, addresses: 1, address: '127.0.0.1', reason: 'wrong_password', outcome: 'failure' })
  t.notOk('request_id' in events[10]!)
})
