import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { COMMANDS } from '../../cli/main.ts'
import { toShort } from '../../cli/help.ts'
import { createCli } from '../helpers/cli.ts'

t.test('help needs no store and no configuration', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir, { PORT: 'wrong' })
  for (const line of ['', 'help', '--help', '-h']) {
    const { code, stdout, stderr } = await run(line)
    t.equal(code, 0, `'${line}'`)
    t.equal(stderr, '')
    const words = stdout.replaceAll(/\s+/g, ' ')
    for (const [name, { summary }] of Object.entries(COMMANDS)) t.ok(stdout.includes(`\n  ${name} `) && words.includes(toShort(summary)), name)
  }
  for (const line of ['help token create', 'token create --help']) {
    const { code, stdout } = await run(line)
    t.equal(code, 0)
    for (const flag of ['[--account] ACCOUNT', '--client ID', '--ttl SECONDS', '--refresh', '--scopes A,B', '--json']) t.ok(stdout.includes(flag), `${line}: ${flag}`)
  }
  t.match((await run('--version')).stdout, /^\d+\.\d+\.\d+\n$/)
  t.notOk(existsSync(join(dir, 'identity.db')))
})

t.test('a wrong command line exits with 2, names the flag and repeats no value', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  await run('bootstrap')
  for (const [line, message, help] of [
    ['user', 'only the beginning of several commands', 'help user'],
    ['client secret --client x', 'only the beginning of several commands', 'help client secret'],
    ['user lst', 'not a command, did you mean user list?', 'help'],
    ['usr list', 'not a command, did you mean user list?', 'help'],
    ['boostrap', 'not a command, did you mean bootstrap?', 'help'],
    ['hunter2', 'not a command', 'help'],
    ['--json', 'no command is given', 'help'],
    ['toString', 'not a command', 'help'],
    ['user list hunter2', 'an argument without a flag: every value follows its flag', 'help user list'],
    ['user list --limt hunter2', '--limt: is not a flag of this command, did you mean --limit?', 'help user list'],
    ['user list --hunter2', '--hunter2: is not a flag of this command', 'help user list'],
    ['user list -x', '--x: is not a flag of this command', 'help user list'],
    ['user list --limit', '--limit: needs a value; one that begins with dashes is written --limit=VALUE', 'help user list'],
    ['user list --contains --json', '--contains: needs a value; one that begins with dashes is written --contains=VALUE', 'help user list'],
    ['user list --json=hunter2', '--json: takes no value', 'help user list'],
    ['user list --limit 1 --limit 2', '--limit: is given twice', 'help user list'],
    ['user list --limit -1', '--limit: must be an integer from 0 to 9007199254740991', 'help user list'],
    ['user list --limit 1e3', '--limit: must be an integer from 0 to 9007199254740991', 'help user list'],
    ['user create --name x', 'ACCOUNT: is required', 'help user create'],
    ['user create --account x --password hunter2', '--password: is not a flag of this command, did you mean --password-stdin?', 'help user create'],
    ['client create --owner a --name x --scope read,write', '--scope: must not contain a comma; repeat the flag for each scope', 'help client create'],
    ['client patch --client c --scope read,write', '--scope: must not contain a comma; repeat the flag for each scope', 'help client patch'],
    ['client export', '--csv: is required', 'help client export'],
    ['client export --csv - --json', '--json: cannot be combined with --csv -, which writes the CSV to stdout', 'help client export'],
    ['token create --account a --client c --ttl 0', '--ttl: must be an integer from 1 to 315360000', 'help token create'],
    ['bootstrap --ttl 315360001', '--ttl: must be an integer from 1 to 315360000', 'help bootstrap'],
    ['testing --port 65536', '--port: must be an integer from 0 to 65535', 'help testing']
  ] as const) {
    const { code, stdout, stderr } = await run(line)
    t.equal(code, 2, line)
    t.equal(stdout, '')
    t.equal(stderr, `fastify-identity: ${message}\nfastify-identity: see: npm run -s cli -- ${help}\n`)
  }
})

t.test('flags may come before the command, and may be written with =', async (t) => {
  const run = createCli(t.testdir())
  await run('bootstrap')
  t.strictSame((await run('--json user list --limit=0 --contains=nobody')).json(), { data: [] })
})

t.test('a wrong environment is reported as the service reports it', async (t) => {
  const run = createCli(t.testdir(), { PORT: 'x', LOG_LEVEL: 'loud' })
  const { code, stdout, stderr } = await run('user list --json')
  t.equal(code, 1)
  t.equal(stdout, '')
  t.match(stderr, /^fastify-identity: PORT: must be .*\nfastify-identity: LOG_LEVEL: must be .*\n$/)
})

t.test('a store that fails is reported with its cause, and without its password', async (t) => {
  const run = createCli(t.testdir(), { DATABASE_URL: 'mongodb://ann:hunter2@127.0.0.1:1/x', IDENTITY_STORE_TIMEOUT: '200', IDENTITY_DATA_DIR: t.testdir() })
  const { code, stdout, stderr } = await run('user list --json')
  t.equal(code, 1)
  t.equal(stdout, '')
  t.match(stderr, /^fastify-identity: MongoDB at 127\.0\.0\.1:1 cannot be opened: /)
  t.notMatch(stderr, /hunter2/)
})
