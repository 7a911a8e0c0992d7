import { Type, type Static } from '@sinclair/typebox'
import { ResourceClaimsSchema, heldClaims } from './claims.ts'
import { Data, LIMITS, PageSchema, QueryText, TimestampSchema } from './common.ts'

const ScopesSchema = Type.Record(Type.String(), Type.String({ maxLength: LIMITS.name }), {
  maxProperties: LIMITS.items,
  description: 'Scope -> what it lets an app do, in the words of the consent page. A scope belongs to one resource only.'
})

const NewResourceSchema = Type.Object({
  id: Type.String({
    maxLength: LIMITS.uri,
    description: 'The resource indicator (RFC 8707), which is the audience of its tokens: https, http on localhost, 127.0.0.1 or [::1], or urn; ' +
      'without user information, query and fragment.'
  }),
  name: Type.String({ maxLength: LIMITS.name }),
  scopes: ScopesSchema,
  selfService: Type.Optional(Type.Array(Type.String({ maxLength: LIMITS.scope }), {
    maxItems: LIMITS.items, description: 'Scopes that any user may give to their clients. An administrator may give every scope.'
  })),
  documents: Type.Optional(Type.Array(Type.String({ maxLength: LIMITS.scope }), {
    maxItems: LIMITS.items, description: 'Scopes that clients which nobody has registered may request, see docs/agents.md. Absent: none.'
  })),
  accessTtl: Type.Optional(Type.Integer({
    minimum: 60, maximum: 86_400, description: 'Lifetime of access tokens for this resource in seconds. Absent: that of all access tokens.'
  })),
  tokenFormat: Type.Optional(Type.Union([Type.Literal('opaque'), Type.Literal('jwt')], {
    description: 'jwt: access tokens for it are JWTs (RFC 9068), which it may verify alone; they live 600 seconds by default, and 3600 at most. Absent: opaque.'
  })),
  tokenAlg: Type.Optional(Type.Union([Type.Literal('RS256'), Type.Literal('ES256')], { description: 'How these JWTs are signed. Absent: RS256.' })),
  roles: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.name }), {
    minItems: 1, maxItems: LIMITS.items, description: 'The user must hold one of these roles, at every use of a token. Absent: none is needed.'
  })),
  claims: Type.Optional(ResourceClaimsSchema)
}, { additionalProperties: false })
export type NewResource = Static<typeof NewResourceSchema>

export const CreateResourceSchema = Type.Object({ data: NewResourceSchema }, {
  additionalProperties: false,
  title: 'CreateResource',
  examples: [{ data: { id: 'https://orders.example.com', name: 'Orders', scopes: { 'orders:read': 'see your orders' }, selfService: ['orders:read'] } }]
})
export type CreateResource = Static<typeof CreateResourceSchema>

export const PatchResourceSchema = Type.Object({
  data: Type.Object({
    ...Type.Partial(Type.Omit(NewResourceSchema, ['id', 'accessTtl', 'roles'])).properties,
    accessTtl: Type.Optional(Type.Union([NewResourceSchema.properties.accessTtl, Type.Null()], { description: 'null removes it.' })),
    roles: Type.Optional(Type.Union([NewResourceSchema.properties.roles, Type.Null()], { description: 'null removes the roles.' }))
  }, { additionalProperties: false })
}, { additionalProperties: false, title: 'PatchResource', examples: [{ data: { scopes: { 'orders:read': 'see your orders and invoices' } } }] })
export type PatchResource = Static<typeof PatchResourceSchema>

/** The option `resources`. */
export const FixedResourcesSchema = Type.Array(NewResourceSchema, {
  maxItems: LIMITS.items,
  default: [],
  description: 'Resources that this app declares, see docs/resources.md. They cannot be changed through the API.'
})

/** A resource in a response. */
export const ResourceSchema = Type.Object({
  resourceId: Type.String(),
  id: Type.String({ description: 'The URI that is the audience of its tokens.' }),
  name: Type.String(),
  scopes: Type.Unsafe<{ [scope: string]: string }>(Type.Object({}, { additionalProperties: Type.String(), description: ScopesSchema.description })),
  selfService: Type.Array(Type.String()),
  documents: Type.Optional(Type.Array(Type.String())),
  accessTtl: Type.Optional(Type.Integer()),
  tokenFormat: Type.Optional(Type.Literal('jwt', { description: 'Its access tokens are JWTs. Absent: they are opaque.' })),
  tokenAlg: Type.Optional(Type.Union([Type.Literal('RS256'), Type.Literal('ES256')], { description: 'How these are signed.' })),
  roles: Type.Optional(Type.Array(Type.String())),
  claims: Type.Optional(heldClaims(ResourceClaimsSchema)),
  fixed: Type.Optional(Type.Literal(true, { description: 'Declared by an option of the host, and changed only there.' })),
  createdAt: TimestampSchema,
  modifiedAt: TimestampSchema
}, { title: 'Resource' })
export type Resource = Static<typeof ResourceSchema>

const StrippedClients = Type.Integer({ minimum: 0, description: 'Clients that lost a scope, because this resource declares it now or no longer.' })
export const ResourceCreatedSchema = Data(Type.Object({ resourceId: Type.String(), strippedClients: StrippedClients }))
export const ResourcePatchedSchema = Data(Type.Object({ strippedClients: StrippedClients }))

export const ResourceListQuerySchema = Type.Object({
  sort: QueryText('Comma-separated key:direction. Keys: created, modified, name. Default name:asc.'),
  ...PageSchema
}, { additionalProperties: false })
export type ResourceListQuery = Static<typeof ResourceListQuerySchema>
