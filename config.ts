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
import type { ServiceOptions } from './lib/identity.ts'
import { warnOfMode } from './lib/file-mode.ts'
import { findSender, parseMailUrl } from './lib/mail/smtp.ts'
import { findNearest } from './lib/nearest.ts'
import { OWN_SCHEMAS } from './lib/options.ts'
import { parseSecretKeys } from './lib/crypto/secrets.ts'
import { readAllowedHosts } from './lib/outbound/addresses.ts'
import { type RoleNames, findSharedRole, findUnusableRole } from './lib/roles.ts'
import { findAdminsRole } from './lib/users/manager-rules.ts'

/** The configuration of a process. */
export interface Config {
  host: string
  /** 0: a free one. */
  port: number
  logLevel: string
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
  /** Whether log lines have the ids of the user and the client. */
  logCallers: boolean
  /** Addresses and networks of trusted proxies. */
  trustProxy: false | string[]
  /** The authorization server's options; false: none. */
  oidc: false | Partial<OidcOptions>
  /** Absent: no bridge. Without an upstream it relays to this service itself. */
  bridge?: { prefix: string, upstream?: string }
  /** The settings of mail, sign-up and self-deletion. */
  people: Pick<Options, 'mail' | 'signUp' | 'signUpDomains' | 'selfDelete'>
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

/** The parts of JSON Schema that schemas/config.ts uses. */
interface Term { anyOf?: Term[], const?: unknown, type?: string, minimum?: number, maximum?: number, expects?: string }

const SCHEMAS = EnvironmentSchema.properties as Record<string, Term>
const NAMES = Object.keys(SCHEMAS)
const OURS = /^IDENTITY_/

/** Milliseconds in production: several polls of most balancers. */
const SHUTDOWN_DELAY = 5000

/** Set by Azure's App Service and Service Fabric for their managed identities. */
const FOREIGN = ['IDENTITY_ENDPOINT', 'IDENTITY_HEADER', 'IDENTITY_SERVER_THUMBPRINT']

const validate = new Ajv({ ...OWN_SCHEMAS, useDefaults: true, allErrors: true, keywords: ['expects'] })
  .compile<Environment>(EnvironmentSchema)

/** Converts a variable's text to the type in its schema, where it can. */
function readText (schema: Term, text: string): unknown {
  for (const term of schema.anyOf ?? [schema]) {
    if (term.type === 'integer' && /^\d{1,15}$/.test(text)) return Number(text)
    if (term.const === false && text === 'off') return false
    if (term.type === 'boolean' && (text === 'on' || text === 'off')) return text === 'on'
  }
  return text
}

/** The values that a schema allows, in words. */
function describeTerm (term: Term): string {
  if (term.expects !== undefined) return term.expects
  if (term.anyOf !== undefined) return term.anyOf.map(describeTerm).join(' or ')
  if (term.const !== undefined) return term.const === false ? 'off' : String(term.const)
  if (term.type === 'boolean') return 'on or off'
  return term.type === 'integer' ? `an integer from ${term.minimum} to ${term.maximum}` : 'a text that is not too long'
}

function explainUnknown (name: string): string {
  const bare = name.replace(OURS, '')
  const meant = NAMES.includes(bare) ? bare : findNearest(name, NAMES)
  return `${name}: is not a variable of this release and has no effect${meant === undefined ? '' : `, did you mean ${meant}?`}`
}

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

/** The configured key; undefined for none. Adds to `problems` and `warnings`. */
function readSecretKey (env: Environment, problems: string[], warnings: string[]): string | undefined {
  const { IDENTITY_SECRET_KEY: given, IDENTITY_SECRET_KEY_FILE: file, NODE_ENV } = env
  if (given !== undefined && file !== undefined) {
    problems.push('IDENTITY_SECRET_KEY: cannot be combined with IDENTITY_SECRET_KEY_FILE')
    return
  }
  if (given === undefined && file === undefined) {
    if (NODE_ENV === 'production') problems.push('IDENTITY_SECRET_KEY: is required in production, or IDENTITY_SECRET_KEY_FILE')
    return
  }
  const name = given === undefined ? 'IDENTITY_SECRET_KEY_FILE' : 'IDENTITY_SECRET_KEY'
  try {
    const key = (given ?? readFileSync(file ?? '', 'utf8')).trim()
    parseSecretKeys(key)
    if (file !== undefined) warnOfMode('key', file, (message) => warnings.push(`${name}: ${message}`))
    return key
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    problems.push(`${name}: ${code === undefined ? message : `the file ${isSecretKey(file) ? '' : `${file} `}cannot be read (${code})`}`)
  }
}

/** The mail server and the sender; undefined without mail. Adds to `problems` and `warnings`. */
function readMail (env: Environment, problems: string[], warnings: string[]): { url: string, from: string } | undefined {
  const { IDENTITY_MAIL_URL: given, IDENTITY_MAIL_URL_FILE: file, IDENTITY_MAIL_FROM: from } = env
  if (given === undefined && file === undefined) {
    if (from !== undefined) problems.push('IDENTITY_MAIL_FROM: needs IDENTITY_MAIL_URL')
    if (env.IDENTITY_SIGN_UP) problems.push('IDENTITY_SIGN_UP: needs IDENTITY_MAIL_URL')
    return
  }
  if (given !== undefined && file !== undefined) problems.push('IDENTITY_MAIL_URL: cannot be combined with IDENTITY_MAIL_URL_FILE')
  const name = given === undefined ? 'IDENTITY_MAIL_URL_FILE' : 'IDENTITY_MAIL_URL'
  if (!env.IDENTITY_OIDC) problems.push(`${name}: needs the authorization server`)
  else if (env.IDENTITY_ISSUER === undefined) problems.push(`${name}: needs IDENTITY_ISSUER, to which the links lead`)
  if (from === undefined) problems.push(`${name}: needs IDENTITY_MAIL_FROM`)
  else if (findSender(from) === null) problems.push('IDENTITY_MAIL_FROM: must be an email address, or a name with the address in < >')
  try {
    const url = (given ?? readFileSync(file ?? '', 'utf8')).trim()
    parseMailUrl(url)
    if (file !== undefined) warnOfMode('mail', file, (message) => warnings.push(`${name}: ${message}`))
    return { url, from: from ?? '' }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    problems.push(`${name}: ${code === undefined ? message : `the file cannot be read (${code})`}`)
  }
}

/** Whether the text is a key itself, configured in place of the path of its file. */
function isSecretKey (text = ''): boolean {
  try {
    parseSecretKeys(text)
    return true
  } catch {
    return false
  }
}

/**
 * Reads a configuration. An empty variable counts as absent.
 * @param env such as process.env. An unknown variable whose name begins with `IDENTITY_` is a warning
 * @throws ConfigError that names every problem at once
 */
export function readConfig (env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.entries(env).filter(([, text]) => text !== undefined && text !== '')
  const problems: string[] = []
  // A later release may define the name, and a downgrade to this one must not fail because of it.
  const warnings = given.map(([name]) => name)
    .filter((name) => OURS.test(name) && !NAMES.includes(name) && !FOREIGN.includes(name))
    .map(explainUnknown)
  const known = given.flatMap(([name, text]) => {
    const schema = NAMES.includes(name) ? SCHEMAS[name] : undefined
    return schema === undefined ? [] : [[name, readText(schema, text ?? '')]]
  })
  const read = Object.fromEntries(known) as Environment
  validate(read)
  const wrong = new Set(validate.errors?.map(({ instancePath }) => instancePath.split('/')[1] ?? ''))
  for (const name of wrong) problems.push(`${name}: must be ${describeTerm(SCHEMAS[name] ?? {})}`)

  for (const name of ['IDENTITY_BRIDGE_UPSTREAM', 'IDENTITY_ISSUER'] as const) {
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
  const workers = read.IDENTITY_WORKERS === 'auto' ? availableParallelism() : read.IDENTITY_WORKERS
  if (workers > 1 && read.DATABASE_URL === 'sqlite::memory:') {
    problems.push('IDENTITY_WORKERS: must be 1 with sqlite::memory:, as each process would have its own database')
  }
  const unusable = findUnusableRole(toRoleNames(read))
  if (unusable !== undefined) problems.push(`${nameRole(unusable)}: must not be __proto__`)
  const shared = findSharedRole(toRoleNames(read))
  if (shared !== undefined) problems.push(`${nameRole(shared.role)}: must differ from ${nameRole(shared.earlier)}`)
  if (findAdminsRole(toRoleNames(read), toManagerRoles(read) ?? []) !== undefined) {
    problems.push('IDENTITY_MANAGER_ROLES: must not contain the admin role or the service role')
  }
  const secretKey = readSecretKey(read, problems, warnings)
  const mail = readMail(read, problems, warnings)
  if (problems.length > 0) throw new ConfigError(problems)
  return { ...toConfig({ ...read, IDENTITY_WORKERS: workers }, secretKey), people: toPeople(read, mail), warnings }
}

function toRoleNames (env: Environment): RoleNames {
  return { admin: env.IDENTITY_ROLE_ADMIN, manager: env.IDENTITY_ROLE_MANAGER, service: env.IDENTITY_ROLE_SERVICE }
}

function toOutboundHosts ({ IDENTITY_OUTBOUND_HOSTS: hosts }: Environment): string[] {
  return hosts?.split(',').map((host) => host.trim()).filter(Boolean) ?? []
}

/** The roles that managers may grant; undefined for the default. */
function toManagerRoles ({ IDENTITY_MANAGER_ROLES: roles }: Environment): string[] | undefined {
  if (roles === undefined) return
  return roles === false ? [] : roles.split(',').map((role) => role.trim()).filter(Boolean)
}

/** The variable that names this role. */
function nameRole (role: keyof RoleNames): string {
  return `IDENTITY_ROLE_${role.toUpperCase()}`
}

function toOidc (env: Environment): Partial<OidcOptions> {
  const { IDENTITY_ISSUER: issuer, IDENTITY_NAME: name, IDENTITY_LOGO: logo, IDENTITY_ACCENT: accent } = env
  return {
    ...(issuer !== undefined && { issuer }),
    ...(name !== undefined && { name }),
    ...(logo !== undefined && { logo }),
    ...(accent !== undefined && { accent }),
    accountPath: env.IDENTITY_ACCOUNT_PATH,
    accessTtl: env.IDENTITY_ACCESS_TTL,
    // The command line mints tokens with it too.
    refreshTtl: Math.min(env.IDENTITY_REFRESH_TTL, env.IDENTITY_REFRESH_MAX),
    sessionTtl: env.IDENTITY_SESSION_TTL,
    sessionMax: env.IDENTITY_SESSION_MAX,
    refreshMax: env.IDENTITY_REFRESH_MAX,
    signInLimit: env.IDENTITY_SIGN_IN_LIMIT
  }
}

function toPeople (env: Environment, mail: { url: string, from: string } | undefined): Config['people'] {
  const domains = splitList(env.IDENTITY_SIGN_UP_DOMAINS ?? false)
  return {
    ...(mail && { mail }),
    signUp: env.IDENTITY_SIGN_UP,
    ...(domains !== false && { signUpDomains: domains }),
    selfDelete: env.IDENTITY_SELF_DELETE
  }
}

function toConfig (env: Environment & { IDENTITY_WORKERS: number }, secretKey: string | undefined): Omit<Config, 'warnings' | 'people'> {
  const { IDENTITY_BRIDGE_PREFIX: prefix, IDENTITY_BRIDGE_UPSTREAM: upstream } = env
  return {
    host: env.HOST,
    port: env.PORT,
    logLevel: env.LOG_LEVEL,
    rateLimit: env.IDENTITY_RATE_LIMIT,
    writeLimit: env.IDENTITY_WRITE_LIMIT,
    stallTimeout: env.IDENTITY_STALL_TIMEOUT,
    shutdownTimeout: env.IDENTITY_SHUTDOWN_TIMEOUT,
    shutdownDelay: env.IDENTITY_SHUTDOWN_DELAY ?? (env.NODE_ENV === 'production' ? SHUTDOWN_DELAY : 0),
    workers: env.IDENTITY_WORKERS,
    openapi: env.IDENTITY_OPENAPI,
    ...(env.IDENTITY_METRICS !== undefined && { metrics: env.IDENTITY_METRICS }),
    logCallers: env.IDENTITY_LOG_CALLERS,
    trustProxy: splitList(env.IDENTITY_TRUST_PROXY),
    oidc: env.IDENTITY_OIDC && toOidc(env),
    ...(prefix !== false && { bridge: { prefix, ...(upstream !== undefined && { upstream }) } }),
    services: {
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
      roles: toRoleNames(env),
      managerRoles: toManagerRoles(env),
      clientsPerUser: env.IDENTITY_CLIENTS_PER_USER,
      auditDays: env.IDENTITY_AUDIT_DAYS,
      addresses: env.IDENTITY_ADDRESSES,
      outboundHosts: toOutboundHosts(env)
    }
  }
}
