import type { Config } from '../config.ts'
import { findDataDir, findKeyFile } from '../lib/crypto/secret-key.ts'
import { defined } from '../lib/defined.ts'
import { nameOption } from '../lib/status/options.ts'
import { type Term, showValue } from '../lib/status/show-value.ts'
import { type Variables, readVariables } from '../lib/variables.ts'
import { GROUPS } from '../schemas/config.ts'
import type { Setting as ShownSetting } from '../schemas/status.ts'
import { findServiceUrl } from './service-url.ts'

type Value = string | number | boolean

/** A setting of the service, with the value that it would use. */
export interface Setting {
  /** That of its variable. */
  name: string
  group: string
  /** Of a secret what may be shown. Absent: it is not set. */
  value?: Value
  /** What it means that it is not set. */
  absent?: string
  /** `file`: the value is in a file, which a variable names. `option`: a flag of the command. */
  source: 'default' | 'variable' | 'file' | 'option'
  /** That file. */
  file?: string
  /** The variable of another setting, which decides. */
  decided_by?: string
  default?: Value
  description: string
}

/** What settings become together. */
type Effective = Record<string, Pick<Setting, 'value' | 'absent' | 'decided_by'>>

/** The settings of which the variable does not say all. */
function findEffective (config: Config): Effective {
  const { services, oidc, console: own, people, rateLimit, shutdownDelay, workers, port } = config
  const unlimited = rateLimit === false ? { value: false, decided_by: 'IDENTITY_RATE_LIMIT' } : undefined
  const keyFile = findKeyFile(services)
  const folder = findDataDir(services)
  const hasAddress = oidc !== false && (oidc.issuer !== undefined || port !== 0)
  return defined({
    DATABASE_URL: { value: services.database },
    IDENTITY_MAIL_URL: people.mail && { value: people.mail.url },
    IDENTITY_SECRET_KEY: services.secretKey === undefined ? keyFile && { absent: `the key in ${keyFile}` } : { value: services.secretKey },
    IDENTITY_DATA_DIR: folder === null ? undefined : { value: folder },
    IDENTITY_CREATE_DATABASE: { value: services.createDatabase ?? !services.production, decided_by: 'NODE_ENV' },
    IDENTITY_SHUTDOWN_DELAY: { value: shutdownDelay, decided_by: 'NODE_ENV' },
    IDENTITY_WORKERS: { value: workers },
    IDENTITY_ISSUER: hasAddress ? { value: findServiceUrl(config) } : undefined,
    IDENTITY_REFRESH_TTL: oidc === false ? undefined : { value: oidc.refreshTtl, decided_by: 'IDENTITY_REFRESH_MAX' },
    IDENTITY_ADMIN_PATH: { value: own && own.path, decided_by: oidc === false ? 'IDENTITY_OIDC' : 'NODE_ENV' },
    IDENTITY_WRITE_LIMIT: unlimited,
    IDENTITY_CLIENTS_PER_USER: unlimited,
    IDENTITY_SIGN_IN_LIMIT: unlimited
  }) as Effective
}

/** What a description says of a setting that is not set. */
function describeAbsent (description: string): string {
  const [, text = 'none'] = /Absent: (.+?)\.(?: |$)/.exec(description) ?? []
  return text.replaceAll('`', '')
}

const VARIABLES: [group: string, name: string, schema: Term][] = Object.entries<Record<string, Term>>(GROUPS)
  .flatMap(([group, variables]) => Object.entries(variables).map(([name, schema]): [string, string, Term] => [group, name, schema]))

const isVariable = (name: string): boolean => VARIABLES.some(([, one]) => one === name)

/** Whether a variable only names the file of another one. */
const isOtherWay = (name: string): boolean => name.endsWith('_FILE') && isVariable(name.slice(0, -'_FILE'.length))

/** Every setting, in the order of docs/configuration.md. Nothing of it is secret. */
export const SETTINGS = VARIABLES.filter(([, name]) => !isOtherWay(name))

/** The variable that a problem names. */
const nameOf = (problem: string): string => problem.startsWith('--workers:') ? 'IDENTITY_WORKERS' : problem.slice(0, problem.indexOf(':'))

interface Known {
  /** The variables that are set by flags. */
  flagged: Record<string, string>
  /** Absent: it could not be read. */
  config?: Config | undefined
  /** What is wrong: a value that is named here is not shown, since it may be a misplaced secret. */
  problems: readonly string[]
}

/** Where a value comes from. */
function findSource (name: string, { given, flagged, file }: { given: Record<string, Value>, flagged: object, file: Value | undefined }): Setting['source'] {
  if (Object.hasOwn(flagged, name)) return 'option'
  if (file !== undefined) return 'file'
  return given[name] === undefined ? 'default' : 'variable'
}

/** Lists every setting with the value that the service would use, and where it comes from. */
export function listSettings (env: Variables, { flagged, config, problems }: Known): Setting[] {
  const given = readVariables({ ...env, ...flagged }) as Record<string, Value>
  const effective = config === undefined ? {} : findEffective(config)
  const wrong = new Set(problems.map(nameOf))
  return SETTINGS.map(([group, name, schema]) => {
    const { description = '' } = schema
    const file = given[`${name}_FILE`] ?? (name.endsWith('_FILE') ? given[name] : undefined)
    const base = schema.default as Value | undefined
    const own = given[name] ?? base
    const isRefused = (wrong.has(name) || wrong.has(`${name}_FILE`)) && typeof own !== 'boolean' && typeof own !== 'number'
    const { value = own, absent = describeAbsent(description), decided_by } = effective[name] ?? {}
    const shown = showValue(schema, value) as Value | undefined
    // The content of a file that was not read.
    const text = shown === undefined && file !== undefined ? 'set' : shown
    return defined({
      name,
      group,
      value: isRefused ? undefined : text,
      absent: isRefused ? 'refused' : text === undefined ? absent : undefined,
      source: findSource(name, { given, flagged, file }),
      file: file === undefined || isRefused ? undefined : String(file),
      decided_by: value === own || file !== undefined ? undefined : decided_by,
      default: base,
      description
    })
  })
}

const ORIGINS = { default: 'default', variable: 'environment', file: 'file', option: 'flag' } as const

/** The settings of a process, as its administrators see them. @param given what the operator has given to it, or to the primary process of this worker */
export function showSettings (config: Config, { env, flagged }: { env: Variables, flagged: Record<string, string> }): ShownSetting[] {
  // Of a worker it is what the primary process has decided.
  const createDatabase = readVariables({ ...env, ...flagged }).IDENTITY_CREATE_DATABASE
  const { createDatabase: _decided, ...services } = config.services
  return listSettings(env, { flagged, config: { ...config, services: defined({ ...services, createDatabase }) }, problems: [] })
    .map(({ name, value, source }) => defined({ name: nameOption(name), variable: name, value, origin: ORIGINS[source] }))
}
