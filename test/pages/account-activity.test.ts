import t from 'tap'
import { eachStore, getCode, startHarness } from '../oidc/harness.ts'
import { addUser, enter, isSignedOut, post } from './visits.ts'

/** The entries of the page as text, without its navigation. */
function readEntries (text: string): string[] {
  return [...text.matchAll(/<li>\n<div>(.*?)<\/div>\n<\/li>/gs)].map(([, entry = '']) => entry.replace(/<br>/g, ' | ').replace(/<[^>]*>/g, '').replace(/\s+/g, ' ').trim())
}

const withoutTimes = (entries: string[]) => entries.map((entry) => entry.replace(/[A-Z][a-z]+ \d+, \d+, \d+:\d+ UTC/, 'TIME'))

eachStore(t, 'the activity: the newest event first, with its origin and its app, and failures marked', async (t, start) => {
  const harness = await start({ time: '2126-11-20T09:30:00Z' })
  const { kit, browser, user, post: call } = harness
  const app = await harness.register({ first_party: false, name: 'Shop <b>' })
  const tab = browser()
  t.ok(isSignedOut(await tab.open('/account/activity')), 'it takes a sign-in')
  const token = (await call('token', await getCode(harness, app, { scope: 'openid offline_access' }, tab), app)).body
  await call('revoke', { token: String(token.refresh_token) }, app)
  await enter(harness, '/account', browser(), { account: user.account, password: 'wrong' })
  await post(await tab.open('/account'), '/account', { name: 'Anna' })
  await kit.flush()
  const page = await tab.open('/account/activity')
  t.equal(page.title, 'Activity')
  t.match(page.text, '<a href="/account/activity" aria-current="page">Activity</a>')
  t.strictSame(withoutTimes(readEntries(page.text)), [
    'Your profile was changed TIME | In a browser, from 127.0.0.1',
    'A sign-in was refused Failed TIME | In a browser, from 127.0.0.1 | Method: password',
    'An app was signed out TIME | By an app, from 127.0.0.1 | App: Shop &lt;b&gt;',
    'You gave an app access TIME | In a browser, from 127.0.0.1 | App: Shop &lt;b&gt;',
    'You signed in TIME | In a browser, from 127.0.0.1 | Method: password | App: Shop &lt;b&gt;',
    'A developer app was registered TIME | By this service’s administrators | App: Shop &lt;b&gt;',
    'Your account was created TIME | By this service’s administrators'
  ])
  t.match(page.text, '<time datetime="2126-11-20T09:30:00.000Z">Nov 20, 2126, 09:30')
  t.match(page.text, 'All times are in UTC')
  t.match(page.text, ' <span class="tag failed">Failed</span>')
  t.notMatch(page.text, '<b>')
  t.notMatch(page.text, /<form[^>]*activity/)

  const german = await tab.open('/account/activity', { headers: { 'accept-language': 'de' } })
  t.equal(german.title, 'Aktivität')
  t.match(readEntries(german.text)[1], /^Eine Anmeldung wurde abgelehnt Fehlgeschlagen .* In einem Browser, von 127\.0\.0\.1 \| Methode: Passwort$/)

  await kit.app.identity.clients.remove(app.client_id, { user_id: 'root', isAdmin: true })
  await kit.flush()
  t.match(withoutTimes(readEntries((await tab.open('/account/activity')).text))[0], /^A developer app was deleted TIME \| By this service’s administrators \| App: deleted$/)
})

eachStore(t, "nobody sees the events of another's account, nor where an operator sits", async (t, start) => {
  const harness = await start()
  const { kit, browser, user } = harness
  const bob = await addUser(harness, 'bob')
  const admin = await kit.mint({ user: 'root', roles: ['admin'], client: 'console' })
  const asAdmin = { headers: admin.headers, remoteAddress: '203.0.113.7' }
  t.equal((await kit.inject({ ...asAdmin, method: 'PATCH', url: `/api/v1/user/${bob.user_id}`, payload: { data: { roles: { editor: true } } } })).statusCode, 204)
  t.equal((await kit.inject({ ...asAdmin, method: 'PATCH', url: `/api/v1/user/${bob.user_id}`, payload: { data: { roles: {} } } })).statusCode, 204)
  await enter(harness, '/account', browser(), { account: 'bob', password: 'wrong' })
  const page = await enter(harness, '/account', browser(), bob)
  await kit.flush()
  const bobs = await page.browser.open('/account/activity')
  t.strictSame(withoutTimes(readEntries(bobs.text)), [
    'You signed in TIME | In a browser, from 127.0.0.1 | Method: password',
    'A sign-in was refused Failed TIME | In a browser, from 127.0.0.1 | Method: password',
    'Your roles were changed TIME | By this service’s administrators | Removed: editor',
    'Your roles were changed TIME | By this service’s administrators | Added: editor',
    'Your account was created TIME | By this service’s administrators'
  ])
  t.notMatch(readEntries(bobs.text).join('\n'), /203\.0\.113\.7|console|root/)
  for (const { user_id } of [user, admin]) t.notMatch(bobs.text, user_id)
  const anns = await (await enter(harness)).browser.open('/account/activity')
  t.strictSame(withoutTimes(readEntries(anns.text)).filter((entry) => !entry.startsWith('You signed in')), ['Your account was created TIME | By this service’s administrators'])
})

eachStore(t, 'the page has the last hundred events', async (t, start) => {
  const harness = await start()
  const { kit, user } = harness
  const { users } = kit.app.identity
  await Promise.all(Array.from({ length: 105 }, async () => await users.unlock(user.user_id)))
  const page = await enter(harness, '/account/activity')
  await kit.flush()
  const entries = readEntries((await page.browser.open('/account/activity')).text)
  t.equal(entries.length, 100)
  t.match(entries[0], 'You signed in')
  t.match(entries[99], 'Your password was unlocked')
})

for (const [addresses, shown] of [['net', '127.0.0.0/24'], ['off', undefined]] as const) {
  t.test(`addresses are stored and shown by the operator's setting: ${addresses}`, async (t) => {
    const harness = await startHarness(t, { addresses })
    const page = await enter(harness)
    const events = await harness.kit.events.list({ type: 'sign_in.succeeded' })
    t.strictSame(events.map(({ address }) => address), [shown])
    for (const path of ['activity', 'sessions']) {
      const { text } = await page.browser.open(`/account/${path}`)
      t.notMatch(text, '127.0.0.1', path)
      t.equal(text.includes('from 127.0.0.0/24'), shown !== undefined, path)
    }
  })
}
