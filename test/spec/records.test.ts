import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import fastify from 'fastify'
import identity from '../../index.ts'
import type { ClientRecord, UserRecord } from '../../lib/records.ts'
import type { Client } from '../../schemas/client.ts'
import { startIdentity } from '../../testing/index.ts'
import { alter } from '../helpers/alter.ts'
import { forEachStore } from '../helpers/build.ts'
import { createClient, createUser, signIn, unique } from '../helpers/people.ts'

await forEachStore(t, async (t, build) => {
  t.test('Records: a client secret is sealed at rest and bound to its client', async (t) => {
    const kit = await build(t)
    const ann = await signIn(kit)
    const read = async (id: string) => await ann.get<{ data: Client }>(`/client/${id}`)
    const [one, two] = [await createClient(ann, {}, { credentials: true }), await createClient(ann, {}, { credentials: true })]
    const { clientSecret } = (await read(one)).body.data
    const clients = kit.app.identity.store.collection<ClientRecord>('clients')
    const record = await clients.get(one)
    t.ok(clientSecret)
    t.notMatch(JSON.stringify(record), clientSecret)
    t.equal((await read(one)).body.data.clientSecret, clientSecret, 'its owner can read it')

    await clients.update(two, { set: { secret: record!.secret! } })
    t.match(await read(two), { status: 500, body: { code: 'ErrInternal' } }, 'a secret sealed for another client does not open')
    await clients.update(one, { set: { secret: alter(record!.secret!) } })
    t.match(await read(one), { status: 500, body: { code: 'ErrInternal' } }, 'an altered secret does not open')
  })

  t.test('Records: a hash with a lower cost is renewed at the next sign-in', async (t) => {
    const account = unique('old')
    const weak = await build(t, { bcryptCost: 4 })
    const user_id = await createUser(await signIn(weak, { roles: ['admin'] }), { account, password: 'p' })
    const strong = await build(t, { bcryptCost: 5 })
    const cost = async () => (await strong.app.identity.store.collection<UserRecord>('users').get(user_id))?.password?.split('$')[2]
    t.equal(await strong.app.identity.users.verify(account, 'wrong'), null)
    t.equal(await cost(), '04', 'a wrong password renews nothing')
    const session = await weak.mint({ user: account })
    t.match(await strong.app.identity.users.verify(account, 'p'), { user_id })
    t.equal(await cost(), '05')
    t.match(await strong.app.identity.users.verify(account, 'p'), { user_id })
    t.equal((await strong.inject({ url: '/api/v1/user', headers: session.headers })).statusCode, 200, 'no session ends')
    t.match(await weak.app.identity.users.verify(account, 'p'), { user_id }, 'a service with a lower cost does not renew it')
    t.equal(await cost(), '05')
  })

  t.test('Records: the service does not start with a key other than the one that sealed the database', async (t) => {
    await build(t)
    await t.rejects(build(t, { secretKey: Buffer.alloc(32, 1).toString('base64') }), { message: /not the one this database was sealed with/ })
  })
})

t.test('Records: without a configured key, the first run creates one next to the SQLite database', async (t) => {
  const dir = t.testdir()
  const start = async (options: object = {}) => {
    const app = fastify()
    t.teardown(() => app.close())
    await app.register(identity, { database: `sqlite:${join(dir, 'data', 'identity.db')}`, bcryptCost: 4, passwordMin: 1, ...options })
    return app
  }
  const apps = await Promise.all([start(), start(), start()])
  const file = join(dir, 'data', 'secret.key')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(Buffer.from(readFileSync(file, 'utf8'), 'base64').length, 32)
  t.strictSame(readdirSync(join(dir, 'data')).filter((name) => name.includes('secret')), ['secret.key'], 'three concurrent starts create one, and leave no drafts')

  const actor = { user_id: 'ann', isAdmin: true }
  const { clientId } = await apps[0].identity.clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, actor)
  const { clientSecret } = await apps[1].identity.clients.require(clientId, actor)
  await Promise.all(apps.map((app) => app.close()))
  t.equal((await (await start()).identity.clients.require(clientId, actor)).clientSecret, clientSecret, 'the next run reads it')

  await t.rejects(start({ production: true }), { message: /in production a secret key must be configured/ }, 'production does not accept a generated key')
  writeFileSync(file, 'not a key')
  await t.rejects(start(), { message: /32 random bytes/ })
  rmSync(file)
  await t.rejects(start(), { message: /secret\.key: it is missing/ }, 'a lost key is not replaced silently')
})

t.test('Records: the key in a separate data folder', async (t) => {
  const dir = t.testdir()
  const kit = await startIdentity({ t, database: `sqlite:${join(dir, 'identity.db')}`, dataDir: join(dir, 'keys'), secretKey: undefined as never })
  t.ok(kit)
  t.ok(statSync(join(dir, 'keys', 'secret.key')).isFile())
})
