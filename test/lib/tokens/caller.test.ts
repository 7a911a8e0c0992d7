import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import { openServices } from '../../../lib/identity.ts'
import { readOptions } from '../../../plugins/identity.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }

t.test('a cached caller is valid until any process changes what it was built from', async (t) => {
  const options = { ...readOptions({ database: `sqlite:${t.testdir()}/identity.db`, bcryptCost: 4, passwordMin: 1 }), secretKey: Buffer.alloc(32).toString('base64') }
  const [here, elsewhere] = [await openServices({ ...options, refreshTtl: 3600 }), await openServices({ ...options, refreshTtl: 3600 })]
  t.teardown(() => Promise.all([here.close(), elsewhere.close()]))
  let count = 0
  async function start () {
    const { user_id } = await here.users.create({ data: { account: `user${count++}`, password: 'p' } })
    const { clientId: client_id } = await here.clients.create({ data: { redirectUris: [], scopes: [], name: 'c', userId: user_id } }, ADMIN)
    const { access_token } = await here.tokens.mint({ user_id, client_id, refresh: true })
    const caller = await here.tokens.authenticate(access_token)
    t.equal(here.tokens.authenticate(access_token), caller, 'answered from the cache')
    return { user_id, client_id, access_token, grant_id: caller.token.grant_id!, caller }
  }
  type Session = Awaited<ReturnType<typeof start>>
  const changes: Record<string, (by: typeof here, session: Session) => Promise<unknown>> = {
    'the token is deleted': ({ store }, { caller }) => store.collection('access_tokens').delete(caller.token.id),
    'its grant is deleted': ({ store }, { grant_id }) => store.collection('grants').delete(grant_id),
    'its user is disabled': ({ users }, { user_id }) => users.patch(user_id, { disable: true }, ADMIN),
    'its user is deleted': ({ store }, { user_id }) => store.collection('users').delete(user_id),
    'its client is deleted': ({ store }, { client_id }) => store.collection('clients').delete(client_id),
    'all sessions end': ({ tokenSessions }, { user_id }) => tokenSessions.end(user_id)
  }
  for (const [name, change] of Object.entries(changes)) {
    for (const [who, services] of Object.entries({ 'this process': here, 'another process': elsewhere })) {
      const session = await start()
      const other = await start()
      await change(services, session)
      if (services === elsewhere) await nextTurn()
      t.throws(() => here.tokens.authenticate(session.access_token), { code: 'ErrUnknown' }, `${name} by ${who}`)
      t.match(here.tokens.authenticate(other.access_token), { user: { user_id: other.user_id } }, 'others stay valid')
      // Records of revoked tokens are removed in the background, which the other process sees as changes.
      await services.tokens.settle()
      await nextTurn()
    }
  }

  const session = await start()
  const lookups = t.capture(here.store.collection('access_tokens'), 'getLinked', here.store.collection('access_tokens').getLinked)
  t.equal(here.tokens.authenticate(session.access_token), session.caller)
  t.equal(lookups().length, 0, 'the store is not asked while nothing was written')
  await here.clients.create({ data: { redirectUris: [], scopes: [], name: 'unrelated', userId: session.user_id } }, ADMIN)
  await here.store.collection<UserRecord>('users').update((await start()).user_id, { set: { name: 'unrelated' } })
  t.equal(here.tokens.authenticate(session.access_token), session.caller, 'an unrelated write leaves the same caller')
  await here.store.collection<UserRecord>('users').update(session.user_id, { set: { name: 'Ann' } })
  t.match(here.tokens.authenticate(session.access_token), { user: { name: 'Ann' } }, 'a change of the user shows at once')
})
