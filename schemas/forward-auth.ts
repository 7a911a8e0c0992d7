import { Type } from '@sinclair/typebox'
import { LIMITS } from './common.ts'

/** The rule of a proxy. plugins/forward-rule.ts reads it. */
export const ForwardQuerySchema = Type.Object({
  resource: Type.Optional(Type.String({ maxLength: LIMITS.uri, description: 'The resource that the token must have been requested for. Absent: a token that was requested for a resource is refused.' })),
  scope: Type.Optional(Type.String({ minLength: 1, description: 'Scopes with a space between them, which the token must all carry.' })),
  role: Type.Optional(Type.String({ minLength: 1, description: 'A role that the token must be able to use.' })),
  acr: Type.Optional(Type.String({ enum: ['1', 'mfa', 'phr'], description: 'How strongly the user must have signed in.' })),
  subject: Type.Optional(Type.String({ enum: ['user', 'client', 'any'], default: 'user', description: 'Whether a client that acts for itself is admitted.' })),
  basic: Type.Optional(Type.String({ enum: ['true'], description: 'A 401 has a Basic challenge too.' }))
})

const IDENTITY = {
  'identity-user': 'The id of the user; empty for a client that acts for itself.',
  'identity-account': 'The account of the user; empty for a client that acts for itself.',
  'identity-client': 'The id of the client.',
  'identity-scope': 'The scopes of the token, with a space between them.',
  'identity-roles': 'The names of the roles that the token may use, with a comma between them.',
  'identity-subject': '`user`, or `client` for a client that acts for itself.'
} as const

/** A header about the caller. Its value, or each item of a list, is percent-encoded UTF-8. */
export type IdentityHeader = keyof typeof IDENTITY

const capitalize = (name: string): string => name.replace(/\b[a-z]/g, (first) => first.toUpperCase())

export const IDENTITY_HEADERS = Object.fromEntries(Object.entries(IDENTITY).map(([name, description]) => [capitalize(name), Type.String({ description })]))
