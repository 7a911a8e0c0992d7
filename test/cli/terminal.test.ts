/**
 * What a person sees on a terminal, and what a program reads instead.
 * @module
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t from 'tap'
import { findGroupOf, toUsage } from '../../cli/help.ts'
import { parseFlags } from '../../cli/args.ts'
import { cut, measure, wrap } from '../../cli/look.ts'
import { COMMANDS } from '../../cli/main.ts'
import { Table } from '../../cli/table.ts'
import { createCli } from '../helpers/cli.ts'

const ESC = '\u001b['
const PLAIN = { width: 80, paint: (_format: unknown, text: string) => text }

const isWide = (text: string): boolean => text.split('\n').some((line) => measure(line) > 80)

t.test('every help fits 80 columns, has an example that parses, and names what is required', async (t) => {
  const run = createCli(t.testdir())
  for (const line of ['help', 'help user', 'help client secret', ...Object.keys(COMMANDS).map((name) => `help ${name}`)]) {
    const { code, stdout } = await run(line, { terminal: true })
    t.equal(code, 0, line)
    // eslint-disable-next-line no-control-regex
    t.notOk(isWide(stdout.replaceAll(/\x1b\[\d+m/g, '')), line)
  }
  for (const [name, command] of Object.entries(COMMANDS)) {
    const words = [...command.example.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')
    const count = name.split(' ').length
    t.equal(words.slice(0, count).join(' '), name, `the example of ${name}`)
    const end = words.indexOf('>')
    t.doesNotThrow(() => parseFlags(command.flags, words.slice(count, end < 0 ? undefined : end)), command.example)
    t.not(findGroupOf(name), undefined, `${name} is in a group`)
    for (const [flag, { required, value = '' }] of Object.entries(command.flags)) if (required === true) t.match(toUsage(name, command), value, `${name}: ${flag}`)
  }
  t.equal(toUsage('user show', COMMANDS['user show']!), 'user show ACCOUNT')
  t.equal(toUsage('sessions end', COMMANDS['sessions end']!), 'sessions end (ACCOUNT | --all) [FLAGS]')
})

t.test('what a command is about needs no flag', async (t) => {
  const about = Object.entries(COMMANDS).filter(([, { flags }]) => flags.account !== undefined || flags.user?.or !== undefined)
  t.ok(about.length > 20)
  for (const [name, { flags }] of about) t.equal((flags.account ?? flags.user)?.operand, true, name)
  const run = createCli(t.testdir())
  await run('user create ann --name Ann')
  t.match((await run('user show ann --json')).json(), { account: 'ann', name: 'Ann' })
  t.match((await run('user show --account ann --json')).json(), { account: 'ann' })
  t.match((await run('--json user show -- ann')).json(), { account: 'ann' })
  const { clientId } = (await run('client create --owner ann --name Shop --json')).json()
  t.match((await run(`client patch ${clientId?.slice(-8)} --name Store --json`)).json(), { clientId }, 'the end of an id, as a table shows it')
})

t.test('a table fits a terminal, and is complete elsewhere', async (t) => {
  const run = createCli(t.testdir(), { NO_COLOR: '1' })
  await run(['user', 'create', 'somebody.with-a-long-name@department.example.com', '--name', 'Some Body With A Long Name', '--role', 'editor'])
  const { clientId } = (await run(['client', 'create', '--owner', 'somebody.with-a-long-name@department.example.com', '--name', 'A shop of many words', '--scope', 'one', '--scope', 'two', '--json'])).json()
  for (const line of ['user list', 'client list', 'event list', 'keys status', 'work list']) {
    const { stdout } = await run(line, { terminal: true })
    t.notOk(isWide(stdout), `${line}\n${stdout}`)
    t.notMatch(stdout, ESC, 'NO_COLOR')
  }
  const narrow = (await run('client list', { terminal: true })).stdout
  t.match(narrow, `…${clientId?.slice(-8)}`)
  t.match(narrow, 'somebody', 'the owner by account')
  t.match(narrow, /Shortened to fit: --json shows everything\.\n$/)
  t.match((await run('client list', { terminal: 300 })).stdout, clientId ?? '')
  const { stdout } = await run('client list')
  t.match(stdout, clientId ?? '')
  t.match(stdout, /\dZ$/m, 'the whole time')
  t.notMatch(stdout, /…|Shortened/)
})

t.test('a table without room for its columns is a list of records, and ids stay whole', async (t) => {
  const id = '01M8GES7WQM66TWG0PAMWBWH237m93nljP'
  const table = new Table(['ID', 'OTHER_ID', 'SCOPES', 'NAME'], PLAIN)
  const text = table.write([[id, id, Array(20).fill('scope').join(','), ''], [id, id, 'x', 'y']]) + table.end()
  t.notOk(isWide(text))
  t.match(text, new RegExp(`^ID        ${id}\nOTHER_ID  ${id}\nSCOPES    scope, `))
  t.match(text, `\n\nID        ${id}\nOTHER_ID  ${id}\nSCOPES    x\nNAME      y\n`)
})

t.test('a narrow table leaves out columns: those without a value, and then in the order of the hints', async (t) => {
  const headings = ['TIME', 'KIND', 'NAME', 'NOTE', 'BY', 'EMPTY']
  const row = ['2026-11-28T10:12:45.642Z', 'k'.repeat(20), 'n'.repeat(18), 'o'.repeat(20), 'b'.repeat(20), '']
  const table = new Table(headings, PLAIN, { leave: ['BY', 'KIND'] })
  const text = table.write([row])
  t.match(text, /^TIME +KIND +NAME +NOTE\n2026-11-28 10:12 /)
  t.notOk(isWide(text))
  t.match(table.write([[...row.slice(0, 5), 'late']]), /^2026-11-28 10:12 /)
  t.match(table.end(), /Shortened to fit/)
  const whole = new Table(headings, { ...PLAIN, width: 200 }, { leave: ['BY'] })
  t.match(whole.write([row]), /^TIME +KIND +NAME +NOTE +BY +EMPTY\n/)
  t.equal(whole.end(), '')
  const hidden = new Table(['ONE', 'TWO'], { ...PLAIN, width: 40 }, {})
  t.match(hidden.write([['x'.repeat(38), '']]), /^ONE\n/)
  t.equal(hidden.end(), '', 'a column without values hides nothing')
  hidden.write([['x', 'y']])
  t.match(hidden.end(), /Shortened to fit/, 'until a later row has one')
})

t.test('in 80 columns events show who, why and from where, and a preview a claim a line', async (t) => {
  const run = createCli(t.testdir(), { NO_COLOR: '1', IDENTITY_ISSUER: 'https://identity.example.com' })
  const account = 'somebody.with-a-long-name@department.example.com'
  await run(['user', 'create', account, '--name', 'Some Body With A Long Name', '--role', 'editor'])
  const { clientId } = (await run(['client', 'create', '--owner', account, '--name', 'Shop', '--redirect-uri', 'https://shop.example/callback', '--json'])).json()
  t.match((await run('event list', { terminal: true })).stdout, /^TIME +TYPE +(OUTCOME +)?ACCOUNT/)
  for (const line of [['event', 'list'], ['user', 'why', account], ['user', 'why', account, '--client', 'none'], ['user', 'why', 'somebody@nowhere.example'], ['user', 'mails', account], ['token', 'preview', clientId ?? '', '--user', account, '--scope', 'openid profile email roles']]) {
    const { code, stdout, stderr } = await run(line, { terminal: true })
    t.equal(code, 0, stderr)
    t.notOk(isWide(stdout), `${line.join(' ')}\n${stdout}`)
  }
  const { stdout } = await run(['token', 'preview', clientId ?? '', '--user', account, '--scope', 'openid'], { terminal: true })
  t.match(stdout, /\nid_token\n {2}iss +https:\/\/identity\.example\.com\n {2}aud /)
  t.match(stdout, /\nnot_requested +The app does not request it/, 'each code once, with its meaning')
})

t.test('texts are measured, cut and broken as a terminal shows them', async (t) => {
  t.equal(measure('日本e\u0301👍'), 7)
  t.equal(cut('日本語', 5), '日本…')
  t.equal(cut('short', 5), 'short')
  t.equal(wrap('one two three', { width: 7, indent: 2 }), 'one\n  two\n  three')
  t.equal(wrap('https://a.example/a-link-that-nobody-breaks', { width: 10 }), 'https://a.example/a-link-that-nobody-breaks')
})

t.test('colours are on a terminal, and not with NO_COLOR', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  await run('user create ann')
  t.match((await run('user list', { terminal: true })).stdout, `${ESC}1mUSER_ID`)
  t.match((await run('user show nobody', { terminal: true })).stderr, `${ESC}31mfastify-identity:${ESC}39m ACCOUNT`)
  for (const ran of [await run('user list'), await createCli(dir, { NO_COLOR: '1' })('user list', { terminal: true }), await createCli(dir, { TERM: 'dumb' })('help', { terminal: true })]) {
    t.notMatch(ran.stdout + ran.stderr, ESC)
  }
})

t.test('exit codes: done, refused, wrong usage', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  t.equal((await run('user create ann')).code, 0)
  for (const [line, code] of [
    ['user show nobody', 1], ['user create ann', 1], ['client delete nothing', 1], ['restore none.db', 1], ['mail list', 1], ['upstream test none', 1], ['user roles ann --remove none', 1],
    ['user import none.json --from auth0', 1], ['event list --from yesterday', 1], ['client document test https://a.example/x', 1],
    ['', 0], ['user', 2], ['usr list', 2], ['user show', 2], ['user show ann bob', 2], ['user list --bad', 2], ['user list --limit', 2], ['user list --limit x', 2],
    ['user list x', 2], ['keys rotate --alg none', 2], ['sessions end', 2], ['sessions end ann --all', 2], ['client list --unused-since 9', 2], ['completion ksh', 2]
  ] as const) t.equal((await run(line)).code, code, line)
  t.equal((await createCli(dir, { PORT: 'x' })('user list')).code, 1, 'a wrong environment')
})

const terminal = (answer: string) => ({ terminal: true, stdin: Object.assign(Readable.from([answer]), { isTTY: true }) })

t.test('a terminal is asked before what cannot be undone', async (t) => {
  const run = createCli(t.testdir(), { NO_COLOR: '1', IDENTITY_PERSONAL_TOKENS: '30' })
  await run('user create ann')
  const { clientId } = (await run('client create --owner ann --name Shop --credentials --json')).json()
  const { id: tokenId } = (await run(`client token create ${clientId} --name SCIM --json`)).json()
  const { webhookId } = (await run('webhook create --name hook --url https://hook.example/ --json')).json()
  await run('resource create https://api.example --name Api')
  const lines: Record<string, string> = {
    'user delete': 'user delete ann',
    'user factors reset': 'user factors reset ann',
    'user identities remove': 'user identities remove ann --id x',
    'user identities replace': 'user identities replace ann --upstream x --subject aaaaaaaaaaaaaaaaaaaaaa',
    'user email release': 'user email release ann',
    'user import': 'user import --withdraw run',
    'user token remove': 'user token remove ann --token x',
    'client patch': `client patch ${clientId} --regen-secret`,
    'client delete': `client delete ${clientId}`,
    'client secret remove': `client secret remove ${clientId} --secret first`,
    'client token remove': `client token remove ${clientId} --token ${tokenId}`,
    'client key remove': `client key remove ${clientId} --key k`,
    'resource remove': 'resource remove https://api.example',
    'sessions end': 'sessions end --all',
    'webhook delete': `webhook delete ${webhookId}`,
    'keys rotate': 'keys rotate --drop-former',
    restore: `restore ${join(import.meta.dirname, '../../package.json')}`,
    'config check': 'config check --migrate'
  }
  t.same(Object.keys(lines).sort(), Object.keys(COMMANDS).filter((name) => COMMANDS[name]?.flags.yes !== undefined).sort(), 'every command that asks')
  for (const line of Object.values(lines)) {
    for (const answer of ['n\n', '\n', '']) {
      const ran = await run(line, terminal(answer))
      t.equal(ran.code, 1, line)
      t.match(ran.stderr, /\?[^?]*\[y\/N\] \n?fastify-identity: nothing was changed\n$/, line)
    }
  }
  t.match((await run('client list --json')).json(), { data: [{ clientId }] }, 'nothing was changed')
  t.match(await run(`client delete ${clientId} --json`, terminal('y\n')), { code: 0, stdout: /^\{.*\}\n$/, stderr: 'Delete the client Shop? [y/N] ' })
  t.match(await run('user delete ann --yes', { terminal: true, stdin: Object.assign(new Readable({ read () {} }), { isTTY: true }) }), { code: 0, stderr: '' })
  await run('user create bob')
  t.match(await run('user delete bob', { terminal: true }), { code: 0, stderr: '' }, 'stdin is no terminal')
})

const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0

t.test('in a terminal of its own, the program asks and Ctrl-C stops it', { skip: !hasScript && 'there is no script(1)' }, async (t) => {
  const dir = t.testdir()
  await createCli(dir)('user create ann')
  const cli = join(import.meta.dirname, '../../cli.ts')
  const { NODE_OPTIONS, ...rest } = process.env
  const type = (words: string, input: string) => {
    const command = `stty cols 80; ${process.execPath} ${cli} ${words}`
    const env = { ...rest, DATABASE_URL: `sqlite:${dir}/identity.db`, IDENTITY_BCRYPT_COST: '4', NO_COLOR: '1' }
    // The input comes when the question stands there.
    return spawnSync('sh', ['-c', `{ sleep 0; while ! grep -q 'y/N' '${dir}/out' 2> /dev/null; do sleep 0.1; done; printf '${input}'; } | script -qefc "${command}" '${dir}/out'; code=$?; rm -f '${dir}/out'; exit $code`], { env, timeout: 60_000, encoding: 'utf8' })
  }
  t.match(type('user delete ann', 'n\\n'), { status: 1, stdout: /Delete the user ann\? \[y\/N\] [^]*nothing was changed/ })
  t.match(type('user delete ann', '\\003'), { status: 130 })
  t.match(type('user delete ann', 'y\\n'), { status: 0, stdout: /account +ann/ })
})
