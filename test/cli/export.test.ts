import { chmodSync, readFileSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { runCommandLine } from '../../cli/main.ts'
import { readConfig } from '../../config.ts'
import { openServices } from '../../lib/identity.ts'
import { createCli } from '../helpers/cli.ts'

const OPERATOR = { user_id: 'operator', isAdmin: true }
const CLIENTS = 250

const env = (dir: string) => ({ DATABASE_URL: `sqlite:${dir}/db/identity.db`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' })

/** A store with more clients than one batch. */
async function fill (dir: string): Promise<void> {
  const services = await openServices(readConfig(env(dir)).services)
  const names = Array.from({ length: CLIENTS }, (_, index) => `client ${String(index).padStart(3, '0')}, "quoted" and plain`)
  await Promise.all(names.map((name) => services.clients.create({ data: { redirectUris: [], scopes: ['a'], name }, credentials: true }, OPERATOR)))
  await services.close()
}

const dir = t.testdir({ db: {}, out: {} })
const run = createCli(dir, env(dir))
t.before(() => fill(dir))

const out = (name: string) => join(dir, 'out', name)
const rows = (text: string) => parse<Record<string, string>>(text, { bom: true, columns: true })

t.test('all clients are written to a file that only its owner can read', async (t) => {
  const { code, stdout, stderr, json } = await run(['client', 'export', '--csv', out('a.csv'), '--json'])
  t.equal(code, 0)
  t.equal(stderr, '')
  t.match(stdout, /^\{.*\}\n$/)
  t.strictSame(json(), { file: out('a.csv'), clients: CLIENTS })
  const read = rows(readFileSync(out('a.csv'), 'utf8'))
  t.equal(read.length, CLIENTS)
  t.match(read[CLIENTS - 1], { name: `client ${CLIENTS - 1}, "quoted" and plain`, scopes: '["a"]', clientSecret: /^\w{16}$/ })
  t.equal(statSync(out('a.csv')).mode & 0o777, 0o600)
  t.strictSame(readdirSync(join(dir, 'out')), ['a.csv'])
})

t.test('the same on stdout', async (t) => {
  const { stdout, stderr } = await run('client export --csv -')
  t.equal(rows(stdout).length, CLIENTS)
  t.equal(stderr, '', 'no progress without a terminal')
})

t.test('an old file is replaced, whatever its mode', async (t) => {
  const file = out('a.csv')
  chmodSync(file, 0o644)
  const { ino } = statSync(file)
  t.match((await run(['client', 'export', '--csv', file])).stdout, `file     ${file}\nclients  ${CLIENTS}\n`)
  t.not(statSync(file).ino, ino)
  t.equal(statSync(file).mode & 0o777, 0o600)
})

t.test('a terminal shows the progress', async (t) => {
  const { stderr } = await run(['client', 'export', '--csv', out('a.csv')], { terminal: true })
  t.match(stderr, new RegExp(`100%  ${CLIENTS} of ${CLIENTS} clients`))
})

t.test('a path that cannot be written is reported', async (t) => {
  symlinkSync('/dev/null', out('link'))
  for (const [file, message] of [
    [join(dir, 'none', 'a.csv'), 'cannot be written (ENOENT)'],
    [join(dir, 'out'), 'exists and is not a regular file'],
    [out('link'), 'exists and is not a regular file']
  ] as const) t.match(await run(['client', 'export', '--csv', file]), { code: 1, stdout: '', stderr: `fastify-identity: the file ${file} ${message}\n` })
})

t.test('an interrupted export leaves the old file, and no draft', async (t) => {
  const before = statSync(out('a.csv')).mtimeMs
  const files = readdirSync(join(dir, 'out'))
  const controller = new AbortController()
  const stderr = Object.assign(new PassThrough(), { isTTY: true })
  // The progress appears with the first batch.
  stderr.once('data', () => controller.abort())
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr }
  t.equal(await runCommandLine(['client', 'export', '--csv', out('a.csv')], env(dir), streams, controller.signal), 1)
  t.equal(statSync(out('a.csv')).mtimeMs, before)
  t.strictSame(readdirSync(join(dir, 'out')), files)
})

t.test('a closed pipe ends it without an error message', async (t) => {
  const stdout = new PassThrough({ highWaterMark: 1 })
  const stderr = new PassThrough()
  stdout.once('readable', () => stdout.destroy(Object.assign(new Error('gone'), { code: 'EPIPE' })))
  const code = await runCommandLine(['client', 'export', '--csv', '-'], env(dir), { stdin: new PassThrough(), stdout, stderr }, new AbortController().signal)
  t.equal(code, 1)
  t.equal(stderr.readableLength, 0)
})
