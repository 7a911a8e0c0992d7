import type { FastifySchema, RouteOptions } from 'fastify'
import { ErrorSchema } from '../schemas/error.ts'
import { readVersion } from '../lib/version.ts'
import { defined } from '../lib/defined.ts'
import { API_SCOPES } from '../lib/api-scopes.ts'
import { ROUTES } from '../lib/oidc/routes.ts'
import { ACCESS, type AccessRow } from './access-table.ts'
import { findOAuthDocs } from './oauth-docs.ts'
import { addLimits, addQueryLimits } from './openapi-limits.ts'

const DESCRIPTION = `User accounts, registered clients and token sessions.

Every error of the API has the same body; its \`code\` is stable. Lists are streamed: a failure midway
aborts the connection, so that a truncated list is never valid JSON. \`format=array\` answers a list as the bare array, and
\`Accept: application/x-ndjson\` as one record per line; both are left out below, so that generated clients get one type.`

const BEARER = { type: 'http', scheme: 'bearer', description: 'An access token of the token endpoint, or of the command line.' } as const
const CLIENT = {
  type: 'http', scheme: 'basic', description: 'The id and the secret of a confidential client. A public client sends its client_id in the form.'
} as const

/** A route that the document describes, as it was registered. */
export interface DescribedRoute { method: string, url: string, schema: FastifySchema }

/** The descriptions of a registered route: from its schema, or from oauth-docs.ts for a route of oidc-provider. */
export function describeRoute ({ method, url, schema }: RouteOptions): DescribedRoute[] {
  const methods = [method].flat().filter((name) => name !== 'HEAD')
  if (schema?.hide !== true) return methods.map((name) => ({ method: name, url, schema: schema ?? {} }))
  return methods.flatMap((name) => {
    const docs = findOAuthDocs(name, url)
    return docs === undefined ? [] : [{ method: name, url, schema: docs }]
  })
}

const isSigning = ({ url }: DescribedRoute) => url.endsWith(`/api/v1${ROUTES.token}`)

/** The document without its operations. It has `oauth2` if the service has an authorization server. */
export function createFrame (routes: DescribedRoute[]) {
  const base = routes.find(isSigning)?.url.slice(0, -ROUTES.token.length)
  const scopes = { openid: 'sign the user in', ...API_SCOPES }
  const urls = { tokenUrl: `${base}${ROUTES.token}`, refreshUrl: `${base}${ROUTES.token}`, scopes }
  const oauth2 = {
    type: 'oauth2' as const,
    description: 'A token that a client requests for itself or for a user. `bearer` takes the same tokens.',
    flows: { authorizationCode: { authorizationUrl: `${base}${ROUTES.authorization}`, ...urls }, clientCredentials: urls }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'fastify-identity', version: readVersion(), description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/' }],
    tags: [
      { name: 'auth', description: 'Token sessions' },
      { name: 'client', description: 'Registered clients' },
      { name: 'resource', description: 'Declared resources and their scopes' },
      { name: 'event', description: 'Events: what happened, to search and to follow' },
      { name: 'webhook', description: 'Receivers of events, and the state of their deliveries' },
      { name: 'user', description: 'User accounts' },
      { name: 'support', description: 'Why somebody cannot sign in, and what a token would say' },
      { name: 'factor', description: 'Two-factor authentication of users' },
      { name: 'identity', description: 'Identities of users at other providers' },
      { name: 'job', description: 'What the service does later, and the keys of what it stores' },
      { name: 'status', description: 'The service itself: what needs attention, and its settings' },
      { name: 'people', description: 'Self-service for accounts, and invitations' },
      { name: 'oauth', description: 'OAuth 2.0 and OpenID Connect' },
      { name: 'bridge', description: 'The client API relayed, and client lists as CSV' },
      { name: 'health', description: 'Checks for orchestrators' }
    ],
    components: {
      securitySchemes: defined({
        bearer: BEARER, oauth2: base === undefined ? undefined : oauth2, client: base === undefined ? undefined : CLIENT
      })
    }
  }
}

/** The row of the access table for an operation; the bridge's operations are those of the client API. */
function findRow (operationId = ''): AccessRow | undefined {
  const name = operationId.replace(/^bridge(.)/, (_match, first: string) => first.toLowerCase())
  return Object.hasOwn(ACCESS, name) ? ACCESS[name] : undefined
}

/** The callers that an operation admits by default, and the scope of the API that its token needs. */
function describeAccess ({ any, roles = [], owner, scope }: AccessRow): string {
  const who = any === true ? ['any user'] : [...roles.map((role) => `the role ${role}`), ...(owner === true ? ['the user of the path'] : [])]
  return `For ${who.join(' or ')}${scope === null ? '' : `, with the scope ${scope}`}.`
}

interface Properties { properties?: Record<string, { anyOf?: { const?: string }[] }> }

interface Described extends FastifySchema {
  operationId?: string
  description?: string
  querystring?: Properties
  response?: object
}

/** Leaves out the format of JSON lists: it would give each list two types. The bridge's CSV stays. */
function omitFormat (query: Properties, operationId: string): Properties {
  const { format, ...properties } = query.properties ?? {}
  const csv = format?.anyOf?.find((choice) => choice.const === 'csv')
  const limited = addQueryLimits(operationId, properties)
  return { ...query, properties: csv === undefined ? limited : { ...limited, format: { ...format, anyOf: undefined, ...csv } } }
}

const TooLarge = { ...ErrorSchema, description: 'ErrParam: The headers are too large.' }

/** The schema of a route for the document: with its security requirements and the callers that it admits. */
export function describeSchema ({ schema }: DescribedRoute, routes: DescribedRoute[]): FastifySchema {
  const { operationId, description, querystring, response, security = [] } = schema as Described
  const row = findRow(operationId)
  const oauth2 = routes.some(isSigning) ? [{ oauth2: row?.scope == null ? [] : [row.scope] }] : []
  const optional = row?.sometimes === true ? [{}] : []
  return defined({
    ...schema,
    description: [description, row === undefined ? security.length === 0 && 'Needs no token.' : describeAccess(row)].filter(Boolean).join(' '),
    response: { 431: TooLarge, ...response },
    querystring: querystring && omitFormat(querystring, operationId ?? ''),
    security: row === undefined ? security : [...optional, { bearer: [] }, ...oauth2]
  })
}

type Node = Record<string, unknown>

/** A union of texts as one `enum`: generated code has one type for it, instead of one for each text. */
function joinTexts ({ anyOf, ...node }: Node): Node {
  return { type: 'string', enum: (anyOf as { enum: string[] }[]).flatMap((choice) => choice.enum), ...node }
}

const isChoiceOfTexts = ({ anyOf }: Node) => Array.isArray(anyOf) && anyOf.every((choice: Node) => choice.type === 'string' && Array.isArray(choice.enum))

/**
 * Moves each schema with a title to the components, under that title, so that generated code has one type for it.
 * @throws Error when two schemas share a title
 */
export function nameSchemas (document: Node): Node {
  const schemas: Record<string, Node> = {}
  function walk (value: unknown): unknown {
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== 'object' || value === null) return value
    const node = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, key === 'example' || key === 'examples' ? inner : walk(inner)]))
    if (isChoiceOfTexts(node)) return joinTexts(node)
    if (typeof node.title !== 'string') return node
    const { title, description: _description, ...schema } = node
    if (schemas[title] !== undefined && JSON.stringify(schemas[title]) !== JSON.stringify(schema)) throw new Error(`two schemas have the title ${title}`)
    schemas[title] = schema
    return { $ref: `#/components/schemas/${title}` }
  }
  const paths = walk(document.paths)
  return { ...document, paths, components: { ...document.components as Node, schemas: addLimits(schemas) } }
}
