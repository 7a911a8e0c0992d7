import t, { type Test } from 'tap'
import { readConfig } from '../../config.ts'
import { openServices, type Services } from '../../lib/identity.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store } from '../../lib/store/port.ts'
import { storeError } from '../../lib/errors.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { within } from '../helpers/upstream.ts'
import { wrapStore, type Around } from '../helpers/wrap-store.ts'
import { LOGIN_CLIENT_ID } from '../../lib/bootstrap.ts'
import { API_SCOPES } from '../../lib/api-scopes.ts'

const OPERATOR = { user_id: '', isAdmin: true }
const EXISTS = { code: 'ErrPerm', message: 'an admin exists: bootstrap only makes the first one' }

/** How many records of each kind there are. */
async function countAll (store: Store): Promise<Record<string, number>> {
  const names = ['users', 'clients', 'access_tokens']
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await store.collection(name).count()])))
}

/** Holds the insert of a user until so many have come to it: all of them have passed every check by then. */
function gate (parties: number): Around {
  const open = Promise.withResolvers<void>()
  let waiting = 0
  return async ({ collection, method }, run) => {
    if (collection === 'users' && method === 'insert') {
      if (++waiting === parties) open.resolve()
      await within('the others at the gate', open.promise)
    }
    return await run()
  }
}

/** The same for every call but those that answer at once. */
const passing = (around: Around): Around => (call, run) => (['insert', 'delete'].includes(call.method) ? around(call, run) : run())

function cases (t: Test, database: () => string): void {
  /** Services on a store that the test can read. */
  async function open (t: Test, around: Around = (_call, run) => run()): Promise<Services & { store: Store }> {
    const url = database()
    const store = await openStore(url, { collections: COLLECTIONS, now: Date.now, onError: () => {} })
    const { services } = readConfig({ DATABASE_URL: url, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1', IDENTITY_DATA_DIR: t.testdir() })
    const opened = await openServices({ ...services, store: wrapStore(store, passing(around)) })
    t.teardown(async () => {
      await opened.close()
      await store.close()
    })
    return { ...opened, store }
  }

  t.test('an admin, their confidential client and a token, all of which work', async (t) => {
    const { bootstrap, store, tokens, users, clients } = await open(t)
    const made = await bootstrap({ account: 'Root@Example.org', ttl: 600 })
    t.match(await tokens.authenticate(made.access_token), { isAdmin: true, user: { user_id: made.user_id, account: 'root@example.org' }, client: { clientId: made.client_id } })
    t.match(await users.verify(made.account, made.password), { account: 'root@example.org', roles: { admin: true } })
    t.match(await clients.require(made.client_id, OPERATOR), { userId: made.user_id, clientSecret: made.client_secret })
    t.match(await clients.require(LOGIN_CLIENT_ID, OPERATOR), { userId: made.user_id, grants: ['device', 'refresh'], scopes: Object.keys(API_SCOPES).sort() })
    await t.rejects(bootstrap({ account: 'other' }), EXISTS)
    t.same(await countAll(store), { users: 1, clients: 2, access_tokens: 1 })
  })

  t.test('of several at once one makes an admin, and the others leave nothing', async (t) => {
    for (const accounts of [['admin', 'admin', 'admin'], ['ann', 'bob', 'eve']]) {
      const { bootstrap, store, tokens } = await open(t, gate(accounts.length))
      const results = await Promise.allSettled(accounts.map((account) => bootstrap({ account })))
      const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      t.equal(made.length, 1, accounts.join(' '))
      for (const result of results) if (result.status === 'rejected') t.match(result.reason, EXISTS)
      await tokens.settle()
      t.same(await countAll(store), { users: 1, clients: 2, access_tokens: 1 })
      t.match(await tokens.authenticate(made[0]?.access_token ?? ''), { isAdmin: true })
    }
  })

  t.test('an interrupted bootstrap leaves no user who can sign in, and can be repeated', async (t) => {
    let cut = true
    const tokensMade: string[] = []
    const { bootstrap, store } = await open(t, async ({ collection, method, args }, run) => {
      if (collection === 'access_tokens' && method === 'insert') tokensMade.push((args[0] as { id: string }).id)
      // The store fails from here on, for the clean-up too.
      if (cut && (method === 'delete' || collection === 'users')) throw storeError(new Error('cut'))
      return await run()
    })
    await t.rejects(bootstrap(), { code: 'ErrDb' })
    t.same(await countAll(store), { users: 0, clients: 1, access_tokens: 1 })
    t.match(await store.collection('access_tokens').getLinked(tokensMade[0] ?? '', { user_id: 'users' }), { linked: { user_id: null } })
    cut = false
    t.ok(await bootstrap())
    t.equal(await store.collection('users').count(), 1)
  })

  t.test('an account that is taken, or none, is refused and leaves nothing', async (t) => {
    const { bootstrap, users, store, tokens } = await open(t)
    await users.create({ data: { account: 'admin', password: 'p' } })
    await t.rejects(bootstrap(), { code: 'USER_EXIST' })
    await t.rejects(bootstrap({ account: 'no account' }), { code: 'ErrParam' })
    await tokens.settle()
    t.same(await countAll(store), { users: 1, clients: 0, access_tokens: 0 })
    t.match(await bootstrap({ account: 'other' }), { account: 'other' }, 'another account is free')
  })

  t.test('any admin will do, and the last one who loses the role makes room', async (t) => {
    const { bootstrap, users, store } = await open(t)
    const { user_id } = await users.create({ data: { account: 'ann', password: 'p' } }, { roles: { admin: true } })
    await t.rejects(bootstrap(), EXISTS)
    await users.patch(user_id, { data: { roles: {} } }, { ...OPERATOR, isForced: true })
    const first = await bootstrap()
    await users.patch(first.user_id, { data: { roles: { manager: true } } }, { ...OPERATOR, isForced: true })
    t.ok(await bootstrap({ account: 'second' }))
    await t.rejects(bootstrap({ account: 'third' }), EXISTS)
    t.equal(await store.collection('users').count(), 3)
  })
}

t.test('on SQLite', async (t) => cases(t, () => 'sqlite::memory:'))

t.test('on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => cases(t, () => reuseMongoDatabase(t, MONGODB_URL!)))
