import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { SETTINGS, type Setting } from '../../cli/settings.ts'
import { GROUPS } from '../../schemas/config.ts'
import { CLIENT_SECRET, KEY, SECRET, createEnvironment } from '../helpers/environment.ts'
import { type Ran, createCli } from '../helpers/cli.ts'
import { writeDefault } from '../helpers/variables.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII='

/** The terminal's output and the document, which must agree. */
async function check (dir: string, env: Record<string, string>, flags = ''): Promise<{ settings: Map<string, Setting>, text: string, ran: Ran }> {
  const run = createCli(dir, { IDENTITY_BCRYPT_COST: '', IDENTITY_PASSWORD_MIN: '', ...env })
  const ran = await run(`config check --json ${flags}`)
  const { settings } = ran.json() as unknown as { settings: Setting[] }
  return { settings: new Map(settings.map((setting) => [setting.name, setting])), text: (await run(`config check ${flags}`)).stdout, ran }
}

/** The line of a setting. */
const find = (text: string, name: string): string[] => new RegExp(`^ {2}${name} +(\\w+) +(.+)$`, 'm').exec(text)?.slice(1) ?? []

t.test('every setting is shown in its group, with its default', async (t) => {
  const { settings, text, ran } = await check(t.testdir(), {})
  t.match(ran, { code: 0, stderr: '' })
  t.strictSame([...settings.keys()], SETTINGS.map(([, name]) => name))
  const groups = text.split('\n\n').map((part) => part.split('\n')).filter(([title = '']) => Object.hasOwn(GROUPS, title))
  t.strictSame(groups.map(([title]) => title), Object.keys(GROUPS))
  for (const [group, name, schema] of SETTINGS) {
    const setting = settings.get(name)
    t.match(setting, { group, source: name === 'DATABASE_URL' ? 'variable' : 'default', description: schema.description })
    t.ok((setting?.value === undefined) !== (setting?.absent === undefined), `${name} has a value, or what it means that there is none`)
    if (schema.default !== undefined) t.equal(setting?.default, schema.default)
    const lines = groups.find(([title]) => title === group)?.filter((line) => line.startsWith(`  ${name} `)) ?? []
    t.equal(lines.length, 1, `${name} is in its group once`)
    if (name !== 'DATABASE_URL') t.strictSame(find(text, name).slice(0, 2), ['default', setting?.value === undefined ? `(${setting?.absent})` : toText(setting)])
  }
  t.match(settings.get('IDENTITY_MANAGER_ROLES'), { absent: 'all but the admin, service and support roles' })
})

/** A value as the terminal has it. */
function toText ({ value, decided_by: decider, file }: Setting): string {
  const shown = writeDefault(value)
  if (decider !== undefined) return `${shown} (by ${decider})`
  return file === undefined || file === shown ? shown : `${shown} (in ${file})`
}

/** Every variable, with values that a start takes. */
function createAll (dir: string): Record<string, string> {
  const image = `data:image/png;base64,${PNG}`
  mkdirSync(join(dir, 'texts'), { recursive: true })
  return {
    ...createEnvironment(dir),
    DATABASE_URL: `sqlite:${join(dir, 'identity.db')}`,
    IDENTITY_TEXTS: join(dir, 'texts'),
    IDENTITY_RATE_LIMIT: '61',
    IDENTITY_LOGO: image,
    IDENTITY_LOGO_DARK: image,
    IDENTITY_MAIL_LOGO: image,
    IDENTITY_WORKERS: '1'
  }
}

t.test('every setting is shown with the value of its variable, and secrets are not', async (t) => {
  const dir = t.testdir()
  const env = createAll(dir)
  const { settings, text, ran } = await check(dir, env)
  t.match(ran, { code: 0, stderr: '' })
  for (const [, name, schema] of SETTINGS) {
    const setting = settings.get(name)
    const isFile = name.endsWith('_FILE')
    t.equal(setting?.source, isFile ? 'file' : 'variable', name)
    if (schema.writeOnly !== true && env[name]?.startsWith('data:') === false) t.equal(writeDefault(setting?.value), env[name], name)
    t.strictSame(find(text, name).slice(0, 2), [isFile ? 'file' : 'variable', toText(setting!)])
  }
  const values = Object.fromEntries([...settings].map(([name, { value }]) => [name, value]))
  t.match(values, { IDENTITY_SECRET_KEY: 'set', IDENTITY_MAIL_URL: 'smtps://mail.example.org', IDENTITY_MIGRATE_URL: 'https://login.example.org/verify' })
  t.match(values['IDENTITY_LOGO'], /^data:image\/png, \d+ characters$/)
})

t.test('every setting that can be in a file is shown with its file', async (t) => {
  const dir = t.testdir()
  const all = createAll(dir)
  const files = Object.fromEntries(Object.keys(Object.assign({}, ...Object.values(GROUPS))).filter((name) => name.endsWith('_FILE')).map((name) => {
    const base = name.slice(0, -'_FILE'.length)
    if (all[base] === undefined) return [base, all[name]!]
    writeFileSync(join(dir, base), all[base], { mode: 0o600 })
    return [base, join(dir, base)]
  }))
  t.strictSame(Object.keys(files).sort(), ['DATABASE_URL', 'IDENTITY_MAIL_URL', 'IDENTITY_MIGRATE_SECRET', 'IDENTITY_SECRET_KEY', 'IDENTITY_UPSTREAMS'])
  const env = { ...all, ...Object.fromEntries(Object.entries(files).flatMap(([base, file]) => [[base, ''], [`${base}_FILE`, file]])) }
  const { settings, text, ran } = await check(dir, env)
  t.match(ran, { code: 0, stderr: '' })
  for (const [base, file] of Object.entries(files)) {
    const setting = settings.get(base) ?? settings.get(`${base}_FILE`)
    t.match(setting, { source: 'file', file })
    t.strictSame(find(text, setting!.name), ['file', toText(setting!)])
  }
  t.equal(settings.get('DATABASE_URL')?.value, `sqlite:${join(dir, 'identity.db')}`)
  t.equal(settings.get('IDENTITY_SECRET_KEY')?.value, 'set')
})

t.test('a flag of serve is shown as an option', async (t) => {
  const dir = t.testdir()
  const { settings, text } = await check(dir, { IDENTITY_WORKERS: '2', IDENTITY_CREATE_DATABASE: 'off' }, '--workers 3 --create')
  t.match(settings.get('IDENTITY_WORKERS'), { value: 3, source: 'option' })
  t.match(settings.get('IDENTITY_CREATE_DATABASE'), { value: true, source: 'option' })
  t.strictSame(find(text, 'IDENTITY_WORKERS'), ['option', '3'])
  const { ran } = await check(dir, {}, '--workers 0')
  t.match(ran, { code: 1, stderr: /^fastify-identity: --workers: must be an integer from 1 to 256 or auto/ })
})

t.test('a setting that others decide names them', async (t) => {
  const { settings } = await check(t.testdir(), { IDENTITY_RATE_LIMIT: 'off', IDENTITY_REFRESH_MAX: '3600', NODE_ENV: 'production', IDENTITY_SECRET_KEY: KEY }, '--create')
  t.match(Object.fromEntries(settings), {
    IDENTITY_WRITE_LIMIT: { value: false, decided_by: 'IDENTITY_RATE_LIMIT' },
    IDENTITY_CLIENTS_PER_USER: { value: false, decided_by: 'IDENTITY_RATE_LIMIT' },
    IDENTITY_SIGN_IN_LIMIT: { value: false, decided_by: 'IDENTITY_RATE_LIMIT' },
    IDENTITY_REFRESH_TTL: { value: 3600, decided_by: 'IDENTITY_REFRESH_MAX' },
    IDENTITY_SHUTDOWN_DELAY: { value: 5000, decided_by: 'NODE_ENV' }
  })
})

const MARKER = 'hunter2-marker'

/** Secrets in their own variables, in wrong ones, and in files. */
function * listSecrets (dir: string): Generator<[what: string, env: Record<string, string>]> {
  const good = createAll(dir)
  const url = `mongodb://user:${MARKER}@127.0.0.1:1/x?serverSelectionTimeoutMS=100&authMechanismProperties=AWS_SESSION_TOKEN:${MARKER}`
  const secrets = {
    DATABASE_URL: url,
    IDENTITY_SECRET_KEY: KEY,
    IDENTITY_MAIL_URL: `smtps://user:${MARKER}@mail.example.org`,
    IDENTITY_MIGRATE_URL: `https://login.example.org/verify?key=${MARKER}`
  }
  const writeOnly = SETTINGS.filter(([,, schema]) => schema.writeOnly === true).map(([, name]) => name)
  t.strictSame(writeOnly.sort(), Object.keys(secrets).sort(), 'every secret is tried')
  yield ['all', { ...good, ...secrets, IDENTITY_STORE_TIMEOUT: '300' }]
  yield ['user information', { ...good, IDENTITY_MIGRATE_URL: `https://user:${MARKER}@login.example.org/verify` }]
  for (const name of writeOnly) {
    yield [`${name} is wrong`, { ...good, [name]: MARKER }]
    yield [`${name} is a URL of another kind`, { ...good, [name]: `ftp://user:${MARKER}@example.org/${MARKER}` }]
  }
  for (const [, name] of SETTINGS.filter(([, name]) => name.endsWith('_FILE'))) {
    for (const secret of [KEY, `https://user:${MARKER}@example.org`]) yield [`a secret in ${name}`, { ...good, [name]: secret }]
  }
  for (const base of ['DATABASE_URL', 'IDENTITY_SECRET_KEY', 'IDENTITY_MAIL_URL']) {
    for (const secret of [KEY, url]) yield [`a secret in ${base}_FILE`, { ...good, [base]: '', [`${base}_FILE`]: secret }]
  }
  const wrong = join(dir, 'wrong')
  writeFileSync(wrong, MARKER, { mode: 0o600 })
  for (const name of ['DATABASE_URL_FILE', 'IDENTITY_SECRET_KEY_FILE', 'IDENTITY_MAIL_URL_FILE', 'IDENTITY_UPSTREAMS_FILE', 'IDENTITY_MIGRATE_SECRET_FILE']) {
    yield [`the content of ${name}`, { ...good, [name.slice(0, -'_FILE'.length)]: '', [name]: wrong }]
  }
}

t.test('no output has a secret', async (t) => {
  const dir = t.testdir()
  for (const [what, env] of listSecrets(dir)) {
    const run = createCli(dir, env)
    for (const [line, terminal] of [['config check', false], ['config check', true], ['config check --json', false], ['config check --strict', true]] as const) {
      const { stdout, stderr } = await run(line, { terminal })
      t.match(stdout, /IDENTITY_AUDIT_DAYS/, `${what}: ${line} shows the settings`)
      for (const secret of [MARKER, KEY, SECRET, CLIENT_SECRET, 'word@mail']) t.notOk(`${stdout}${stderr}`.includes(secret), `${what}: ${line}`)
    }
  }
})

t.test('a terminal gets at most 80 columns, and a URL stays whole', async (t) => {
  const dir = t.testdir()
  const long = `https://id.example.com/${'a-long-path/'.repeat(8)}x`
  for (const env of [{}, createAll(dir), { PORT: 'x', IDENTITY_SMTP_SERVER_URL: 'x' }, { ...createAll(dir), IDENTITY_MANAGER_ROLES: 'role '.repeat(40) }]) {
    const { stdout, stderr } = await createCli(dir, env)('config check', { terminal: true })
    const lines = `${stdout}${stderr}`.split('\n')
    const isPath = (line: string) => /^ *\S+$/.test(line)
    t.strictSame(lines.filter((line) => line.length > 80 && !isPath(line)), [])
  }
  const { stdout } = await createCli(dir, { IDENTITY_TERMS_URL: long })('config check', { terminal: true })
  t.ok(stdout.split('\n').some((line) => line.trim() === long))
})
