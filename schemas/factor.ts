import { Type, type Static } from '@sinclair/typebox'
import { Data, TimestampSchema } from './common.ts'

/** A second factor of a user. */
export const FactorSchema = Type.Object({
  factor_id: Type.String(),
  kind: Type.Union([Type.Literal('totp'), Type.Literal('passkey')], { description: '`totp`: an authenticator app.' }),
  name: Type.Optional(Type.String({ description: 'The name that its owner has given to it.' })),
  created_at: TimestampSchema,
  last_used_at: Type.Optional(Type.String({ ...TimestampSchema, description: 'Written at most once an hour for a passkey.' }))
}, { title: 'Factor' })
export type Factor = Static<typeof FactorSchema>

/** The second factors of a user (`GET /user/factors`). */
export const FactorsSchema = Type.Object({
  factors: Type.Array(FactorSchema),
  recovery_codes: Type.Integer({ minimum: 0, description: 'How many backup codes are left.' })
}, { title: 'Factors' })
export type Factors = Static<typeof FactorsSchema>

export const FactorsDataSchema = Data(FactorsSchema)

export const RemoveFactorQuerySchema = Type.Object({
  end_sessions: Type.Optional(Type.Literal('false', { description: "Keeps the user's sessions and tokens. Absent: all of them end." }))
}, { additionalProperties: false })

/** The result of a reset. */
export const FactorsResetSchema = Data(Type.Object({
  removed: Type.Integer({ minimum: 0, description: 'How many factors the user had.' }),
  sent: Type.Optional(Type.Boolean({ description: 'While a factor is demanded of the user: whether the link to set it up again is emailed.' })),
  link: Type.Optional(Type.String({ description: 'Otherwise the link, for you to hand over: only with it a new one is added.' }))
}))
