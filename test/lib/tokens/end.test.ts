import t from 'tap'
import type { TokenRecord } from '../../../lib/records/token.ts'
import { hashToken } from '../../../lib/crypto/random-token.ts'
import { OWNED, openLifecycle } from './harness.ts'

t.test('endGrant: the session ends with all that is under it, and once', async (t) => {
  const { tokens, mint, add, count, events, user_id, client_id, isAlive } = await openLifecycle(t)
  const [one, other] = [await mint(), await mint()]
  for (const { grant_id } of [one, other]) for (const name of ['authorization_codes', 'device_codes']) await add(name, { grant_id })
  await tokens.endGrant(one.grant_id)
  t.notOk(await isAlive(one.access_token))
  await tokens.settle()
  for (const name of [...OWNED, 'grants']) t.equal(await count(name), 1, name)
  t.strictSame(events, [{ type: 'session.ended', id: one.grant_id, user_id, client_id }])
  await tokens.endGrant(one.grant_id)
  t.equal(events.length, 1, 'an event for each session')
  t.ok(await isAlive(other.access_token))
})

t.test('endBoundGrants: the sessions that end with a sign-in, at one client or at all', async (t) => {
  const { tokens, add, grants, client_id } = await openLifecycle(t)
  const bound = await add('grants', { session_uid: 'tab', bound: true })
  const elsewhere = await add('grants', { session_uid: 'tab', bound: true, client_id: 'other' })
  const offline = await add('grants', { session_uid: 'tab' })
  const another = await add('grants', { session_uid: 'another', bound: true })
  const left = async () => (await Promise.all([bound, elsewhere, offline, another].map((id) => grants.get(id)))).map((grant) => grant !== null)
  await tokens.endBoundGrants('tab', client_id)
  t.strictSame(await left(), [false, true, true, true])
  await tokens.endBoundGrants('tab')
  t.strictSame(await left(), [false, false, true, true])
})

t.test('endSignIn: logouts are stored before the sign-in and its sessions are deleted', async (t) => {
  const told: unknown[][] = []
  const { tokens, add, grants, count, events, user_id } = await openLifecycle(t, {
    logouts: {
      enqueueForSession: async (...args) => { told.push([...args, await count('sign_in_sessions'), await count('grants')]) },
      enqueueForUser: async () => {}
    }
  })
  const bound = await add('grants', { session_uid: 'tab', bound: true })
  const offline = await add('grants', { session_uid: 'tab' })
  // Two tabs that sign in at once create two records with one uid.
  for (const uid of ['tab', 'tab', 'another']) await add('sign_in_sessions', { uid })
  await tokens.endSignIn('tab')
  t.strictSame(told, [['tab', 3, 2]])
  t.equal(await count('sign_in_sessions'), 1)
  t.equal(await grants.get(bound), null)
  t.not(await grants.get(offline), null)
  t.match(events, [{ type: 'browser.signed_out', id: 'tab', user_id }, { type: 'session.ended', id: bound }])
  events.length = 0
  await tokens.endSignIn('tab')
  t.strictSame(events, [], 'it has ended before')
  told.length = 0
  await tokens.tellOfSignOut('another', 'app')
  t.strictSame(told, [['another', 'app', 1, 1]])
})

t.test('endSignIn: without a client to notify', async (t) => {
  const { tokens, add, count, events } = await openLifecycle(t)
  await add('sign_in_sessions', { uid: 'tab' })
  await tokens.tellOfSignOut('tab')
  t.equal(await count('sign_in_sessions'), 1)
  await tokens.endSignIn('tab')
  t.equal(await count('sign_in_sessions'), 0)
  t.match(events, [{ type: 'browser.signed_out' }])
})

t.test('revoke: the session of a token, or the token alone', async (t) => {
  const { tokens, mint, events, isAlive, user_id, client_id, count } = await openLifecycle(t)
  const session = await mint()
  await tokens.revoke((await tokens.authenticate(session.access_token)).token)
  t.notOk(await isAlive(session.access_token))
  t.match(events, [{ type: 'session.ended', id: session.grant_id }])
  events.length = 0
  const { access_token } = await tokens.mint({ user_id, client_id })
  const { token } = await tokens.authenticate(access_token)
  await tokens.revoke(token)
  t.notOk(await isAlive(access_token))
  t.strictSame(events, [{ type: 'token.revoked', id: hashToken(access_token), user_id, client_id }])
  await tokens.revoke(token)
  t.equal(events.length, 1, 'an event for each token')
  await tokens.settle()
  t.equal(await count('access_tokens'), 0)
})

t.test('deleteOfUser: all that a deleted user had', async (t) => {
  const { tokens, add, count } = await openLifecycle(t)
  const names = [...OWNED, 'grants', 'sign_in_sessions']
  for (const name of names) for (const user_id of ['ann', 'bob']) await add(name, { user_id })
  tokens.deleteOfUser('ann')
  await tokens.settle()
  for (const name of names) t.equal(await count(name), 1, name)
})

t.test('deleteOfUser: of an existing user, the records of earlier epochs', async (t) => {
  const { tokens, add, store } = await openLifecycle(t)
  const names = [...OWNED, 'grants', 'sign_in_sessions']
  for (const name of names) {
    for (const user_epoch of [0, 1, 2, 3]) await add(name, { id: `${name} ${user_epoch}`, user_epoch })
    await add(name, { id: `${name} without`, user_epoch: undefined })
    await add(name, { id: `${name} of bob`, user_id: 'bob' })
  }
  const { user_id } = (await store.collection<TokenRecord>('grants').get('grants 0'))!
  tokens.deleteOfUser(user_id, 2)
  await tokens.settle()
  for (const name of names) {
    const left: string[] = []
    for await (const batch of store.collection(name).stream({})) left.push(...batch.map(({ id }) => id))
    t.strictSame(left.sort(), [`${name} 2`, `${name} 3`, `${name} of bob`], name)
  }
})

t.test('deleteOfUser: logouts are stored first, and the records that name their clients stay until then', async (t) => {
  const told: unknown[][] = []
  let tell = async () => {}
  const { tokens, add, count, errors } = await openLifecycle(t, {
    logouts: {
      enqueueForSession: async () => {},
      enqueueForUser: async (...args) => {
        told.push(args)
        await tell()
      }
    }
  })
  await add('grants', { user_id: 'ann' })
  tell = async () => { throw new Error('no disk') }
  tokens.deleteOfUser('ann', 1)
  await tokens.settle()
  t.equal(await count('grants'), 1)
  t.match(errors, [{ message: 'no disk' }])
  const gate = Promise.withResolvers<void>()
  tell = () => gate.promise
  tokens.deleteOfUser('ann')
  let isSettled = false
  const settled = tokens.close().then(() => { isSettled = true })
  await new Promise(setImmediate)
  t.notOk(isSettled)
  t.equal(await count('grants'), 1)
  gate.resolve()
  await settled
  t.equal(await count('grants'), 0)
  t.strictSame(told, [['ann', 1, { atOnce: true }], ['ann', undefined, { atOnce: true }]])
})

t.test('deleteOfClient: all records of a deleted client, or those of earlier epochs', async (t) => {
  const { tokens, add, count, store } = await openLifecycle(t)
  const names = [...OWNED, 'grants']
  for (const name of names) {
    for (const client_epoch of [0, 1, 2]) await add(name, { id: `${name} ${client_epoch}`, client_id: 'app', client_epoch })
    await add(name, { id: `${name} without`, client_id: 'app', client_epoch: undefined })
    await add(name, { client_id: 'other' })
  }
  await add('sign_in_sessions', { uid: 'tab', client_id: 'app' })
  tokens.deleteOfClient('app', 1)
  await tokens.settle()
  for (const name of names) {
    t.equal(await count(name), 3, name)
    t.equal(await store.collection(name).get(`${name} 0`), null)
    t.equal(await store.collection(name).get(`${name} without`), null)
  }
  tokens.deleteOfClient('app')
  await tokens.settle()
  for (const name of names) t.equal(await count(name), 1, name)
  t.equal(await count('sign_in_sessions'), 1, 'a sign-in is not of a client')
})

t.test('a record that cannot be deleted is reported, and the others go on', async (t) => {
  let fails = ''
  const { tokens, add, count, errors, mint } = await openLifecycle(t, {
    around: ({ collection, method }, run) => {
      if (collection === fails && method.startsWith('delete')) throw new Error('no disk')
      return run()
    }
  })
  const { grant_id } = await mint()
  for (const name of ['authorization_codes', 'device_codes']) await add(name, { grant_id })
  fails = 'refresh_tokens'
  await tokens.endGrant(grant_id)
  await tokens.settle()
  t.match(errors, [{ message: 'no disk' }])
  t.strictSame(await Promise.all(OWNED.map(count)), [1, 0, 0, 0])
  fails = 'access_tokens'
  for (const name of OWNED) await add(name, { user_id: 'ann' })
  tokens.deleteOfUser('ann', 1)
  await tokens.settle()
  t.equal(errors.length, 2)
  t.strictSame(await Promise.all(OWNED.map(count)), [1, 1, 0, 0])
})
