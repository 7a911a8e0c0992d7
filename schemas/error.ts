import { Type, type Static } from '@sinclair/typebox'

/** The body of every error. */
export const ErrorSchema = Type.Object({
  statusCode: Type.Integer(),
  code: Type.String({ description: 'The kind of error, from the table in docs/api.md. Stable.' }),
  error: Type.String({ description: 'The reason phrase of the status.' }),
  message: Type.String({ description: 'Names the field and the problem.' }),
  reason: Type.Optional(Type.String({
    description: 'With ErrParam, why a new password was refused: `short`, `common` or `name`. With ErrLimit, why a password or a code was not compared: `paused`, `closed` or `code_closed`.'
  }))
}, { title: 'Error' })

export type ErrorBody = Static<typeof ErrorSchema>
