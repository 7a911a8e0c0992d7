import { readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { openStore } from '../../lib/store/index.ts'
import { readConfig } from '../../config.ts'
import { type Services, openServices } from '../../lib/identity.ts'
import type { Document, Json } from '../../lib/store/port.ts'
import { redact } from '../../lib/maintenance/support-bundle.ts'
import { createTestKey } from '../helpers/assertions.ts'
import { examine as examineStore } from '../../lib/maintenance/doctor.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { LAYOUT } from '../../lib/store/state.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { createCli } from '../helpers/cli.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'

t.setTimeout(300_000)

type Stored = Document & Record<string, Json>

type Findings = { check: string, message: string, ids: string[] }[]

interface Found { findings: Findings, notes?: Findings, bundle?: string }

const KEY = Buffer.alloc(32, 'doctor').toString('base64')

const ENVIRONMENT = {
  IDENTITY_SECRET_KEY: KEY,
  IDENTITY_ISSUER: 'https://id.example.com',
  IDENTITY_MAIL_URL: 'smtps://mailer:mail-password@smtp.example.com',
  IDENTITY_MAIL_FROM: 'Accounts <sender@example.com>'
}

interface Place {
  dir: string
  run: ReturnType<typeof createCli>
  services: Services
  user: string
  client: string
  token: string
  secret: string
}

/** A database with a user, a client and a token session, and its services. */
async function prepare (t: Test, database?: string): Promise<Place> {
  const dir = t.testdir()
  const env = { ...ENVIRONMENT, ...(database !== undefined && { DATABASE_URL: database }) }
  const run = createCli(dir, env)
  const { user_id: user = '' } = (await run('user create --account ann@example.com --json')).json()
  const { clientId: client = '', clientSecret: secret = '' } = (await run('client create --owner ann@example.com --name c --credentials --json')).json()
  const { access_token: token = '' } = (await run(`token create --account ann@example.com --client ${client} --refresh --json`)).json()
  const services = await openServices(readConfig({ DATABASE_URL: `sqlite:${join(dir, 'identity.db')}`, IDENTITY_BCRYPT_COST: '4', ...env }).services)
  t.teardown(() => services.close())
  return { dir, run, services, user, client, token, secret }
}

const examine = async (run: Place['run'], line = 'doctor --json') => {
  const { code, stdout, stderr } = await run(line)
  return { code, stderr, ...JSON.parse(stdout) as Found }
}

async function eachStore (name: string, run: (t: Test, start: (t: Test) => Promise<Place>) => Promise<void>): Promise<void> {
  await t.test(`${name}, on SQLite`, async (t) => await run(t, async (t) => await prepare(t)))
  await t.test(`${name}, on MongoDB`, { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
    await run(t, async (t) => await prepare(t, reuseMongoDatabase(t, MONGODB_URL!)))
  })
}

await eachStore('a whole database has no finding, beside a running service', async (t, start) => {
  const { run } = await start(t)
  t.match(await run('doctor'), { code: 0, stdout: 'nothing was found\n' })
  t.strictSame((await examine(run)).findings, [])
})

await eachStore('references to records that are gone, and scopes of no resource, are found', async (t, start) => {
  const { run, services: { store }, user, client } = await start(t)
  const [tokens, clients, users] = ['access_tokens', 'clients', 'users'].map((name) => store.collection<Stored>(name)) as [ReturnType<typeof store.collection<Stored>>, ReturnType<typeof store.collection<Stored>>, ReturnType<typeof store.collection<Stored>>]
  const [token] = (await tokens.stream()[Symbol.asyncIterator]().next()).value as Stored[]
  const live = { ...token!, expired_at: '2999-01-01T00:00:00.000Z' }
  await tokens.insertMany(Array.from({ length: 250 }, (_, number) => ({ ...live, id: `dangling-${number}`, user_id: 'nobody' })))
  await tokens.insert({ ...live, id: 'foreign', client_id: 'no-client', grant_id: 'no-grant' })
  await tokens.insert({ ...live, id: 'expired', user_id: 'nobody', expired_at: '2000-01-01T00:00:00.000Z' })
  await tokens.insert({ ...live, id: 'own', user_id: 'nobody', kind: 'ClientCredentials' })
  await clients.update(client, { set: { declared: { 'orders:read': 'no-resource' } } })
  const { code, stderr, findings } = await examine(run)
  t.equal(code, 1)
  t.match(stderr, /4 findings/)
  t.match(findings, [
    { check: 'references', message: 'access_tokens.user_id refers to no record of users: 250', ids: Array.from({ length: 5 }, () => /^dangling-/) },
    { check: 'references', message: 'access_tokens.client_id refers to no record of clients: 1', ids: ['foreign'] },
    { check: 'references', message: 'access_tokens.grant_id refers to no record of grants: 1', ids: ['foreign'] },
    { check: 'scopes', message: /^clients with a scope of a resource that does not exist: 1$/, ids: [client] }
  ])
  await users.delete(user)
  t.match((await examine(run)).findings.map(({ message }) => message).join(), /access_tokens.user_id refers to no record of users: 25[1-9]/)
  t.match((await run('doctor')).stdout, /^references: access_tokens\.user_id .* \(.*\)$/m, 'a line for each')
})

await eachStore('keys that an earlier release has stored, and that cost too much, are found', async (t, start) => {
  const { run, services: { store }, client } = await start(t)
  const { n } = createTestKey('RS256').jwk
  const jwk = { kty: 'RSA', n: n!, e: n! }
  await store.collection<Stored>('clients').update(client, { set: { keys: [{ id: 'good', jwk: createTestKey('RS256').jwk, created_at: '2026-01-01T00:00:00.000Z' }] } })
  await store.collection<Stored>('documents').insert({ id: 'good', url: 'https://agent.example/good', body: { keys: [createTestKey('ES256').jwk] } })
  await store.collection<Stored>('documents').insert({ id: 'plain', url: 'https://agent.example/plain', body: {} })
  t.strictSame((await examine(run)).findings, [])
  await store.collection<Stored>('clients').update(client, { set: { keys: [{ id: 'long', jwk, created_at: '2026-01-01T00:00:00.000Z' }] } })
  await store.collection<Stored>('documents').insert({ id: 'long', url: 'https://agent.example/long', body: { keys: [createTestKey('ES256').jwk, jwk] } })
  t.strictSame((await examine(run)).findings, [
    { check: 'keys', message: 'clients with a public key out of bounds, which verifies nothing: 1', ids: [client] },
    { check: 'keys', message: 'documents of clients with a public key out of bounds, which verifies nothing: 1', ids: ['long'] }
  ])
})

await eachStore('a way without material, one that is not found, and material of nobody are found', async (t, start) => {
  const { run, services: { store, ways }, user } = await start(t)
  const [users, credentials] = [store.collection<Stored>('users'), store.collection<Stored>('credentials')]
  const { id } = await ways.add({ user_id: user, epoch: 0 }, { kind: 'upstream', key: 'k', upstream: 'corp', material: {} })
  t.strictSame((await examine(run)).findings, [])
  const material = (await credentials.get(id))!
  await credentials.insert({ ...material, id: 'orphan', user_id: 'nobody' })
  await credentials.delete(id)
  t.match(await examine(run), {
    code: 1,
    findings: [{ check: 'ways', message: 'ways of users whose material is missing: 1', ids: [user] }],
    notes: [{ check: 'remains', ids: ['orphan'] }]
  })
  await credentials.put({ ...material, user_id: 'nobody' })
  t.match((await examine(run)).findings, [{ check: 'ways', ids: [user] }], "another user's is missing too")
  t.ok(await users.delete(user))
  const { code, findings, notes } = await examine(run)
  t.match(notes, [{ message: /^credentials of users whose import or deletion was interrupted, .*: 2$/, ids: [id, 'orphan'].sort() }])
  t.notOk(findings.some(({ message }) => message.startsWith('credentials')), 'what a killed import or deletion leaves is no finding')
  t.equal(code, 1, 'tokens without a user are one')
})

await eachStore('a support bundle has no secret and nothing about a person', async (t, start) => {
  const place = await start(t)
  const { run, dir, services: { store }, token, secret, user, client } = place
  const file = join(dir, 'bundle.json')
  await store.collection<Stored>('access_tokens').insert({ id: 'dangling', user_id: 'nobody', client_id: client, user_epoch: 0, client_epoch: 0, created_at: '2000-01-01T00:00:00.000Z', expired_at: '2999-01-01T00:00:00.000Z' })
  t.equal((await run(['doctor', '--bundle', file])).code, 1)
  const text = readFileSync(file, 'utf8')
  t.equal(statSync(file).mode & 0o777, 0o600)
  // Every text that the database holds, except the words of the service.
  const held = new Set([token, secret, user, client, KEY, 'mail-password', 'mailer', 'smtp.example.com', 'sender@example.com', 'ann@example.com', 'id.example.com'])
  const collect = (value: Json | undefined): void => {
    if (typeof value === 'string' && value.length >= 8) held.add(value)
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect)
  }
  for (const name of ['users', 'clients', 'access_tokens', 'refresh_tokens', 'grants', 'keys', 'events', 'deliveries']) {
    for await (const batch of store.collection<Stored>(name).stream()) batch.forEach(collect)
  }
  t.ok(held.size > 20)
  for (const one of held) if (text.includes(one) && !/^[a-z]+\.[a-z_]+$/.test(one)) t.fail(`the bundle has a text of the service: ${one.slice(0, 4)}...`)
  const bundle = JSON.parse(text)
  t.match(bundle, {
    version: String,
    node: process.version,
    layout: { version: Number, oldest_reader: Number },
    engine: { name: /sqlite|mongodb/, version: String, sizes: Object },
    configuration: { port: 3000, logLevel: 'info', services: { secretKey: '(set)', bcryptCost: 4 } },
    collections: { users: { documents: 1, unpublished: Number }, access_tokens: { documents: 2 }, logouts: { due: 0, failed: 0 } },
    keys: [{ state: 'seals', texts: Number }],
    findings: [{ check: 'references', message: String }]
  })
  t.match(await run(['doctor', '--bundle', file]), { code: 1, stderr: /the file .*bundle\.json exists already/ })
})

await eachStore('a stopped examination ends at once, and findings are the same in batches', async (t, start) => {
  const { run, services: { store }, user } = await start(t)
  const users = store.collection<UserRecord>('users')
  const record = (await users.get(user))!
  await users.insertMany(Array.from({ length: 250 }, (_, number) => ({ ...record, id: `user-${number}`, account: `account-${number}`, addresses: [`${number}@example.com`] })))
  const calls: Record<string, number> = {}
  const counted = wrapStore(store, ({ collection, method }, call) => {
    const name = `${collection}.${method}`
    calls[name] = (calls[name] ?? 0) + 1
    return call()
  })
  t.strictSame(await Array.fromAsync(examineStore(counted, { now: Date.now })), [])
  t.equal(calls['users.page'], 3)
  t.notOk(calls['users.get'] ?? calls['users.getBy'] ?? calls['access_tokens.getLinked'], 'no record is asked for by itself')
  t.ok(calls['users.getMany']! <= 10, `${calls['users.getMany']} round trips for 251 users and a token session`)
  const ending = new AbortController()
  const seen: string[] = []
  const stopped = examineStore(store, { now: Date.now, signal: ending.signal, onProgress: ({ collection }) => { if (seen.push(collection) === 2) ending.abort() } })
  await t.rejects(Array.fromAsync(stopped), { name: 'AbortError' })
  t.equal(seen.length, 2)
  t.match(await run('doctor', { signal: AbortSignal.abort() }), { code: 1, stdout: '', stderr: '' })
})

await t.test('a database of an earlier release is no damage, and stays as it is', async (t) => {
  const dir = t.testdir()
  const earlier = await openStore(`sqlite:${join(dir, 'identity.db')}`, { layout: { version: LAYOUT.version - 1, oldestReader: LAYOUT.oldestReader - 1 } })
  t.teardown(() => earlier.close())
  const run = createCli(dir, ENVIRONMENT)
  t.match((await examine(run)).findings, [{ check: 'layout', message: /^it has layout \d of an earlier release, .*: a start migrates it/ }])
  await earlier.ping()
})

t.test('a damaged file is found, and a bundle is still written', async (t) => {
  const { run, dir, services } = await prepare(t)
  const path = join(dir, 'identity.db')
  await services.close()
  const other = new DatabaseSync(path)
  other.exec('CREATE TABLE "leftover" (a); PRAGMA wal_checkpoint(TRUNCATE)')
  other.close()
  t.match((await examine(run)).findings, [{ check: 'collections', message: 'leftover: is not of this release' }])
  const tables = new DatabaseSync(path)
  tables.exec('DROP TABLE "grants"')
  tables.close()
  t.match((await examine(run)).findings, [{ message: 'grants: is missing' }, { message: /leftover/ }])
  truncateSync(path, Math.floor(statSync(path).size / 2))
  const { code, findings } = await examine(run, `doctor --json --bundle ${join(dir, 'bundle.json')}`)
  t.equal(code, 1)
  t.match(findings, [{ check: 'integrity', message: /malformed/ }])
  t.match(JSON.parse(readFileSync(join(dir, 'bundle.json'), 'utf8')), { engine: { name: null }, collections: null })
})

t.test('an address that another user has is found', async (t) => {
  const { run, dir, services, user } = await prepare(t)
  await services.users.create({ data: { account: 'bob@example.com', password: 'a long password' } })
  // Not by the store, which would refuse it.
  const other = new DatabaseSync(join(dir, 'identity.db'))
  other.exec("DELETE FROM \"users.addresses\" WHERE item = 'ann@example.com'")
  other.close()
  t.match((await examine(run)).findings, [{ check: 'addresses', message: /^users who are not found by their addresses: 1$/, ids: [user] }])
})

t.test('a configuration is shown without its texts', (t) => {
  t.strictSame(redact({ port: 1, a: 'secret', list: ['x', 'y'], deep: { off: false, url: 'mongodb://u:p@h' }, logLevel: 'info', nothing: null, run () {} }), {
    port: 1, a: '(set)', list: '(2 set)', deep: { off: false, url: '(set)' }, logLevel: 'info', nothing: null, run: '(set)'
  })
  t.end()
})
