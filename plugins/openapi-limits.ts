import { CLAIM_LIMITS, CLAIM_NAME, CLAIM_SOURCE } from '../schemas/claims.ts'
import { ClientSchema } from '../schemas/client.ts'
import { LIMITS as BOUNDS } from '../schemas/common.ts'
import { ACCOUNT, EMAIL } from '../lib/checks.ts'
import { ERRORS } from '../lib/errors.ts'
import { EVENT_TYPES } from '../lib/events/types.ts'

type Node = Record<string, unknown>

const TIME = { format: 'date-time' }
const URL = { format: 'uri' }
const TEXT = { minLength: 1 }
const URIS = { items: URL }
/** RFC 6749, 3.3. */
const SCOPES = { items: { pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' } }
/** Keys without a NUL character. */
const INFO = { propertyNames: { pattern: '^[^\\x00]+$' } }
/** The service ignores the case of addresses, which a pattern cannot say. */
const EMAIL_ADDRESS = EMAIL.source.replaceAll('a-z', 'A-Za-z').slice(1, -1)
const ACCOUNT_OR_ADDRESS = { pattern: `^(?:${ACCOUNT.source.slice(1, -1)}|${EMAIL_ADDRESS})$` }
const ADDRESS = { pattern: `^${EMAIL_ADDRESS}$` }
/** A displayed name that may be empty, and one that may not. lib/names.ts refuses more than a portable pattern can express. */
const NAME = { pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$' }
const SHOWN = { pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$' }
/** A URL to which the service itself sends requests. */
const RECEIVER = { format: 'uri', pattern: '^https://' }
const CLAIMS = {
  propertyNames: { maxLength: CLAIM_LIMITS.name, pattern: CLAIM_NAME },
  additionalProperties: { properties: { from: { pattern: CLAIM_SOURCE } } }
}
const CLIENT = { redirectUris: URIS, scopes: SCOPES, image: URL, name: NAME, roles: INFO, claims: CLAIMS, backchannelLogoutUri: RECEIVER }
const RESOURCE = {
  name: SHOWN,
  roles: { items: SHOWN },
  scopes: { propertyNames: { maxLength: BOUNDS.scope, ...SCOPES.items }, additionalProperties: SHOWN },
  claims: CLAIMS
}
const RESOURCE_ID = {
  format: 'uri',
  pattern: '^(?:(?:https://[^/?#@]+|http://(?:localhost|127\\.0\\.0\\.1|\\[::1\\])(?::\\d+)?)(?:/[^?#]*)?|urn:[A-Za-z0-9][A-Za-z0-9-]{1,31}:[^?#]+)$'
}
const TYPES = Object.keys(EVENT_TYPES)
const WEBHOOK = { name: NAME, url: RECEIVER, types: { items: { enum: ['*', ...new Set(TYPES.map((type) => type.replace(/\..*/, '.*'))), ...TYPES] } } }

const inData = (properties: Node, rest: Node = {}) => ({ properties: { data: { properties, ...rest } } })
const CHANGE = { minProperties: 1 }

/** Requires a change: in `data`, or by the field next to it with this value. As `if` and `then`, which code generators ignore. */
const changes = (field: string, value: Node = {}) => ({
  if: { not: { required: [field], properties: { [field]: value } } }, then: { required: ['data'], properties: { data: CHANGE } }
})

/**
 * The limits that the service checks in its own code, by the title of the schema. The schemas of the routes cannot have them:
 * they would refuse fields that the service ignores for some callers, with other messages, and before it has checked what
 * the caller may do.
 */
const LIMITS: Record<string, Node> = {
  Error: { properties: { code: { enum: Object.keys(ERRORS) } } },
  CreateUser: { properties: { ...inData({ account: ACCOUNT_OR_ADDRESS, password: TEXT, info: INFO, attributes: INFO }).properties, expired_at: TIME } },
  PatchUser: { ...inData({ verified_at: TIME, password: TEXT, roles: INFO, info: INFO, attributes: INFO }), ...CHANGE, ...changes('disable') },
  PatchProfile: inData({ password: TEXT, info: INFO }, CHANGE),
  ForgotPassword: inData({ account: ACCOUNT_OR_ADDRESS }),
  SignUp: inData({ email: ADDRESS }),
  ChangeAddress: inData({ email: ADDRESS }),
  InviteUser: inData({ account: ACCOUNT_OR_ADDRESS, roles: INFO }),
  CreateClient: inData({ ...CLIENT, userId: TEXT }),
  PatchClient: { ...inData(CLIENT), ...CHANGE, ...changes('regen_secret', { const: true }) },
  CreateResource: inData({ ...RESOURCE, id: RESOURCE_ID }),
  PatchResource: inData(RESOURCE, CHANGE),
  CreateWebhook: inData(WEBHOOK),
  PatchWebhook: inData(WEBHOOK, CHANGE)
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

const LISTED = { sort: sortBy('created', 'modified', 'name'), after: { pattern: '^[A-Za-z0-9_-]*$' }, before: { pattern: '^[A-Za-z0-9_-]*$' } }
const TIME_OR_NONE = { anyOf: [{ maxLength: 0 }, TIME] }
const CLIENTS = { ...LISTED, fields: listOf(`(?:${Object.keys(ClientSchema.properties).join('|')})`) }

/** The same for query parameters, by operation. */
const QUERIES: Record<string, Record<string, Node>> = {
  listUsers: { ...LISTED, sort: sortBy('account', 'created', 'modified', 'verified', 'name') },
  listClients: CLIENTS,
  bridgeListClients: CLIENTS,
  listResources: LISTED,
  listWebhooks: LISTED,
  listEvents: { ...LISTED, sort: sortBy('time'), from: TIME_OR_NONE, to: TIME_OR_NONE },
  readEvents: { after: { pattern: '^(?:now|[0-9A-Za-z]{1,16}\\.(?:0|[1-9]\\d{0,15}))$' } }
}

/** Adds the limits to the query parameters of an operation. */
export function addQueryLimits (operationId: string, properties: Record<string, object>): Record<string, object> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, { ...schema, ...QUERIES[operationId]?.[name] }]))
}

/** Adds the limits to the named schemas of the document. */
export function addLimits (schemas: Record<string, Node>): Record<string, Node> {
  return Object.fromEntries(Object.entries(schemas).map(([title, schema]) => [title, merge(schema, LIMITS[title] ?? {})]))
}
