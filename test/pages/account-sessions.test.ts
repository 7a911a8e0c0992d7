import t from 'tap'
import { createApp } from '../../testing/kit.ts'
import type { Page } from '../oidc/browser.ts'
import { askCode, eachStore, getCode } from '../oidc/harness.ts'
import { FIREFOX, addUser, enter, isSignedOut, post } from './visits.ts'

eachStore(t, 'sessions: each with its browser, address and last use; ending one revokes it', async (t, start) => {
  const harness = await start()
  const { user, post: call, get, browser } = harness
  const app = await harness.register({ name: 'Shop <b>' })
  const elsewhere = browser()
  const bound = String((await call('token', await getCode(harness, app, { scope: 'openid' }, elsewhere), app)).body.access_token)
  const offline = (await call('token', await getCode(harness, app, {}, elsewhere), app)).body
  const own = browser()
  await own.open('/account', { headers: FIREFOX })
  const signIn = await own.open('/account')
  await post(signIn, signIn.response.url, { account: user.account, password: user.password })
  const page = await own.open('/account/sessions')
  t.match(page.text, '<strong>Firefox on Linux</strong> <span class="tag">This browser</span>')
  t.match(page.text, /from 127\.0\.0\.1/)
  t.match(page.text, '<bdi>Shop &lt;b&gt;</bdi>')
  t.notMatch(page.text, '<b>')
  const uids = [...page.text.matchAll(/name="browser" value="([^"]*)"/g)].map(([, uid]) => uid ?? '')
  t.equal(uids.length, 1, 'the other browser can be ended, this one only by signing out')
  t.equal([...page.text.matchAll(/name="session" value="/g)].length, 2)

  t.equal((await get('tokeninfo', bound)).status, 200)
  const ended = await post(page, '/account/sessions', { browser: uids[0] ?? '' })
  t.match(ended.text, 'That session is signed out.')
  t.ok(isSignedOut(await elsewhere.open('/account')), 'the single sign-on is over')
  t.notOk((await elsewhere.open(askCode(app).url)).left, 'the app asks for the password')
  t.equal((await get('tokeninfo', bound)).status, 401, 'the token that was bound to it too')
  t.equal((await get('tokeninfo', String(offline.access_token))).status, 200, 'offline access goes on')

  const [, session = ''] = /name="session" value="([^"]*)"/.exec(ended.text) ?? []
  await post(ended, '/account/sessions', { session })
  t.equal((await get('tokeninfo', String(offline.access_token))).status, 401)
  t.equal((await call('token', { grant_type: 'refresh_token', refresh_token: String(offline.refresh_token) }, app)).status, 400)
  t.equal((await own.open('/account')).title, 'Profile')
})

eachStore(t, 'all other sessions end at once', async (t, start) => {
  const harness = await start()
  const { post: call, get, browser } = harness
  const app = await harness.register()
  const elsewhere = browser()
  const { body } = await call('token', await getCode(harness, app, {}, elsewhere), app)
  const page = await enter(harness, '/account/sessions')
  t.match((await post(page, '/account/sessions', { others: 'yes' })).text, 'You are signed out everywhere else.')
  t.equal((await get('tokeninfo', String(body.access_token))).status, 401)
  t.ok(isSignedOut(await elsewhere.open('/account')))
  await harness.kit.app.identity.tokens.settle()
  t.equal((await page.browser.open('/account/sessions')).title, 'Your devices', 'but this one')
  t.ok((await page.browser.open(askCode(app).url)).left?.searchParams.has('code'))
})

eachStore(t, "another user's sessions, apps and clients are refused", async (t, start) => {
  const harness = await start()
  const { kit, post: call, get, browser, user } = harness
  const { ownSessions, store } = kit.app.identity
  const app = await harness.register({ first_party: false })
  const annsTab = browser()
  const { body } = await call('token', await getCode(harness, app, {}, annsTab), app)
  const [grant] = (await ownSessions.listTokenSessions(user.user_id)).entries
  const [sign] = (await ownSessions.listBrowsers(user.user_id)).entries
  const bob = await addUser(harness, 'bob')
  const page = await enter(harness, '/account', browser(), bob)
  for (const fields of [{ browser: sign!.uid }, { session: grant!.session_id }, { session: 'none' }, {}]) {
    t.equal((await post(page, '/account/sessions', fields as Record<string, string>)).response.status, 404, JSON.stringify(fields))
  }
  await post(page, '/account/apps', { client: app.client_id, confirm: 'yes' })
  const of = `/account/clients/${app.client_id}`
  t.equal((await page.browser.open(of)).response.status, 404)
  for (const action of ['show', 'renew', 'delete']) t.equal((await post(page, of, { action, confirm: 'yes' })).response.status, 404, action)
  t.equal((await get('tokeninfo', String(body.access_token))).status, 200)
  t.equal((await annsTab.open('/account')).title, 'Profile')
  t.not(await store.collection('clients').get(app.client_id), null)
})

eachStore(t, 'connected apps: what each may do, and disconnecting one', async (t, start) => {
  const harness = await start()
  const { post: call, get, browser, kit } = harness
  const app = await harness.register({ first_party: false, name: 'Harbour' })
  const other = await harness.register({ name: 'Other' })
  const tab = browser()
  const first = (await call('token', await getCode(harness, app, { scope: 'openid offline_access read' }, tab), app)).body
  const second = (await call('token', await getCode(harness, app, { scope: 'openid write' }, tab), app)).body
  const kept = (await call('token', await getCode(harness, other, {}, tab), other)).body
  t.ok((await tab.open(askCode(app, { scope: 'openid read' }).url)).left, 'the consent is remembered')
  const page = await tab.open('/account/apps')
  for (const text of ['Confirm your identity', 'Other access: <code>read</code>', 'Other access: <code>write</code>', 'Keep its access when you’re not using it', 'This service hasn’t verified this app.']) t.match(page.text, text)
  t.equal([...page.text.matchAll(/<button type="submit" name="client"/g)].length, 2, 'one entry for each app, whatever the number of its sessions')

  const asked = await post(page, '/account/apps', { client: app.client_id })
  t.match(asked.text, '<h1>Disconnect <bdi>Harbour</bdi>?</h1>')
  t.equal((await get('tokeninfo', String(first.access_token))).status, 200, 'not before the answer')
  const done = await post(asked, '/account/apps', { client: app.client_id, confirm: 'yes' })
  t.match(done.text, 'The app is disconnected.')
  t.notMatch(done.text, 'Harbour')
  for (const { access_token } of [first, second]) t.equal((await get('tokeninfo', String(access_token))).status, 401)
  t.equal((await call('token', { grant_type: 'refresh_token', refresh_token: String(first.refresh_token) }, app)).status, 400)
  t.equal((await get('tokeninfo', String(kept.access_token))).status, 200)
  t.match((await tab.open(askCode(app, { scope: 'openid read' }).url)).title, 'Continue to', 'the app must ask again')
  await kit.app.identity.tokens.settle()
})

eachStore(t, 'own clients: list, secret, a new one, deletion', async (t, start) => {
  const harness = await start()
  const { user, kit, browser } = harness
  const { clients } = kit.app.identity
  const ann = { user_id: user.user_id, isAdmin: false }
  t.notMatch((await enter(harness)).text, 'Developer apps', 'nobody is shown a list without entries')
  const { clientId } = await clients.create({ data: { name: '<i>Mine</i>', redirectUris: ['https://mine.example/cb'], scopes: ['read'] }, credentials: true }, ann)
  const open = await clients.create({ data: { name: '', redirectUris: [], scopes: [] } }, ann)
  const vouched = await harness.register({ name: 'Vouched' })
  const tab = browser()
  const home = await enter(harness, '/account', tab)
  t.match(home.text, 'href="/account/clients"')
  const list = await tab.open('/account/clients')
  t.match(list.text, '<bdi>&lt;i&gt;Mine&lt;/i&gt;</bdi>')
  t.match(list.text, `<bdi>${open.clientId}</bdi>`, 'one without a name has its id')
  t.notMatch(list.text, '<i>')
  const { clientSecret = '' } = await clients.require(clientId, ann)
  const path = `/account/clients/${clientId}`
  const page = await tab.open(path)
  t.match(page.text, 'https://mine.example/cb')
  t.notMatch(list.text + page.text, clientSecret, 'the secret is shown when it was asked for')
  t.match((await post(page, path, { action: 'show' })).text, `<code id="secret">${clientSecret}</code>`)

  const asked = await post(page, path, { action: 'renew' })
  t.match(asked.text, 'Create a new secret for <bdi>&lt;i&gt;Mine')
  t.equal((await clients.require(clientId, ann)).clientSecret, clientSecret)
  t.match((await post(asked, path, { action: 'renew', confirm: 'yes' })).text, 'The app has a new secret.')
  t.not((await clients.require(clientId, ann)).clientSecret, clientSecret)
  t.equal((await post(page, `/account/clients/${open.clientId}`, { action: 'renew', confirm: 'yes' })).response.status, 400, 'a public client has none')

  const refused = await tab.open(`/account/clients/${vouched.client_id}`)
  t.equal(refused.response.status, 403)
  t.match(refused.text, 'only an administrator can change it')
  t.equal((await post(page, `/account/clients/${vouched.client_id}`, { action: 'delete', confirm: 'yes' })).response.status, 403)

  await post(page, path, { action: 'delete' })
  t.not(await kit.app.identity.store.collection('clients').get(clientId), null, 'not before the answer')
  t.match((await post(page, path, { action: 'delete', confirm: 'yes' })).text, 'The app was deleted.')
  t.equal(await kit.app.identity.store.collection('clients').get(clientId), null)
  t.equal((await tab.open(path)).response.status, 404)
})

eachStore(t, 'an administrator has no more power there than anybody', async (t, start) => {
  const harness = await start()
  const { kit, browser } = harness
  const admin = await addUser(harness, 'root')
  await kit.app.identity.store.collection('users').update(admin.user_id, { set: { roles: { admin: true } } })
  const app = await harness.register()
  const page = await enter(harness, '/account', browser(), admin)
  t.equal((await page.browser.open(`/account/clients/${app.client_id}`)).response.status, 404)
  t.notMatch((await page.browser.open('/account/clients')).text, 'The App')
})

eachStore(t, 'the secrets of an own client: list, a new one, a removal', async (t, start) => {
  const logged: string[] = []
  const harness = await start({ app: createApp({ logger: { level: 'trace', stream: { write: (line: string) => { logged.push(line) } } } }) })
  const { user, kit, browser, post: call } = harness
  const { clients } = kit.app.identity
  const ann = { user_id: user.user_id, isAdmin: false }
  const app = await harness.register({ first_party: false, name: 'Mine' })
  const path = `/account/clients/${app.client_id}`
  const tab = browser()
  await enter(harness, '/account', tab)
  const list = async () => (await clients.listSecrets(app.client_id, ann)).secrets.map(({ id }) => id)
  const readMatch = (page: Page) => /name="match" value="&quot;([^"]*)&quot;"/.exec(page.text)?.[1]
  const add = async (page: Page, fields: Record<string, string>) => await post(page, path, { action: 'add', name: 'Nightly', match: `"${readMatch(page)}"`, ...fields })

  const page = await tab.open(path)
  t.match(page.text, 'To rotate a secret without downtime')
  t.match(page.text, 'First secret')
  const day = new Date(kit.clock.now() + 86_400_000).toISOString().slice(0, 10)
  const added = await add(page, { expires: day })
  t.strictSame([added.response.status, added.response.headers.get('location')], [200, null], 'no redirect has the secret')
  const secret = /<code id="secret">([^<]*)/.exec(added.text)?.[1] ?? ''
  t.match(secret, /^fi_sec_/)
  t.equal((await call('token', { grant_type: 'client_credentials' }, { ...app, client_secret: secret })).status, 200)
  const again = await tab.open(path)
  t.notMatch(again.text, secret, 'it is shown once')
  for (const text of ['Nightly', `Ends with ${secret.slice(-4)}`, 'Expires <time', 'Last used <time', 'Added <time']) t.match(again.text, text)
  t.match((await clients.listSecrets(app.client_id, ann)).secrets[1], { name: 'Nightly', expiresAt: `${day}T23:59:59.999Z` })

  t.match(await add(page, {}), { response: { status: 412 }, title: /./ }, 'a form that is sent again adds nothing')
  t.match((await add(page, {})).text, 'have changed since you opened this page')
  for (const [fields, text] of [[{ name: ' ' }, 'Enter another name'], [{ name: 'a\u202eb' }, 'Enter another name'], [{ expires: '2020-01-01' }, 'today or a later day'], [{ expires: 'soon' }, 'today or a later day']] as const) {
    const refused = await add(again, fields)
    t.equal(refused.response.status, 400)
    t.match(refused.text, text)
    t.match(refused.text, 'aria-invalid="true"')
  }
  t.equal((await list()).length, 2)

  for (let count = 1; count < 5; count++) t.equal((await add(await tab.open(path), { name: `n${count}` })).response.status, 200)
  t.notMatch((await tab.open(path)).text, 'name="expires"', 'no form while there is no room')
  t.match(await add(again, { match: (await clients.listSecrets(app.client_id, ann)).tag }), { response: { status: 429 }, text: /can’t have any more secrets/ })

  const [, id = ''] = await list()
  const asked = await post(again, path, { action: 'remove', secret: id })
  t.match(asked.text, 'Remove the secret <bdi>Nightly</bdi>?')
  t.ok((await list()).includes(id), 'not before the answer')
  const removed = await post(asked, path, { action: 'remove', secret: id, confirm: 'yes' })
  t.match(removed.text, 'The secret was removed.')
  t.notOk((await list()).includes(id))
  t.equal((await post(asked, path, { action: 'remove', secret: id, confirm: 'yes' })).response.status, 404)
  t.equal((await post(asked, path, { action: 'remove', secret: id })).response.status, 404)
  t.match((await post(again, path, { action: 'remove', secret: 'first' }, { 'accept-language': 'de' })).text, /Secret Erstes Secret entfernen|Remove the secret First secret\?/)

  const bob = await enter(harness, '/account', browser(), await addUser(harness, 'bob'))
  const changes: Record<string, string>[] = [{ action: 'add', name: 'x', match: '*' }, { action: 'remove', secret: 'first', confirm: 'yes' }]
  for (const fields of changes) t.equal((await post(bob, path, fields)).response.status, 404)
  const before = await list()
  kit.clock.advance(11 * 60_000)
  for (const fields of changes) {
    t.equal((await post(again, path, fields)).title, 'Confirm it’s you', 'only after a fresh sign-in, as for showing the secret')
  }
  t.strictSame(await list(), before)
  t.ok(logged.length > 0)
  t.notOk(logged.some((line) => line.includes(secret)), 'no log has it')
})
