import { Type, type Static } from '@sinclair/typebox'
import { Data, IdSchema, LIMITS, PageSchema, QueryText, TimestampSchema } from './common.ts'

const ImageSchema = Type.String({ maxLength: LIMITS.uri, description: 'An http or https URL.' })

/** A client in a response (service.md, 2). */
export const ClientSchema = Type.Object({
  clientId: Type.String(),
  createdAt: TimestampSchema,
  modifiedAt: TimestampSchema,
  clientSecret: Type.Optional(Type.String({ description: 'Only on a confidential client.' })),
  redirectUris: Type.Array(Type.String()),
  scopes: Type.Array(Type.String()),
  userId: Type.Optional(Type.String({ description: 'The owner. Only shown to admins.' })),
  name: Type.String(),
  image: Type.Optional(Type.String())
})
export type Client = Static<typeof ClientSchema>

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
  userId: Type.Optional(Type.String({ maxLength: LIMITS.id, description: 'The owner. Ignored unless the caller is an admin.' }))
}, { additionalProperties: false })

export const CreateClientSchema = Type.Object({
  data: NewClientSchema,
  credentials: Type.Optional(Type.Boolean({ description: 'true creates a confidential client, which has a secret.' }))
}, { additionalProperties: false })
export type CreateClient = Static<typeof CreateClientSchema>

export const PatchClientSchema = Type.Object({
  data: Type.Optional(Type.Object({
    ...Type.Partial(Type.Omit(NewClientSchema, ['userId', 'image'])).properties,
    image: Type.Optional(Type.Union([ImageSchema, Type.Null()], { description: 'null removes the image.' }))
  }, { additionalProperties: false })),
  regen_secret: Type.Optional(Type.Boolean({ description: "true creates a new secret and revokes the client's codes and tokens." }))
}, { additionalProperties: false })
export type PatchClient = Static<typeof PatchClientSchema>

export const ClientCreatedSchema = Data(Type.Object({ clientId: Type.String() }))

export const ClientParamsSchema = Type.Object({ clientId: IdSchema })
export const OwnerParamsSchema = Type.Object({ userId: IdSchema })

const OwnerQuery = { user: QueryText('The owner. Ignored unless the caller is an admin: others see only their own clients.', LIMITS.id) }
export const ClientCountQuerySchema = Type.Object(OwnerQuery, { additionalProperties: false })
export const ClientListQuerySchema = Type.Object({
  ...OwnerQuery,
  sort: QueryText('Comma-separated key:direction. Keys: created, modified, name. Default name:asc.'),
  ...PageSchema
}, { additionalProperties: false })
export type ClientListQuery = Static<typeof ClientListQuerySchema>
