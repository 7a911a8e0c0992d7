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

/**
 * What the service checks in its own code, by the title of the schema. The schemas of the routes cannot say it: they would
 * refuse fields that the service ignores for some callers, in other words, and before it has decided who they are.
 */
const LIMITS: Record<string, Node> = {
  Error: { properties: { code: { enum: Object.keys(ERRORS) } } },
  CreateUser: { properties: { ...inData({ account: TEXT, password: TEXT, info: INFO }).properties, expired_at: TIME } },
  PatchUser: { ...inData({ verified_at: TIME, password: TEXT, info: INFO }), ...CHANGE },
  PatchProfile: inData({ password: TEXT, info: INFO }, CHANGE),
  CreateClient: inData({ redirectUris: URIS, scopes: SCOPES, image: URL, userId: TEXT }),
  PatchClient: { ...inData({ redirectUris: URIS, scopes: SCOPES }), ...CHANGE },
  CreateResource: inData({ name: TEXT }),
  PatchResource: inData({ name: TEXT }, CHANGE)
}

function merge (schema: Node, limits: Node): Node {
  const merged = { ...schema }
  for (const [key, limit] of Object.entries(limits)) {
    const isNode = typeof limit === 'object' && limit !== null && !Array.isArray(limit)
    merged[key] = isNode ? merge(schema[key] as Node, limit as Node) : limit
  }
  return merged
}

/** Adds the limits to the named schemas of the document. */
export function addLimits (schemas: Record<string, Node>): Record<string, Node> {
  return Object.fromEntries(Object.entries(schemas).map(([title, schema]) => [title, merge(schema, LIMITS[title] ?? {})]))
}
