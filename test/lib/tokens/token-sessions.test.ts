import t from 'tap'
import type { TokenRecord } from '../../../lib/records/token.ts'
import { hashToken } from '../../../lib/crypto/random-token.ts'
import { BEGIN } from '../../helpers/services.ts'
import { ADMIN, HOUR, at, openLifecycle } from './harness.ts'

/** Ann's sessions, and how to read them. */
async function open (...args: Parameters<typeof openLifecycle>) {
  const parts = await openLifecycle(...args)
  return {
    ...parts,
    list: async (user_id = parts.user_id, current?: string) => {
      const sessions = []
      for await (const batch of parts.tokenSessions.list(user_id, current)) {
        if (batch.length === 0) throw new Error('an empty batch')
        sessions.push(...batch)
      }
      return sessions
    }
  }
}

t.test('list: the valid sessions of a user, and which is the caller\'s', async (t) => {
  const { mint, list, clients, tokens, add, advance, client_id, user_id } = await open(t)
  const [one, other, ended] = [await mint(), await mint(), await mint()]
  await tokens.mint({ user_id, client_id })
  await tokens.endGrant(ended.grant_id)
  await add('grants', { user_id: 'bob' })
  await add('grants', { expired_at: BEGIN })
  await add('grants', { client_id: 'gone' })
  advance(10_000)
  await tokens.issueUnder('refresh_tokens', { token: 'next', ttl: 60 }, other.grant_id)
  const session = { client: { client_id, name: 'app' }, created_at: BEGIN }
  const expected = [
    { session_id: one.grant_id, ...session, last_used_at: BEGIN, current: true },
    { session_id: other.grant_id, ...session, last_used_at: at(10), current: false }
  ]
  const byId = (a: { session_id: string }, b: { session_id: string }) => a.session_id < b.session_id ? -1 : 1
  t.strictSame((await list(undefined, one.grant_id)).sort(byId), expected.sort(byId))
  t.strictSame((await list()).map(({ current }) => current), [false, false])
  t.strictSame(await list('nobody'), [])
  await clients.patch(client_id, { data: { disabled: true } }, ADMIN)
  t.strictSame(await list(), [], 'dead with their client')
})

t.test('list: sessions at a resource end with it', async (t) => {
  const { mint, list, resources } = await open(t)
  const { resourceId } = await resources.create({ data: { id: 'https://orders.example/', name: 'Orders', scopes: {} } })
  await mint({ resource: 'https://orders.example/' })
  t.equal((await list()).length, 1)
  await resources.remove(resourceId)
  t.strictSame(await list(), [])
})

t.test('list: many sessions in batches', async (t) => {
  const { add, list } = await open(t)
  // The first batch has no valid session.
  for (let index = 0; index < 205; index++) await add('grants', { id: String(index).padStart(3, '0'), last_used_at: BEGIN, ...(index < 100 && { expired_at: BEGIN }) })
  t.equal((await list()).length, 105)
})

t.test('end: one write ends all sessions of a user', async (t) => {
  const { mint, tokenSessions, tokens, store, user_id, isAlive, count, list, add, events } = await open(t)
  const { access_token } = await mint()
  await add('sign_in_sessions', { uid: 'tab' })
  const before = (await store.collection('users').get(user_id)) as unknown as { epoch: number, revision: number }
  await tokenSessions.end(user_id)
  t.match(await store.collection('users').get(user_id), { epoch: before.epoch + 1, revision: before.revision + 1 })
  t.strictSame(events, [{ type: 'user.sessions_ended', id: user_id }])
  t.notOk(await isAlive(access_token))
  t.strictSame(await list(), [])
  await tokens.settle()
  for (const name of ['access_tokens', 'refresh_tokens', 'grants', 'sign_in_sessions']) t.equal(await count(name), 0, name)
  await t.rejects(tokenSessions.end('nobody'), { code: 'ErrNotFound', message: 'user: no such user' })
})

t.test('end: the session of the caller goes on, with its browser', async (t) => {
  const { mint, tokenSessions, tokens, user_id, isAlive, count, grants, add, store } = await open(t)
  const [own, other] = [await mint(), await mint()]
  await grants.update(own.grant_id, { set: { session_uid: 'tab' } })
  for (const uid of ['tab', 'tab', 'another']) await add('sign_in_sessions', { uid })
  await tokenSessions.end(user_id, (await tokens.authenticate(own.access_token)).token)
  t.ok(await isAlive(own.access_token))
  t.not(await tokens.find('refresh_tokens', hashToken(own.refresh_token)), null)
  t.notOk(await isAlive(other.access_token))
  await tokens.settle()
  for (const name of ['access_tokens', 'refresh_tokens', 'grants']) t.equal(await count(name), 1, name)
  t.equal(await count('sign_in_sessions'), 2)
  for await (const batch of store.collection<TokenRecord>('sign_in_sessions').stream({})) for (const { user_epoch } of batch) t.equal(user_epoch, 1)
})

t.test('end: a caller without a session keeps the token', async (t) => {
  const { mint, tokenSessions, tokens, user_id, client_id, isAlive, count } = await open(t)
  await mint()
  const { access_token } = await tokens.mint({ user_id, client_id })
  await tokenSessions.end(user_id, (await tokens.authenticate(access_token)).token)
  t.ok(await isAlive(access_token))
  await tokens.settle()
  t.strictSame([await count('access_tokens'), await count('grants')], [1, 0])
})

t.test('end: a caller whose session came from no browser ends all browsers', async (t) => {
  const { mint, tokenSessions, tokens, user_id, add, count } = await open(t)
  const own = await mint()
  await add('sign_in_sessions', { uid: 'tab' })
  await tokenSessions.end(user_id, (await tokens.authenticate(own.access_token)).token)
  await tokens.settle()
  t.equal(await count('sign_in_sessions'), 0)
})

t.test('end: from a browser, which goes on alone', async (t) => {
  const { mint, tokenSessions, tokens, user_id, isAlive, count, add } = await open(t)
  const { access_token } = await mint()
  const kept = await add('sign_in_sessions', { uid: 'tab' })
  await add('sign_in_sessions', { uid: 'another' })
  await tokenSessions.end(user_id, 'tab')
  t.notOk(await isAlive(access_token))
  t.not(await tokens.find('sign_in_sessions', kept), null)
  await tokens.settle()
  t.equal(await count('sign_in_sessions'), 1)
})

t.test('end: records that an earlier change had ended stay dead', async (t) => {
  const { mint, tokenSessions, tokens, user_id, users, add, isAlive } = await open(t)
  await users.patch(user_id, { data: { password: 'new' } }, ADMIN)
  await users.patch(user_id, { data: { password: 'newer' } }, ADMIN)
  await tokens.settle()
  const own = await mint()
  const { token } = await tokens.authenticate(own.access_token)
  const former = await add('refresh_tokens', { grant_id: own.grant_id, user_epoch: 1, generation: 0 })
  const foreign = await add('sign_in_sessions', { uid: 'tab', user_epoch: 1 })
  await tokenSessions.end(user_id, token)
  t.ok(await isAlive(own.access_token))
  t.equal(await tokens.find('refresh_tokens', former), null)
  await tokenSessions.end(user_id, 'tab')
  t.equal(await tokens.find('sign_in_sessions', foreign), null)
})

t.test('end: a session that ended meanwhile is not kept', async (t) => {
  const { mint, tokenSessions, tokens, user_id, isAlive } = await open(t)
  for (const end of ['the token', 'the session']) {
    const own = await mint({ ttl: HOUR })
    const { token } = await tokens.authenticate(own.access_token)
    if (end === 'the token') await tokens.endGrant(own.grant_id)
    else await tokens.revoke({ id: token.id })
    await tokenSessions.end(user_id, token)
    t.notOk(await isAlive(own.access_token), end)
  }
})
