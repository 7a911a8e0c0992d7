import { Type, type Static } from '@sinclair/typebox'
import { LIMITS, QueryText, TimestampSchema, FormatSchema } from './common.ts'

/** A token session: what came of one sign-in to one client. */
export const SessionSchema = Type.Object({
  session_id: Type.String(),
  client: Type.Object({ client_id: Type.String(), name: Type.String() }),
  created_at: TimestampSchema,
  last_used_at: Type.String({ ...TimestampSchema, description: 'When it was made or last refreshed; using an access token does not count.' }),
  current: Type.Boolean({ description: 'It is the one that this request was made in.' })
})
export type Session = Static<typeof SessionSchema>

const UserQuery = { user: QueryText('The user; absent: the caller. Another than the caller is for admin: ErrPerm.', LIMITS.id) }

export const SessionListQuerySchema = Type.Object({ ...UserQuery, format: Type.Optional(FormatSchema) }, { additionalProperties: false })

export const EndSessionsQuerySchema = Type.Object({
  ...UserQuery,
  all: Type.Optional(Type.Union([Type.Literal('true'), Type.Literal('false')], {
    description: '`true` ends the session of this request too. Another user has none to keep.'
  }))
}, { additionalProperties: false })
