import { Type, type Static } from '@sinclair/typebox'
import { ClientClaimsSchema, heldClaims } from './claims.ts'
import { Data, DeadlineQuery, HeldRolesSchema, LIMITS, MaxQuery, PageSchema, QueryText, RolesSchema, TimestampSchema, describe } from './common.ts'

const ImageSchema = Type.String({ maxLength: LIMITS.uri, description: 'The logo: an http or https URL. Pages show an https one of a client that the operator vouches for.' })

const LogoutUriSchema = Type.String({
  maxLength: LIMITS.uri,
  description: 'Where the client is notified that a sign-in has ended (OpenID Connect Back-Channel Logout): an https URL with a public ' +
    'address.'
})

export const GrantsSchema = Type.Array(Type.Union([Type.Literal('code'), Type.Literal('refresh'), Type.Literal('client'), Type.Literal('device')]), {
  maxItems: 4,
  description: 'What the client may do to get tokens: `code`, `refresh`, `client` (client credentials) and `device`. Absent: `code` and `refresh` with redirect URIs, `client` for a confidential client without any.'
})

export const TokenAuthSchema = Type.Union([Type.Literal('none'), Type.Literal('secret'), Type.Literal('private_key_jwt')], {
  description: 'How the client authenticates. Absent: `secret` with a clientSecret, else `none`. A client that is not `none` is confidential, even if no secret is left. ' +
    '`private_key_jwt` requires keys.'
})

const IdTokenAlgSchema = Type.Union([Type.Literal('RS256'), Type.Literal('ES256')], { description: 'How its ID and logout tokens are signed. Absent: RS256.' })

const SignedRequestsSchema = Type.Union([Type.Literal('required'), Type.Literal('optional')], {
  description: '`required`: its authorization requests must be signed by one of its keys (RFC 9101, `require_signed_request_object`). Absent: optional.'
})

/** At most a few keys: bytes are bounded by the body. */
export const JwksSchema = Type.Object({
  keys: Type.Array(Type.Object({}, { additionalProperties: true }), { maxItems: 5 })
}, {
  additionalProperties: false,
  description: 'The public keys of the client, a JSON Web Key Set (RFC 7517): RSA of 2048 to 4096 bits (RS256, PS256), EC on P-256 (ES256) or Ed25519 (EdDSA). A `kid` is made where ' +
    'there is none. They replace the previous keys; the access tokens that a removed key got end.',
  examples: [{
    keys: [{ kty: 'EC', crv: 'P-256', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU', y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0', kid: '2026' }]
  }]
})

/** Fields of a client that only the operator sets. */
const OPERATOR_FIELDS = {
  pkce: Type.Optional(Type.Union([Type.Literal('required'), Type.Literal('optional')], {
    description: '`optional` only for a confidential client. Set by admins.'
  })),
  first_party: Type.Optional(Type.Boolean({ description: "The operator's own client: it signs users in without asking for consent. Set by admins." })),
  profile: Type.Optional(Type.Union([Type.Literal('none'), Type.Literal('fapi2')], {
    description: '`fapi2`: the FAPI 2.0 security profile. The client pushes its authorization requests, binds its tokens by DPoP, and authenticates by private_key_jwt without RS256. Set by admins.'
  })),
  roles: Type.Optional(describe(RolesSchema, "Roles of the client's own tokens, which make it a service account. Set by admins."))
}

/** A client in a response. */
export const ClientSchema = Type.Object({
  clientId: Type.String(),
  createdAt: TimestampSchema,
  modifiedAt: TimestampSchema,
  clientSecret: Type.Optional(Type.String({ description: 'The readable secret of a confidential client that has one.' })),
  redirectUris: Type.Array(Type.String()),
  scopes: Type.Array(Type.String()),
  userId: Type.Optional(Type.String({ description: 'The owner. Only shown to admins. Absent on a client that nobody owns.' })),
  name: Type.String(),
  image: Type.Optional(Type.String()),
  confidential: Type.Optional(Type.Boolean({ description: 'Present, and true, when the client must authenticate, and no clientSecret is shown.' })),
  tokenAuth: Type.Optional(TokenAuthSchema),
  jwks: Type.Optional(JwksSchema),
  former: Type.Optional(Type.Object({ tokenAuth: TokenAuthSchema, until: TimestampSchema }, {
    description: 'The earlier method of authentication, which passes until then.'
  })),
  grants: Type.Optional(GrantsSchema),
  ...OPERATOR_FIELDS,
  roles: Type.Optional(HeldRolesSchema),
  disabled: Type.Optional(Type.Boolean({ description: 'Present, and true, when the client is disabled: it gets no tokens.' })),
  idTokenAlg: Type.Optional(IdTokenAlgSchema),
  signedRequests: Type.Optional(SignedRequestsSchema),
  id_token_claims: Type.Optional(Type.Boolean({ description: "Whether the client's ID tokens have the claims of the granted scopes, beside userinfo." })),
  claims: Type.Optional(heldClaims(ClientClaimsSchema)),
  backchannelLogoutUri: Type.Optional(LogoutUriSchema),
  document: Type.Optional(Type.Object({
    id: Type.String({ description: 'Another id of the client, for paths.' }), host: Type.String(), used_at: TimestampSchema
  }, { description: 'Of a client that nobody has registered: its id is the URL of a document about it.' }))
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
  tokenAuth: Type.Optional(TokenAuthSchema),
  jwks: Type.Optional(JwksSchema),
  grants: Type.Optional(GrantsSchema),
  ...OPERATOR_FIELDS,
  disabled: Type.Optional(Type.Boolean({ description: 'true revokes the tokens of the client and issues no new ones. Set by admins.' })),
  idTokenAlg: Type.Optional(IdTokenAlgSchema),
  signedRequests: Type.Optional(SignedRequestsSchema),
  id_token_claims: Type.Optional(Type.Boolean({ description: 'Puts the claims of the granted scopes into ID tokens too.' })),
  claims: Type.Optional(ClientClaimsSchema),
  backchannelLogoutUri: Type.Optional(LogoutUriSchema)
}, { additionalProperties: false })

export const CreateClientSchema = Type.Object({
  data: NewClientSchema,
  credentials: Type.Optional(Type.Boolean({ description: 'true creates a confidential client with a readable secret.' }))
}, {
  additionalProperties: false,
  title: 'CreateClient',
  examples: [{ data: { name: 'Shop', redirectUris: ['https://shop.example/callback'], scopes: ['clients:read'] }, credentials: true }]
})
export type CreateClient = Static<typeof CreateClientSchema>

export const PatchClientSchema = Type.Object({
  data: Type.Optional(Type.Object({
    ...Type.Partial(Type.Omit(NewClientSchema, ['userId', 'image', 'backchannelLogoutUri'])).properties,
    former: Type.Optional(Type.Object({ until: Type.String({ maxLength: 64, description: 'RFC 3339, at most 30 days ahead.' }) }, {
      additionalProperties: false,
      description: 'With a change of tokenAuth: the earlier method also passes until then. Not for an earlier `none`.'
    })),
    image: Type.Optional(Type.Union([ImageSchema, Type.Null()], { description: 'null removes the image.' })),
    backchannelLogoutUri: Type.Optional(Type.Union([LogoutUriSchema, Type.Null()], {
      description: 'null: the client is no longer notified.'
    }))
  }, { additionalProperties: false })),
  regen_secret: Type.Optional(Type.Boolean({ description: "true creates a new secret and revokes the client's codes and tokens." })),
  take_over: Type.Optional(Type.Boolean({
    description: "true makes the caller, an admin, the owner; gives a confidential client a new secret, and revokes the client's codes and tokens."
  }))
}, { additionalProperties: false, title: 'PatchClient', examples: [{ data: { name: 'Web shop', image: 'https://shop.example/logo.png' } }] })
export type PatchClient = Static<typeof PatchClientSchema>

export const CreateSecretSchema = Type.Object({
  data: Type.Object({
    name: Type.String({ maxLength: LIMITS.name, description: 'What it is for, such as the program that has it.' }),
    expiresAt: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339. From then on it authenticates no request. Absent: it does not expire.' }))
  }, { additionalProperties: false })
}, { additionalProperties: false, title: 'CreateSecret', examples: [{ data: { name: 'Nightly report', expiresAt: '2027-11-23T00:00:00Z' } }] })
export type CreateSecret = Static<typeof CreateSecretSchema>

export const SecretCreatedSchema = Data(Type.Object({
  id: Type.String(),
  secret: Type.String({ description: 'The secret. It is shown this once.', examples: ['fi_sec_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG0aB1cD'] })
}))

/** A secret in a list. */
const ClientSecretSchema = Type.Object({
  id: Type.String({ description: '`first` for the readable one, clientSecret.' }),
  name: Type.String(),
  last4: Type.Optional(Type.String({ description: 'Its last four characters. Absent for the readable one.' })),
  createdAt: Type.Optional(TimestampSchema),
  expiresAt: Type.Optional(TimestampSchema),
  lastUsedAt: Type.Optional(describe(
    TimestampSchema,
    'The last time that it authenticated a request, up to a minute late. Absent: never since the upgrade to a release that notes it.'
  ))
}, { title: 'ClientSecret' })
export type ClientSecret = Static<typeof ClientSecretSchema>
export const ClientSecretsSchema = Data(Type.Array(ClientSecretSchema))

export const CreateServiceTokenSchema = Type.Object({
  data: Type.Object({
    name: Type.String({ maxLength: LIMITS.name, description: 'What it is for, such as the program that has it.' }),
    scopes: Type.Array(Type.String({ maxLength: LIMITS.scope }), {
      maxItems: LIMITS.items, description: "The client's scopes that it may use, none of them of an account. Of the resource, if there is one."
    }),
    resource: Type.Optional(Type.String({ maxLength: LIMITS.uri, description: 'The URI of the resource that it is for. Absent: this service.' })),
    expiresAt: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339, at most two years ahead. Absent: in 365 days.' }))
  }, { additionalProperties: false })
}, { additionalProperties: false, title: 'CreateServiceToken', examples: [{ data: { name: 'SCIM', scopes: ['users:read'] } }] })
export type CreateServiceToken = Static<typeof CreateServiceTokenSchema>

export const ServiceTokenCreatedSchema = Data(Type.Object({
  id: Type.String(),
  token: Type.String({ description: 'The token. It is shown this once.', examples: ['fi_svc_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG0aB1cD'] }),
  expiresAt: TimestampSchema
}))

/** A service token in a list. */
export const ServiceTokenSchema = Type.Object({
  id: Type.String({ description: 'The SHA-256 of the token, base64url. It is no token.' }),
  name: Type.String(),
  last4: Type.String({ description: 'Its last four characters.' }),
  scopes: Type.Array(Type.String()),
  resource: Type.Optional(Type.String()),
  createdAt: TimestampSchema,
  expiresAt: TimestampSchema,
  lastUsedAt: Type.Optional(describe(TimestampSchema, 'The last time that a request had it, or an API asked about it, up to a minute late. Absent: never.')),
  lastUsedFrom: Type.Optional(Type.String({ description: 'The address of that request. Absent: it is not kept, or an API has asked.' }))
}, { title: 'ServiceToken' })
export type ServiceToken = Static<typeof ServiceTokenSchema>
export const ServiceTokensSchema = Data(Type.Array(ServiceTokenSchema))

export const ClientCreatedSchema = Data(Type.Object({ clientId: Type.String() }))

const OwnerQuery = { user: QueryText('The owner. Ignored unless the caller is an admin: others see only their own clients.', LIMITS.id) }
const FoundQuery = {
  ...OwnerQuery,
  contains: QueryText('A part of the name, as it is written. It reads all names: see deadline.'),
  search: QueryText('Beginnings of words of the name, or of the id, in any case and without accents, at most 8: all must be found. Not with contains or sort.')
}
export const ClientCountQuerySchema = Type.Object({ ...FoundQuery, ...MaxQuery }, { additionalProperties: false })
export const ClientListQuerySchema = Type.Object({
  ...FoundQuery,
  fields: QueryText(`Comma-separated: the fields of each item, in this order: ${Object.keys(ClientSchema.properties).join(', ')}. clientId is always among them. Default: all.`),
  sort: QueryText('Comma-separated key:direction. Keys: created, modified, name. Default name:asc.'),
  ...DeadlineQuery,
  ...PageSchema
}, { additionalProperties: false })
export type ClientCountQuery = Static<typeof ClientCountQuerySchema>
export type ClientListQuery = Static<typeof ClientListQuerySchema>
