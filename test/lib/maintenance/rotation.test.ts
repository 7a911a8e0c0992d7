import { randomBytes } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../schemas/client.ts'
import { SEALED_FIELDS } from '../../../lib/maintenance/reseal.ts'
import { createSecretBox } from '../../../lib/crypto/secrets.ts'
import { openServices } from '../../../lib/identity.ts'
import { readOptions } from '../../../plugins/identity.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { startIdentity, type TestKit } from '../../../testing/index.ts'
import { reuseMongoDatabase } from '../../helpers/mongo-database.ts'
import { createCli } from '../../helpers/cli.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { runProgram } from '../../helpers/process.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { Browser } from '../../oidc/browser.ts'
import { type Harness, askCode, signIn } from '../../oidc/harness.ts'

t.setTimeout(150_000)

const [K1, K2] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string]
const toId = (key: string): string => createSecretBox(Buffer.from(key, 'base64')).keyId
const ROOT = join(import.meta.dirname, '../../..')
/** More than one batch, so that another thread renders the rest of a list. */
const CLIENTS = 130

function forEachDatabase (t: Test, name: string, run: (t: Test, database: string, dir: string) => Promise<void>): void {
  t.test(`${name}: SQLite`, async (t) => {
    const dir = t.testdir()
    await run(t, `sqlite:${dir}/identity.db`, dir)
  })
  t.test(`${name}: MongoDB`, { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
    await run(t, reuseMongoDatabase(t, MONGODB_URL!), t.testdir())
  })
}

/** The sealed texts of a store by key, found without the list of sealed fields. */
async function countTexts (database: string): Promise<Record<string, number>> {
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  const counts: Record<string, number> = {}
  try {
    for (const { name } of COLLECTIONS) {
      for await (const batch of store.collection(name).stream()) {
        for (const [, id = ''] of JSON.stringify(batch).matchAll(/"v1\.([\w-]{8})\./g)) counts[id] = (counts[id] ?? 0) + 1
      }
    }
  } finally {
    await store.close()
  }
  return counts
}

/** Every client's secret as a list of this process shows it. */
async function listSecrets (kit: TestKit): Promise<Record<string, string | undefined>> {
  const { headers } = await kit.mint({ user: 'root', roles: ['admin'] })
  const reply = await kit.inject({ url: '/api/v1/client/list?limit=0&sort=created:asc', headers })
  const { data } = reply.json<{ data: Client[] }>()
  return Object.fromEntries(data.filter(({ clientSecret }) => clientSecret !== undefined).map(({ clientId, clientSecret }) => [clientId, clientSecret]))
}

forEachDatabase(t, 'a rotation of the secret key, with two processes and a kill', async (t, database, dir) => {
  const start = async (...keys: string[]) => await startIdentity({ t, database, secretKey: keys.join('\n'), rateLimit: false, createDatabase: true })
  const cli = (...keys: string[]) => createCli(dir, { DATABASE_URL: database, IDENTITY_SECRET_KEY: keys.join(',') })
  const actor = (user_id: string) => ({ user_id, isAdmin: true })

  let a = await start(K1)
  let b = await start(K1)
  const { identity } = a.app
  const { user_id } = await identity.users.create({ data: { account: 'ann@example.com', password: 'correct horse' } })
  const create = async (kit: TestKit) => (await kit.app.identity.clients.create({
    data: { redirectUris: ['https://app.example/cb'], scopes: ['read'], name: 'The App', grants: ['code', 'device', 'refresh'], first_party: true }, credentials: true
  }, actor(user_id))).clientId
  await Promise.all(Array.from({ length: CLIENTS }, () => create(a)))
  const secrets = await listSecrets(a)
  t.equal(Object.keys(secrets).length, CLIENTS)

  /** The processes show all secrets, in lists and as CSV, and authenticate clients by them. */
  async function check (message: string, keys: string[], ...kits: TestKit[]): Promise<void> {
    for (const kit of kits) {
      t.match(await listSecrets(kit), secrets, message)
      const [client_id = '', client_secret = ''] = Object.entries(secrets)[0] as [string, string]
      const reply = await kit.inject({ method: 'POST', url: '/api/v1/auth/introspect', headers: { 'content-type': 'application/x-www-form-urlencoded' }, payload: new URLSearchParams({ client_id, client_secret, token: 'x' }).toString() })
      t.match(reply.json(), { active: false }, message)
    }
    const csv = (await cli(...keys)('client export --csv -')).stdout
    t.strictSame(Object.values(secrets).filter((secret) => !csv.includes(secret!)), [], message)
  }

  // Wrong order: a process that the others could not understand does not start.
  await t.rejects(start(K2), { message: /the secret key is not the one this database was sealed with/ })
  await t.rejects(start(K2, K1), { message: `the secret key with the id ${toId(K2)} comes first, and is new to this database: put it after the one with the id ${toId(K1)}, restart every process, and only then put it first` })

  // 1. Every process learns the new key.
  await a.close()
  a = await start(K1, K2)
  await check('one process knows the new key', [K1], a, b)
  await b.close()
  b = await start(K1, K2)
  t.match(await cli(K1, K2)('keys status'), { stdout: new RegExp(`^${toId(K1)} +seals +131\\n${toId(K2)} +new +0$`, 'm') })
  t.match(await cli(K1, K2)('keys reseal --json'), { stdout: '{"resealed":0}\n' }, 'too early: nothing to do')

  // What is pending at one that has not been restarted.
  const { url } = await b.listen()
  const harness = { user: { account: 'ann@example.com', password: 'correct horse' }, browser: () => new Browser(url) } as unknown as Harness
  const [client_id = '', client_secret = ''] = Object.entries(secrets)[0] as [string, string]
  const app = { client_id, client_secret, redirect_uri: 'https://app.example/cb' }
  const page = await harness.browser().open(askCode(app, { scope: 'openid' }).url)
  t.equal(page.title, 'Sign in')
  const post = async (path: string, fields: Record<string, string>) => await (await fetch(`${url}/api/v1/auth/${path}`, { method: 'POST', body: new URLSearchParams({ client_id, client_secret, ...fields }) })).json() as Record<string, string>
  const device = await post('device_authorization', { scope: 'openid' })

  // 2. Every process seals with it.
  t.match(await cli(K2, K1)('config check --json'), { code: 0 })
  t.match(await cli(K1, K2)('keys status'), { stdout: new RegExp(`${toId(K2)} +new`) }, 'a check changes nothing')
  await a.close()
  a = await start(K2, K1)
  secrets[await create(a)] = undefined
  Object.assign(secrets, await listSecrets(a))
  await check('one seals with the new key, the other opens it', [K1, K2], a, b)
  t.match(await cli(K1, K2)('keys reseal'), { code: 1, stderr: `the service seals with the key ${toId(K2)}: put the new key first` })
  await t.rejects(start(K2), { message: `the secret key with the id ${toId(K1)} is missing, and stored secrets may still be sealed with it` })
  await t.rejects(start(K1), { message: `not the one this database was sealed with: it was replaced by the key with the id ${toId(K2)}` })
  await (await start(K1, K2)).close()

  // 3. Everything is sealed again, by a command that is killed in the middle.
  const killer = join(dir, 'killer.mjs')
  writeFileSync(killer, `
    import crypto from 'node:crypto'
    import { syncBuiltinESMExports } from 'node:module'
    const { createCipheriv } = crypto
    let left = 50
    crypto.createCipheriv = (...args) => left-- > 0 ? createCipheriv(...args) : process.kill(process.pid, 'SIGKILL')
    syncBuiltinESMExports()`)
  const killed = await runProgram(t, 'cli.ts', { args: ['keys', 'reseal'], env: { DATABASE_URL: database, IDENTITY_SECRET_KEY: `${K2} ${K1}`, NODE_OPTIONS: `--import=${killer}` } })
  t.equal(killed.code, 'SIGKILL')
  const half = await countTexts(database)
  t.ok(half[toId(K1)]! > 50 && half[toId(K2)]! > 10, JSON.stringify(half))
  await check('in the middle', [K2, K1], a, b)
  await t.rejects(start(K2), { message: /is missing/ })

  const { code, stdout } = await cli(K2, K1)('keys reseal')
  t.equal(code, 0)
  t.match(stdout, `resealed  ${half[toId(K1)]}\n`)
  t.strictSame(Object.keys(await countTexts(database)), [toId(K2)], 'nothing is left, wherever it is stored')
  t.match(await cli(K2, K1)('keys status'), { stdout: new RegExp(`${toId(K1)} +unused +0`) })
  t.match(await cli(K2, K1)('keys reseal --json'), { stdout: '{"resealed":0}\n' }, 'and again')
  await check('resealed', [K2, K1], a, b)

  // What was pending goes on.
  const left = (await page.submit({ account: 'ann@example.com', password: 'correct horse' })).left
  t.ok(left?.searchParams.get('code'), 'the sign-in')
  const tab = harness.browser()
  await signIn(harness, askCode(app, { scope: 'openid' }).url, tab)
  const asked = await (await tab.open('/api/v1/auth/device')).submit({ user_code: device.user_code! })
  const confirmed = await asked.submit({ decision: 'allow' })
  t.equal(confirmed.title, 'Device connected')
  t.ok((await post('token', { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: device.device_code! })).access_token)
  await cli(K2, K1)('keys reseal')

  // The former key goes, and does not come back.
  await a.close()
  a = await start(K2)
  await b.close()
  await check('the former key is gone', [K2], a)
  await t.rejects(start(K1), { message: `not the one this database was sealed with: it was replaced by the key with the id ${toId(K2)}` })
  await t.rejects(start(K1, K2), { message: `comes first, but it was replaced by the one with the id ${toId(K2)}: remove it` })
  await (await start(K2, K1)).close()
  await t.rejects(start(K1, K2), { message: /it was replaced/ }, 'a retired key is not announced again')
})

forEachDatabase(t, 'a reseal that is interrupted after any number of writes', async (t, database) => {
  const inner = await openStore(database, { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  t.teardown(() => inner.close())
  const open = async (keys: string[], store = inner) => await openServices({ ...readOptions({ database, bcryptCost: 4, passwordMin: 1 }), secretKey: keys.join(' '), store })
  const first = await open([K1])
  const actor = { user_id: 'ann', isAdmin: true }
  const ids: string[] = []
  for (let i = 0; i < 6; i++) ids.push((await first.clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, actor)).clientId)
  const read = async (services: typeof first) => await Promise.all(ids.map(async (id) => (await services.clients.require(id, actor)).clientSecret))
  const secrets = await read(first)
  await (await open([K1, K2])).close()
  await first.close()
  let calls = 0
  let limit = Infinity
  const store = wrapStore(inner, ({ method }, run) => {
    if (method === 'update' && ++calls > limit) throw new Error('killed')
    return run()
  })
  for (let [round, current, next] = [0, K1, K2] as [number, string, string]; round < 10; round++) {
    limit = Infinity
    const services = await open([next, current], store)
    calls = 0
    limit = round
    const wasKilled = await services.sealing.reseal().then(() => false, () => true)
    t.equal(wasKilled, round < 8, `after ${round} writes`)
    limit = Infinity
    t.strictSame(await read(services), secrets, `after ${round} writes`)
    await services.sealing.reseal()
    t.strictSame(await read(services), secrets)
    const states = await services.sealing.status()
    t.strictSame(states.map(({ state, texts }) => [state, texts]), [['seals', 7], ['unused', 0]])
    await services.close()
    ;[current, next] = [next, randomBytes(32).toString('base64')]
    await (await open([current, next])).close()
  }
})

forEachDatabase(t, 'a reseal while others write', async (t, database) => {
  const inner = await openStore(database, { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  t.teardown(() => inner.close())
  const open = async (keys: string[], store = inner) => await openServices({ ...readOptions({ database, bcryptCost: 4, passwordMin: 1 }), secretKey: keys.join(' '), store })
  const former = await open([K1, K2])
  const actor = { user_id: 'ann', isAdmin: true }
  const { clientId } = await former.clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, actor)
  const before = (await former.clients.require(clientId, actor)).clientSecret
  let meanwhile = async () => {}
  const store = wrapStore(inner, ({ method, collection }, run) => {
    if (method !== 'update' || collection !== 'clients') return run()
    const first = meanwhile
    meanwhile = async () => {}
    return first().then(run)
  })
  const services = await open([K2, K1], store)
  // Between the read and the write of the reseal.
  meanwhile = async () => { await former.clients.patch(clientId, { regen_secret: true }, actor) }
  t.equal(await services.sealing.reseal(), 2)
  const after = (await services.clients.require(clientId, actor)).clientSecret
  t.not(after, before)
  t.match(after, /^\w{16}$/, 'the new secret, sealed with the new key')
  await services.close()
  await former.close()
})

t.test('a text that cannot be opened is named, and all others are sealed again', async (t) => {
  const database = `sqlite:${t.testdir()}/identity.db`
  const inner = await openStore(database, { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  t.teardown(() => inner.close())
  const open = async (...keys: string[]) => await openServices({ ...readOptions({ database, bcryptCost: 4, passwordMin: 1 }), secretKey: keys.join(' '), store: inner })
  const services = await open(K1, K2)
  const actor = { user_id: 'ann', isAdmin: true }
  const create = async () => (await services.clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, actor)).clientId
  const [bad, good] = [await create(), await create()]
  await inner.collection('clients').update(bad, { set: { secret: createSecretBox(Buffer.alloc(32, 9)).seal('x', bad) } })
  const next = await open(K2, K1)
  await t.rejects(next.sealing.reseal(), { message: `1 sealed texts cannot be opened, clients ${bad}: ` })
  t.match(await next.sealing.status(), [{ key_id: toId(K2), state: 'seals', texts: 2 }, { key_id: toId(K1), state: 'opens', texts: 0 }, { state: 'missing', texts: 1 }])
  t.ok((await next.clients.require(good, actor)).clientSecret)
  await t.rejects(open(K2), /is missing/, 'the former key is not retired')
  await next.clients.patch(bad, { regen_secret: true }, actor)
  t.equal(await next.sealing.reseal(), 0)
  await open(K2)
})

t.test('a mail that waits is sealed again for the same context, and stays with the process that claimed it', async (t) => {
  const database = `sqlite:${t.testdir()}/identity.db`
  const inner = await openStore(database, { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  t.teardown(() => inner.close())
  const open = async (...keys: string[]) => await openServices({ ...readOptions({ database, bcryptCost: 4, passwordMin: 1 }), secretKey: keys.join(' '), store: inner })
  await open(K1, K2)
  const deliveries = inner.collection<{ id: string, sealed: string, claim: number, state: string }>('deliveries')
  const context = 'delivery 1'
  await deliveries.insert({ id: '1', claim: 3, state: 'due', sealed: createSecretBox(Buffer.from(K1, 'base64')).seal('a job', context) })
  t.equal(await (await open(K2, K1)).sealing.reseal(), 2)
  const { sealed, claim } = (await deliveries.get('1'))!
  t.equal(createSecretBox(Buffer.from(K2, 'base64')).open(sealed, context), 'a job')
  t.equal(claim, 3)
})

/** Rooms that seal what nobody stores under the secret key: a form seals its own answer under a key of its fields, and the console a cookie. */
const UNSTORED = ['lib/sent-forms/', 'lib/console-sessions/']

/** The files that seal under the secret key. */
const SEALING = [
  'lib/clients/clients.ts', 'lib/crypto/stored-key.ts', 'lib/import/kept-users.ts', 'lib/import/new-user.ts', 'lib/mail/delivery.ts', 'lib/maintenance/reseal.ts', 'lib/oidc/codes.ts',
  'lib/oidc/keys.ts', 'lib/oidc/requests.ts', 'lib/upstreams/attempts.ts', 'lib/ways/factors.ts', 'lib/ways/held-codes.ts', 'lib/webhooks/secrets.ts'
]

t.test('every file that seals a text is known to the reseal', (t) => {
  const isStored = (file: string) => !UNSTORED.some((room) => file.startsWith(room))
  const files = globSync('lib/**/*.ts', { cwd: ROOT }).filter((file) => /\bbox\.seal\(/.test(readFileSync(join(ROOT, file), 'utf8')) && isStored(file)).sort()
  t.strictSame(files, SEALING, 'a new one needs its line in SEALED_FIELDS')
  for (const { collection, guard } of SEALED_FIELDS) t.equal(COLLECTIONS.find(({ name }) => name === collection)?.keys[guard], 'number', collection)
  t.end()
})
