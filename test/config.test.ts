import { chmodSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ConfigError, readConfig } from '../config.ts'
import { isServiceLink } from '../lib/service-link.ts'
import { EnvironmentSchema } from '../schemas/config.ts'
import { OptionsSchema } from '../schemas/options.ts'
import { KEY, SECRET, createEnvironment } from './helpers/environment.ts'

/** The problems that the error lists. */
function problemsOf (env: Record<string, string>): readonly string[] {
  try {
    readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return ['(no error)']
}

t.test('an empty environment gives the defaults, which are those of the options', async (t) => {
  const options = OptionsSchema.properties
  t.strictSame(readConfig({}), {
    host: '127.0.0.1',
    port: 3000,
    logLevel: 'info',
    rateLimit: options.rateLimit.default,
    writeLimit: 120,
    stallTimeout: options.stallTimeout.default,
    shutdownTimeout: 10_000,
    shutdownDelay: 0,
    workers: 1,
    openapi: true,
    forwardAuth: false,
    logCallers: true,
    trustProxy: false,
    oidc: { accountPath: '/account', accessTtl: 3600, refreshTtl: 2_592_000, sessionTtl: 1_209_600, sessionMax: 7_776_000, refreshMax: 31_536_000, signInLimit: 10 },
    console: { path: '/admin' },
    bridge: { prefix: '/bridge/client' },
    services: {
      database: 'sqlite:data/identity.db',
      storeTimeout: options.storeTimeout.default,
      walLimit: 1024,
      production: false,
      bcryptCost: 12,
      hashQueue: options.hashQueue.default,
      passwordMin: options.passwordMin.default,
      factors: 'optional',
      passkeys: true,
      roles: { admin: 'admin', manager: 'manager', service: 'service' },
      outboundHosts: [],
      clientsPerUser: 100,
      personalTokens: false,
      auditDays: 400,
      addresses: 'full'
    },
    people: { signUp: false, undoFactors: 72, selfDelete: false },
    warnings: []
  })
})

t.test('every variable sets its part of the configuration', async (t) => {
  const env = createEnvironment(t.testdir())
  t.strictSame(readConfig(env), {
    host: '::1',
    port: 0,
    logLevel: 'silent',
    logFormat: 'text',
    rateLimit: false,
    writeLimit: 6,
    stallTimeout: 700,
    shutdownTimeout: 800,
    shutdownDelay: 900,
    workers: 3,
    openapi: false,
    metrics: '[::1]:9464',
    forwardAuth: { header: 'X-Identity-Rule' },
    logCallers: false,
    trustProxy: ['loopback', '10.0.0.0/8', '::1'],
    oidc: { issuer: 'https://id.example.org/base', name: 'Example ID', logo: 'logo.svg', logoDark: 'logo-dark.svg', accent: '#24508f #a9c5f2', helpAddress: 'help@example.org', termsUrl: 'https://example.org/terms', privacyUrl: 'https://example.org/privacy', texts: 'texts', documents: { hosts: ['claude.ai', { host: 'editor.example', redirects: ['cdn.example', 'editor:'] }] }, accountPath: '/me', accessTtl: 61, refreshTtl: 62, sessionTtl: 63, sessionMax: 64, refreshMax: 65, signInLimit: false },
    console: { path: '/boss', acr: 'phr', adminNetworks: ['10.0.0.0/8', '::1'] },
    bridge: { prefix: '/a/b-c', upstream: 'https://identity:3000/base' },
    services: {
      database: 'mongodb://127.0.0.1/x',
      storeTimeout: 600,
      walLimit: 65,
      secretKey: KEY,
      dataDir: '/var/lib/identity',
      production: true,
      createDatabase: true,
      bcryptCost: 4,
      hashQueue: 5,
      passwordMin: 15,
      factors: { roles: ['root', 'boss'] },
      passkeys: false,
      relyingParty: 'example.org',
      roles: { admin: 'root', manager: 'boss', service: 'bot', support: 'helpdesk' },
      managerRoles: ['clerk', 'billing admin', 'boss'],
      outboundHosts: ['hooks.internal', '10.1.0.0/16', '::1'],
      upstreams: [{ id: 'google', kind: 'google', clientId: 'c', clientSecretFile: env['IDENTITY_UPSTREAMS_FILE']?.replace('upstreams.json', 'google'), create: false, link: 'confirm', sync: 'first' }],
      migrate: { url: 'https://login.example.org/verify', secret: SECRET, create: true, trustEmails: true, until: '2027-06-30T00:00:00Z' },
      clientsPerUser: 7,
      personalTokens: { maxDays: 90, scopes: ['account:read', 'roles'], roles: ['editor'], resources: ['https://orders.example'] },
      auditDays: 30,
      addresses: 'net'
    },
    people: {
      mail: { url: 'smtps://user:word@mail.example.org', from: 'Example <id@example.org>', logo: 'mail.png' }, signUp: true, signUpDomains: ['example.org', 'example.com'], undoFactors: 24, selfDelete: true
    },
    warnings: []
  })
  const untried = Object.keys(EnvironmentSchema.properties).filter((name) => !(name in env))
  t.strictSame(untried, ['DATABASE_URL_FILE', 'IDENTITY_SECRET_KEY_FILE', 'IDENTITY_MAIL_URL_FILE'], 'and there is none besides')
})

t.test('the former system needs a URL and a secret in a file, which is in no message', async (t) => {
  const url = 'https://login.example.org/verify'
  const file = join(t.testdir({ secret: SECRET }), 'secret')
  for (const [env, problem] of [
    [{ IDENTITY_MIGRATE_URL: url }, 'IDENTITY_MIGRATE_URL: needs IDENTITY_MIGRATE_SECRET_FILE'],
    [{ IDENTITY_MIGRATE_SECRET_FILE: file }, 'IDENTITY_MIGRATE_SECRET_FILE: needs IDENTITY_MIGRATE_URL'],
    [{ IDENTITY_MIGRATE_UNTIL: '2027-06-30T00:00:00Z' }, 'IDENTITY_MIGRATE_UNTIL: needs IDENTITY_MIGRATE_URL'],
    [{ IDENTITY_MIGRATE_URL: url, IDENTITY_MIGRATE_SECRET_FILE: '/nowhere' }, 'IDENTITY_MIGRATE_SECRET_FILE: the file cannot be read (ENOENT)']
  ] as const) t.throws(() => readConfig({ ...env, NODE_ENV: 'test' }), { message: new RegExp(problem.replace(/[()]/g, '.')) })
})

t.test('mail needs a server, a sender and an issuer, and the password of the server is in no message', async (t) => {
  const mail = { IDENTITY_MAIL_URL: 'smtp://user:s3cret@mail.example.org', IDENTITY_MAIL_FROM: 'id@example.org', IDENTITY_ISSUER: 'https://id.example.org' }
  t.match(readConfig(mail).people.mail, { url: mail.IDENTITY_MAIL_URL, from: 'id@example.org' })
  const file = join(t.testdir(), 'mail')
  writeFileSync(file, `${mail.IDENTITY_MAIL_URL}\n`, { mode: 0o600 })
  t.match(readConfig({ ...mail, IDENTITY_MAIL_URL: '', IDENTITY_MAIL_URL_FILE: file }).people.mail, { url: mail.IDENTITY_MAIL_URL })
  for (const [change, problem] of [
    [{ IDENTITY_ISSUER: '' }, 'IDENTITY_MAIL_URL: needs IDENTITY_ISSUER, to which the links lead'],
    [{ IDENTITY_OIDC: 'off' }, 'IDENTITY_MAIL_URL: needs the authorization server'],
    [{ IDENTITY_MAIL_FROM: '' }, 'IDENTITY_MAIL_URL: needs IDENTITY_MAIL_FROM'],
    [{ IDENTITY_MAIL_FROM: 'nobody' }, 'IDENTITY_MAIL_FROM: must be an email address, or a name with the address in < >'],
    [{ IDENTITY_MAIL_FROM: 'A\r\nBcc: x <a@example.org>' }, 'IDENTITY_MAIL_FROM: must be an email address, or a name with the address in < >'],
    [{ IDENTITY_MAIL_URL: 'http://user:s3cret@mail.example.org' }, 'IDENTITY_MAIL_URL: must be smtps://USER:PASSWORD@HOST:PORT, or smtp: for STARTTLS'],
    [{ IDENTITY_MAIL_URL: 'smtp://user:s3cret@mail.example.org/?tls=no' }, 'IDENTITY_MAIL_URL: must be smtps://USER:PASSWORD@HOST:PORT, or smtp: for STARTTLS'],
    [{ IDENTITY_MAIL_URL: '' }, 'IDENTITY_MAIL_FROM: needs IDENTITY_MAIL_URL'],
    [{ IDENTITY_MAIL_URL: '', IDENTITY_MAIL_URL_FILE: '/none' }, 'IDENTITY_MAIL_URL_FILE: the file /none cannot be read (ENOENT)'],
    [{ IDENTITY_MAIL_URL_FILE: file }, 'IDENTITY_MAIL_URL: cannot be combined with IDENTITY_MAIL_URL_FILE']
  ] as const) t.strictSame(problemsOf({ ...mail, ...change }), [problem])
  t.strictSame(problemsOf({ IDENTITY_SIGN_UP: 'on' }), ['IDENTITY_SIGN_UP: needs IDENTITY_MAIL_URL'])
})

t.test('the URL of the database can be in a file, and its password is in no message', async (t) => {
  const file = join(t.testdir(), 'url')
  const write = (text: string, mode = 0o600) => {
    writeFileSync(file, text)
    chmodSync(file, mode)
  }
  write('mongodb://user:s3cret@db.example.org/identity\n')
  const { services, warnings } = readConfig({ DATABASE_URL_FILE: file })
  t.equal(services.database, 'mongodb://user:s3cret@db.example.org/identity')
  t.strictSame(warnings, [])
  t.strictSame(problemsOf({ DATABASE_URL_FILE: file, DATABASE_URL: 'sqlite:x.db' }), ['DATABASE_URL: cannot be combined with DATABASE_URL_FILE'])
  t.strictSame(problemsOf({ DATABASE_URL_FILE: '/none' }), ['DATABASE_URL_FILE: the file /none cannot be read (ENOENT)'])
  t.strictSame(problemsOf({ DATABASE_URL_FILE: 'mongodb://user:s3cret@db.example.org' }), ['DATABASE_URL_FILE: the file cannot be read (ENOENT)'])
  write('postgres://user:s3cret@db.example.org')
  t.strictSame(problemsOf({ DATABASE_URL_FILE: file }), ['DATABASE_URL_FILE: must be sqlite:PATH, or a mongodb:// or mongodb+srv:// URL'])
  write('sqlite:x.db', 0o644)
  t.match(readConfig({ DATABASE_URL_FILE: file }).warnings, [/^DATABASE_URL_FILE: .* is open to others than its owner/])
})

t.test('an empty variable counts as absent, and other names are ignored', async (t) => {
  const env = { PORT: '', IDENTITY_SECRET_KEY: '', IDENTITY_BCRYPT_COST: '', HOME: '/root', PORTS: 'x', IDENTITY_ENDPOINT: 'http://azure' }
  t.strictSame(readConfig(env), readConfig({}))
})

t.test('the bridge, the authorization server and limits can be off, and the limit set', async (t) => {
  const off = { IDENTITY_WRITE_LIMIT: 'off', IDENTITY_CLIENTS_PER_USER: 'off', IDENTITY_MANAGER_ROLES: 'off' }
  const config = readConfig({ IDENTITY_BRIDGE_PREFIX: 'off', IDENTITY_OIDC: 'off', IDENTITY_RATE_LIMIT: '3', ...off })
  t.notOk('bridge' in config)
  t.equal(config.oidc, false)
  t.equal(config.rateLimit, 3)
  t.equal(config.writeLimit, false)
  t.equal(config.services.clientsPerUser, false)
  t.strictSame(config.services.managerRoles, [], 'managers grant none')
})

t.test('auto is one worker for each core, and an in-memory store allows only one', async (t) => {
  t.equal(readConfig({ IDENTITY_WORKERS: 'auto' }).workers, availableParallelism())
  t.strictSame(problemsOf({ IDENTITY_WORKERS: '2', DATABASE_URL: 'sqlite::memory:' }), [
    'IDENTITY_WORKERS: must be 1 with sqlite::memory:, as each process would have its own database'
  ])
  t.equal(readConfig({ IDENTITY_WORKERS: '1', DATABASE_URL: 'sqlite::memory:' }).workers, 1)
})

t.test('a wrong value is reported by name, and never repeated', async (t) => {
  for (const [name, text, expected] of [
    ['HOST', 'h'.repeat(256), 'must be a text that is not too long'],
    ['PORT', 'hunter2', 'must be an integer from 0 to 65535'],
    ['PORT', '65536', 'must be an integer from 0 to 65535'],
    ['PORT', '0x10', 'must be an integer from 0 to 65535'],
    ['PORT', '-1', 'must be an integer from 0 to 65535'],
    ['PORT', ' 3000', 'must be an integer from 0 to 65535'],
    ['DATABASE_URL', 'postgres://u:hunter2@h/d', 'must be sqlite:PATH, or a mongodb:// or mongodb+srv:// URL'],
    ['DATABASE_URL', 'sqlite://data/x.db', 'must be sqlite:PATH, or a mongodb:// or mongodb+srv:// URL'],
    ['IDENTITY_WORKERS', '0', 'must be an integer from 1 to 256 or auto'],
    ['IDENTITY_WORKERS', 'many', 'must be an integer from 1 to 256 or auto'],
    ['DATABASE_URL', 'sqlite:', 'must be sqlite:PATH, or a mongodb:// or mongodb+srv:// URL'],
    ['LOG_LEVEL', 'loud', 'must be fatal or error or warn or info or debug or trace or silent'],
    ['IDENTITY_BCRYPT_COST', '3', 'must be an integer from 4 to 20'],
    ['IDENTITY_RATE_LIMIT', '0', 'must be off or an integer from 1 to 1000000'],
    ['IDENTITY_RATE_LIMIT', 'false', 'must be off or an integer from 1 to 1000000'],
    ['IDENTITY_WRITE_LIMIT', '0', 'must be off or an integer from 1 to 1000000'],
    ['IDENTITY_CLIENTS_PER_USER', '-1', 'must be off or an integer from 0 to 1000000'],
    ['IDENTITY_PERSONAL_TOKENS', '0', 'must be off or an integer from 1 to 3650'],
    ['IDENTITY_PERSONAL_TOKENS_SCOPES', 'account:read', 'needs IDENTITY_PERSONAL_TOKENS'],
    ['IDENTITY_FACTORS', 'on', 'must be off, optional, required, or roles: with comma-separated roles'],
    ['IDENTITY_FACTORS', 'roles: ,', 'must be off, optional, required, or roles: with comma-separated roles'],
    ['IDENTITY_MANAGER_ROLES', 'clerk,admin', 'must not contain the admin, service or support role'],
    ['IDENTITY_MANAGER_ROLES', 'service', 'must not contain the admin, service or support role'],
    ['IDENTITY_OUTBOUND_HOSTS', 'https://hooks.example.com', 'must be comma-separated hosts, addresses or networks such as 10.0.0.0/8'],
    ['IDENTITY_OPENAPI', 'yes', 'must be on or off'],
    ['IDENTITY_BRIDGE_PREFIX', '/api/v1/client', "must be off or a path such as /bridge/client that is not among the service's own"],
    ['IDENTITY_BRIDGE_PREFIX', '/.well-known', "must be off or a path such as /bridge/client that is not among the service's own"],
    ['IDENTITY_BRIDGE_PREFIX', '/x/:id', "must be off or a path such as /bridge/client that is not among the service's own"],
    ['IDENTITY_BRIDGE_PREFIX', 'x', "must be off or a path such as /bridge/client that is not among the service's own"],
    ['IDENTITY_BRIDGE_UPSTREAM', 'http://u:hunter2@h', 'must be an http or https URL without credentials, query and fragment'],
    ['IDENTITY_BRIDGE_UPSTREAM', 'http://h:port', 'must be a valid URL'],
    ['IDENTITY_ISSUER', 'https://h/', 'must be an http or https URL without credentials, query, fragment and a slash at its end'],
    ['IDENTITY_ISSUER', 'https://u:hunter2@h', 'must be an http or https URL without credentials, query, fragment and a slash at its end'],
    ['IDENTITY_ISSUER', 'https://h:port', 'must be a valid URL'],
    ['IDENTITY_ACCESS_TTL', '59', 'must be an integer from 60 to 86400'],
    ['IDENTITY_ADMIN_PATH', '/docs', "must be off or a path such as /admin that is not among the service's own"],
    ['IDENTITY_ADMIN_ACR', '2', 'must be 1, mfa or phr'],
    ['IDENTITY_ADMIN_NETWORKS', 'example.com', 'must be comma-separated addresses or networks such as 10.0.0.0/8'],
    ['IDENTITY_TRUST_PROXY', '1', 'must be off, or comma-separated addresses or networks such as 10.0.0.0/8'],
    ['IDENTITY_TRUST_PROXY', '10.0.0.0/33', 'must be off, or comma-separated addresses or networks such as 10.0.0.0/8'],
    ['IDENTITY_TRUST_PROXY', '10.0.0.1,,::1', 'must be off, or comma-separated addresses or networks such as 10.0.0.0/8'],
    ['IDENTITY_SECRET_KEY', 'hunter2', 'the secret key must be 32 random bytes as base64 or hex, such as `openssl rand -base64 32` prints']
  ] as const) t.strictSame(problemsOf({ [name]: text }), [`${name}: ${expected}`], `${name}=${text.slice(0, 30)}`)
})

t.test('in production there is a console only if it has a path, and what opens it to too many is a warning', async (t) => {
  const production = { NODE_ENV: 'production', IDENTITY_SECRET_KEY: KEY, IDENTITY_ISSUER: 'https://id.example' }
  t.equal(readConfig(production).console, false)
  t.equal(readConfig({ IDENTITY_OIDC: 'off', IDENTITY_ADMIN_PATH: '/boss' }).console, false)
  t.equal(readConfig({ IDENTITY_ADMIN_PATH: 'off' }).console, false)
  const on = { ...production, IDENTITY_ADMIN_PATH: '/boss' }
  t.match(readConfig(on), { console: { path: '/boss' }, warnings: [] })
  const weak = { ...on, IDENTITY_ADMIN_ACR: '1' }
  const weakness = 'IDENTITY_ADMIN_ACR: 1 lets a password alone open the console in production: mfa is the default there'
  t.strictSame(readConfig(weak).warnings, [weakness])
  t.strictSame(readConfig({ ...weak, IDENTITY_ADMIN_PATH: 'off' }).warnings, [])
  t.strictSame(readConfig({ IDENTITY_ADMIN_ACR: '1' }).warnings, [])
  const near = { ...on, IDENTITY_ADMIN_NETWORKS: '10.0.0.0/8' }
  t.strictSame(readConfig({ ...near, IDENTITY_TRUST_PROXY: '10.0.0.1' }).warnings, [])
  for (const proxies of ['0.0.0.0/0', 'loopback, ::/0']) {
    t.strictSame(readConfig({ ...near, IDENTITY_TRUST_PROXY: proxies }).warnings, [
      'IDENTITY_ADMIN_NETWORKS: keeps nobody out, because IDENTITY_TRUST_PROXY trusts every address, so that a request names its own'
    ])
    t.strictSame(readConfig({ ...on, IDENTITY_TRUST_PROXY: proxies }).warnings, [])
  }
})

t.test('an unknown name, which may be of a later release, is a warning with the most similar one', async (t) => {
  for (const [name, meant] of [
    ['IDENTITY_BCRPYT_COST', ', did you mean IDENTITY_BCRYPT_COST?'],
    ['IDENTITY_PORT', ', did you mean PORT?'],
    ['IDENTITY_DATABASE_URL', ', did you mean DATABASE_URL?'],
    ['IDENTITY_SECRETKEY', ', did you mean IDENTITY_SECRET_KEY?'],
    ['IDENTITY_Q', '']
  ] as const) t.strictSame(readConfig({ [name]: 'hunter2' }).warnings, [`${name}: is not a variable of this release and has no effect${meant}`])
})

t.test('variables by which Kubernetes describes a Service are none of ours', async (t) => {
  const links = {
    IDENTITY_SERVICE_HOST: '10.0.0.1',
    IDENTITY_SERVICE_PORT: '80',
    IDENTITY_SERVICE_PORT_HTTP: '80',
    IDENTITY_PORT: 'tcp://10.0.0.1:80',
    IDENTITY_PORT_80_TCP: 'tcp://10.0.0.1:80',
    IDENTITY_PORT_80_TCP_PROTO: 'tcp',
    IDENTITY_PORT_80_TCP_PORT: '80',
    IDENTITY_PORT_80_TCP_ADDR: '10.0.0.1',
    IDENTITY_MAIL_SERVICE_HOST: '10.0.0.2',
    IDENTITY_MAIL_PORT: 'udp://10.0.0.2:53',
    IDENTITY_MAIL_PORT_53_UDP: 'udp://10.0.0.2:53'
  }
  t.strictSame(readConfig(links), readConfig({}))
  for (const name of ['IDENTITY_PORT', 'IDENTITY_SERVICE_HOSTS', 'IDENTITY_PORT_X_TCP']) t.match(readConfig({ [name]: '3000' }).warnings, [`${name}: is not a variable`])
  t.strictSame(Object.keys(EnvironmentSchema.properties).filter((name) => isServiceLink(name, 'tcp://10.0.0.1:80')), [], 'no variable of ours looks like one')
})

t.test('all problems are reported at once', async (t) => {
  const problems = problemsOf({ PORT: 'x', IDENTITY_OPENAPI: '?', NODE_ENV: 'production' })
  t.strictSame(problems.map((line) => line.split(':')[0]), ['PORT', 'IDENTITY_OPENAPI', 'IDENTITY_SECRET_KEY'])
})

t.test('the secret key comes from a variable or a file, and is required in production', async (t) => {
  const dir = t.testdir({ good: `${KEY}\n`, bad: 'hunter2' })
  const file = (name: string) => ({ IDENTITY_SECRET_KEY_FILE: join(dir, name) })
  chmodSync(join(dir, 'good'), 0o644)
  t.match(readConfig(file('good')).warnings, [/^IDENTITY_SECRET_KEY_FILE: the key file .*\/good is open to others than its owner \(mode 0644\)/])
  chmodSync(join(dir, 'good'), 0o600)
  t.strictSame(readConfig(file('good')).warnings, [])
  t.match(readConfig({ ...file('good'), NODE_ENV: 'production' }), { services: { secretKey: KEY }, shutdownDelay: 5000 })
  writeFileSync(join(dir, 'hex'), Buffer.from(KEY, 'base64').toString('hex'))
  t.equal(readConfig(file('hex')).services.secretKey, Buffer.from(KEY, 'base64').toString('hex'))
  t.match(problemsOf(file('bad')), [/^IDENTITY_SECRET_KEY_FILE: the secret key must be 32 random bytes/])
  t.notMatch(problemsOf(file('bad')), [/hunter2/])
  t.strictSame(problemsOf(file('none')), [`IDENTITY_SECRET_KEY_FILE: the file ${join(dir, 'none')} cannot be read (ENOENT)`])
  t.strictSame(problemsOf({ IDENTITY_SECRET_KEY_FILE: KEY }), ['IDENTITY_SECRET_KEY_FILE: the file cannot be read (ENOENT)'], 'a key in the wrong variable is not repeated')
  t.strictSame(problemsOf({ ...file('good'), IDENTITY_SECRET_KEY: KEY }), ['IDENTITY_SECRET_KEY: cannot be combined with IDENTITY_SECRET_KEY_FILE'])
  t.strictSame(problemsOf({ NODE_ENV: 'production' }), ['IDENTITY_SECRET_KEY: is required in production, or IDENTITY_SECRET_KEY_FILE'])
})
