import t from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openMongoStore } from '../../lib/store/mongo.ts'
import { build, createMongoDatabase } from '../helpers/build.ts'
import { type Person, createClient, createUser, signIn } from '../helpers/people.ts'

// The option `staleness`: on MongoDB what is known of a token may be old, but for what this process did itself.

const server = process.env.MONGODB_URL
const STALENESS = 60_000

t.test('on MongoDB', { skip: server === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const database = createMongoDatabase(t, server!)
  const here = await build(t, { database, staleness: STALENESS })
  const there = await build(t, { database })
  const admin = await signIn(here, { roles: ['admin'] })

  /** Somebody whose token was just asked about here. */
  async function known (): Promise<Person> {
    const user_id = await createUser(admin)
    const client = await createClient(admin, { scopes: ['read'] }, { credentials: true })
    const person = await signIn(here, { user: (await here.app.identity.users.require(user_id)).account, client, refresh: true })
    for (let time = 0; time < 2; time++) t.match(await person.get('/auth/tokeninfo'), { status: 200 })
    return person
  }

  const revocations: Record<string, (person: Person, by: Person) => Promise<{ status: number }>> = {
    logout: (person) => person.post('/auth/logout'),
    'a new password': ({ user_id }, by) => by.patch(`/user/${user_id}`, { data: { password: 'second' } }),
    'the user disabled': ({ user_id }, by) => by.patch(`/user/${user_id}`, { disable: true }),
    'the user deleted': ({ user_id }, by) => by.delete(`/user/${user_id}`),
    'a new client secret': ({ client_id }, by) => by.patch(`/client/${client_id}`, { regen_secret: true }),
    'the client deleted': ({ client_id }, by) => by.delete(`/client/${client_id}`),
    "the end of all the user's sessions": ({ user_id }, by) => by.delete(`/auth/sessions?user=${user_id}`)
  }
  for (const [name, revoke] of Object.entries(revocations)) {
    t.test(`${name} by this process is seen by the next request`, async (t) => {
      const person = await known()
      t.match(await revoke(person, admin), { status: 204 })
      t.match(await person.get('/auth/tokeninfo'), { status: 401 })
    })
  }

  t.test('what changes of a user or client by this process is seen by the next request', async (t) => {
    const person = await known()
    await admin.patch(`/user/${person.user_id}`, { data: { roles: { clerk: true } } })
    await admin.patch(`/client/${person.client_id}`, { data: { scopes: ['write'] } })
    t.match(await person.get('/auth/tokeninfo'), { body: { data: { roles: { clerk: true }, scopes: ['write'] } } })
  })

  t.test('a revocation by another process is seen when the time is over', async (t) => {
    const clock = { now: 0 }
    const store = await openMongoStore(database, { collections: COLLECTIONS, now: Date.now, staleness: STALENESS, elapsed: () => clock.now })
    t.teardown(() => store.close())
    const kit = await build(t, { store })
    const person = await signIn(kit)
    const ask = async () => (await person.get('/auth/tokeninfo')).status
    t.equal(await ask(), 200)
    await there.app.identity.tokens.deleteOfUser(person.user_id)
    clock.now = STALENESS
    t.equal(await ask(), 200)
    clock.now++
    t.equal(await ask(), 401)
    const other = await known()
    await there.app.identity.tokens.deleteOfUser(other.user_id)
    t.match(await other.get('/auth/tokeninfo'), { status: 200 }, 'by the option too')
  })
})

t.test('on SQLite it has no effect: another process is seen at once', async (t) => {
  const database = `sqlite:${t.testdir()}/identity.db`
  const [here, there] = [await build(t, { database, staleness: STALENESS }), await build(t, { database })]
  const person = await signIn(here)
  for (const status of [200, 200]) t.match(await person.get('/auth/tokeninfo'), { status })
  await there.app.identity.tokens.deleteOfUser(person.user_id)
  t.match(await person.get('/auth/tokeninfo'), { status: 401 })
})
