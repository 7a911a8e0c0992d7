import { CreateResourceSchema, type NewResource, type Resource } from '../schemas/resource.ts'
import { defined } from '../lib/defined.ts'
import { paramError } from '../lib/errors.ts'
import { choice, repeated, required, subject, UsageError, value } from './args.ts'
import { claimFlag, readClaimFlags } from './claims.ts'
import { type Commands, type Result, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { checkInput } from './input.ts'
import { printList, toCell } from './output.ts'

const COLUMNS = {
  RESOURCE_ID: 'resourceId',
  ID: 'id',
  NAME: 'name',
  SCOPES: (resource: Resource) => Object.keys(resource.scopes).join(','),
  SELF_SERVICE: (resource: Resource) => resource.selfService.join(','),
  DOCUMENTS: (resource: Resource) => resource.documents?.join(','),
  ACCESS_TTL: 'accessTtl',
  TOKENS: (resource: Resource) => resource.tokenFormat === undefined ? 'opaque' : `${resource.tokenFormat} ${resource.tokenAlg}`,
  ROLES: (resource: Resource) => resource.roles?.join(','),
  CLAIMS: (resource: Resource) => Object.keys(resource.claims ?? {}).join(',')
} as const

/** Reads `NAME=DESCRIPTION`. A scope may contain `=`, so such a name is left to the API. */
function readScope (text: string): [scope: string, description: string] {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1) throw new UsageError('--scope: must be NAME=DESCRIPTION')
  return [text.slice(0, at), text.slice(at + 1)]
}

/** The text output counts the clients that have lost a scope only if there are any. The JSON always does. */
function toResult (resourceId: string, strippedClients: number, json: boolean): Result {
  if (!json && strippedClients === 0) return { resourceId }
  return [{ resourceId, strippedClients }, 'These clients had names of its scopes, and have lost them.']
}

export const resourceCommands: Commands = {
  'resource create': {
    summary: 'Declare a resource: an API with scopes of its own.',
    example: 'resource create https://orders.example --name Orders --scope "orders:read=Read your orders"',
    flags: {
      id: subject('URI', 'The URI that is the audience of its tokens.'),
      name: required('NAME', 'Display name.'),
      scope: repeated('NAME=DESCRIPTION', 'A scope, and what it lets an app do'),
      'self-service': repeated('NAME', 'A scope that any user may give to their clients'),
      documents: repeated('NAME', 'A scope that clients which nobody has registered may request'),
      'access-ttl': value('SECONDS', 'Seconds that access tokens for it live. Those of all access tokens by default.'),
      'token-format': choice('FORMAT', ['opaque', 'jwt'], 'opaque, or jwt: its access tokens are JWTs, which it may verify alone.'),
      'token-alg': choice('ALG', ['RS256', 'ES256'], 'RS256 or ES256: how these JWTs are signed.'),
      role: repeated('ROLE', 'A role, of which the user must hold at least one'),
      claim: claimFlag('introspection, jwt')
    },
    async run ({ services: { resources }, args, json }) {
      const roles = args.all('role')
      const accessTtl = args.integer('access-ttl', { minimum: 60, maximum: 86_400 })
      const scopes = args.all('scope').map(readScope)
      if (new Set(scopes.map(([name]) => name)).size < scopes.length) throw new UsageError('--scope: names a scope twice')
      const data = defined({
        id: args.required('id'),
        name: args.required('name'),
        scopes: Object.fromEntries(scopes),
        selfService: args.all('self-service'),
        documents: args.all('documents').length > 0 ? args.all('documents') : undefined,
        accessTtl,
        tokenFormat: args.optional('token-format') as NewResource['tokenFormat'],
        tokenAlg: args.optional('token-alg') as NewResource['tokenAlg'],
        roles: roles.length > 0 ? roles : undefined,
        claims: readClaimFlags(args) as NewResource['claims']
      })
      const { resourceId, strippedClients } = await resources.create(checkInput(CreateResourceSchema, { data }))
      return toResult(resourceId, strippedClients, json)
    }
  },

  'resource list': {
    summary: 'List resources.',
    example: 'resource list',
    flags: {},
    creates: false,
    async run (context) {
      await printList(context, context.services.resources.list({ limit: 0 }), COLUMNS)
    }
  },

  'resource remove': {
    summary: 'Remove a resource. Its tokens end, and its scopes stay reserved.',
    example: 'resource remove https://orders.example',
    flags: { id: subject('URI', 'Its URI.'), yes: YES },
    async run (context) {
      const { services: { resources }, args, json } = context
      const found = await resources.getByUri(args.required('id'))
      if (found === null) throw paramError('id', 'no resource has this URI')
      await confirm(context, `Remove the resource ${toCell(found.name)}? Its tokens end, and its scopes stay reserved.`)
      const { strippedClients } = await resources.remove(found.resourceId)
      return toResult(found.resourceId, strippedClients, json)
    }
  }
}
