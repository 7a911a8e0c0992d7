import { createTestRecorder } from '../../helpers/events.ts'
import t, { type Test } from 'tap'
import { createTokenSessions } from '../../../lib/sessions/token-sessions.ts'
import type { Tokens } from '../../../lib/tokens/tokens.ts'
import { createToken } from '../../../lib/crypto/random-token.ts'
import { openRules } from '../../helpers/services.ts'
import { openTestChanges } from '../../helpers/user-changes.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }
/** Ten times as many as one step removes. */
const COUNT = 2_000

/** A user with a client and many tokens, on a store whose removals of tokens wait for the test. */
async function start (t: Test, count = COUNT) {
  const gate = Promise.withResolvers<void>()
  let isBlocked = false
  let largest = 0
  let inFlight = 0
  const rules = await openRules(t, {
    around ({ collection, method }, run) {
      // The material of a user's ways and the secrets of a client are bounded, and go with them.
      const isBounded = ['users', 'clients', 'credentials', 'client_uses', 'client_logos', 'secret_ends'].includes(collection)
      if (!isBlocked || !method.startsWith('delete') || isBounded) return run()
      largest = Math.max(largest, ++inFlight)
      return gate.promise.then(async () => {
        inFlight--
        return await run()
      })
    }
  })
  const { users, clients, tokens } = rules
  const { user_id } = await users.create({ data: { account: 'ann', password: 'secret' } })
  const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'app', userId: user_id }, credentials: true }, ADMIN)
  for (let index = 0; index < count; index++) {
    await tokens.issue({ token: createToken(), ttl: 60 }, { user_id, client_id, user_epoch: 0, client_epoch: 0 })
  }
  isBlocked = true
  return { ...rules, user_id, client_id, release: gate.resolve, largest: () => largest, left: () => rules.records.tokens.count() }
}

/** Every way to revoke many tokens at once. */
const WAYS = {
  'a user is removed': ({ users, user_id }) => users.remove(user_id, ADMIN),
  'a password is changed': ({ users, user_id }) => users.patch(user_id, { data: { password: 'other' } }, ADMIN),
  'a user is disabled': ({ users, user_id }) => users.patch(user_id, { disable: true }, ADMIN),
  'sessions are ended': ({ sessions, user_id }) => sessions.end(user_id),
  'a client is removed': ({ clients, client_id }) => clients.remove(client_id, ADMIN),
  'all clients of a user are removed': ({ clients, user_id }) => clients.removeOwned(user_id, ADMIN),
  'a secret is replaced': ({ clients, client_id }) => clients.patch(client_id, { regen_secret: true }, ADMIN),
  'all secrets of a user are replaced': ({ clients, user_id }) => clients.replaceSecrets(user_id, ADMIN)
} satisfies Record<string, (parts: Awaited<ReturnType<typeof start>> & { sessions: ReturnType<typeof createTokenSessions> }) => Promise<unknown>>

for (const [name, revoke] of Object.entries(WAYS)) {
  t.test(`when ${name}, the answer does not wait for the removal of tokens, and close does`, async (t) => {
    const count = name === 'a user is removed' ? COUNT : 300
    const parts = await start(t, count)
    const { tokens, release, left, largest, store, now } = parts
    const access_token = createToken()
    await tokens.issue({ token: access_token, ttl: 60 }, { user_id: parts.user_id, client_id: parts.client_id, user_epoch: 0, client_epoch: 0 })
    await tokens.authenticate(access_token)
    await revoke({ ...parts, sessions: createTokenSessions({ store, now, tokens, changes: openTestChanges({ store, now, tokens, recorder: createTestRecorder(store, now), onError: (error) => { throw error } }) }) })
    await t.rejects(async () => await tokens.authenticate(access_token), { code: 'ErrUnknown' }, 'the token is revoked')
    t.equal(await left(), count + 1, 'and its record is still there')

    let isClosed = false
    const closing = tokens.close().then(() => { isClosed = true })
    await new Promise(setImmediate)
    t.notOk(isClosed)
    release()
    await closing
    t.equal(await left(), 0)
    t.ok(largest() <= 200, 'in bounded steps')
    t.strictSame(parts.errors, [])
  })
}

t.test('a sign-in during the removal of earlier tokens keeps its token', async (t) => {
  const { users, tokens, release, user_id, client_id, left } = await start(t, 300)
  await users.patch(user_id, { data: { password: 'other' } }, ADMIN)
  const { access_token } = await tokens.mint({ user_id, client_id })
  release()
  await tokens.settle()
  t.match(await tokens.authenticate(access_token), { user: { user_id } })
  t.equal(await left(), 1)
})

t.test('a removal that fails is reported, and the others go on', async (t) => {
  let fails = true
  const { tokens, errors } = await openRules(t, {
    around ({ method }, run) {
      if (method === 'deleteMany' && fails) throw new Error('lost')
      return run()
    }
  })
  const remove = async (tokens: Tokens) => {
    tokens.deleteOfClient('any')
    await tokens.settle()
  }
  await remove(tokens)
  t.match(errors[0], { message: 'lost' })
  fails = false
  const before = errors.length
  await remove(tokens)
  t.equal(errors.length, before)
})
