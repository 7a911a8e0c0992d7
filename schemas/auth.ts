import { Type, type Static } from '@sinclair/typebox'
import { Data, HeldRolesSchema } from './common.ts'

/** Seconds since 1970 at the end of the year 9999, the last time that can be written. */
const MAX_SECONDS = 253_402_300_799

/** The user and the client of a token (`GET /auth/tokeninfo`). */
export const TokenInfoSchema = Type.Object({
  user_id: Type.String(),
  account: Type.String(),
  name: Type.String(),
  roles: HeldRolesSchema,
  client_id: Type.String(),
  scopes: Type.Array(Type.String(), { description: "The client's scopes, narrowed to those the token was granted." }),
  aud: Type.Optional(Type.String({ description: 'The resource that the token was requested for (RFC 8707). Absent: none.' })),
  roles_withheld: Type.Optional(Type.Literal(true, {
    description: 'Present when `roles` is empty because the app did not request the scope `roles`, with which it could get those of the user.'
  })),
  subject: Type.Optional(Type.Literal('client', {
    description: "Present when the client acts for itself. The user is then the client's owner, and the roles are the client's own."
  })),
  token_id: Type.Optional(Type.String({ description: 'Of a service token: its id in the list of its client.' })),
  token_name: Type.Optional(Type.String({ description: 'The name of a service token.' })),
  acr: Type.Optional(Type.String({
    description: 'How strongly the user has proved who they are: `1` by one kind of proof, `mfa` by both, `phr` by both with a passkey. Absent: the token comes from no sign-in.',
    examples: ['1']
  })),
  amr: Type.Optional(Type.Array(Type.String(), { description: 'The methods (RFC 8176). Absent: none that has a name.', examples: [['pwd']] })),
  auth_time: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_SECONDS, description: 'When the user proved it, in seconds since 1970. Absent: the token comes from no sign-in.' }))
}, { title: 'TokenInfo' })
export type TokenInfo = Static<typeof TokenInfoSchema>

export const TokenInfoResponseSchema = Data(TokenInfoSchema)
