import { Type, type Static } from '@sinclair/typebox'
import { LIMITS, QueryText, TimestampSchema, FormatSchema } from './common.ts'

/** A token session: the tokens of one sign-in to one client. */
export const SessionSchema = Type.Object({
  session_id: Type.String(),
  client: Type.Object({ client_id: Type.String(), name: Type.String() }),
  created_at: TimestampSchema,
  last_used_at: Type.String({ ...TimestampSchema, description: 'The time of its creation or last refresh. Using an access token does not count.' }),
  current: Type.Boolean({ description: 'Whether this request belongs to it.' })
}, { title: 'Session' })
export type Session = Static<typeof SessionSchema>

const UserQuery = { user: QueryText('The id of the user. Absent: the caller. Only an admin may name another user, else ErrPerm.', LIMITS.id) }

export const SessionListQuerySchema = Type.Object({ ...UserQuery, format: Type.Optional(FormatSchema) }, { additionalProperties: false })

export const EndSessionsQuerySchema = Type.Object({
  ...UserQuery,
  all: Type.Optional(Type.Union([Type.Literal('true'), Type.Literal('false')], {
    description: "`true` ends the session of this request too. Another user's sessions all end either way."
  })),
  regen_secrets: Type.Optional(Type.Union([Type.Literal('true'), Type.Literal('false')], {
    description: "`true` also gives the user's confidential clients new secrets, which revokes their tokens."
  }))
}, { additionalProperties: false })
