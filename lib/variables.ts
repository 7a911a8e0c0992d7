import { EnvironmentSchema, type Environment } from '../schemas/config.ts'
import { findNearest } from './nearest.ts'
import { isServiceLink } from './service-link.ts'

/** Variables with their texts, such as process.env. */
export type Variables = Readonly<Record<string, string | undefined>>

/** The parts of JSON Schema that schemas/config.ts uses. */
interface Term {
  anyOf?: Term[]
  const?: unknown
  type?: string
  minimum?: number
  maximum?: number
  expects?: string
}

const SCHEMAS = EnvironmentSchema.properties as Record<string, Term>
const NAMES = Object.keys(SCHEMAS)
const OURS = /^IDENTITY_/

/** Set by Azure's App Service and Service Fabric for their managed identities. */
const FOREIGN = ['IDENTITY_ENDPOINT', 'IDENTITY_HEADER', 'IDENTITY_SERVER_THUMBPRINT']

/** Lists the variables that are set. An empty one counts as absent. */
function listSet (env: Variables): [name: string, text: string][] {
  return Object.entries(env).flatMap(([name, text]) => text === undefined || text === '' ? [] : [[name, text]])
}

/** Options whose variables have other names. */
const OTHERWISE: Readonly<Record<string, string>> = {
  database: 'DATABASE_URL',
  console: 'IDENTITY_ADMIN_PATH',
  production: 'NODE_ENV',
  'oidc.documents': 'IDENTITY_DOCUMENT_HOSTS',
  'migrate.secret': 'IDENTITY_MIGRATE_SECRET_FILE'
}

/** The variable that sets an option of the plugin: `oidc.accent` is IDENTITY_ACCENT. Undefined where none does. */
export function findVariable (option: string): string | undefined {
  if (Object.hasOwn(OTHERWISE, option)) return OTHERWISE[option]
  if (option.startsWith('upstreams')) return 'IDENTITY_UPSTREAMS_FILE'
  const words = option.replace(/^oidc\./, '').replace(/^roles\./, 'role.').replace(/[A-Z]/g, (letter) => `_${letter}`)
  const name = `IDENTITY_${words.replaceAll('.', '_').toUpperCase()}`
  return Object.hasOwn(SCHEMAS, name) ? name : undefined
}

/** Converts a variable's text to the type in its schema, where it can. */
function readText (schema: Term, text: string): unknown {
  for (const term of schema.anyOf ?? [schema]) {
    if (term.type === 'integer' && /^\d{1,15}$/.test(text)) return Number(text)
    if (term.const === false && text === 'off') return false
    if (term.type === 'boolean' && (text === 'on' || text === 'off')) return text === 'on'
  }
  return text
}

/** The values of our variables that are set, which are not checked yet. */
export function readVariables (env: Variables): Partial<Environment> {
  return Object.fromEntries(listSet(env).flatMap(([name, text]) => {
    const schema = Object.hasOwn(SCHEMAS, name) ? SCHEMAS[name] : undefined
    return schema === undefined ? [] : [[name, readText(schema, text)]]
  }))
}

/** The values that a schema allows, in words. */
function describeTerm (term: Term): string {
  if (term.expects !== undefined) return term.expects
  if (term.anyOf !== undefined) return term.anyOf.map(describeTerm).join(' or ')
  if (term.const !== undefined) return term.const === false ? 'off' : String(term.const)
  if (term.type === 'boolean') return 'on or off'
  return term.type === 'integer' ? `an integer from ${term.minimum} to ${term.maximum}` : 'a text that is not too long'
}

/** The values that a variable may have, in words. */
export const describeAllowed = (name: string): string => describeTerm(SCHEMAS[name] ?? {})

/** A variable that looks like one of ours and is none. */
export interface UnknownVariable {
  name: string
  /** The most similar name of ours. Absent where none is similar. */
  nearest?: string
}

/** The variables whose names begin as ours do, and that this release does not know. Those of others that begin so are none. */
export function listUnknown (env: Variables): UnknownVariable[] {
  return listSet(env)
    .filter(([name, text]) => OURS.test(name) && !NAMES.includes(name) && !FOREIGN.includes(name) && !isServiceLink(name, text))
    .map(([name]) => {
      const bare = name.replace(OURS, '')
      const nearest = NAMES.includes(bare) ? bare : findNearest(name, NAMES)
      return nearest === undefined ? { name } : { name, nearest }
    })
}

export const explainUnknown = ({ name, nearest }: UnknownVariable): string =>
  `${name}: is not a variable of this release and has no effect${nearest === undefined ? '' : `, did you mean ${nearest}?`}`
