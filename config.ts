/**
 * Reads the environment into a typed configuration, and checks all of it before anything starts. For `server.ts` and `cli.ts`.
 * @module
 */
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { Ajv } from 'ajv'
import { EnvironmentSchema, type Environment } from './schemas/config.ts'
import type { Options } from './schemas/options.ts'
import type { OidcOptions } from './schemas/oidc.ts'
import { defined } from './lib/defined.ts'
import type { ServiceOptions } from './lib/identity.ts'
import { warnOfMode } from './lib/file-mode.ts'
import { findSender, parseMailUrl } from './lib/mail/smtp.ts'
import { OWN_SCHEMAS } from './lib/options.ts'
import { parseSecretKeys } from './lib/crypto/secrets.ts'
import { readAllowedHosts, readNetworks } from './lib/outbound/addresses.ts'
import { type RoleNames, findSharedRole, findUnusableRole } from './lib/roles.ts'
import { findAdminsRole } from './lib/users/manager-rules.ts'
import { isNeverPersonal } from './lib/api-scopes.ts'
import { parseUpstreams } from './lib/upstreams/settings.ts'
import { readCode } from './lib/failure.ts'
import { type Variables, describeAllowed, explainUnknown, listUnknown, readVariables } from './lib/variables.ts'

/** The configuration of a process. */
export interface Config {
  host: string
  /** 0: a free one. */
  port: number
  logLevel: string
  /** Absent: text on a terminal, otherwise JSON. */
  logFormat?: 'json' | 'text'
  /** Password changes per minute and user; false: unlimited. */
  rateLimit: number | false
  /** Changes per minute and user; false: unlimited. */
  writeLimit: number | false
  /** Milliseconds, see schemas/config.ts. */
  stallTimeout: number
  shutdownTimeout: number
  shutdownDelay: number
  /** Processes that serve. */
  workers: number
  openapi: boolean
  /** `HOST:PORT` of the metrics of this process, or of the first worker; absent: none. */
  metrics?: string
  /** Whether reverse proxies may ask about requests, and the header with the rule of one that appends the original path. */
  forwardAuth: Options['forwardAuth']
  /** Whether log lines have the ids of the user and the client. */
  logCallers: boolean
  /** Addresses and networks of trusted proxies. */
  trustProxy: false | string[]
  /** The authorization server's options; false: none. */
  oidc: false | Partial<OidcOptions>
  /** The console; false: none. */
  console: Options['console']
  /** Absent: no bridge. Without an upstream it relays to this service itself. */
  bridge?: { prefix: string, upstream?: string }
  /** The settings of mail, sign-up and self-deletion. */
  people: Pick<Options, 'mail' | 'signUp' | 'signUpDomains' | 'undoFactors' | 'selfDelete'>
  services: Omit<ServiceOptions, 'store' | 'now' | 'dryRun' | 'onError' | 'onWarning'>
  /** For the log: oddities that do not prevent the start. */
  warnings: readonly string[]
}

/** The environment is wrong. The message has a line for each problem, and names variables, never their values. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor (problems: string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** Milliseconds in production: several polls of most balancers. */
const SHUTDOWN_DELAY = 5000

const validate = new Ajv({ ...OWN_SCHEMAS, useDefaults: true, allErrors: true, keywords: ['expects'] })
  .compile<Environment>(EnvironmentSchema)

/** @param text true for `on`, which is no entry of a list */
function splitList (text: string | boolean): string[] | false {
  return text === false ? false : String(text).split(/, ?/)
}

/** An address, a network as address/bits, or a name that Fastify knows. */
function isNetwork (text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  try {
    if (bits !== undefined) new BlockList().addSubnet(address, /^\d+$/.test(bits) ? Number(bits) : -1, version === 6 ? 'ipv6' : 'ipv4')
    return true
  } catch {
    return false
  }
}

/** What is wrong, and what is merely odd. */
interface Findings { problems: string[], warnings: string[] }

/**
 * The value of a variable, or of the file that its `_FILE` variable names. A secret in a file is not in the environment, which other
 * processes of the machine can often read.
 * @param what the content of the file, for a warning about its mode
 * @param check throws an error whose message is the problem, without the value
 * @returns undefined when there is neither, or when there is a problem
 */
function readValue (env: Partial<Environment>, name: 'DATABASE_URL' | 'IDENTITY_SECRET_KEY' | 'IDENTITY_MAIL_URL', what: string,
  check: (text: string) => unknown, { problems, warnings }: Findings): string | undefined {
  const { [name]: given, [`${name}_FILE` as const]: file } = env
  if (given !== undefined && file !== undefined) {
    problems.push(`${name}: cannot be combined with ${name}_FILE`)
    return
  }
  const from = given === undefined ? `${name}_FILE` : name
  try {
    const text = given ?? (file === undefined ? undefined : readFileSync(file, 'utf8').trim())
    if (text === undefined) return
    check(text)
    if (file !== undefined) warnOfMode(what, file, (message) => warnings.push(`${from}: ${message}`))
    return text
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    problems.push(`${from}: ${code === undefined ? message : `the file ${isSecret(file) ? '' : `${file} `}cannot be read (${code})`}`)
  }
}

/** The configured key; undefined for none. */
function readSecretKey (env: Environment, findings: Findings): string | undefined {
  const { IDENTITY_SECRET_KEY: given, IDENTITY_SECRET_KEY_FILE: file, NODE_ENV } = env
  if (given === undefined && file === undefined && NODE_ENV === 'production') {
    findings.problems.push('IDENTITY_SECRET_KEY: is required in production, or IDENTITY_SECRET_KEY_FILE')
  }
  return readValue(env, 'IDENTITY_SECRET_KEY', 'key', (text) => parseSecretKeys(text.trim()), findings)?.trim()
}

/** The mail server and the sender; undefined without mail. */
function readMail (env: Environment, findings: Findings): Options['mail'] {
  const { problems } = findings
  const { IDENTITY_MAIL_URL: given, IDENTITY_MAIL_URL_FILE: file, IDENTITY_MAIL_FROM: from, IDENTITY_MAIL_LOGO: logo } = env
  if (given === undefined && file === undefined) {
    if (from !== undefined) problems.push('IDENTITY_MAIL_FROM: needs IDENTITY_MAIL_URL')
    if (logo !== undefined) problems.push('IDENTITY_MAIL_LOGO: needs IDENTITY_MAIL_URL')
    if (env.IDENTITY_SIGN_UP) problems.push('IDENTITY_SIGN_UP: needs IDENTITY_MAIL_URL')
    return
  }
  const name = given === undefined ? 'IDENTITY_MAIL_URL_FILE' : 'IDENTITY_MAIL_URL'
  if (!env.IDENTITY_OIDC) problems.push(`${name}: needs the authorization server`)
  else if (env.IDENTITY_ISSUER === undefined) problems.push(`${name}: needs IDENTITY_ISSUER, to which the links lead`)
  if (from === undefined) problems.push(`${name}: needs IDENTITY_MAIL_FROM`)
  else if (findSender(from) === null) problems.push('IDENTITY_MAIL_FROM: must be an email address, or a name with the address in < >')
  const url = readValue(env, 'IDENTITY_MAIL_URL', 'mail', parseMailUrl, findings)
  if (url !== undefined) return defined({ url, from: from ?? '', logo })
}

/** The other providers that people sign in with; undefined without a file that names them. */
function readUpstreams (
  { IDENTITY_UPSTREAMS_FILE: file, IDENTITY_SIGN_UP: signUp, IDENTITY_OIDC: hasServer }: Environment, problems: string[]
): Options['upstreams'] | undefined {
  if (file === undefined) return
  try {
    if (!hasServer) throw new Error('needs the authorization server')
    return parseUpstreams(readFileSync(file, 'utf8'), { signUp })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    problems.push(`IDENTITY_UPSTREAMS_FILE: ${code === undefined ? message : `the file cannot be read (${code})`}`)
  }
}

/** The former system that people move from; undefined without one. */
function readMigrate (env: Environment, { problems, warnings }: Findings): Options['migrate'] {
  const { IDENTITY_MIGRATE_URL: url, IDENTITY_MIGRATE_SECRET_FILE: file, IDENTITY_MIGRATE_CREATE: create, IDENTITY_MIGRATE_TRUST_EMAILS: trustEmails, IDENTITY_MIGRATE_UNTIL: until } = env
  if (url === undefined) {
    const names = ['IDENTITY_MIGRATE_SECRET_FILE', 'IDENTITY_MIGRATE_UNTIL'] as const
    problems.push(...names.filter((name) => env[name] !== undefined).map((name) => `${name}: needs IDENTITY_MIGRATE_URL`))
    return
  }
  if (file === undefined) {
    problems.push('IDENTITY_MIGRATE_URL: needs IDENTITY_MIGRATE_SECRET_FILE')
    return
  }
  try {
    const secret = readFileSync(file, 'utf8').trim()
    warnOfMode('secret', file, (message) => warnings.push(`IDENTITY_MIGRATE_SECRET_FILE: ${message}`))
    return defined({ url, secret, create, trustEmails, until })
  } catch (error) {
    problems.push(`IDENTITY_MIGRATE_SECRET_FILE: the file cannot be read (${readCode(error)})`)
  }
}

/** Whether the text is the secret itself, a key or a URL, configured in place of the path of its file. */
function isSecret (text = ''): boolean {
  if (text.includes('://')) return true
  try {
    parseSecretKeys(text)
    return true
  } catch {
    return false
  }
}

/**
 * Reads a configuration. An empty variable counts as absent.
 * @param env such as process.env. An unknown variable whose name begins with `IDENTITY_` is a warning, unless Kubernetes set it
 * @throws ConfigError that names every problem at once
 */
export function readConfig (env: Variables): Config {
  const problems: string[] = []
  // A later release may define the name, and a downgrade to this one must not fail because of it.
  const warnings = listUnknown(env).map(explainUnknown)
  // `validate` fills in the defaults.
  const read = readVariables(env) as Environment
  const url = readValue(read, 'DATABASE_URL', 'database', () => {}, { problems, warnings })
  if (url !== undefined) read.DATABASE_URL = url
  validate(read)
  const wrong = new Set(validate.errors?.map(({ instancePath }) => instancePath.split('/')[1] ?? ''))
  for (const name of wrong) {
    const isInFile = name === 'DATABASE_URL' && read.DATABASE_URL_FILE !== undefined
    problems.push(`${name}${isInFile ? '_FILE' : ''}: must be ${describeAllowed(name)}`)
  }

  for (const name of ['IDENTITY_BRIDGE_UPSTREAM', 'IDENTITY_ISSUER', 'IDENTITY_TERMS_URL', 'IDENTITY_PRIVACY_URL'] as const) {
    const url = read[name]
    if (url !== undefined && !wrong.has(name) && !URL.canParse(url)) problems.push(`${name}: must be a valid URL`)
  }
  const proxies = splitList(read.IDENTITY_TRUST_PROXY)
  if (proxies !== false && !proxies.every(isNetwork)) {
    problems.push('IDENTITY_TRUST_PROXY: must be off, or comma-separated addresses or networks such as 10.0.0.0/8')
  }
  try {
    readAllowedHosts(toOutboundHosts(read))
  } catch {
    problems.push('IDENTITY_OUTBOUND_HOSTS: must be comma-separated hosts, addresses or networks such as 10.0.0.0/8')
  }
  try {
    readNetworks(splitNames(read.IDENTITY_ADMIN_NETWORKS) ?? [])
  } catch {
    problems.push('IDENTITY_ADMIN_NETWORKS: must be comma-separated addresses or networks such as 10.0.0.0/8')
  }
  const workers = read.IDENTITY_WORKERS === 'auto' ? availableParallelism() : read.IDENTITY_WORKERS
  if (workers > 1 && read.DATABASE_URL === 'sqlite::memory:') {
    problems.push('IDENTITY_WORKERS: must be 1 with sqlite::memory:, as each process would have its own database')
  }
  const unusable = findUnusableRole(toRoleNames(read))
  if (unusable !== undefined) problems.push(`${nameRole(unusable)}: must not be __proto__`)
  const shared = findSharedRole(toRoleNames(read))
  if (shared !== undefined) problems.push(`${nameRole(shared.role)}: must differ from ${nameRole(shared.earlier)}`)
  if (findAdminsRole(toRoleNames(read), toManagerRoles(read) ?? []) !== undefined) {
    problems.push('IDENTITY_MANAGER_ROLES: must not contain the admin, service or support role')
  }
  if (read.IDENTITY_FORWARD_AUTH_HEADER !== undefined && !read.IDENTITY_FORWARD_AUTH) {
    problems.push('IDENTITY_FORWARD_AUTH_HEADER: needs IDENTITY_FORWARD_AUTH')
  }
  warnings.push(...listConsoleWarnings(read))
  const personalTokens = readPersonalTokens(read, problems)
  const secretKey = readSecretKey(read, { problems, warnings })
  const mail = readMail(read, { problems, warnings })
  const upstreams = readUpstreams(read, problems)
  const migrate = readMigrate(read, { problems, warnings })
  if (problems.length > 0) throw new ConfigError(problems)
  return { ...toConfig({ ...read, IDENTITY_WORKERS: workers }, secretKey, upstreams, migrate, personalTokens), people: toPeople(read, mail), warnings }
}

function toRoleNames (env: Environment): RoleNames {
  return defined({ admin: env.IDENTITY_ROLE_ADMIN, manager: env.IDENTITY_ROLE_MANAGER, service: env.IDENTITY_ROLE_SERVICE, support: env.IDENTITY_ROLE_SUPPORT })
}

function toOutboundHosts ({ IDENTITY_OUTBOUND_HOSTS: hosts }: Environment): string[] {
  return hosts?.split(',').map((host) => host.trim()).filter(Boolean) ?? []
}

/** The roles that managers may grant; undefined for the default. */
function toManagerRoles ({ IDENTITY_MANAGER_ROLES: roles }: Environment): string[] | undefined {
  if (roles === undefined) return
  return roles === false ? [] : splitNames(roles)
}

/** The parts of a comma-separated list. Absent: undefined. */
function splitNames (text: string | undefined): string[] | undefined {
  return text?.split(',').map((name) => name.trim()).filter(Boolean)
}

const PERSONAL = 'IDENTITY_PERSONAL_TOKENS'

/** Whether people may make personal access tokens. A list without the variable that turns them on is a problem. */
function readPersonalTokens (env: Environment, problems: string[]): Options['personalTokens'] {
  const maxDays = env[PERSONAL]
  const lists = {
    SCOPES: splitNames(env.IDENTITY_PERSONAL_TOKENS_SCOPES),
    ROLES: splitNames(env.IDENTITY_PERSONAL_TOKENS_ROLES),
    RESOURCES: splitNames(env.IDENTITY_PERSONAL_TOKENS_RESOURCES)
  }
  for (const [name, list] of Object.entries(lists)) {
    if (list === undefined) continue
    if (maxDays === false) problems.push(`${PERSONAL}_${name}: needs ${PERSONAL}`)
    if (list.length === 0) problems.push(`${PERSONAL}_${name}: must name at least one`)
  }
  const never = lists.SCOPES?.find(isNeverPersonal)
  if (never !== undefined) problems.push(`${PERSONAL}_SCOPES: no personal access token may have ${never}`)
  return maxDays !== false && defined({ maxDays, scopes: lists.SCOPES, roles: lists.ROLES, resources: lists.RESOURCES })
}

/** The variable that names this role. */
function nameRole (role: keyof RoleNames): string {
  return `IDENTITY_ROLE_${role.toUpperCase()}`
}

/** Who needs a second factor. */
function toFactors ({ IDENTITY_FACTORS: text }: Environment): Options['factors'] {
  if (!text.startsWith('roles:')) return text as 'off' | 'optional' | 'required'
  return { roles: text.slice('roles:'.length).split(',').map((role) => role.trim()).filter(Boolean) }
}

/** Reads `HOST`, `HOST>OTHER` and `*`. */
function toDocuments (text: string | undefined): OidcOptions['documents'] {
  const entries = splitList(text ?? false)
  if (entries === false) return undefined
  if (entries.length === 1 && entries[0] === '*') return { hosts: '*' }
  const hosts = new Map<string, string[]>()
  for (const entry of entries) {
    const [host = '', ...redirects] = entry.split('>').map((part) => part.trim())
    hosts.set(host, [...hosts.get(host) ?? [], ...redirects])
  }
  return { hosts: [...hosts].map(([host, redirects]) => redirects.length === 0 ? host : { host, redirects }) }
}

function toOidc (env: Environment): Partial<OidcOptions> {
  const documents = toDocuments(env.IDENTITY_DOCUMENT_HOSTS)
  const { IDENTITY_ISSUER: issuer, IDENTITY_NAME: name, IDENTITY_LOGO: logo, IDENTITY_LOGO_DARK: logoDark, IDENTITY_ACCENT: accent } = env
  const { IDENTITY_HELP_ADDRESS: helpAddress, IDENTITY_TERMS_URL: termsUrl, IDENTITY_PRIVACY_URL: privacyUrl, IDENTITY_TEXTS: texts } = env
  return defined({
    issuer,
    name,
    logo,
    logoDark,
    accent,
    helpAddress,
    termsUrl,
    privacyUrl,
    texts,
    documents,
    accountPath: env.IDENTITY_ACCOUNT_PATH,
    accessTtl: env.IDENTITY_ACCESS_TTL,
    // The command line mints tokens with it too.
    refreshTtl: Math.min(env.IDENTITY_REFRESH_TTL, env.IDENTITY_REFRESH_MAX),
    sessionTtl: env.IDENTITY_SESSION_TTL,
    sessionMax: env.IDENTITY_SESSION_MAX,
    refreshMax: env.IDENTITY_REFRESH_MAX,
    signInLimit: env.IDENTITY_SIGN_IN_LIMIT
  })
}

/** The path of the console outside production. */
const ADMIN_PATH = '/admin'

function toConsole (env: Environment): Options['console'] {
  const { IDENTITY_ADMIN_PATH: path = env.NODE_ENV !== 'production' && ADMIN_PATH, IDENTITY_ADMIN_ACR: acr, IDENTITY_ADMIN_NETWORKS: networks } = env
  if (path === false || !env.IDENTITY_OIDC) return false
  return defined({ path, acr, adminNetworks: splitNames(networks) })
}

/** What opens the console to more people than the variables seem to say. */
function listConsoleWarnings (env: Environment): string[] {
  if (toConsole(env) === false) return []
  const proxies = splitList(env.IDENTITY_TRUST_PROXY) || []
  return [
    ...(env.IDENTITY_ADMIN_NETWORKS !== undefined && proxies.some((network) => network.endsWith('/0'))
      ? ['IDENTITY_ADMIN_NETWORKS: keeps nobody out, because IDENTITY_TRUST_PROXY trusts every address, so that a request names its own']
      : []),
    ...(env.IDENTITY_ADMIN_ACR === '1' && env.NODE_ENV === 'production'
      ? ['IDENTITY_ADMIN_ACR: 1 lets a password alone open the console in production: mfa is the default there']
      : [])
  ]
}

function toPeople (env: Environment, mail: Options['mail']): Config['people'] {
  const domains = splitList(env.IDENTITY_SIGN_UP_DOMAINS ?? false)
  return defined({
    mail,
    signUp: env.IDENTITY_SIGN_UP,
    signUpDomains: domains === false ? undefined : domains,
    undoFactors: env.IDENTITY_UNDO_FACTORS,
    selfDelete: env.IDENTITY_SELF_DELETE
  })
}

function toConfig (
  env: Environment & { IDENTITY_WORKERS: number },
  secretKey: string | undefined,
  upstreams: Options['upstreams'] | undefined,
  migrate: Options['migrate'],
  personalTokens: Options['personalTokens']
): Omit<Config, 'warnings' | 'people'> {
  const { IDENTITY_BRIDGE_PREFIX: prefix, IDENTITY_BRIDGE_UPSTREAM: upstream } = env
  return defined({
    host: env.HOST,
    port: env.PORT,
    logLevel: env.LOG_LEVEL,
    logFormat: env.LOG_FORMAT,
    rateLimit: env.IDENTITY_RATE_LIMIT,
    writeLimit: env.IDENTITY_WRITE_LIMIT,
    stallTimeout: env.IDENTITY_STALL_TIMEOUT,
    shutdownTimeout: env.IDENTITY_SHUTDOWN_TIMEOUT,
    shutdownDelay: env.IDENTITY_SHUTDOWN_DELAY ?? (env.NODE_ENV === 'production' ? SHUTDOWN_DELAY : 0),
    workers: env.IDENTITY_WORKERS,
    openapi: env.IDENTITY_OPENAPI,
    metrics: env.IDENTITY_METRICS,
    forwardAuth: env.IDENTITY_FORWARD_AUTH_HEADER === undefined ? env.IDENTITY_FORWARD_AUTH : { header: env.IDENTITY_FORWARD_AUTH_HEADER },
    logCallers: env.IDENTITY_LOG_CALLERS,
    trustProxy: splitList(env.IDENTITY_TRUST_PROXY),
    oidc: env.IDENTITY_OIDC && toOidc(env),
    console: toConsole(env),
    bridge: prefix === false ? undefined : defined({ prefix, upstream }),
    services: defined({
      database: env.DATABASE_URL,
      storeTimeout: env.IDENTITY_STORE_TIMEOUT,
      walLimit: env.IDENTITY_WAL_LIMIT,
      secretKey,
      dataDir: env.IDENTITY_DATA_DIR,
      production: env.NODE_ENV === 'production',
      createDatabase: env.IDENTITY_CREATE_DATABASE,
      bcryptCost: env.IDENTITY_BCRYPT_COST,
      hashQueue: env.IDENTITY_HASH_QUEUE,
      passwordMin: env.IDENTITY_PASSWORD_MIN,
      factors: toFactors(env),
      passkeys: env.IDENTITY_PASSKEYS,
      relyingParty: env.IDENTITY_RELYING_PARTY,
      roles: toRoleNames(env),
      managerRoles: toManagerRoles(env),
      clientsPerUser: env.IDENTITY_CLIENTS_PER_USER,
      auditDays: env.IDENTITY_AUDIT_DAYS,
      addresses: env.IDENTITY_ADDRESSES,
      outboundHosts: toOutboundHosts(env),
      personalTokens,
      upstreams,
      migrate
    })
  })
}
