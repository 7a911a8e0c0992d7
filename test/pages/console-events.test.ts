import t from 'tap'
import type { Event } from '../../schemas/event.ts'
import { createConsoleLook, renderConsole } from '../../lib/pages/console/index.ts'
import { eventsPage } from '../../lib/pages/console/events.ts'
import { showOwnEvents } from '../../lib/events/own.ts'
import { createLook } from '../../lib/pages/look.ts'
import { eachStore } from '../oidc/harness.ts'
import { CONSOLE, HOSTILE, MARKUP, enterConsole, readEntries, readPager, readSections, send } from './console-visits.ts'
import { enter } from './visits.ts'

t.setTimeout(240_000)

eachStore(t, 'the console lists events by their filters, page by page', async (t, start) => {
  const harness = await start({ ...CONSOLE, time: '2126-11-20T23:30:00Z' })
  const { kit, user } = harness
  const { users, events } = kit.app.identity
  const tab = harness.browser()
  await enter(harness, '/account', harness.browser(), { account: user.account, password: 'wrong' })
  for (let i = 0; i < 30; i++) await users.create({ data: { account: `person-${i}`, password: 'correct horse' } })
  await kit.flush()
  const first = await enterConsole(harness, '/admin/events', ['admin'], tab)
  t.equal(first.title, 'Events')
  t.strictSame(readSections(first).filter((name) => ['people', 'events', 'jobs', 'zone'].includes(name)), ['people', 'events', 'jobs', 'zone'])

  t.test('filters', async (t) => {
    const failed = await tab.open(`/admin/events?type=sign_in.*&reason=wrong_password&user=${user.user_id}`)
    const entries = readEntries(failed)
    t.equal(entries.length, 1)
    t.match(entries[0], /^sign_in\.failed Nov 20, 2126, 23:30 UTC Failed .*wrong_password page 127\.0\.0\.1$/)
    t.match(failed.text, '<option value="wrong_password" selected>')
    t.match(failed.text, `value="${user.user_id}"`)
    t.match(failed.text, '&quot;reason&quot;: &quot;wrong_password&quot;', 'the whole event is there')
    t.match(failed.text, `<a href="/admin/people/${user.user_id}">`)
    t.match(failed.text, `/api/v1/event/list?type=sign_in.*&amp;user=${user.user_id}&amp;reason=wrong_password`, 'it says how the same is asked')
    t.strictSame(readEntries(await tab.open('/admin/events?client=none')), [])
  })

  t.test('pages', async (t) => {
    const path = '/admin/events?type=user.created'
    const [one, all] = [await tab.open(path), await events.page({ type: 'user.created', limit: 0 })]
    let count = 0
    for await (const batch of all.batches) count += batch.length
    t.equal(readEntries(one).length, 25)
    t.notMatch(one.text, /rel="prev"|>First</)
    const two = await tab.open(readPager(one, 'next'))
    t.equal(readEntries(two).length, count - 25)
    t.match(two.text, '<li><a href="/admin/events?type=user.created">First</a></li>')
    t.match(two.text, 'name="type" type="text" value="user.created"', 'the filter stays')
    const back = await tab.open(readPager(two, 'prev'))
    t.strictSame(readEntries(back), readEntries(one))
  })

  t.test('days are those of the zone that the reader has chosen', async (t) => {
    const path = '/admin/events?type=sign_in.failed&from=2126-11-20&to=2126-11-20'
    t.equal(readEntries(await tab.open(path)).length, 1)
    const page = await tab.open('/admin/zone')
    t.match(page.text, '<option value="Europe/Berlin">')
    const wrong = await send(page, '/admin/zone', { action: 'set', zone: 'Mars/Olympus' })
    t.equal(wrong.response.status, 400)
    t.match(wrong.text, 'zone: must be a time zone such as Europe/Berlin')
    const response = await tab.fetch('/admin/zone', {
      method: 'POST',
      body: new URLSearchParams({ xsrf: /name="xsrf" value="([^"]*)"/.exec(page.text)?.[1] ?? '', action: 'set', zone: 'Europe/Berlin' }),
      headers: { origin: tab.origin }
    })
    t.strictSame(response.headers.getSetCookie().filter((line) => line.startsWith('identity_zone')), [
      'identity_zone=Europe/Berlin; Path=/admin; Max-Age=31536000; HttpOnly; SameSite=Lax'
    ])
    t.equal(response.headers.get('location'), '/admin/zone?done=zone')
    t.match((await tab.open('/admin/zone?done=zone')).text, /Times are shown in your time zone\.[^]*<option value="Europe\/Berlin" selected>/)
    const later = await tab.open(path)
    t.match(later.text, 'Times: Europe/Berlin')
    t.strictSame(readEntries(later), [], 'in Berlin it was the next day')
    t.match(readEntries(await tab.open('/admin/events?type=sign_in.failed&from=2126-11-21')), [/Nov 21, 2126, 00:30/])
  })

  t.test('a filter that the API refuses is told beside the form', async (t) => {
    for (const [query, message] of [
      ['type=user.*&from=yesterday', 'from: must be an RFC 3339 date-time'],
      ['type=user.*&from=2126-13-01', 'from: must be an RFC 3339 date-time'],
      ['type=user.*&after=none', 'after: '],
      [`type=user.*&user=${'x'.repeat(200)}`, 'user']
    ] as const) {
      const page = await tab.open(`/admin/events?${query}`)
      t.equal(page.response.status, 400, query)
      t.match(page.text, 'role="alert"')
      t.match(page.text, message)
      t.match(page.text, 'name="type" type="text" value="user.*"', 'with what was typed')
      t.notMatch(page.text, 'class="entries"')
    }
    for (const text of HOSTILE) {
      const page = await tab.open(`/admin/events?${new URLSearchParams({ type: text.slice(0, 64), user: text, client: text, reason: text, from: text, to: text })}`)
      t.equal(page.response.status, 400)
      t.notMatch(page.text.replaceAll(/value="[^"]*"/g, ''), MARKUP)
    }
  })
})

eachStore(t, 'only administrators see the events and the jobs', async (t, start) => {
  const harness = await start(CONSOLE)
  for (const roles of [['support'], ['manager']]) {
    const tab = harness.browser()
    const page = await enterConsole(harness, '/admin', roles, tab)
    t.equal(page.response.status, 200)
    t.notOk(readSections(page).some((name) => name === 'events' || name === 'jobs'), `${roles}`)
    for (const path of ['/admin/events', '/admin/jobs']) t.equal((await tab.open(path)).response.status, 404)
    t.equal((await send(page, '/admin/jobs', { action: 'retry', kind: 'mail' })).response.status, 404)
  }
  const tab = harness.browser()
  t.equal((await enterConsole(harness, '/admin/events', [], tab)).response.status, 403)
  t.equal((await tab.open('/admin/zone')).response.status, 403)
})

eachStore(t, 'what is done in the console is told by its events', async (t, start) => {
  const harness = await start(CONSOLE)
  const { kit, user } = harness
  const page = await enterConsole(harness, `/admin/people/${user.user_id}`, ['admin'])
  await send(page, `/admin/people/${user.user_id}`, { action: 'disable' })
  await kit.flush()
  const shown = await page.browser.open('/admin/events?type=user.disabled')
  t.match(readEntries(shown), [new RegExp(`by ${page.user_id} \\(console\\)`)])
  // A change of one's own account is one's own.
  await send(page, `/admin/people/${page.user_id}`, { action: 'profile', name: 'Bo' })
  await kit.flush()
  const { store, events } = kit.app.identity
  const findOwn = async (id: string, type: string) => (await showOwnEvents(store, await events.listOwn(id))).find((event) => event.type === type)
  const told = await findOwn(user.user_id, 'user.disabled')
  t.match(told, { by: 'operator' })
  t.equal(told?.address, undefined, 'where an administrator is, the person is not told')
  t.match(await findOwn(page.user_id, 'user.updated'), { by: 'page', address: '127.0.0.1' })
  const { rows } = await readCsv(harness, page.user_id)
  t.match(rows, /,user\.disabled,[^\n]*,console,/)
})

/** The events as CSV. */
async function readCsv ({ kit }: Parameters<typeof enterConsole>[0], user: string): Promise<{ rows: string }> {
  const { access_token } = await kit.mint({ user, scopes: ['events:read'] })
  const { payload } = await kit.inject({ url: '/api/v1/event/list', headers: { authorization: `Bearer ${access_token}`, accept: 'text/csv' } })
  return { rows: payload }
}

t.test('whatever an event says is text', async (t) => {
  const look = createConsoleLook(createLook({}))
  const context = { language: 'en', zone: 'UTC', query: '' } as const
  const view = { base: '/admin', sections: [], maySearch: false, account: 'a', xsrf: '', isFresh: true, again: '', calls: [], api: '', commands: [] } as const
  for (const text of HOSTILE) {
    const event: Event = {
      id: text,
      cursor: text,
      type: text,
      time: '2126-11-20T09:30:00.000Z',
      outcome: 'failure',
      address: text,
      request_id: text,
      failure: text,
      mail: text,
      actor: { via: 'console', user_id: text, client_id: text },
      target: { kind: text, id: text },
      changed: [text],
      via: { upstream: text, subject: text }
    }
    for (const about of [{}, { user_id: text }, { client_id: text }]) {
      const filters = { type: text, user: text, client: text, reason: text, from: text, to: text }
      const page = renderConsole((context) => eventsPage(view, { events: [{ ...event, ...about }], filters, isFirst: true }, context), look, context)
      t.notMatch(page.replaceAll(/value="[^"]*"/g, ''), MARKUP, text)
    }
  }
})
