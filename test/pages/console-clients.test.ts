import t, { type Test } from 'tap'
import type { Client } from '../../schemas/client.ts'
import type { Event } from '../../schemas/event.ts'
import type { Page } from '../oidc/browser.ts'
import { type Harness, eachStore } from '../oidc/harness.ts'
import { addUser, enter, isSignedOut, post, readFormId } from './visits.ts'

const OPERATOR = { user_id: '', isAdmin: true }
const OPTIONS = {
  console: { path: '/admin' },
  oidc: { documents: { hosts: ['agent.example'] }, signInLimit: false as const }
}
/** Markup, a change of the direction of the text, and quotes. */
const HOSTILE = '<img src=x onerror=alert(1)>"\'\u202egpj'

const unescape = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')

const readField = ({ text }: Page, name: string): string => unescape(new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? '')

/** What the page shows once. */
const readShown = ({ text }: Page): string | undefined => /<div class="secret-shown".*?<code>([^<]*)<\/code>/s.exec(text)?.[1]

async function openConsole (harness: Harness): Promise<Page> {
  await harness.kit.app.identity.store.collection('users').update(harness.user.user_id, { set: { roles: { admin: true } } })
  return await enter(harness, '/admin/clients')
}

async function addClient ({ kit, user }: Harness, data: Partial<Client> = {}, userId = user.user_id): Promise<string> {
  const fields = { name: 'Shop', redirectUris: ['https://shop.example/cb'], scopes: ['read'] }
  const { clientId } = await kit.app.identity.clients.create({ data: { ...fields, ...data, userId }, credentials: true }, { ...OPERATOR, user_id: userId })
  return clientId
}

const read = async ({ kit }: Harness, clientId: string): Promise<Client> => await kit.app.identity.clients.require(clientId, OPERATOR)

/** The types of the events about a client that the console has made, the oldest first. */
async function listEvents ({ kit, user }: Harness, clientId: string): Promise<Event[]> {
  const events = (await kit.events.list({ client: clientId }))
  return events.filter(({ actor }) => actor.via === 'console' && actor.user_id === user.user_id)
}

/** A form of the page of a client, sent from the page as it is now. */
async function submit (page: Page, clientId: string, action: string, fields: Record<string, string> = {}): Promise<Page> {
  const path = `/admin/clients/${encodeURIComponent(clientId)}`
  return await post(await page.browser.open(path), path, { action, ...fields })
}

async function expectEvent (t: Test, harness: Harness, clientId: string, type: string, rest: object = {}): Promise<void> {
  const events = await listEvents(harness, clientId)
  t.match(events.filter((event) => event.type === type).at(-1), { actor: { via: 'console' }, ...rest }, `${type} is recorded: ${events.map((event) => event.type).join(' ')}`)
}

eachStore(t, 'clients in the console', async (t, start) => {
  const harness = await start(OPTIONS)
  const { kit, browser } = harness
  const { clients, serviceTokens } = kit.app.identity
  const page = await openConsole(harness)

  await t.test('a client is registered, and its secret is shown by the answer alone', async (t) => {
    const list = await page.browser.open('/admin/clients')
    t.match(list.text, 'aria-current="page">Clients')
    const made = await post(list, '/admin/clients', { action: 'create', name: 'Web shop', redirectUris: 'https://web.example/a\r\n\r\n https://web.example/b ', scopes: 'read\r\nwrite', confidential: 'yes' })
    t.equal(made.title, 'Web shop')
    const clientId = /\/admin\/clients\/([\w-]+)\/token/.exec(made.text)?.[1] ?? ''
    const client = await read(harness, clientId)
    t.match(client, { name: 'Web shop', redirectUris: ['https://web.example/a', 'https://web.example/b'], scopes: ['read', 'write'], userId: harness.user.user_id })
    t.equal(readShown(made), client.clientSecret)
    await expectEvent(t, harness, clientId, 'client.created')
    const shown = await page.browser.open(`/admin/clients/${clientId}`)
    t.notMatch(shown.text, client.clientSecret!)
    t.match(shown.text, `href="/admin/people/${harness.user.user_id}"`)
    t.match(shown.text, `<code><bdi>${clientId}`)
    const open = await post(list, '/admin/clients', { action: 'create', name: 'App', redirectUris: 'https://app.example/cb', scopes: '' })
    t.match(open.text, 'Created.')
    t.equal(readShown(open), undefined, 'a public client has no secret')
  })

  await t.test('a form that is refused keeps what was typed', async (t) => {
    const refused = await post(await page.browser.open('/admin/clients'), '/admin/clients', { action: 'create', name: 'Mine', redirectUris: 'javascript:alert(1)', scopes: 'a' })
    t.equal(refused.response.status, 400)
    t.match(refused.text, /This wasn’t done: redirectUris/)
    t.match(refused.text, '\njavascript:alert(1)</textarea>')
  })

  await t.test('the list has pages, and shows the clients of an owner', async (t) => {
    const other = await addUser(harness, 'owner@example.com')
    for (let number = 0; number < 27; number++) await addClient(harness, { name: `Shop ${String(number).padStart(2, '0')}` }, other.user_id)
    const path = `/admin/clients?user=${other.user_id}`
    const first = await page.browser.open(path)
    t.match(first.text, '27 entries')
    t.match(first.text, 'Shop 00')
    t.notMatch(first.text, 'Web shop')
    const next = await page.browser.open(unescape(/rel="next" href="([^"]*)"/.exec(first.text)?.[1] ?? ''))
    t.match(next.text, 'Shop 26')
    t.notMatch(next.text, 'Shop 00')
    const back = await page.browser.open(unescape(/rel="prev" href="([^"]*)"/.exec(next.text)?.[1] ?? ''))
    t.match(back.text, 'Shop 00')
    t.match(next.text, `href="/admin/clients?user=${other.user_id}">First`)
    t.match(first.text, `/client/list?user=${other.user_id}&amp;fields=`, 'nothing is sought until somebody types')
    for (const query of ['search=a+b+c+d+e+f+g+h+i', 'after=nothing']) {
      const refused = await page.browser.open(`/admin/clients?${query}`)
      t.match([refused.response.status, refused.text], [200, /role="alert"[^>]*>This wasn’t done: /], query)
    }
  })

  await t.test('the readable secret is shown, and renewed, by a form alone', async (t) => {
    const clientId = await addClient(harness)
    const { clientSecret } = await read(harness, clientId)
    t.equal(readShown(await submit(page, clientId, 'reveal')), clientSecret)
    const renewed = readShown(await submit(page, clientId, 'renew'))
    t.not(renewed, clientSecret)
    t.equal(renewed, (await read(harness, clientId)).clientSecret)
    await expectEvent(t, harness, clientId, 'client.secret_changed')
    for (const path of ['', '/token', '/token?user_id=']) t.notMatch((await page.browser.open(`/admin/clients/${clientId}${path}`)).text, renewed!)
  })

  await t.test('secrets are added and removed', async (t) => {
    const clientId = await addClient(harness)
    const added = await submit(page, clientId, 'add-secret', { secretName: 'Nightly', secretEnd: '2099-12-31', secretsMatch: readField(await page.browser.open(`/admin/clients/${clientId}`), 'secretsMatch') })
    const secret = readShown(added) ?? ''
    t.match(secret, /^fi_sec_/)
    await expectEvent(t, harness, clientId, 'client.secret_added')
    const { secrets } = await clients.listSecrets(clientId, OPERATOR)
    t.match(secrets, [{ id: 'first' }, { name: 'Nightly', last4: secret.slice(-4), expiresAt: '2099-12-31T23:59:59.999Z' }])
    const shown = await page.browser.open(`/admin/clients/${clientId}`)
    t.match(shown.text, 'Nightly')
    t.notMatch(shown.text, secret)
    const stale = await submit(page, clientId, 'remove-secret', { secret: secrets[1]!.id, secretsMatch: '"another"' })
    t.equal(stale.response.status, 409)
    t.match(stale.text, /secrets of the client have changed/)
    const removed = await submit(page, clientId, 'remove-secret', { secret: secrets[1]!.id, secretsMatch: readField(shown, 'secretsMatch') })
    t.match(removed.text, 'The secret was removed.')
    t.equal((await clients.listSecrets(clientId, OPERATOR)).secrets.length, 1)
    await expectEvent(t, harness, clientId, 'client.secret_removed')
  })

  await t.test('a form that is sent twice makes one secret, and shows it again', async (t) => {
    const clientId = await addClient(harness)
    const path = `/admin/clients/${clientId}`
    const before = await page.browser.open(path)
    const fields = { action: 'add-secret', secretName: 'Once', secretEnd: '', secretsMatch: readField(before, 'secretsMatch'), form_id: readFormId(before) }
    const shown = await Promise.all([post(before, path, fields), post(before, path, fields)])
    t.match(readShown(shown[0]), /^fi_sec_/)
    t.equal(readShown(shown[1]), readShown(shown[0]))
    t.equal((await clients.listSecrets(clientId, OPERATOR)).secrets.length, 2)
    const token = { action: 'add-token', tokenName: 'Job', tokenScopes: 'read', tokenEnd: '', tokenResource: '', form_id: 'a'.repeat(22) }
    const first = await post(before, path, token)
    t.equal(readShown(await post(before, path, token)), readShown(first))
    t.match(readShown(first), /^fi_svc_/)
    t.equal((await serviceTokens.list(clientId, OPERATOR)).length, 1)
  })

  await t.test('a service token is made, shown once, and ended', async (t) => {
    const clientId = await addClient(harness)
    const made = await submit(page, clientId, 'add-token', { tokenName: 'Report', tokenScopes: 'read', tokenEnd: '', tokenResource: '' })
    const token = readShown(made) ?? ''
    t.match(token, /^fi_svc_/)
    const [listed] = await serviceTokens.list(clientId, OPERATOR)
    t.match(listed, { name: 'Report', scopes: ['read'], last4: token.slice(-4) })
    await expectEvent(t, harness, clientId, 'token.service_created')
    const shown = await page.browser.open(`/admin/clients/${clientId}`)
    t.match(shown.text, 'Report')
    t.notMatch(shown.text, token)
    const refused = await submit(page, clientId, 'add-token', { tokenName: 'Other', tokenScopes: 'admin', tokenEnd: '', tokenResource: '' })
    t.match([refused.response.status, refused.text], [400, /value="Other"/])
    t.match((await submit(page, clientId, 'remove-token', { token: listed!.id })).text, 'The token was ended.')
    t.strictSame(await serviceTokens.list(clientId, OPERATOR), [])
    await expectEvent(t, harness, clientId, 'token.service_removed')
  })

  await t.test('fields are changed; of what somebody else has changed meanwhile, both values are shown', async (t) => {
    const clientId = await addClient(harness)
    const path = `/admin/clients/${clientId}`
    const before = await page.browser.open(path)
    const fields = { action: 'edit', match: readField(before, 'match'), name: 'Shop 2', redirectUris: 'https://shop.example/cb', scopes: 'read\r\nwrite', backchannelLogoutUri: '', image: 'https://shop.example/logo.png' }
    t.match((await post(before, path, fields)).text, 'Saved.')
    t.match(await read(harness, clientId), { name: 'Shop 2', scopes: ['read', 'write'], redirectUris: ['https://shop.example/cb'], image: 'https://shop.example/logo.png' })
    const [event] = (await listEvents(harness, clientId)).filter(({ type }) => type === 'client.updated')
    t.strictSame([...event!.changed ?? []].sort(), ['image', 'name', 'scopes'], 'the event names what has changed')
    const conflict = await post(before, path, { ...fields, name: 'Shop 3', scopes: 'read' })
    t.equal(conflict.response.status, 412)
    for (const text of ['Name: Current value', 'Name: Your value', 'Shop 2', 'Shop 3', 'Scopes: Your value']) t.match(conflict.text, text)
    t.notMatch(conflict.text, 'redirectUris: ')
    t.equal((await read(harness, clientId)).name, 'Shop 2')
    await post(before, path, { ...fields, name: 'Shop 3', scopes: 'read', image: '', match: readField(conflict, 'match') })
    const after = await read(harness, clientId)
    t.match([after.name, after.scopes, after.image], ['Shop 3', ['read'], undefined])
  })

  await t.test('the page of a person shows both values too, and why somebody cannot sign in', async (t) => {
    const { user_id } = await addUser(harness, 'changed@example.com')
    const path = `/admin/people/${user_id}`
    const before = await page.browser.open(path)
    t.match(before.title, /^changed@example.com/, 'a title has no markup')
    const conflict = await post(before, path, { action: 'profile', match: '"name:x"', name: HOSTILE, email: '' })
    t.match([conflict.response.status, conflict.text], [412, /Name: Current value.*None.*Name: Your value/s])
    t.notMatch(conflict.text, '<img')
    await post(before, path, { action: 'disable' })
    t.match((await page.browser.open(path)).text, /can’t sign in now.*An administrator has disabled the account.*What helps: enable or change the account, below/s)
  })

  await t.test('a client is disabled, enabled, taken over, and deleted by its name', async (t) => {
    const owner = await addUser(harness, 'first-owner@example.com')
    const clientId = await addClient(harness, {}, owner.user_id)
    t.match((await submit(page, clientId, 'disable')).text, 'The client was disabled.')
    t.equal((await read(harness, clientId)).disabled, true)
    await expectEvent(t, harness, clientId, 'client.updated', { changed: ['disabled'] })
    t.match((await submit(page, clientId, 'enable')).text, 'The client was enabled.')
    t.equal((await read(harness, clientId)).disabled, undefined)
    const { clientSecret } = await read(harness, clientId)
    const taken = await submit(page, clientId, 'take')
    t.match(taken.text, 'The client is yours now.')
    t.notMatch(taken.text, 'name="action" value="take"', 'what is mine cannot be taken over')
    const after = await read(harness, clientId)
    t.equal(after.userId, harness.user.user_id)
    t.not(after.clientSecret, clientSecret)
    await expectEvent(t, harness, clientId, 'client.updated', { changed: ['userId'] })
    t.match(await submit(page, clientId, 'remove', { typed: 'shop' }), { response: { status: 400 }, text: /typed: must be the name or the id/ })
    t.match((await submit(page, clientId, 'remove', { typed: 'Shop' })).text, 'Deleted.')
    await t.rejects(read(harness, clientId), { code: 'ErrNotFound' })
    await expectEvent(t, harness, clientId, 'client.deleted')
    t.equal((await page.browser.open(`/admin/clients/${clientId}`)).response.status, 404)
  })

  await t.test('a page says what tokens would say, and why not', async (t) => {
    const clientId = await addClient(harness, { scopes: ['read'] })
    const path = `/admin/clients/${clientId}/token`
    const asked = await page.browser.open(path)
    t.notMatch(asked.text, 'Claims that are absent')
    t.equal((await listEvents(harness, clientId)).length, 0, 'nothing is asked yet')
    const query = (fields: Record<string, string>) => `${path}?${new URLSearchParams(fields)}`
    const shown = await page.browser.open(query({ user_id: harness.user.user_id, scope: 'openid profile other', resource: '' }))
    for (const text of ['The client wouldn’t get tokens.', 'The app may not ask for this scope. (<bdi>other</bdi>)', 'change the client, on its page', 'ID token', 'Userinfo', '&quot;sub&quot;', 'Introspection']) t.match(shown.text, text)
    t.match(shown.text, `value="${harness.user.user_id}"`)
    t.match(shown.text, 'leaves it to userinfo')
    await expectEvent(t, harness, clientId, 'token.previewed')
    t.match((await page.browser.open(query({ user_id: harness.user.user_id, scope: 'openid read' }))).text, 'The client would get tokens.')
    const unknown = await page.browser.open(query({ user_id: 'nobody' }))
    t.match([unknown.response.status, unknown.text], [200, /There is no answer: /])
    t.match((await page.browser.open(`/admin/people/${harness.user.user_id}`)).text, `/token?user_id=${harness.user.user_id}"`)
    t.equal((await page.browser.open('/admin/clients/nothing/token?user_id=x')).response.status, 404)
  })

  await t.test('an unregistered app is shown, blocked, read again and allowed again', async (t) => {
    const agent = kit.agent({ client_name: 'An agent' })
    const listPath = '/admin/clients?kind=documents'
    const blocked = await post(await page.browser.open(listPath), listPath, { action: 'block', url: agent.clientId })
    t.match(blocked.text, 'The document was blocked.')
    t.match(blocked.response.url, 'kind=documents')
    t.match(blocked.text, agent.clientId)
    t.match((await read(harness, agent.clientId)), { disabled: true })
    await post(blocked, listPath, { action: 'unblock', url: agent.clientId })
    t.equal((await read(harness, agent.clientId)).disabled, undefined)
    await agent.authorize(harness.user)
    const list = await page.browser.open(listPath)
    const path = /href="(\/admin\/clients\/document%3A[^"]*)"/.exec(list.text)?.[1] ?? ''
    for (const one of [path, `/admin/clients/${encodeURIComponent(agent.clientId)}`]) {
      const shown = await page.browser.open(one)
      for (const text of ['An agent', agent.clientId, 'agent.example', 'Nobody has registered this app.']) t.match(shown.text, text)
      t.notMatch(shown.text, 'value="edit"')
    }
    agent.document.client_name = 'Renamed'
    t.match((await post(await page.browser.open(path), path, { action: 'refresh' })).text, 'The document was read again.')
    t.match((await post(await page.browser.open(path), path, { action: 'block' })).text, 'This app is blocked.')
    await expectEvent(t, harness, agent.clientId, 'client.updated', { changed: ['disabled'] })
    t.match((await post(await page.browser.open(path), path, { action: 'unblock' })).text, 'The document is no longer blocked.')
    const refused = await post(list, listPath, { action: 'block', url: 'javascript:alert(1)' })
    t.equal(refused.response.status, 400)
    t.match((await page.browser.open(`${listPath}&search=nothing-like-it`)).text, 'No unregistered app was found.')
    t.match((await page.browser.open(`${path}/token?user_id=`)).text, 'wouldn’t get tokens')
  })

  await t.test('what clients have stored is shown as text', async (t) => {
    const clientId = await addClient(harness)
    const fields = { name: HOSTILE, redirectUris: ['javascript:alert(1)', `https://x.example/${HOSTILE}`], scopes: [HOSTILE], image: 'javascript:alert(2)', backchannelLogoutUri: 'javascript:alert(3)' }
    const hostile = { ...fields, claims: { [HOSTILE]: { from: 'attributes.x', in: ['id_token'] } }, roles: { [HOSTILE]: true }, secrets: [{ id: HOSTILE, name: HOSTILE, hash: 'x', last4: HOSTILE, created_at: '2026-01-01T00:00:00.000Z' }], keys: [{ jwk: { kid: HOSTILE, kty: HOSTILE }, id: 'x', created_at: '2026-01-01T00:00:00.000Z' }] }
    await kit.app.identity.store.collection('clients').update(clientId, { set: hostile })
    const shown = await page.browser.open(`/admin/clients/${clientId}`)
    t.equal(shown.response.status, 200)
    const conflict = await post(shown, `/admin/clients/${clientId}`, { action: 'edit', match: '"name:x"', name: `${HOSTILE}2`, redirectUris: '', scopes: '', backchannelLogoutUri: '', image: '' })
    t.equal(conflict.response.status, 412)
    for (const { text } of [shown, conflict, await page.browser.open(`/admin/clients?user=${harness.user.user_id}`), await page.browser.open(`/admin/clients/${clientId}/token?user_id=${encodeURIComponent(HOSTILE)}&scope=${encodeURIComponent(HOSTILE)}`)]) {
      t.notMatch(text, '<img')
      t.notMatch(text, /(?:href|src|action)="(?:javascript:|&)/)
      t.match(text, 'U+202E', 'a change of direction is shown as its code')
      // Only a field that is filled in has it as it is.
      t.notMatch(text.replaceAll(/<textarea.*?<\/textarea>|<input[^>]*>/gs, ''), '\u202e')
    }
  })

  await t.test('who may not see the clients of others does not see the section', async (t) => {
    const clientId = await addClient(harness)
    for (const [role, status] of [['manager', 404], [undefined, 403]] as const) {
      const somebody = await addUser(harness, `${role ?? 'plain'}@example.com`)
      await kit.app.identity.store.collection('users').update(somebody.user_id, { set: { roles: role === undefined ? {} : { [role]: true } } })
      const door = await enter(harness, '/admin', browser(), somebody)
      t.notMatch(door.text, 'href="/admin/clients"')
      for (const path of ['/admin/clients', `/admin/clients/${clientId}`, `/admin/clients/${clientId}/token`, '/admin/clients?kind=documents']) {
        const got = await door.browser.open(path)
        t.equal(got.response.status, status, `${role ?? 'plain'}: ${path}`)
        t.notMatch(got.text, 'Shop')
      }
      const sent = await post(door, `/admin/clients/${clientId}`, { action: 'disable' })
      t.ok([400, 403, 404].includes(sent.response.status), `${sent.response.status}`)
    }
    t.equal((await read(harness, clientId)).disabled, undefined)
    t.ok(isSignedOut(await browser().open('/admin/clients')), 'nobody is asked to sign in')
  })
})

eachStore(t, 'clients in the console, for support staff and where documents are off', async (t, start) => {
  const harness = await start({ console: { path: '/admin' }, roles: { support: 'support' } })
  const { kit, browser } = harness
  const clientId = await addClient(harness)
  const helper = await addUser(harness, 'helper@example.com')
  await kit.app.identity.store.collection('users').update(helper.user_id, { set: { roles: { support: true } } })
  const door = await enter(harness, '/admin', browser(), helper)
  for (const path of ['/admin/clients', `/admin/clients/${clientId}`, `/admin/clients/${clientId}/token`]) t.equal((await door.browser.open(path)).response.status, 404, path)
  const page = await openConsole(harness)
  t.match((await page.browser.open('/admin/clients?kind=documents')).text, 'Unregistered apps are off.')
})
