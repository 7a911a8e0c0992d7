import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { EventRecord } from '../../../lib/events/types.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { build } from '../../helpers/build.ts'
import { reuseMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { callAs, createUser, signIn } from '../../helpers/people.ts'
import { PROMPT, within } from '../../helpers/wait.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

/** The most unpublished events of one document. */
const CAPACITY = 32

/** A service whose relay cannot store what `refuse` names: it waits for `refuse` to settle. */
async function start (t: Test, database: string) {
  const inner = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let refuse: (about: (string | undefined)[]) => Promise<void> | undefined = () => undefined
  const store = wrapStore(inner, ({ collection, method, args: [given] }, run) => {
    if (collection !== 'events' || !method.startsWith('insert')) return run()
    const wait = refuse([given].flat().map((record) => (record as EventRecord).content?.target.id))
    return wait === undefined ? run() : wait.then(run)
  })
  const kit = await build(t, { store, signUp: true })
  const admin = await signIn(kit, { roles: ['admin'] })
  const [ann, bob] = await Promise.all(['ann', 'bob'].map(async (name) => {
    const account = `${name}@example.com`
    const user_id = await createUser(admin, { account, password: 'the first password' })
    return { ...await signIn(kit, { user: user_id }), account, user_id }
  }))
  await kit.flush()
  return { kit, admin, ann: ann!, bob: bob!, refuseWith: (to: typeof refuse) => { refuse = to } }
}

type Started = Awaited<ReturnType<typeof start>>

/** What others do meanwhile. */
async function goOn (t: Test, { kit, admin, bob }: Pick<Started, 'kit' | 'admin' | 'bob'>): Promise<void> {
  for (const [name, act, status] of [
    ['a change of another user', async () => await bob.patch('/user', { data: { name: 'Bob' } }), 204],
    ['a request of a link', async () => await callAs(kit).post('/auth/forgot', { data: { account: bob.account } }), 204],
    ['a reader of the feed', async () => await admin.get('/event/feed'), 200],
    ['a list of events', async () => await admin.get('/event/list'), 200],
    ['a new user', async () => await admin.post('/user', { data: { account: `new-${randomUUID()}@example.com`, password: 'a new password' } }), 200],
    ['a sign-out', async () => await bob.post('/auth/logout'), 204],
    ['a token look-up', async () => await admin.get('/auth/tokeninfo'), 200]
  ] as const) {
    t.equal((await within(name, act(), PROMPT)).status, status, name)
  }
  await kit.app.identity.accounts.outbox?.settle()
}

async function forEachDatabase (t: Test, run: (t: Test, database: string) => Promise<void>): Promise<void> {
  await t.test('on SQLite', async (t) => await run(t, `sqlite:${t.testdir()}/identity.db`))
  await t.test('on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await run(t, reuseMongoDatabase(t, MONGODB_URL!)))
}

t.test('while a round of the relay hangs, and one user has as many unpublished events as fit, others go on, and that user can be signed out and deleted', async (t) => {
  await forEachDatabase(t, async (t, database) => {
    const started = await start(t, database)
    const { kit, admin, ann, refuseWith } = started
    const goes = Promise.withResolvers<void>()
    refuseWith(() => goes.promise)
    for (let count = 0; count < CAPACITY; count++) t.equal((await ann.patch('/user', { data: { name: `${count}` } })).status, 204)
    t.match(await ann.patch('/user', { data: { name: 'one more' } }), { status: 503, body: { code: 'ErrBusy' } }, 'a further change is refused')
    await goOn(t, started)
    t.equal((await ann.post('/auth/logout')).status, 204, 'a sign-out')
    t.equal((await ann.get('/auth/tokeninfo')).status, 401, 'the session has ended')
    t.equal((await admin.delete(`/user/${ann.user_id}`)).status, 204, 'a deletion')
    t.match(await admin.get(`/user/${ann.user_id}`), { status: 404 })
    refuseWith(() => undefined)
    goes.resolve()
    const about = (await kit.events.list({ user: ann.user_id })).filter(({ type, target }) => type.startsWith('user.') && target.id === ann.user_id)
    t.strictSame(about.map(({ type }) => type), ['user.created', ...Array.from({ length: CAPACITY }, () => 'user.updated'), 'user.deleted'], 'nothing is lost')
  })
})

t.test('while the events of one user cannot be published, those of others are, and that user is changed and deleted', async (t) => {
  await forEachDatabase(t, async (t, database) => {
    const started = await start(t, database)
    const { kit, admin, ann, bob, refuseWith } = started
    refuseWith((about) => about.includes(ann.user_id) ? Promise.reject(new TypeError('cannot be stored')) : undefined)
    await goOn(t, started)
    // Each round that fails beside others' events counts; five of them set the events aside.
    for (let count = 0; count < CAPACITY + 8; count++) {
      t.equal((await ann.patch('/user', { data: { name: `${count}` } })).status, 204)
      await admin.patch(`/user/${bob.user_id}`, { data: { name: `${count}` } })
      await kit.app.identity.events.flush()
    }
    t.ok((await kit.events.list({ user: bob.user_id, type: 'user.updated' })).length > CAPACITY, 'others are published')
    const other = await signIn(kit, { user: ann.user_id })
    t.equal((await ann.delete('/auth/sessions')).status, 204, 'a sign-out elsewhere')
    t.equal((await other.get('/auth/tokeninfo')).status, 401, 'the other sessions have ended')
    t.equal((await admin.delete(`/user/${ann.user_id}`)).status, 204, 'a deletion')
    t.match(await admin.get(`/user/${ann.user_id}`), { status: 404 })
  })
})
