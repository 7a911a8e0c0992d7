import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, readFileSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { readConfig } from '../../config.ts'
import { openServices, type Services } from '../../lib/identity.ts'
import type { Document, Json } from '../../lib/store/port.ts'
import { readBackup } from '../../lib/metrics/read-backup.ts'
import { createMeter } from '../../lib/metrics/prometheus.ts'
import { createCli } from '../helpers/cli.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { parseOpenMetrics } from '../helpers/openmetrics.ts'

async function openService (t: Test, dir: string, options: Partial<Parameters<typeof openServices>[0]> = {}): Promise<Services> {
  const config = readConfig({ DATABASE_URL: `sqlite:${join(dir, 'identity.db')}`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' })
  const services = await openServices({ ...config.services, ...options })
  t.teardown(() => services.close())
  return services
}

const addUser = async (services: Services, account: string) => await services.users.create({ data: { account, password: 'p' } })

t.test('a backup of a running service holds every write that was acknowledged before it', async (t) => {
  const root = t.testdir({ data: {}, copy: {} })
  const [dir, copy] = [join(root, 'data'), join(root, 'copy')]
  const services = await openService(t, dir)
  const { clientId } = await services.clients.create({ data: { redirectUris: [], scopes: [], name: 'c' }, credentials: true }, { user_id: 'u', isAdmin: true })
  const { clientSecret } = await services.clients.require(clientId, { user_id: 'u', isAdmin: true })
  for (let i = 0; i < 50; i++) await addUser(services, `early-${i}`)
  const stop = new AbortController()
  const writing = (async () => { for (let i = 0; !stop.signal.aborted; i++) await addUser(services, `late-${i}`) })()
  const file = join(dir, 'backup.db')
  const { code, stdout, stderr } = await createCli(dir)(['backup', '--file', file])
  stop.abort()
  await writing
  t.equal(stderr, '')
  t.equal(code, 0)
  const [, keyId = '', named] = /^key_id {3}(\S+)\n\nKeep the secret key with the id (\S+), in .*secret\.key, in another place\./m.exec(stdout) ?? []
  t.equal(keyId, named)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.strictSame(readdirSync(dir).sort(), ['backup.db', 'identity.db', 'identity.db-shm', 'identity.db-wal', 'secret.key'], 'one file, and no draft')

  copyFileSync(join(dir, 'secret.key'), join(copy, 'secret.key'))
  copyFileSync(file, join(copy, 'identity.db'))
  const restored = await openService(t, copy)
  for (let i = 0; i < 50; i++) if (await restored.users.getByAccount(`early-${i}`) === null) t.fail(`early-${i} is missing`)
  t.equal((await restored.clients.require(clientId, { user_id: 'u', isAdmin: true })).clientSecret, clientSecret)
})

const inOtherProcess = (dir: string) => async (file: string): Promise<number | null> => {
  const cli = fileURLToPath(new URL('../../cli.ts', import.meta.url))
  const child = spawn(process.execPath, [cli, 'backup', '--file', file], { env: { ...process.env, DATABASE_URL: `sqlite:${join(dir, 'identity.db')}` }, stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'close')
  return code
}
const inThisProcess = (dir: string) => async (file: string): Promise<number> => (await createCli(dir)(['backup', '--file', file])).code

for (const [where, start] of Object.entries({ 'this process': inThisProcess, 'another process': inOtherProcess })) {
  t.test(`the limit of the log ends a list, and no backup in ${where}`, async (t) => {
    const dir = t.testdir()
    const warnings: string[] = []
    const services = await openService(t, dir, { walLimit: 1, onWarning: (message) => { warnings.push(message) } })
    const users = services.store.collection<Document & Record<string, Json>>('users')
    const at = '2026-01-01T00:00:00.000Z'
    const toUser = (id: string) => ({ id, account: id, addresses: [id], created_at: at, modified_at: at, name: 'x'.repeat(5_000), revision: 0, epoch: 0, roles: {}, info: {}, password: 'p' })
    await Promise.all(Array.from({ length: 500 }, (_, number) => users.insert(toUser(`u${number}`))))
    const list = users.stream()[Symbol.asyncIterator]()
    await list.next()
    const isEnded = () => warnings.some((message) => /more than walLimit: the oldest list was ended/.test(message))
    const stop = new AbortController()
    const writing = (async () => { for (let number = 0; !stop.signal.aborted; number++) await users.update(`u${number % 500}`, { set: { name: `${number}`.padStart(5_000, 'y') } }) })()
    const backUp = start(dir)
    const codes: (number | null)[] = []
    do codes.push(await backUp(join(dir, `backup-${codes.length}.db`)))
    while (!isEnded())
    stop.abort()
    await writing
    t.ok(codes.every((code) => code === 0), `${codes.length} backups`)
    await t.rejects(async () => { while ((await list.next()).done !== true); }, { code: 'ErrDb' }, 'the reader of the list knows')
  })
}

t.test('restore ends all tokens, and keeps the former database next to the new one', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const file = join(dir, 'backup.db')
  await run('user create --account ann')
  const { clientId: client = '' } = (await run('client create --owner ann --name c --credentials --json')).json()
  const create = `token create --account ann --client ${client} --json`
  const token = (await run(create)).json().access_token ?? ''
  t.equal((await run(['backup', '--file', file])).code, 0)
  const before = readFileSync(file)

  // After the backup: the token is revoked, and a user is added.
  const service = await openService(t, dir)
  t.ok(await service.tokens.authenticate(token))
  await addUser(service, 'bob')
  t.match(await run(['restore', '--file', file]), { code: 1, stderr: /another process has .*identity\.db open: stop the service first/ })
  t.ok(await service.tokens.authenticate(token), 'the service goes on')
  await service.close()

  const { code, stdout } = await run(['restore', '--file', file])
  t.equal(code, 0)
  const [, former = ''] = /^former\s+(\S+)$/m.exec(stdout) ?? []
  t.strictSame(readdirSync(dir).filter((name) => name.includes('.db')).sort(), ['backup.db', 'identity.db', former.slice(dir.length + 1)].sort())
  t.strictSame(readFileSync(file), before, 'the backup is as it was')
  t.equal(statSync(join(dir, 'identity.db')).mode & 0o777, 0o600)
  const restored = await openService(t, dir)
  t.ok(await restored.users.getByAccount('ann'))
  t.equal(await restored.users.getByAccount('bob'), null)
  await t.rejects(async () => await restored.tokens.authenticate(token), { code: 'ErrUnknown' }, 'no token of the past comes back')
  t.equal((await run(create)).code, 0)
  const old = new DatabaseSync(former, { readOnly: true })
  t.equal(old.prepare("SELECT count(*) AS count FROM users WHERE account = 'bob'").get()?.count, 1)
  old.close()
})

t.test('a restore that fails changes nothing', async (t) => {
  const root = t.testdir({ data: {}, other: {} })
  const [dir, other] = [join(root, 'data'), join(root, 'other')]
  const run = createCli(dir)
  await run('user create --account ann')
  const path = join(dir, 'identity.db')
  const content = readFileSync(path)
  await createCli(other)('user create --account eve')
  await createCli(other)(['backup', '--file', join(other, 'backup.db')])
  const damaged = join(dir, 'damaged.db')
  copyFileSync(join(other, 'backup.db'), damaged)
  truncateSync(damaged, 40_960)
  const foreign = join(dir, 'foreign.db')
  const database = new DatabaseSync(foreign)
  database.exec('CREATE TABLE a (b)')
  database.close()
  const later = join(dir, 'later.db')
  copyFileSync(join(other, 'backup.db'), later)
  const next = new DatabaseSync(later)
  next.exec('PRAGMA user_version = 999')
  next.close()
  writeFileSync(join(dir, 'text.db'), 'x'.repeat(5000))
  for (const [file, message] of [
    [join(other, 'backup.db'), /the file .*: cannot be used: it was sealed with another secret key/],
    [damaged, /the file .*: cannot be used: /],
    [foreign, /the file .*: cannot be used: it has tables of another program/],
    [later, /the file .*: cannot be used: it was written by a later release/],
    [join(dir, 'text.db'), /the file .*: cannot be used: file is not a database/],
    [join(dir, 'none.db'), /there is no file .*none\.db/]
  ] as const) {
    t.match(await run(['restore', '--file', file]), { code: 1, stdout: '', stderr: message }, file)
    t.strictSame(readFileSync(path), content, `${file}: the database is as it was`)
  }
  t.notOk(readdirSync(dir).some((name) => name.startsWith('.')), 'no draft is left')
})

t.test('where there is no database', async (t) => {
  const root = t.testdir({ data: {}, new: { key: {} } })
  const [dir, empty] = [join(root, 'data'), join(root, 'new')]
  t.match(await createCli(dir)(['backup', '--file', join(dir, 'b.db')]), { code: 1, stderr: /DATABASE_URL: there is no database at/ })
  t.notOk(existsSync(join(dir, 'identity.db')))
  t.match(await createCli(dir, { DATABASE_URL: 'sqlite::memory:' })('backup --file b'), { code: 1, stderr: /DATABASE_URL: a store in memory has no file/ })
  t.match(await createCli(dir, { DATABASE_URL: 'mongodb://127.0.0.1:1/x' })('backup --file b'), { code: 1, stderr: /DATABASE_URL: is not SQLite: use the tools of MongoDB/ })
  const run = createCli(dir)
  await run('user create --account ann')
  t.match(await run(['backup', '--file', join(dir, 'identity.db')]), { code: 1, stderr: /the file .*identity\.db: exists already/ })
  t.match(await run(['backup', '--file', join(dir, 'none', 'b.db')]), { code: 1, stderr: /the file .*: its folder does not exist/ })

  const backup = join(dir, 'b.db')
  t.equal((await run(['backup', '--file', backup])).code, 0)
  copyFileSync(join(dir, 'secret.key'), join(empty, 'key', 'secret.key'))
  chmodSync(join(empty, 'key', 'secret.key'), 0o600)
  const fresh = createCli(join(empty, 'data'), { IDENTITY_DATA_DIR: join(empty, 'key') })
  t.match(await createCli(join(empty, 'data'))(['restore', '--file', backup]), { code: 1, stderr: /key file .*: it is missing/ }, 'no key is made')
  t.equal((await fresh(['restore', '--file', backup])).code, 0, 'a new machine needs the key and the backup')
  t.match(await fresh('user list --json'), { stdout: /"ann"/ })
})

t.test('restore during a rotation of the secret key', async (t) => {
  const dir = t.testdir()
  const [former, next, other] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string, string]
  const cli = (...keys: string[]) => createCli(dir, { IDENTITY_SECRET_KEY: keys.join(' ') })
  const file = join(dir, 'backup.db')
  await cli(former)('user create --account ann')
  await cli(former)('client create --owner ann --name c --credentials')
  t.equal((await cli(former)(['backup', '--file', file])).code, 0)
  t.match(await cli(next, other)(['restore', '--file', file]), { code: 1, stderr: /it was sealed with another secret key than the configured one: it needs the one with the id \S{8}/ })
  t.match(await cli(next, former)(['restore', '--file', file]), { code: 0 }, 'a backup from before the rotation')
  t.match(await cli(next)('user list'), { code: 1, stderr: /is missing, and stored secrets may still be sealed with it/ })
  t.match((await cli(next, former)('client export --csv -')).stdout, /,\w{16},/)
  t.match(await cli(next, former)('keys reseal --json'), { stdout: '{"resealed":2}\n' })
  t.match((await cli(next)('client export --csv -')).stdout, /,\w{16},/)
})

t.test('restore parks the pending mails, begins another feed, and keeps the audit trail', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const file = join(dir, 'backup.db')
  const service = await openService(t, dir)
  await addUser(service, 'ann')
  const collection = (name: string) => service.store.collection<Document & Record<string, Json>>(name)
  const times = { due_at: '2026-01-01T00:00:00.000Z', created_at: '2026-01-01T00:00:00.000Z', ends_at: '2999-01-01T00:00:00.000Z', expired_at: '2999-01-01T00:00:00.000Z' }
  await collection('deliveries').insert({ id: 'waits', kind: 'reset', state: 'due', claim: 3, attempts: 1, sealed: 'x', ...times })
  await collection('deliveries').insert({ id: 'failed', kind: 'reset', state: 'failed', failure: 'EENVELOPE', claim: 1, attempts: 1, sealed: 'x', ...times })
  await collection('logouts').insert({ id: 'logout', client_id: 'c', state: 'due', claim: 0, attempts: 0, ...times })
  await collection('logouts').insert({ id: 'done', client_id: 'c', state: 'done', claim: 1, attempts: 1, ...times })
  await collection('tickets').insert({ id: 'ticket', expired_at: times.expired_at })
  await collection('events').put({ id: '0000000000009999', key: 'k', expired_at: times.expired_at })
  await collection('feed').put({ id: 'feed', generation: 'before', claim: 4, leased_until: times.due_at, last: 9999 })
  t.equal((await run(['backup', '--file', file])).code, 0)
  await service.close()
  // An earlier release had fewer tables.
  const old = new DatabaseSync(file)
  old.exec('DROP TABLE "proofs"; DELETE FROM "store.keys" WHERE collection = \'proofs\'; DROP TABLE "store.layout"')
  old.close()

  const { code, stdout, stderr } = await run(['restore', '--file', file])
  t.equal(code, 0, stderr)
  t.match(stdout, /^users +1$/m)
  const restored = (await openService(t, dir)).store
  const read = (name: string, id: string) => restored.collection<Document & Record<string, Json>>(name).get(id)
  t.match(await read('deliveries', 'waits'), { state: 'failed', failure: 'RESTORED', claim: 3, sealed: 'x' })
  t.equal(await restored.collection('deliveries').count({ equal: { state: 'failed' } }), 2)
  t.match(await read('deliveries', 'failed'), { failure: 'EENVELOPE' })
  t.match(await read('logouts', 'logout'), { state: 'failed', failure: 'RESTORED' })
  t.match(await read('logouts', 'done'), { state: 'done' })
  t.equal(await read('tickets', 'ticket'), null)
  t.match(await read('events', '0000000000009999'), { key: 'k' })
  const feed = await read('feed', 'feed')
  t.match(feed, { generation: /^\w{8}$/, last: 9999 })
})

t.test('restore parks the mails about changes that were not published yet, and an operator may send them', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const file = join(dir, 'backup.db')
  const sent: string[] = []
  const accounts = { mail: { local: true, send: async ({ to, subject }: { to: string, subject: string }) => { sent.push(`${to} ${subject}`) } }, getIssuer: () => new URL('https://id.example'), serviceName: 'Id' }
  const service = await openService(t, dir, { accounts })
  const { user_id } = await addUser(service, 'ann@example.com')
  const { user_id: gone } = await addUser(service, 'bob@example.com')
  await service.users.patch(user_id, { data: { password: 'another' } }, { user_id: '', isAdmin: true })
  await service.users.patch(gone, { data: { password: 'another' } }, { user_id: '', isAdmin: true })
  // Its events are in the inbox then.
  await service.users.remove(gone, { user_id: '', isAdmin: true })
  t.equal((await run(['backup', '--file', file])).code, 0)
  await service.close()
  t.equal((await run(['restore', '--file', file])).code, 0)
  t.strictSame(sent, [])
  const restored = await openService(t, dir, { accounts })
  await restored.events.flush()
  await restored.accounts.outbox!.flush()
  t.strictSame(sent, [], 'they may have been sent since')
  const failed = (await Array.fromAsync(restored.accounts.outbox!.list('failed'))).flat()
  t.match(failed.map(({ kind, failure, to }) => [kind, failure, to]).sort(), [['password-changed', 'RESTORED', 'ann@example.com'], ['password-changed', 'RESTORED', 'bob@example.com']])
  await restored.accounts.retryMail(failed[0]!.id)
  await restored.accounts.outbox!.flush()
  t.equal(sent.length, 1)
  t.ok((await Array.fromAsync(restored.events.list({ type: 'user.password_changed' }))).flat().length === 2, 'the events are published')
})

t.test('the time of the last backup is a metric: of this command, and of other tools', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  await run('user create --account ann')
  const services = await openService(t, dir)
  const database = `sqlite:${join(dir, 'identity.db')}`
  const read = async (url: string | undefined = database, { store } = services) => {
    const meter = createMeter('1.2.3')
    readBackup(store, url, () => time, meter)
    return parseOpenMetrics((await meter.render('openmetrics')).text).get('identity_backup_age_seconds')?.samples[0]?.value
  }
  const time = Date.parse('2126-11-24T00:00:00.000Z')
  t.equal(await read(), time / 1000, 'a database that nobody backs up is seen')
  t.equal(await read('mongodb://127.0.0.1/x'), undefined, 'one that other tools back up is not')
  const before = Date.now()
  t.equal((await run(['backup', '--file', join(dir, 'first.db')])).code, 0)
  const made = (await read())!
  t.ok(made <= (time - before) / 1000 && made >= (time - Date.now()) / 1000)
  t.match(await run(['backup', '--file', join(dir, 'first.db')]), { code: 1 })
  t.equal(await read(), made, 'one that failed is none')
  t.match(await run('backup record'), { code: 0, stdout: /^recorded_at +\d{4}-/ })
  t.ok((await read())! <= made)
  await services.close()
  const file = new DatabaseSync(join(dir, 'identity.db'))
  file.exec('PRAGMA user_version = 5')
  file.close()
  t.match(await run(['backup', '--file', join(dir, 'earlier.db')]), { code: 0, stderr: /warning: the backup is good, but its time could not be recorded/ }, 'that of an earlier release is backed up, and stays as it is')
  const after = new DatabaseSync(join(dir, 'identity.db'))
  t.strictSame({ ...after.prepare('PRAGMA user_version').get() }, { user_version: 5 })
  after.close()
})

t.test('a backup of MongoDB by its tools is recorded', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const url = reuseMongoDatabase(t, MONGODB_URL!)
  const run = createCli(t.testdir(), { DATABASE_URL: url, IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') })
  t.match(await run('backup record'), { code: 1, stderr: /there is no database|MongoDB/ }, 'where there is none, none is made')
  await run('user create --account ann')
  t.match(await run('backup record'), { code: 0, stdout: /^recorded_at/ })
})
