import { ClientSchema } from '../schemas/client.ts'
import { ERRORS } from '../lib/errors.ts'

type Node = Record<string, unknown>

const TIME = { format: 'date-time' }
const URL = { format: 'uri' }
const TEXT = { minLength: 1 }
const URIS = { items: URL }
/** RFC 6749, 3.3. */
const SCOPES = { items: { pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' } }
const INFO = { propertyNames: TEXT }

const inData = (properties: Node, rest: Node = {}) => ({ properties: { data: { properties, ...rest } } })
const CHANGE = { minProperties: 1 }

/** Some change: in `data`, or by the field beside it with this value. As `if` and `then`, which code generators pass over. */
const changes = (field: string, value: Node = {}) => ({
  if: { not: { required: [field], properties: { [field]: value } } }, then: { required: ['data'], properties: { data: CHANGE } }
})

/**
 * What the service checks in its own code, by the title of the schema. The schemas of the routes cannot say it: they would
 * refuse fields that the service ignores for some callers, in other words, and before it has decided who they are.
 */
const LIMITS: Record<string, Node> = {
  Error: { properties: { code: { enum: Object.keys(ERRORS) } } },
  CreateUser: { properties: { ...inData({ account: TEXT, password: TEXT, info: INFO }).properties, expired_at: TIME } },
  PatchUser: { ...inData({ verified_at: TIME, password: TEXT, info: INFO }), ...CHANGE, ...changes('disable') },
  PatchProfile: inData({ password: TEXT, info: INFO }, CHANGE),
  CreateClient: inData({ redirectUris: URIS, scopes: SCOPES, image: URL, userId: TEXT }),
  PatchClient: { ...inData({ redirectUris: URIS, scopes: SCOPES }), ...CHANGE, ...changes('regen_secret', { const: true }) },
  CreateResource: inData({ name: TEXT }),
  PatchResource: inData({ name: TEXT }, CHANGE)
}

function merge (schema: Node, limits: Node): Node {
  const merged = { ...schema }
  for (const [key, limit] of Object.entries(limits)) {
    const isNode = typeof limit === 'object' && limit !== null && !Array.isArray(limit)
    merged[key] = isNode && schema[key] !== undefined ? merge(schema[key] as Node, limit as Node) : limit
  }
  return merged
}

const listOf = (item: string) => ({ pattern: `^(?:${item}(?:,${item})*)?$` })
const sortBy = (...keys: string[]) => listOf(`(?:${keys.join('|')}):(?:asc|desc)`)

const LISTED = { sort: sortBy('created', 'modified', 'name'), after: { pattern: '^[A-Za-z0-9_-]*$' } }
const CLIENTS = { ...LISTED, fields: listOf(`(?:${Object.keys(ClientSchema.properties).join('|')})`) }

/** The same for query parameters, by operation. */
const QUERIES: Record<string, Record<string, Node>> = {
  listUsers: { ...LISTED, sort: sortBy('account', 'created', 'modified', 'verified', 'name') },
  listClients: CLIENTS,
  bridgeListClients: CLIENTS,
  listResources: LISTED
}

/** Adds the limits to the query parameters of an operation. */
export function addQueryLimits (operationId: string, properties: Record<string, object>): Record<string, object> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, { ...schema, ...QUERIES[operationId]?.[name] }]))
}

/** Adds the limits to the named schemas of the document. */
export function addLimits (schemas: Record<string, Node>): Record<string, Node> {
  return Object.fromEntries(Object.entries(schemas).map(([title, schema]) => [title, merge(schema, LIMITS[title] ?? {})]))
}
