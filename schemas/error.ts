import { Type, type Static } from '@sinclair/typebox'

/** The body of every error. */
export const ErrorSchema = Type.Object({
  statusCode: Type.Integer(),
  code: Type.String({ description: 'The kind of error, stable: see the table in the README.' }),
  error: Type.String({ description: "The status's reason phrase." }),
  message: Type.String({ description: 'Names the field and the cause.' })
})

export type ErrorBody = Static<typeof ErrorSchema>
