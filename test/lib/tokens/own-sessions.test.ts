import t from 'tap'
import { BEGIN } from '../../helpers/services.ts'
import { ADMIN, type Fields, at, openLifecycle } from './harness.ts'

const PLACE = { browser: 'Firefox', system: 'Linux', address: '192.0.2.1' }
const NOT_FOUND = { code: 'ErrNotFound' }

t.test('listBrowsers: where the user is signed in, the last used first', async (t) => {
  const { ownSessions, add, user_id, users } = await openLifecycle(t)
  const sign = (fields: Fields) => add('sign_in_sessions', fields)
  await sign({ uid: 'new', signed_in_at: at(-50), last_used_at: at(-10), place: PLACE })
  await sign({ uid: 'old', created_at: at(-100) })
  await sign({ uid: 'middle', created_at: at(-100), signed_in_at: at(-90), last_used_at: at(-20) })
  await sign({ uid: 'expired', expired_at: BEGIN })
  await sign({ uid: 'ended', user_epoch: -1 })
  await sign({ uid: "bob's", user_id: 'bob' })
  t.strictSame(await ownSessions.listBrowsers(user_id), {
    entries: [
      { uid: 'new', place: PLACE, signed_in_at: at(-50), last_used_at: at(-10) },
      { uid: 'middle', place: {}, signed_in_at: at(-90), last_used_at: at(-20) },
      { uid: 'old', place: {}, signed_in_at: at(-100), last_used_at: at(-100) }
    ],
    more: 0
  })
  await users.patch(user_id, { disable: true }, ADMIN)
  t.strictSame(await ownSessions.listBrowsers(user_id), { entries: [], more: 0 })
})

t.test('listBrowsers: two records of one browser are one entry, by the last use', async (t) => {
  const { ownSessions, add, user_id } = await openLifecycle(t)
  for (const [uid, seconds] of [['tab', -20], ['tab', -10], ['another', -15], ['tab', -30]] as const) await add('sign_in_sessions', { uid, last_used_at: at(seconds) })
  const { entries } = await ownSessions.listBrowsers(user_id)
  t.strictSame(new Set(entries.map(({ uid }) => uid)), new Set(['tab', 'another']))
  t.strictSame(entries.find(({ uid }) => uid === 'tab')?.last_used_at, at(-10))
  t.equal(entries.length, 2)
})

t.test('listTokenSessions: the sessions, with the browser whose sign-out ends them', async (t) => {
  const { ownSessions, add, user_id, client_id, mint, clients } = await openLifecycle(t)
  const minted = await mint()
  const of = (name: string, fields: Fields) => add('grants', { id: name, last_used_at: at(-1), session_uid: 'tab', ...fields })
  await of('bound', { bound: true, place: PLACE, last_used_at: at(-5) })
  await of('offline', { last_used_at: at(-6) })
  await of('of no browser', { bound: true, session_uid: undefined, last_used_at: at(-7) })
  await of('expired', { expired_at: BEGIN })
  await of('of a client that is gone', { client_id: 'gone' })
  await of("bob's", { user_id: 'bob' })
  const client = { client_id, name: 'app' }
  const { entries, more } = await ownSessions.listTokenSessions(user_id)
  t.strictSame(entries, [
    { session_id: minted.grant_id, client, created_at: BEGIN, last_used_at: BEGIN },
    { session_id: 'bound', client, created_at: BEGIN, last_used_at: at(-5), place: PLACE, session_uid: 'tab' },
    { session_id: 'offline', client, created_at: BEGIN, last_used_at: at(-6) },
    { session_id: 'of no browser', client, created_at: BEGIN, last_used_at: at(-7) }
  ])
  t.equal(more, 0)
  await clients.patch(client_id, { data: { disabled: true } }, ADMIN)
  t.strictSame(await ownSessions.listTokenSessions(user_id), { entries: [], more: 0 })
})

t.test('listTokenSessions: a session at a deleted resource is left out', async (t) => {
  const { ownSessions, user_id, mint, resources } = await openLifecycle(t)
  const { resourceId } = await resources.create({ data: { id: 'https://orders.example/', name: 'Orders', scopes: {} } })
  await mint({ resource: 'https://orders.example/' })
  t.equal((await ownSessions.listTokenSessions(user_id)).entries.length, 1)
  await resources.remove(resourceId)
  t.equal((await ownSessions.listTokenSessions(user_id)).entries.length, 0)
})

t.test('lists show the hundred last used, and the number of others', async (t) => {
  const { ownSessions, add, user_id } = await openLifecycle(t)
  // The order of ids, in which they are read, is not that of uses.
  for (let index = 0; index < 250; index++) {
    const fields: Fields = { id: String(index * 37 % 250).padStart(3, '0'), uid: `uid ${index}`, last_used_at: at(-index) }
    await add('sign_in_sessions', fields)
    await add('grants', fields)
  }
  const uses = Array.from({ length: 100 }, (_, index) => at(-index))
  for (const { entries, more } of [await ownSessions.listBrowsers(user_id), await ownSessions.listTokenSessions(user_id)]) {
    t.strictSame([...entries].map(({ last_used_at }) => last_used_at), uses)
    t.equal(more, 150)
  }
})

t.test('listApps: each with the scopes of all its sessions, from the first to the last use', async (t) => {
  const { ownSessions, add, user_id, client_id, clients } = await openLifecycle(t)
  const { clientId: vouched } = await clients.create({ data: { redirectUris: [], scopes: ['all'], name: 'ours', first_party: true } }, ADMIN)
  // Read by id: neither the first nor the last is the oldest, or the last used.
  for (const [id, scopes, created, used] of [['a', ['read'], -10, -3], ['b', ['read', 'openid'], -30, -5], ['c', ['write'], -20, -1], ['d', [], -15, -2]] as const) {
    await add('grants', { id, scopes: [...scopes], created_at: at(created), last_used_at: at(used) })
  }
  await add('grants', { client_id: vouched, last_used_at: at(-2) })
  await add('grants', { client_id: 'gone', last_used_at: BEGIN })
  const { entries, more } = await ownSessions.listApps(user_id)
  t.strictSame(entries.map(({ scopes, ...rest }) => ({ ...rest, scopes: scopes.sort() })), [
    { client: { client_id, name: 'app' }, vouched: false, scopes: ['openid', 'read', 'write'], roles_at: [], connected_at: at(-30), last_used_at: at(-1) },
    { client: { client_id: vouched, name: 'ours' }, vouched: true, scopes: ['all'], roles_at: [], connected_at: BEGIN, last_used_at: at(-2) }
  ])
  t.equal(more, 0)
})

t.test("endBrowser: one's own, with the sessions that came from it", async (t) => {
  const { ownSessions, add, count, grants, user_id } = await openLifecycle(t)
  for (const uid of ['tab', 'another']) await add('sign_in_sessions', { uid })
  await add('sign_in_sessions', { uid: "bob's", user_id: 'bob' })
  const bound = await add('grants', { session_uid: 'tab', bound: true })
  for (const uid of ["bob's", 'unknown']) await t.rejects(ownSessions.endBrowser(user_id, uid), NOT_FOUND, uid)
  t.equal(await count('sign_in_sessions'), 3)
  await ownSessions.endBrowser(user_id, 'tab')
  t.equal(await count('sign_in_sessions'), 2)
  t.equal(await grants.get(bound), null)
  await add('sign_in_sessions', { uid: 'shared' })
  await add('sign_in_sessions', { uid: 'shared', user_id: 'bob' })
  await ownSessions.endBrowser(user_id, 'shared')
  t.equal(await count('sign_in_sessions'), 2, 'two tabs that signed in at once, as two users: they share the browser')
  await t.rejects(ownSessions.endBrowser(user_id, 'tab'), { ...NOT_FOUND, message: 'browser: no such session of the user' })
})

t.test('disconnect: the consent is removed from a session that gets another id meanwhile', async (t) => {
  let move = async () => {}
  const { ownSessions, add, store, user_id, client_id } = await openLifecycle(t, {
    around: ({ collection, method }, run) => collection === 'sign_in_sessions' && method === 'update' ? move().then(run) : run()
  })
  const payload = { kind: 'Session', authorizations: { [client_id]: { grantId: 'a' } } }
  const old = await add('sign_in_sessions', { uid: 'tab', payload })
  const sessions = store.collection('sign_in_sessions')
  move = async () => {
    move = async () => {}
    const record = await sessions.get(old)
    await sessions.delete(old)
    await sessions.put({ ...record!, id: 'moved' })
  }
  await ownSessions.disconnect(user_id, client_id)
  t.strictSame((await sessions.get('moved') as { payload?: { authorizations?: object } } | null)?.payload?.authorizations, {})
})

t.test("endTokenSession: one's own", async (t) => {
  const { ownSessions, add, mint, isAlive, grants, user_id } = await openLifecycle(t)
  const bobs = await add('grants', { user_id: 'bob' })
  const { grant_id, access_token } = await mint()
  for (const id of [bobs, 'unknown']) await t.rejects(ownSessions.endTokenSession(user_id, id), { ...NOT_FOUND, message: 'session: no such session of the user' })
  t.not(await grants.get(bobs), null)
  await ownSessions.endTokenSession(user_id, grant_id)
  t.notOk(await isAlive(access_token))
})

t.test('disconnect: all sessions of an app end, and no browser remembers the consent', async (t) => {
  const { ownSessions, add, mint, count, store, user_id, client_id, isAlive, events } = await openLifecycle(t)
  const sessions = [await mint(), await mint()]
  const others = [await add('grants', { client_id: 'other' }), await add('grants', { user_id: 'bob' })]
  const payload = { kind: 'Session', authorizations: { [client_id]: { grantId: 'a' }, other: { grantId: 'b' } } }
  const tab = await add('sign_in_sessions', { uid: 'tab', payload })
  const plain = await add('sign_in_sessions', { uid: 'plain', payload: { kind: 'Session' } })
  const elsewhere = await add('sign_in_sessions', { uid: 'elsewhere', payload: { authorizations: { other: {} } } })
  const bobs = await add('sign_in_sessions', { uid: "bob's", user_id: 'bob', payload })
  const read = async (id: string) => (await store.collection('sign_in_sessions').get(id) as { payload?: object } | null)?.payload
  await ownSessions.disconnect(user_id, client_id)
  for (const { access_token } of sessions) t.notOk(await isAlive(access_token))
  for (const id of others) t.not(await store.collection('grants').get(id), null)
  t.equal(await count('grants'), 2)
  t.strictSame(await read(tab), { kind: 'Session', authorizations: { other: { grantId: 'b' } } })
  t.strictSame(await read(plain), { kind: 'Session' })
  t.strictSame(await read(elsewhere), { authorizations: { other: {} } })
  t.strictSame(await read(bobs), payload)
  t.match(events.map(({ type }) => type), ['session.ended', 'session.ended', 'app.disconnected'])
  t.strictSame(events.at(-1), { type: 'app.disconnected', id: client_id, user_id })
  for (const id of [client_id, 'no-such-app']) await ownSessions.disconnect(user_id, id)
  t.equal(events.length, 3, 'an app that was not connected is no event')
})
