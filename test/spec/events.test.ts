import t, { type Test } from 'tap'
import { createTickets } from '../../lib/tickets/tickets.ts'
import type { EVENT_TYPES } from '../../lib/events/types.ts'
import { ACCESS } from '../../plugins/access-table.ts'
import type { Event } from '../../schemas/event.ts'
import { startIdentity, type TestKit } from '../../testing/index.ts'
import { forEachStore } from '../helpers/build.ts'
import { PROMPT, waitUntil } from '../helpers/wait.ts'

/** The mailbox of nobody: the mail server refuses its mails for good. */
const REFUSED = 'refused@example.com'
const MAIL = {
  local: true,
  async send ({ to }: { to: string }) {
    if (to === REFUSED) throw Object.assign(new Error('no such mailbox'), { responseCode: 550 })
  }
}

/** The actors that the calls of an operation share: a user with a client, and an administrator. */
interface Scene {
  kit: TestKit
  admin: Record<string, string>
  user: { user_id: string, headers: Record<string, string>, client_id: string }
  /** Makes a personal access token of the user. */
  addToken (): Promise<string>
  call (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, headers: Record<string, string>, data?: object): Promise<{ data: Record<string, string> }>
}

/** The operations that change something: a call, and the types of the events that it causes. */
const OPERATIONS: Record<string, [run: (scene: Scene) => Promise<unknown>, ...types: (keyof typeof EVENT_TYPES)[]]> = {
  createClient: [({ call, user }) => call('POST', '/client', user.headers, { data: { redirectUris: [], scopes: [], name: 'new' } }), 'client.created'],
  patchClient: [({ call, user }) => call('PATCH', `/client/${user.client_id}`, user.headers, { data: { name: 'other' }, regen_secret: true }), 'client.updated', 'client.secret_changed'],
  addClientSecret: [({ call, user }) => call('POST', `/client/${user.client_id}/secret`, user.headers, { data: { name: 'new' } }), 'client.secret_added'],
  removeClientSecret: [({ call, user }) => call('DELETE', `/client/${user.client_id}/secret/first`, user.headers), 'client.secret_removed'],
  createClientToken: [({ call, user, admin }) => call('POST', `/client/${user.client_id}/token`, admin, { data: { name: 'new', scopes: [] } }), 'token.service_created'],
  removeClientToken: [async ({ call, user, admin }) => {
    const { data: { id } } = await call('POST', `/client/${user.client_id}/token`, admin, { data: { name: 'new', scopes: [] } })
    await call('DELETE', `/client/${user.client_id}/token/${id}`, admin)
  }, 'token.service_created', 'token.service_removed'],
  createPersonalToken: [({ addToken }) => addToken(), 'token.personal_created'],
  removePersonalToken: [async ({ call, user, addToken }) => await call('DELETE', `/user/token/${await addToken()}`, user.headers), 'token.personal_created', 'token.personal_removed'],
  removePersonalTokenOfUser: [async ({ call, user, admin, addToken }) => await call('DELETE', `/user/${user.user_id}/token/${await addToken()}`, admin), 'token.personal_created', 'token.personal_removed'],
  deleteClient: [({ call, user, admin }) => call('DELETE', `/client/${user.client_id}`, admin), 'client.deleted'],
  deleteClientsOfUser: [({ call, user }) => call('DELETE', `/client/user/${user.user_id}`, user.headers), 'client.deleted'],
  blockDocument: [({ call, admin }) => call('POST', '/client/document/block', admin, { data: { url: 'https://agent.example/client.json' } }), 'client.updated'],
  logout: [({ call, user }) => call('POST', '/auth/logout', user.headers), 'token.revoked'],
  endSessions: [({ call, user }) => call('DELETE', '/auth/sessions?all=true&regen_secrets=true', user.headers), 'user.sessions_ended', 'client.secret_changed'],
  patchProfile: [({ call, user }) => call('PATCH', '/user', user.headers, { data: { name: 'new', password: 'another' } }), 'user.updated', 'user.password_changed'],
  sendVerification: [({ call, user }) => call('POST', '/auth/verify/send', user.headers), 'user.verification_requested'],
  changeAddress: [({ call, user }) => call('POST', '/user/email', user.headers, { data: { email: 'new@example.com' } }), 'user.email_change_requested'],
  verifyAddress: [async ({ call, user, kit }) => {
    const { store } = kit.app.identity
    const link = { user_id: user.user_id, user_epoch: 0, address: 'new@example.com', former: 'ann@example.com', mailed: true }
    const token = await createTickets({ store, now: kit.clock.now }).issue({ purpose: 'change', ...link })
    await call('POST', '/auth/verify', user.headers, { data: { token } })
  }, 'user.email_changed'],
  exportOwnData: [({ kit, user: { headers } }) => kit.inject({ url: '/api/v1/user/export', headers }), 'user.exported'],
  deleteProfile: [({ call, user }) => call('DELETE', '/user', user.headers, { data: {} }), 'client.deleted', 'user.deleted'],
  inviteUser: [({ call, admin }) => call('POST', '/user/invite', admin, { data: { account: 'guest@example.com' } }), 'user.invited'],
  removeFactor: [async ({ call, user, kit }) => {
    const { id } = await kit.app.identity.ways.add({ user_id: user.user_id, epoch: 0 }, { kind: 'totp', material: { step: 0 } })
    await call('DELETE', `/user/factors/${id}`, user.headers)
  }, 'factor.removed', 'user.sessions_ended'],
  removeIdentity: [async ({ call, user, kit }) => {
    const { id } = await kit.app.identity.ways.add({ user_id: user.user_id, epoch: 0 }, { kind: 'upstream', upstream: 'gone', key: 'x', material: { issuer: 'https://gone.example', subject: '1' } })
    await call('DELETE', `/user/identities/${id}`, user.headers)
  }, 'identity.unlinked', 'user.sessions_ended'],
  removeIdentityOfUser: [async ({ call, user, admin, kit }) => {
    const { id } = await kit.app.identity.ways.add({ user_id: user.user_id, epoch: 0 }, { kind: 'upstream', upstream: 'gone', key: 'y', material: { issuer: 'https://gone.example', subject: '1' } })
    await call('DELETE', `/user/${user.user_id}/identities/${id}`, admin)
  }, 'identity.unlinked', 'user.sessions_ended'],
  replaceIdentityOfUser: [async ({ call, user, admin, kit }) => {
    await kit.app.identity.ways.add({ user_id: user.user_id, epoch: 0 }, { kind: 'upstream', upstream: 'test', key: 'z', material: { issuer: 'https://gone.example', subject: '1' } })
    await call('POST', `/user/${user.user_id}/identities/replace`, admin, { data: { upstream: 'test', subject: 'x'.repeat(22) } })
  }, 'identity.unlinked', 'identity.replaced', 'user.sessions_ended'],
  releaseAddress: [({ call, user, admin }) => call('POST', `/user/${user.user_id}/email/release`, admin), 'user.email_released'],
  resetFactors: [({ call, user, admin }) => call('POST', `/user/${user.user_id}/factors/reset`, admin), 'factor.reset', 'user.sessions_ended'],
  importUsers: [async ({ kit, admin }) => await kit.inject({
    method: 'POST', url: '/api/v1/user/import?source=old', headers: { ...admin, 'content-type': 'application/x-ndjson' }, payload: '{"account":"imported"}'
  }), 'user.created', 'users.imported'],
  unlockUser: [({ call, user, admin }) => call('POST', `/user/${user.user_id}/unlock`, admin), 'user.unlocked'],
  endSessionsOfUser: [({ call, user, admin }) => call('DELETE', `/user/${user.user_id}/sessions`, admin), 'user.sessions_ended'],
  endSessionOfUser: [async ({ call, user, admin, kit }) => {
    await kit.mint({ user: user.user_id, refresh: true })
    const { sessions: [session] } = await kit.app.identity.userSessions.list(user.user_id, { user_id: 'boss', isAdmin: true })
    await call('DELETE', `/user/${user.user_id}/sessions/${session!.session_id}`, admin)
  }, 'session.ended'],
  previewToken: [({ kit, user, admin }) => kit.inject({ url: `/api/v1/client/${user.client_id}/token-preview?user_id=${user.user_id}`, headers: admin }), 'token.previewed'],
  retryJobs: [async ({ call, admin, kit }) => {
    await call('POST', '/user/invite', admin, { data: { account: REFUSED } })
    await kit.flush()
    await call('POST', '/jobs/retry', admin, { data: { kind: 'mail' } })
  }, 'user.invited', 'mail.retried'],
  // The service sends it: what became of it is an event of the email.
  sendTestMail: [async ({ call, kit }) => {
    const { user_id, headers } = await kit.mint({ user: 'tester', roles: ['admin'] })
    await kit.app.identity.store.collection('users').update(user_id, { set: { email: 'tester@example.com', email_verified_at: new Date(kit.clock.now()).toISOString() } })
    await call('POST', '/mail/test', headers)
    await kit.flush()
  }],
  recoverUser: [({ call, user, admin }) => call('POST', `/user/${user.user_id}/recovery`, admin), 'user.recovery_started'],
  createResource: [({ call, admin }) => call('POST', '/resource', admin, { data: { id: 'https://orders.example', name: 'Orders', scopes: { 'orders:read': 'read' } } }), 'resource.created'],
  patchResource: [async ({ call, admin, kit }) => {
    const { resourceId } = await kit.app.identity.resources.create({ data: { id: 'https://orders.example', name: 'Orders', scopes: {} } })
    await call('PATCH', `/resource/${resourceId}`, admin, { data: { name: 'Other' } })
  }, 'resource.created', 'resource.updated'],
  deleteResource: [async ({ call, admin, kit }) => {
    const { resourceId } = await kit.app.identity.resources.create({ data: { id: 'https://orders.example', name: 'Orders', scopes: {} } })
    await call('DELETE', `/resource/${resourceId}`, admin)
  }, 'resource.created', 'resource.deleted'],
  createUser: [({ call, admin }) => call('POST', '/user', admin, { data: { account: 'created', password: 'p' } }), 'user.created'],
  patchUser: [({ call, user, admin }) => call('PATCH', `/user/${user.user_id}`, admin, { data: { name: 'new', roles: { manager: true }, password: 'another' }, disable: true }), 'user.updated', 'user.roles_changed', 'user.password_changed', 'user.disabled'],
  deleteUser: [({ call, user, admin }) => call('DELETE', `/user/${user.user_id}`, admin), 'user.deleted']
}

async function setUp (t: Test, kit: TestKit): Promise<Scene> {
  const call: Scene['call'] = async (method, url, headers, payload) => {
    const reply = await kit.inject({ method, url: `/api/v1${url}`, headers, ...(payload && { payload }) })
    if (reply.statusCode >= 300) t.fail(`${method} ${url}: ${reply.statusCode} ${reply.body}`)
    return reply.statusCode === 204 ? { data: {} } : reply.json()
  }
  await kit.reset()
  const admin = await kit.mint({ user: 'boss', roles: ['admin'] })
  const { user_id } = (await call('POST', '/user', admin.headers, { data: { account: 'ann@example.com', password: 'p' } })).data as { user_id: string }
  const { headers, client_id } = await kit.mint({ user: user_id })
  const { identity } = kit.app
  const { clientId } = await identity.clients.create({ data: { redirectUris: [], scopes: [], name: 'own' }, credentials: true }, { user_id, isAdmin: true })
  t.ok(client_id)
  const expiresAt = new Date(kit.clock.now() + 86_400_000).toISOString()
  const addToken = async () => (await call('POST', '/user/token', headers, { data: { name: 'new', scopes: [], expiresAt } })).data['id']!
  return { kit, call, addToken, admin: admin.headers, user: { user_id, headers, client_id: clientId } }
}

await forEachStore(t, async (t, build) => {
  t.test('every operation that changes something has its events, with its actor', async (t) => {
    const changing = Object.keys(ACCESS).filter((operation) => !/^(get|list|count|read|refresh|explain|find)/.test(operation) && !/webhook/i.test(operation))
    t.same(Object.keys(OPERATIONS).sort(), changing.sort(), 'the table has every operation')
    const kit = await build(t, { mail: MAIL, selfDelete: true, personalTokens: { maxDays: 30 }, oidc: { documents: { hosts: ['agent.example'] } }, upstreams: [{ id: 'test', kind: 'oidc', issuer: 'https://gone.example', clientId: 'c', clientSecret: 's' }] })
    for (const [operation, [run, ...types]] of Object.entries(OPERATIONS)) {
      const scene = await setUp(t, kit)
      // Mails are sent by the service.
      const listCaused = async () => (await kit.events.list()).filter(({ type }) => type !== 'mail.sent' && type !== 'mail.failed')
      const before = (await listCaused()).length
      await run(scene)
      const events = (await listCaused()).slice(before)
      t.strictSame([...new Set(events.map(({ type }) => type))].sort(), [...types].sort(), operation)
      for (const event of events.filter(({ type }) => type !== 'resource.created' || operation === 'createResource')) {
        t.match(event, { actor: { via: 'api', user_id: String, client_id: String, token_id: String }, address: '127.0.0.1', request_id: String, outcome: 'success', time: String }, `${operation}: ${event.type}`)
      }
    }
  })

  t.test('a token that is revoked while its request of the feed waits gets no event', async (t) => {
    const kit = await build(t)
    const [root, boss] = [await kit.mint({ user: 'root', roles: ['admin'] }), await kit.mint({ user: 'boss', roles: ['admin'] })]
    const { events, users } = kit.app.identity
    const after = await events.last()
    const waiting = kit.inject({ url: `/api/v1/event/feed?after=${after}&wait=20`, headers: boss.headers })
    await waitUntil('the request of the feed waits', () => events.countWaiting() > 0)
    await users.patch(boss.user_id, { disable: true }, { user_id: root.user_id, isAdmin: true })
    await events.flush()
    t.match((await waiting).json(), { statusCode: 401, code: 'ErrUnknown' })
  })

  t.test('a reader of the feed who disconnects waits no more', async (t) => {
    // What nobody receives is no documented response.
    const kit = await build(t, { openapi: false })
    const { url } = await kit.listen()
    const { headers } = await kit.mint({ user: 'root', roles: ['admin'] })
    const { events } = kit.app.identity
    const leaving = new AbortController()
    const request = fetch(`${url}/api/v1/event/feed?after=${await events.last()}&wait=20`, { headers, signal: leaving.signal })
    await waitUntil('the request of the feed waits', () => events.countWaiting() === 1)
    leaving.abort()
    await t.rejects(request, { name: 'AbortError' })
    await waitUntil('it waits no more', () => events.countWaiting() === 0, PROMPT)
  })

  t.test('the fields of an event', async (t) => {
    const kit = await build(t, { mail: MAIL })
    const { call, admin, user: { user_id, headers, client_id } } = await setUp(t, kit)
    const last = async () => (await kit.events.list()).at(-1)!
    await call('PATCH', `/user/${user_id}`, admin, { data: { roles: { manager: true } } })
    await call('PATCH', `/user/${user_id}`, admin, { data: { roles: { editor: true } } })
    t.match(await last(), { type: 'user.roles_changed', granted: ['editor'], removed: ['manager'], target: { kind: 'user', id: user_id }, user_id })
    await call('PATCH', '/user', headers, { data: { name: 'A Secret Name', info: { note: 'a secret note' } } })
    t.match(await last(), { type: 'user.updated', changed: ['info', 'name'] })
    await call('PATCH', `/client/${client_id}`, headers, { data: { redirectUris: ['https://secret.example/'] } })
    t.match(await last(), { type: 'client.updated', changed: ['redirectUris'], client_id, user_id })
    await call('PATCH', `/user/${user_id}`, admin, { disable: true })
    await call('PATCH', `/user/${user_id}`, admin, { disable: false })
    t.match(await last(), { type: 'user.enabled' })
    const text = JSON.stringify(await kit.events.list())
    for (const secret of ['A Secret Name', 'secret note', 'secret.example', headers.authorization!.slice(7), admin.authorization!.slice(7)]) t.notOk(text.includes(secret))
  })

  t.test('a refused operation of administrators, failed sign-ins and wrong current passwords, up to ten of a kind', async (t) => {
    const kit = await build(t, {})
    const { user: { headers, user_id } } = await setUp(t, kit)
    const before = (await kit.events.list()).length
    for (let count = 0; count < 12; count++) {
      t.equal((await kit.inject({ url: '/api/v1/user/list', headers })).statusCode, 403)
      await kit.app.identity.users.verify('ann@example.com', 'wrong').catch(() => {})
      await kit.app.identity.users.verify('Nobody@example.com', 'wrong')
      t.equal((await kit.inject({ method: 'PATCH', url: '/api/v1/user', headers, payload: { data: { password: 'new', current_password: 'wrong' } } })).statusCode, 400)
    }
    t.equal((await kit.inject({ method: 'POST', url: '/api/v1/client', headers, payload: {} })).statusCode, 400, 'what is invalid is not refused')
    const events = (await kit.events.list()).slice(before)
    const of = (type: string, kind: string) => events.filter((event) => event.type === type && event.target.kind === kind)
    t.equal(of('operation.refused', 'operation').length, 10)
    t.match(of('operation.refused', 'operation')[0], { target: { id: 'listUsers' }, actor: { via: 'api', user_id }, outcome: 'failure', address: '127.0.0.1' })
    t.equal(of('sign_in.failed', 'user').length, 10)
    t.match(of('sign_in.failed', 'user')[0], { user_id, outcome: 'failure' })
    t.equal(of('sign_in.failed', 'unknown').length, 10)
    t.equal(of('user.confirmation_failed', 'user').length, 10)
    t.match(of('user.confirmation_failed', 'user')[0], { user_id, actor: { via: 'api', user_id }, outcome: 'failure', address: '127.0.0.1' })
    t.notOk(JSON.stringify(events).toLowerCase().includes('nobody'))
    await kit.app.identity.failures.flush()
    t.strictSame((await kit.events.list()).slice(-4).map(({ type, target, count }) => [type, target.kind, count]).sort(), [
      ['operation.refused', 'operation', 2], ['sign_in.failed', 'unknown', 2], ['sign_in.failed', 'user', 2], ['user.confirmation_failed', 'user', 2]
    ])
  })

  t.test('the list: filters, sorts, pages and formats', async (t) => {
    const kit = await build(t, {})
    const { admin, user: { user_id }, call } = await setUp(t, kit)
    for (let count = 0; count < 5; count++) {
      kit.clock.advance(1000)
      await call('PATCH', `/user/${user_id}`, admin, { data: { name: `n${count}` } })
    }
    await kit.flush()
    const get = async (query: string, headers: Record<string, string> = {}) => await kit.inject({ url: `/api/v1/event/list${query}`, headers: { ...admin, ...headers } })
    const read = async (query: string) => (await get(query)).json().data as Event[]
    for (let count = 0; count < 2; count++) await kit.app.identity.users.verify('ann@example.com', 'wrong')
    await kit.app.identity.users.verify('nobody', 'wrong')
    await kit.flush()
    const all = await read('?limit=0&sort=time:asc')
    t.strictSame((await read('?limit=0')), all.toReversed())
    const updated = await read(`?type=user.updated&user=${user_id}&sort=time:asc`)
    t.equal(updated.length, 5)
    t.match(await read('?reason=wrong_password'), [{ reason: 'wrong_password', user_id }, { reason: 'wrong_password', user_id }])
    t.equal((await read('?reason=no_account')).length, 1)
    t.strictSame(await read('?reason=other'), [])
    const ofKind = (kind: string) => all.filter(({ type }) => type.startsWith(`${kind}.`))
    for (const kind of ['user', 'sign_in', 'client']) {
      t.ok(ofKind(kind).length > 0)
      t.strictSame(await read(`?type=${kind}.*&limit=0&sort=time:asc`), ofKind(kind), kind)
    }
    t.strictSame(await read('?type=*&limit=0&sort=time:asc'), all)
    for (const none of ['use.*', 'sign.*', '.*', 'user.', '*.updated', 'user.upd*', 'user.updated.*']) t.strictSame(await read(`?type=${none}`), [], none)
    t.strictSame(await read(`?type=user.*&user=${user_id}&from=${updated[1]!.time}&to=${updated[3]!.time}&sort=time:asc`), updated.slice(1, 3))
    const first = (await get('?type=user.*&limit=2')).headers.link
    t.strictSame((await read(/<([^>]*)>; rel="next"/.exec(String(first))![1]!)), ofKind('user').toReversed().slice(2, 4))
    t.strictSame(await read(`?type=user.updated&from=${updated[1]!.time}&to=${updated[3]!.time}&sort=time:asc`), updated.slice(1, 3))
    const paged: Event[] = []
    for (let next: string | undefined = '?limit=2&sort=time:asc'; next !== undefined;) {
      const reply = await get(next)
      paged.push(...reply.json().data)
      next = /<([^>]*)>; rel="next"/.exec(String(reply.headers.link ?? ''))?.[1]
    }
    t.strictSame(paged, all)
    t.strictSame((await get('?limit=0&sort=time:asc', { accept: 'application/x-ndjson' })).body.trim().split('\n').map((line) => JSON.parse(line)), all)
    const csv = await get('?type=user.updated&sort=time:asc', { accept: 'text/csv' })
    t.match(csv.headers['content-type'], /^text\/csv/)
    t.equal(csv.body.trim().split('\n').length, 6)
    t.match(csv.body, updated[0]!.cursor)
    for (const bad of ['?sort=name:asc', '?from=yesterday', '?to=2026', '?after=x', '?unknown=1']) t.equal((await get(bad)).statusCode, 400, bad)
    t.equal((await kit.inject({ url: '/api/v1/event/list' })).statusCode, 401)
  })

  t.test('the feed: from the present, from the start, waiting, and cursors that are no longer valid', async (t) => {
    const kit = await build(t, { auditDays: 1 })
    const { admin, user: { user_id }, call } = await setUp(t, kit)
    await kit.flush()
    const get = async (query: string) => await kit.inject({ url: `/api/v1/event/feed${query}`, headers: admin })
    const { after } = (await get('?after=now')).json()
    t.strictSame((await get(`?after=${after}&wait=0`)).json(), { data: [], after })
    const waiting = get(`?after=${after}`)
    await call('PATCH', `/user/${user_id}`, admin, { data: { name: 'new' } })
    const { data, after: next } = (await waiting).json()
    t.match(data, [{ type: 'user.updated', cursor: next }])
    const first = (await get('?wait=0')).json()
    t.equal((await get('?wait=0&limit=1')).json().data.length, 1)
    const [generation, number] = String(next).split('.')
    t.match((await get(`?after=${generation}.${Number(number) + 1}`)).json(), { code: 'ErrGone' })
    t.match((await get(`?after=other.${number}`)).json(), { code: 'ErrGone' })
    for (const bad of ['?after=x', `?after=${generation}.01`, '?after=', '?limit=0', '?wait=26']) t.equal((await get(bad)).statusCode, 400, bad)
    const [oldest, second] = first.data as [Event, Event]
    const before = `${generation}.${Number(oldest.cursor.split('.')[1]) - 1}`
    t.equal((await get(`?after=${before}&wait=0`)).statusCode, 200)
    await kit.app.identity.store.collection('events').deleteMany({ before: { id: second.cursor.split('.')[1]!.padStart(16, '0') } })
    t.match((await get(`?after=${before}&wait=0`)).json(), { code: 'ErrGone' })
    t.equal((await get('?wait=0')).json().data[0].cursor, second.cursor)
  })
})

t.test('a listener in this process gets the events from now on, until it is removed', async (t) => {
  const kit = await startIdentity({ t })
  await kit.mint({ user: 'before' })
  await kit.flush()
  const heard: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = kit.app.identity.events.on('user.created', ({ target }) => {
    heard.push(target.id)
    resolve()
  })
  kit.app.identity.events.on('*', () => { throw new Error('a listener that fails') })
  await kit.app.identity.events.last()
  const { user_id } = await kit.app.identity.users.create({ data: { account: 'after', password: 'p' } })
  await kit.flush()
  await promise
  stop()
  t.strictSame(heard, [user_id])
})
