import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { showSettings } from '../../cli/settings.ts'
import { readConfig } from '../../config.ts'
import { toTimestamp } from '../../lib/clock.ts'
import type { LogoutRecord } from '../../lib/logout/record.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Setting, Status } from '../../schemas/status.ts'
import { createCli } from '../helpers/cli.ts'
import { createEnvironment } from '../helpers/environment.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { runProgram, serviceEnv, startProgram } from '../helpers/process.ts'

const LISTENS = /"msg":"Server listening at (http:[^"]+)"/

async function checkStatus (t: Test, dir: string, url: string, engine: string): Promise<void> {
  const run = createCli(dir, { DATABASE_URL: url, IDENTITY_ISSUER: 'https://id.example' })
  await run('user create --account ann')
  const empty = await run('status')
  t.match(empty, { code: 0, stderr: '' })
  t.match(empty.stdout, new RegExp(`^fastify-identity \\S+ on ${engine}: the database reads and writes\\nNothing needs attention\\.\\n\\nWhat to set up next\\n  - `))
  const store = await openStore(url, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const at = (hours: number) => toTimestamp(Date.now() + hours * 3_600_000)
  await store.collection<LogoutRecord>('logouts').insert({
    id: 'one', user_id: 'ann', client_id: 'app', uids: [], state: 'failed', due_at: at(-1), claim: 1, attempts: 3, ends_at: at(24), created_at: at(-5), expired_at: at(48), failure: '500'
  })
  const status = (await run('status --json')).json() as unknown as Status
  t.match(status, { engine, ready: true, attention: [{ code: 'logout_failed', count: 1, more: '/jobs?kind=logout&state=failed' }] })
  t.match((await run('status --held')).stdout, /What needs attention\n {2}- Logout tokens that no app has taken: 1\.\n/)
  const codes = () => status.next.map(({ code }) => code)
  t.ok(codes().includes('backup'))
  const checked = (await run('config check --json')).json() as unknown as Pick<Status, 'next'>
  t.strictSame(checked.next, status.next, 'config check judges alike')
  await run('backup record')
  const after = (await run('config check --json')).json() as unknown as Pick<Status, 'next'>
  t.strictSame(after.next.map(({ code }) => code), codes().filter((code) => code !== 'backup'))
  t.strictSame(after.next, ((await run('status --json')).json() as unknown as Status).next)
  t.match((await run('config check')).stdout, /\n\nWhat to set up next\n {2}- .*\(IDENTITY_/)
}

t.test('status says what needs attention: on SQLite', async (t) => {
  const dir = t.testdir()
  await checkStatus(t, dir, `sqlite:${join(dir, 'identity.db')}`, 'sqlite')
})

t.test('status says what needs attention: on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  await checkStatus(t, t.testdir(), createMongoDatabase(t, MONGODB_URL!), 'mongodb')
})

t.test('status makes no database', async (t) => {
  t.match(await createCli(t.testdir())('status'), { code: 1, stderr: /database/ })
})

/** Secrets as variables and in files. */
const MARKER = 'Marked0Marked0Marked0Marked0Mark'

t.test('the settings of a process are those of config check, and no secret is among them', async (t) => {
  const dir = t.testdir()
  const key = Buffer.from(MARKER).toString('base64')
  const file = join(dir, 'mail-url')
  writeFileSync(file, `smtps://user:${MARKER}@mail.example.org`, { mode: 0o600 })
  const { IDENTITY_MAIL_URL: _url, ...base } = createEnvironment(dir)
  writeFileSync(join(dir, 'migrate-secret'), `whsec_${Buffer.from(MARKER).toString('base64')}`, { mode: 0o600 })
  const env: Record<string, string> = {
    ...base,
    DATABASE_URL: `mongodb://user:${MARKER}@127.0.0.1:1/db?authSource=${MARKER}`,
    IDENTITY_SECRET_KEY: key,
    IDENTITY_MAIL_URL_FILE: file,
    IDENTITY_MIGRATE_URL: `https://old.example.org/verify?key=${MARKER}`,
    IDENTITY_MIGRATE_SECRET_FILE: join(dir, 'migrate-secret')
  }
  delete env['IDENTITY_SECRET_KEY_FILE']
  const flagged = { IDENTITY_WORKERS: '1' }
  const settings = showSettings(readConfig({ ...env, ...flagged }), { env, flagged })
  const text = JSON.stringify(settings)
  for (const secret of [MARKER, key, key.slice(0, 8)]) t.notMatch(text, secret)
  const found = (name: string) => settings.find((setting) => setting.name === name)
  t.match(found('database'), { variable: 'DATABASE_URL', value: 'mongodb://127.0.0.1:1/db', origin: 'environment' })
  t.match(found('secretKey'), { value: 'set', origin: 'environment' })
  t.match(found('mail.url'), { variable: 'IDENTITY_MAIL_URL', value: 'smtps://mail.example.org', origin: 'file' })
  t.match(found('migrate.url'), { value: 'https://old.example.org/verify', origin: 'environment' })
  t.match(found('workers'), { value: 1, origin: 'flag' })
  t.match(found('logLevel'), { variable: 'LOG_LEVEL' })
  t.equal(new Set(settings.map(({ name }) => name)).size, settings.length, 'each name is there once')
})

t.test('workers have the settings that the operator has given, and not those that the primary process gives them', async (t) => {
  const dir = t.testdir()
  const env = serviceEnv(dir, { IDENTITY_METRICS: '127.0.0.1:0', IDENTITY_NAME: 'Example' })
  const { stdout } = await runProgram(t, 'cli.ts', { args: ['bootstrap', '--json'], env })
  const headers = { authorization: `Bearer ${(JSON.parse(stdout) as { access_token: string }).access_token}` }
  const service = startProgram(t, 'server.ts', { args: ['--workers', '2'], env })
  const [, url = ''] = await service.seen(LISTENS)
  const { data: { settings } } = await (await fetch(`${url}/api/v1/settings`, { headers })).json() as { data: { settings: Setting[] } }
  const found = (name: string) => settings.find((setting) => setting.name === name)
  t.match(found('workers'), { variable: 'IDENTITY_WORKERS', value: 2, origin: 'flag' })
  t.match(found('metrics'), { value: '127.0.0.1:0', origin: 'environment' })
  t.match(found('createDatabase'), { value: true, origin: 'default' })
  t.match(found('oidc.name'), { value: 'Example', origin: 'environment' })
  t.match(found('oidc.accessTtl'), { value: 3600, origin: 'default' })
  const { data } = await (await fetch(`${url}/api/v1/status`, { headers })).json() as { data: Status }
  t.match(data, { ready: true, engine: 'sqlite', attention: [] })
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)
})
