import { readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import { buildApp, toIdentityOptions } from '../../app.ts'
import { checkStart } from '../../cli/process/check-start.ts'
import { findVariable } from '../../lib/variables.ts'
import { runService } from '../../cli/process/service.ts'
import { readConfig } from '../../config.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Document, Json } from '../../lib/store/port.ts'
import { LAYOUT } from '../../lib/store/state.ts'
import { createCli } from '../helpers/cli.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'

t.test('config check prints the effective configuration', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir, { IDENTITY_ISSUER: 'https://id.example.com', PORT: '4000' })
  const empty = await run('config check --json')
  t.match(empty, { code: 0, stderr: '' }, 'a start would make them')
  t.match(empty.json(), { made_by_first_start: ['database', 'secret key'] })
  t.notOk('key_id' in empty.json())
  t.strictSame(readdirSync(dir), [], 'it makes nothing')
  await run('user create --account ann')
  const { code, json } = await run('config check --json')
  t.equal(code, 0)
  t.match(json(), {
    database: `sqlite:${join(dir, 'identity.db')}`, key_id: /^\S{8}$/, problems: [], warnings: [], unknown_variables: []
  })
})

t.test('config check counts who keeps a role that has left the map of a provider', async (t) => {
  const dir = t.testdir({ 'upstreams.json': '[]' })
  const run = createCli(dir, { IDENTITY_UPSTREAMS_FILE: join(dir, 'upstreams.json') })
  for (const account of ['ann', 'bob', 'eve']) await run(['user', 'create', '--account', account])
  const store = await openStore(`sqlite:${join(dir, 'identity.db')}`, { collections: COLLECTIONS })
  const users = store.collection<UserRecord>('users')
  const given = { claimed_roles: { work: { at: '2026-11-24T00:00:00.000Z', roles: ['clerk'] } }, roles_at: '2026-11-24T00:00:00.000Z' }
  for (const account of ['ann', 'bob', 'eve']) {
    // Somebody has taken it from the last one meanwhile.
    await users.update((await users.getBy('account', account))!.id, { set: { ...given, roles: account === 'eve' ? {} : { clerk: true } } })
  }
  await store.close()
  const { code, stderr } = await run('config check --json')
  t.equal(code, 0)
  t.equal(stderr, 'fastify-identity: warning: the role clerk is in no map of the upstream work any more, and 2 people keep it\n')
})

type Thing = Document & Record<string, Json>

async function forEachDatabase (name: string, run: (t: Test, url: string) => Promise<void>): Promise<void> {
  await t.test(`${name}, on SQLite`, async (t) => await run(t, `sqlite:${t.testdir()}/identity.db`))
  await t.test(`${name}, on MongoDB`, { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await run(t, createMongoDatabase(t, MONGODB_URL!)))
}

/** A logo that no start accepts, and colours without contrast. */
const REFUSED: [env: Record<string, string>, message: RegExp][] = [
  [{ IDENTITY_ACCENT: '#b3261e' }, /^fastify-identity: IDENTITY_ACCENT: #b3261e has a contrast of 2.59 to the dark background/],
  [{ IDENTITY_LOGO_DARK: '/nope.svg' }, /^fastify-identity: IDENTITY_LOGO_DARK: needs a logo for light backgrounds too/],
  [{ IDENTITY_LOGO: '/nope.svg' }, /^fastify-identity: IDENTITY_LOGO: cannot be read \(ENOENT\)/],
  [{ IDENTITY_LOGO: 'data:image/png;base64,AAAA' }, /^fastify-identity: IDENTITY_LOGO: is not a PNG, JPEG, GIF, WebP or SVG image/]
]

t.test('config check finds what the start refuses, and both name the variable before anything is made', async (t) => {
  for (const [env, message] of REFUSED) {
    const dir = t.testdir()
    t.match(await createCli(dir, env)('config check'), { code: 1, stdout: /^Process\n/, stderr: message })
    const database = `sqlite:${join(dir, 'identity.db')}`
    t.throws(() => checkStart(readConfig({ DATABASE_URL: database, ...env })), { name: 'ConfigError' })
    await t.rejects(runService(readConfig({ DATABASE_URL: database, ...env })), { name: 'ConfigError' })
    await t.rejects(buildApp(readConfig({ DATABASE_URL: database, LOG_LEVEL: 'silent', ...env })), /^option oidc/)
    t.strictSame(readdirSync(dir), [], 'nothing is made')
  }
})

t.test('a missing database and key: what config check says', async (t) => {
  const dir = t.testdir()
  const key = Buffer.alloc(32, 1).toString('base64')
  const check = async (env: Record<string, string>) => await createCli(dir, env)('config check --json')
  const production = { NODE_ENV: 'production', IDENTITY_SECRET_KEY: key }
  t.match(await check(production), { code: 1, stderr: /there is no database/ })
  const allowed = await check({ ...production, IDENTITY_CREATE_DATABASE: 'on' })
  t.match(allowed, { code: 0, stderr: '' })
  t.match(allowed.json(), { made_by_first_start: ['database'], key_id: /^\S{8}$/ })
  t.match(await check({ IDENTITY_CREATE_DATABASE: 'off' }), { code: 1, stderr: /there is no database/ })
  t.match((await check({ DATABASE_URL: 'sqlite::memory:' })).json(), { database: 'sqlite::memory:' })
  t.strictSame(readdirSync(dir), [], 'nothing is made')
  await createCli(dir)('user create --account ann')
  rmSync(join(dir, 'secret.key'))
  t.match(await check({}), { code: 1, stderr: /key file .*secret.key: it is missing, and a new key could not open what this database was sealed with/ })
  t.notOk(readdirSync(dir).includes('secret.key'))
})

await forEachDatabase('config check changes nothing of an earlier release, and says what a start will do', async (t, url) => {
  const dir = t.testdir()
  const isMongo = url.startsWith('mongodb')
  const former = LAYOUT.oldestReader - 1
  const earlier = await openStore(url, { layout: { version: former, oldestReader: former } })
  t.teardown(() => earlier.close())
  const key = Buffer.alloc(32, 1).toString('base64')
  const check = async (flags = '', secret = key) => await createCli(dir, { DATABASE_URL: url, IDENTITY_SECRET_KEY: secret, IDENTITY_STORE_TIMEOUT: '2000' })(`config check --json ${flags}`)
  const before = await earlier.state.read()
  const first = await check()
  t.equal(first.code, 0, first.stderr)
  t.match(first.json(), { key_id: /^\S{8}$/, migrated_by_first_start: { from: former, to: LAYOUT.version, shuts_out_earlier: true, reads: ['users', 'clients'], writes_stop_for: isMongo ? 5 : 0 } })
  t.strictSame(await earlier.state.read(), before, 'the state is as it was')
  await earlier.collection<Thing>('meta').insert({ id: 'a', text: 'x' })
  await earlier.ping()
  await earlier.collection<Thing>('meta').put({ id: 'secret-key', key_id: 'other' })
  t.match(await check(), { code: 1, stderr: /the secret key is not the one this database was sealed with/ }, 'a start would refuse it')
  await earlier.collection('meta').delete('secret-key')
  const run = createCli(dir, { DATABASE_URL: url, IDENTITY_SECRET_KEY: key, IDENTITY_STORE_TIMEOUT: '2000' })
  for (const words of ['user list', 'client list', 'event list', 'keys status', 'work list', 'sessions end --all', 'doctor']) {
    const { code, stdout, stderr } = await run(words)
    t.equal(code, 1, words)
    t.match(stdout + stderr, /layout \d of an earlier release, .*: a start migrates it/, `${words} does not migrate it`)
  }
  t.strictSame(await earlier.state.read(), before, 'the state is as it was')
  await earlier.collection<Thing>('meta').insert({ id: 'c', text: 'x' })
  const plain = await createCli(dir, { DATABASE_URL: url, IDENTITY_SECRET_KEY: key, IDENTITY_STORE_TIMEOUT: '2000' })('config check')
  t.match(plain.stdout, new RegExp(`migrated_by_first_start +layout ${former} becomes ${LAYOUT.version}; reads every record of users and clients; processes of earlier releases can no longer write`))
  const migrated = await check('--migrate')
  t.equal(migrated.code, 0, migrated.stderr)
  t.notOk('migrated_by_first_start' in migrated.json())
  await t.rejects(earlier.collection<Thing>('meta').insert({ id: 'b', text: 'x' }), { code: 'ErrDb' }, 'now the earlier release is shut out')
  t.notOk('migrated_by_first_start' in (await check()).json())
})

t.test('config check on MongoDB makes no database', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const url = createMongoDatabase(t, MONGODB_URL!)
  const { code, stderr, json } = await createCli(t.testdir(), { DATABASE_URL: url, IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') })('config check --json')
  t.equal(code, 0, stderr)
  t.match(json(), { made_by_first_start: ['database'] })
  const client = new MongoClient(url)
  t.teardown(() => client.close())
  t.strictSame(await client.db().listCollections().toArray(), [])
})

t.test('config check on a missing index of MongoDB makes none', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const url = createMongoDatabase(t, MONGODB_URL!)
  const run = createCli(t.testdir(), { DATABASE_URL: url, IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') })
  await run('user create --account ann')
  const client = new MongoClient(url)
  t.teardown(() => client.close())
  const users = client.db().collection('users')
  const { name } = (await users.indexes()).find(({ name }) => name !== '_id_')!
  await users.dropIndex(name!)
  t.match((await run('config check')).stdout, /migrated_by_first_start +adds tables or indexes/)
  t.notOk((await users.indexes()).some((index) => index.name === name))
  t.equal((await run('config check --migrate')).code, 0)
  t.ok((await users.indexes()).some((index) => index.name === name))
})

t.test('every option of the start has a variable', async (t) => {
  const { oidc, roles, mail, production, openapi, signUp, ...options } = toIdentityOptions(readConfig({ IDENTITY_METRICS: '127.0.0.1:0', IDENTITY_MANAGER_ROLES: 'a' })) as Record<string, unknown>
  const names = [...Object.keys(options), ...Object.keys(roles as object).map((role) => `roles.${role}`), ...['accent', 'logo', 'name', 'issuer', 'helpAddress', 'termsUrl', 'privacyUrl'].map((name) => `oidc.${name}`), 'mail.url', 'mail.from', 'signUp']
  for (const name of names) t.ok(findVariable(name), name)
  t.equal(findVariable('oidc.clockTolerance'), undefined)
})

t.test('an unknown variable is named with the nearest one, and an error with --strict', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir, { IDENTITY_SMTP_URL: 'smtp://user:hunter2@mail', IDENTITY_SERVICE_HOST: '10.0.0.1', IDENTITY_PORT: 'tcp://10.0.0.1:80', IDENTITY_Q: 'x' })
  const lines = ['IDENTITY_SMTP_URL: is not a variable of this release and has no effect, did you mean IDENTITY_MAIL_URL?', 'IDENTITY_Q: is not a variable of this release and has no effect']
  const unknown_variables = [{ name: 'IDENTITY_SMTP_URL', nearest: 'IDENTITY_MAIL_URL' }, { name: 'IDENTITY_Q' }]
  const loose = await run('config check --json')
  t.match(loose, { code: 0, stderr: lines.map((line) => `fastify-identity: warning: ${line}\n`).join('') })
  t.match(loose.json(), { unknown_variables, warnings: lines, problems: [] })
  const strict = await run('config check --json --strict')
  t.match(strict, { code: 1, stderr: lines.map((line) => `fastify-identity: ${line}\n`).join('') })
  t.match(strict.json(), { unknown_variables, warnings: [], problems: lines })
  const plain = await run('config check --strict')
  t.equal(plain.code, 1)
  t.notMatch(plain.stdout + plain.stderr, /hunter2/)
  t.equal((await createCli(dir, { IDENTITY_SERVICE_HOST: '10.0.0.1' })('config check --strict')).code, 0)
  t.strictSame(readdirSync(dir), [])
})

t.test('all that a start refuses is in one document', async (t) => {
  const { code, stderr, json } = await createCli(t.testdir(), { IDENTITY_ACCENT: '#b3261e', NODE_ENV: 'production', HOST: '0.0.0.0', IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') })('config check --json')
  const problems = [/^IDENTITY_ACCENT: /, /^IDENTITY_ISSUER: must be the https URL/, /there is no database/]
  t.equal(code, 1)
  t.match(json(), { problems, settings: [{ name: 'HOST', value: '0.0.0.0' }] })
  t.equal(stderr.trim().split('\n').length, problems.length)
})

t.test('config check writes nothing into a database file of any earlier release, and migrates none after a problem', async (t) => {
  for (const layout of ['0.1', 'layout-2', 'layout-3', 'layout-4', 'layout-5']) {
    const dir = t.testdir()
    const path = join(dir, 'identity.db')
    const file = new DatabaseSync(path)
    file.exec(readFileSync(new URL(`../fixtures/store-${layout}.sql`, import.meta.url), 'utf8'))
    // Nobody has the key of this file.
    if (layout !== '0.1') file.exec("DELETE FROM meta WHERE id = 'secret-key'")
    file.close()
    const before = readFileSync(path)
    const env = { IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') }
    const { code, stderr, json } = await createCli(dir, env)('config check --json')
    t.equal(code, 0, stderr)
    t.match(json(), { migrated_by_first_start: { to: LAYOUT.version } }, layout)
    t.equal((await createCli(dir, { ...env, IDENTITY_OLD: 'x' })('config check --migrate --strict')).code, 1)
    t.ok(readFileSync(path).equals(before), `${layout} is as it was`)
    t.strictSame(readdirSync(dir).filter((name) => !name.startsWith('identity.db')), [], 'and nothing is beside it')
  }
})

t.test('config check names the problems', async (t) => {
  const dir = t.testdir()
  const check = async (env: Record<string, string>) => await createCli(dir, env)('config check')
  const key = Buffer.alloc(32, 1).toString('base64')
  await createCli(dir)('user create --account ann')
  t.match(await check({ PORT: 'x' }), { code: 1, stderr: /PORT: / })
  t.match(await check({ IDENTITY_SECRET_KEY: key }), { code: 1, stderr: /the secret key is not the one this database was sealed with/ })
  t.match(await check({ NODE_ENV: 'production', HOST: '0.0.0.0', IDENTITY_SECRET_KEY: key }), { code: 1, stderr: /issuer/i })
  t.match(await check({ NODE_ENV: 'production', DATABASE_URL: `sqlite:${join(dir, 'none.db')}`, IDENTITY_SECRET_KEY: key }), { code: 1, stderr: /there is no database/ })
  const { stderr, code } = await check({ DATABASE_URL: 'mongodb://ann:hunter2@127.0.0.1:1/x?serverSelectionTimeoutMS=100', IDENTITY_SECRET_KEY: key, IDENTITY_STORE_TIMEOUT: '300' })
  t.equal(code, 1)
  t.notMatch(stderr, 'hunter2')
})
