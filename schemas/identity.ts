import { Type, type Static } from '@sinclair/typebox'
import { Data, LIMITS, TimestampSchema } from './common.ts'

/** An identity as events show it: a hash of issuer and subject (lib/ways/identity.ts). */
export const SUBJECT_PATTERN = '^[\\w-]{22}$'

/** An identity at another provider that is a way into an account. */
export const IdentitySchema = Type.Object({
  identity_id: Type.String(),
  upstream: Type.String({ description: 'The id of the upstream in the configuration.' }),
  name: Type.Optional(Type.String({ description: 'What people call the upstream. Absent: it is no longer configured.' })),
  issuer: Type.String({ description: 'Who says so.' }),
  subject: Type.String({ description: 'Who the person is there.' }),
  created_at: TimestampSchema,
  last_used_at: Type.Optional(Type.String({ ...TimestampSchema, description: 'Written at most once an hour.' }))
}, { title: 'Identity' })
export type Identity = Static<typeof IdentitySchema>

export const IdentityDataSchema = Data(IdentitySchema)

/** The identities of a user (`GET /user/identities`). */
export const IdentitiesDataSchema = Data(Type.Object({ identities: Type.Array(IdentitySchema) }, { title: 'Identities' }))

/** The identity that takes the place of another one (`POST /user/{userId}/identities/replace`). */
export const ReplaceIdentitySchema = Type.Object({
  data: Type.Object({
    upstream: Type.String({ minLength: 1, maxLength: LIMITS.id, description: 'The id of the upstream.' }),
    subject: Type.String({ pattern: SUBJECT_PATTERN, description: 'The identity, as `via.subject` of the event `identity.refused` and the page have it.' })
  }, { additionalProperties: false })
}, { additionalProperties: false, title: 'ReplaceIdentity', examples: [{ data: { upstream: 'corp', subject: 'gCbpO9K0jzvH1bX3vvk0A-' } }] })
