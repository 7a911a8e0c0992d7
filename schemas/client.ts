import { Type, type Static } from '@sinclair/typebox'
import { Data, HeldRolesSchema, LIMITS, PageSchema, QueryText, RolesSchema, TimestampSchema, describe } from './common.ts'

const ImageSchema = Type.String({ maxLength: LIMITS.uri, description: 'An http or https URL.' })

const LogoutUriSchema = Type.String({
  maxLength: LIMITS.uri,
  description: 'Where the client is notified that a sign-in has ended (OpenID Connect Back-Channel Logout): an https URL with a public ' +
    'address.'
})

export const GrantsSchema = Type.Array(Type.Union([Type.Literal('code'), Type.Literal('refresh'), Type.Literal('client'), Type.Literal('device')]), {
  maxItems: 4,
  description: 'What the client may do to get tokens: `code`, `refresh`, `client` (client credentials) and `device`. Absent: `code` and `refresh` with redirect URIs, `client` for a confidential client without any.'
})

/** Fields of a client that only the operator sets. */
const OPERATOR_FIELDS = {
  pkce: Type.Optional(Type.Union([Type.Literal('required'), Type.Literal('optional')], { description: '`optional` only for a confidential client. Set by admins.' })),
  first_party: Type.Optional(Type.Boolean({ description: "The operator's own client: it signs users in without asking for consent. Set by admins." })),
  roles: Type.Optional(describe(RolesSchema, "Roles of the client's own tokens, which make it a service account. Set by admins."))
}

/** A client in a response. */
export const ClientSchema = Type.Object({
  clientId: Type.String(),
  createdAt: TimestampSchema,
  modifiedAt: TimestampSchema,
  clientSecret: Type.Optional(Type.String({ description: 'Only on a confidential client.' })),
  redirectUris: Type.Array(Type.String()),
  scopes: Type.Array(Type.String()),
  userId: Type.Optional(Type.String({ description: 'The owner. Only shown to admins.' })),
  name: Type.String(),
  image: Type.Optional(Type.String()),
  confidential: Type.Optional(Type.Boolean({ description: 'Present, and true, when the client has a secret that the caller may not see.' })),
  grants: Type.Optional(GrantsSchema),
  ...OPERATOR_FIELDS,
  roles: Type.Optional(HeldRolesSchema),
  disabled: Type.Optional(Type.Boolean({ description: 'Present, and true, when the client is disabled: it gets no tokens.' })),
  id_token_claims: Type.Optional(Type.Boolean({ description: "Whether the client's ID tokens have the claims of the granted scopes, beside userinfo." })),
  backchannelLogoutUri: Type.Optional(LogoutUriSchema)
}, { title: 'Client' })
export type Client = Static<typeof ClientSchema>

/** A client in a list, with the fields that `fields` selects. */
export const ClientItemSchema = Type.Object({ ...Type.Partial(ClientSchema).properties, clientId: ClientSchema.properties.clientId }, { title: 'ClientItem' })
export type ClientItem = Static<typeof ClientItemSchema>

const NewClientSchema = Type.Object({
  redirectUris: Type.Array(Type.String({ maxLength: LIMITS.uri }), {
    maxItems: LIMITS.items,
    description: 'https, http on localhost, 127.0.0.1 or [::1], or a private scheme with a dot; no fragment, user information or parameter of the ' +
      'response. Stored sorted and without duplicates.'
  }),
  scopes: Type.Array(Type.String({ maxLength: LIMITS.scope }), {
    maxItems: LIMITS.items,
    description: 'Scope tokens (RFC 6749, 3.3). Stored sorted and without duplicates.'
  }),
  name: Type.String({ maxLength: LIMITS.name }),
  image: Type.Optional(ImageSchema),
  userId: Type.Optional(Type.String({ maxLength: LIMITS.id, description: 'The owner. Ignored unless the caller is an admin.' })),
  grants: Type.Optional(GrantsSchema),
  ...OPERATOR_FIELDS,
  disabled: Type.Optional(Type.Boolean({ description: 'true revokes the tokens of the client and issues no new ones. Set by admins.' })),
  id_token_claims: Type.Optional(Type.Boolean({ description: 'Puts the claims of the granted scopes into ID tokens too.' })),
  backchannelLogoutUri: Type.Optional(LogoutUriSchema)
}, { additionalProperties: false })

export const CreateClientSchema = Type.Object({
  data: NewClientSchema,
  credentials: Type.Optional(Type.Boolean({ description: 'true creates a confidential client, which has a secret.' }))
}, {
  additionalProperties: false,
  title: 'CreateClient',
  examples: [{ data: { name: 'Shop', redirectUris: ['https://shop.example/callback'], scopes: ['clients:read'] }, credentials: true }]
})
export type CreateClient = Static<typeof CreateClientSchema>

export const PatchClientSchema = Type.Object({
  data: Type.Optional(Type.Object({
    ...Type.Partial(Type.Omit(NewClientSchema, ['userId', 'image', 'backchannelLogoutUri'])).properties,
    image: Type.Optional(Type.Union([ImageSchema, Type.Null()], { description: 'null removes the image.' })),
    backchannelLogoutUri: Type.Optional(Type.Union([LogoutUriSchema, Type.Null()], {
      description: 'null: the client is no longer notified.'
    }))
  }, { additionalProperties: false })),
  regen_secret: Type.Optional(Type.Boolean({ description: "true creates a new secret and revokes the client's codes and tokens." })),
  take_over: Type.Optional(Type.Boolean({ description: "true makes the caller, an admin, the owner; gives a confidential client a new secret, and revokes the client's codes and tokens." }))
}, { additionalProperties: false, title: 'PatchClient', examples: [{ data: { name: 'Web shop', image: 'https://shop.example/logo.png' } }] })
export type PatchClient = Static<typeof PatchClientSchema>

export const ClientCreatedSchema = Data(Type.Object({ clientId: Type.String() }))

const OwnerQuery = { user: QueryText('The owner. Ignored unless the caller is an admin: others see only their own clients.', LIMITS.id) }
export const ClientCountQuerySchema = Type.Object(OwnerQuery, { additionalProperties: false })
export const ClientListQuerySchema = Type.Object({
  ...OwnerQuery,
  fields: QueryText(`Comma-separated: the fields of each item, in this order: ${Object.keys(ClientSchema.properties).join(', ')}. clientId is always among them. Default: all.`),
  sort: QueryText('Comma-separated key:direction. Keys: created, modified, name. Default name:asc.'),
  ...PageSchema
}, { additionalProperties: false })
export type ClientListQuery = Static<typeof ClientListQuerySchema>
