import { type Static, Type } from '@sinclair/typebox'
import { ServiceTokenSchema } from './client.ts'
import { Data, LIMITS } from './common.ts'

export const CreatePersonalTokenSchema = Type.Object({
  data: Type.Object({
    name: Type.String({ maxLength: LIMITS.name, description: 'What it is for, such as the program that has it.' }),
    scopes: Type.Array(Type.String({ maxLength: LIMITS.scope }), {
      maxItems: LIMITS.items,
      description: 'What it may do: scopes of this service, or of the resource if there is one. `roles` lets other services see the roles of the person.'
    }),
    resource: Type.Optional(Type.String({ maxLength: LIMITS.uri, description: 'The URI of the resource that it is for. Absent: this service.' })),
    expiresAt: Type.String({ maxLength: 64, description: 'RFC 3339, at most `maxDays` of the option `personalTokens` ahead.' }),
    current_password: Type.Optional(Type.String({
      maxLength: LIMITS.password,
      description: "The caller's current password. Required, except with an unrestricted token of the operator's, or from a fresh sign-in of an app with account:security."
    }))
  }, { additionalProperties: false })
}, {
  additionalProperties: false,
  title: 'CreatePersonalToken',
  examples: [{ data: { name: 'Nightly report', scopes: ['clients:read'], expiresAt: '2027-11-23T00:00:00Z' } }]
})
export type CreatePersonalToken = Static<typeof CreatePersonalTokenSchema>

export const PersonalTokenCreatedSchema = Data(Type.Object({
  id: Type.String(),
  token: Type.String({ description: 'The token. It is shown this once.', examples: ['fi_pat_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG0aB1cD'] }),
  expiresAt: ServiceTokenSchema.properties.expiresAt
}))

/** A personal access token in a list. */
export const PersonalTokenSchema = Type.Object({ ...ServiceTokenSchema.properties }, { title: 'PersonalToken' })
export type PersonalToken = Static<typeof PersonalTokenSchema>
export const PersonalTokensSchema = Data(Type.Array(PersonalTokenSchema))
