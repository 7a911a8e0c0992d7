import { chmodSync, existsSync, readFileSync, readdirSync, realpathSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Command } from '../cli/command.ts'
import { COMMANDS } from '../cli/main.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import { openStore } from '../lib/store/index.ts'
import { createCli } from './helpers/cli.ts'
import { createMongoDatabase } from './helpers/mongo-database.ts'
import { MONGODB_URL } from './helpers/mongodb.ts'
import { runProgram, serviceEnv, startProgram } from './helpers/process.ts'

const PRODUCTION = { NODE_ENV: 'production', IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('hex'), IDENTITY_SHUTDOWN_DELAY: '0' }
const REFUSED = /there is no database, and an empty one is made only by `bootstrap`, `serve --create` or IDENTITY_CREATE_DATABASE=on/
const MADE = /a new, empty database was made: /
const LISTENS = /"msg":"Server listening at (http:[^"]+)"/

t.test('in production a missing or empty database is an error, until it is asked for', async (t) => {
  const dir = t.testdir()
  const folder = join(dir, 'volume')
  const env = serviceEnv(folder, PRODUCTION)
  const refused = await runProgram(t, 'server.ts', { env })
  t.match(refused, { code: 1, stderr: REFUSED })
  t.notOk(existsSync(folder), 'and not even its folder is made')

  const service = startProgram(t, 'server.ts', { args: ['--create'], env })
  await service.seen(LISTENS)
  await service.seen(MADE)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)

  truncateSync(join(folder, 'identity.db'), 0)
  t.match(await runProgram(t, 'server.ts', { env }), { code: 1, stderr: REFUSED }, 'a file that was emptied is no database')
  rmSync(join(folder, 'identity.db'))
  const bootstrap = await runProgram(t, 'cli.ts', { args: ['bootstrap'], env })
  t.match(bootstrap, { code: 0, stderr: MADE })
  const again = startProgram(t, 'server.ts', { env })
  await again.seen(LISTENS)
  t.notMatch(again.stdout(), MADE, 'and it is new only once')
})

/** The flags without which a command says what is missing, before it looks for the database. */
const REQUIRED: Record<string, string> = {
  'user import': '- --from ndjson --source old --dry-run', 'client export': '--csv -', 'event export': '--file -', 'sessions end': 'ann', 'mail retry': '--all', 'logout retry': '--all', 'work retry': '--kind webhook', 'jobs retry': '--kind webhook'
}

const isReading = (command: Command): boolean => 'run' in command && (typeof command.creates === 'function' || command.creates === false)

t.test('a command that reads makes no database, folder and key file', async (t) => {
  const dir = t.testdir()
  const run = createCli(join(dir, 'data'))
  const names = Object.keys(COMMANDS).filter((name) => isReading(COMMANDS[name]!))
  for (const name of ['user list', 'user show', 'user export', 'client list', 'event list', 'keys status', 'user import']) t.ok(names.includes(name), name)
  for (const name of names) {
    const required = Object.entries(COMMANDS[name]!.flags).flatMap(([flag, { required }]) => required === true ? [`--${flag}`, 'x'] : [])
    const words = REQUIRED[name]?.split(' ') ?? required
    const ran = await run([...name.split(' '), ...words])
    t.match(ran, { code: 1, stdout: '' }, name)
    t.match(ran.stderr, REFUSED, name)
    t.strictSame(readdirSync(dir), [], name)
  }
})

t.test('a command that reads makes no key for a database that has none', async (t) => {
  const dir = t.testdir()
  const store = await openStore(`sqlite:${dir}/identity.db`, { collections: COLLECTIONS, now: Date.now })
  await store.close()
  const run = createCli(dir)
  for (const line of ['user list', 'keys status', 'user import - --from ndjson --source old --dry-run']) {
    t.match(await run(line), { code: 1, stdout: '', stderr: /secret\.key: it is missing, and only a start that may make a database makes one|there is no database/ }, line)
    t.notOk(existsSync(join(dir, 'secret.key')), line)
  }
})

t.test('a missing key file is named and not replaced; a file that others may read is reported', async (t) => {
  const dir = realpathSync(t.testdir())
  const run = createCli(dir)
  await run('bootstrap')
  const key = join(dir, 'secret.key')
  renameSync(key, `${key}.old`)
  const { code, stderr } = await run('user list')
  t.equal(code, 1)
  t.ok(stderr.startsWith(`fastify-identity: key file ${key}: it is missing, and a new key could not open`), stderr)
  t.notOk(existsSync(key))

  renameSync(`${key}.old`, key)
  t.equal((await run('user list')).stderr, '')
  chmodSync(key, 0o640)
  chmodSync(join(dir, 'identity.db'), 0o604)
  t.equal((await run('user list')).stderr, `fastify-identity: warning: the key file ${key} is open to others than its owner (mode 0640): chmod 600 it
fastify-identity: warning: the database file ${join(dir, 'identity.db')} is open to others than its owner (mode 0604): chmod 600 it
`)
})

t.test('another key is refused with the file that it is in, and so is a folder', async (t) => {
  const [one, two] = [join(t.testdir({ one: {}, two: { 'secret.key': {} } }), 'one'), join(t.testdirName, 'two')]
  await createCli(one)('bootstrap')
  const key = readFileSync(join(one, 'secret.key'), 'utf8')
  rmSync(join(one, 'secret.key'))
  t.match(await createCli(one, { IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('hex') })('user list'), {
    stderr: 'fastify-identity: the secret key is not the one this database was sealed with\n'
  })
  t.match(await createCli(one, { IDENTITY_SECRET_KEY: key.trim() })('user list'), { code: 0 })
  t.match(await createCli(two)('bootstrap'), { stderr: `fastify-identity: key file ${join(two, 'secret.key')}: it cannot be read: EISDIR: illegal operation on a directory, read\n` })
})

t.test('an empty MongoDB database', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const url = createMongoDatabase(t, MONGODB_URL!)
  const warnings: string[] = []
  const onWarning = (message: string) => warnings.push(message)
  await t.rejects(openStore(url, { create: false, onWarning }), { code: 'ErrDb', message: REFUSED })
  await t.rejects(openStore(url, { create: false, onWarning }), { message: REFUSED }, 'the first attempt made nothing')
  await (await openStore(url, { onWarning })).close()
  await (await openStore(url, { create: false, onWarning })).close()
  t.match(warnings, [MADE])
  t.equal(warnings.length, 1)
})
