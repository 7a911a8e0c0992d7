import { Type, type Static } from '@sinclair/typebox'
import { Data, LIMITS, QueryText, TimestampSchema } from './common.ts'
import { ReasonCodeSchema, ReasonSchema } from './reason.ts'

const KINDS = ['password', 'passkey', 'totp', 'recovery', 'upstream'] as const

/** A sign-in method of a user, and whether a sign-in would take it now. */
const MethodSchema = Type.Object({
  kind: Type.Union(KINDS.map((kind) => Type.Literal(kind)), { description: '`totp`: an authenticator app. `recovery`: backup codes. `upstream`: an identity at another provider.' }),
  id: Type.String(),
  name: Type.Optional(Type.String({ description: 'The name that its owner has given to it.' })),
  created_at: Type.Optional(TimestampSchema),
  last_used_at: Type.Optional(Type.String({ ...TimestampSchema, description: 'Written at most once an hour.' })),
  works: Type.Boolean({ description: 'Whether a sign-in would take it now.' }),
  why: Type.Optional(ReasonCodeSchema)
}, { title: 'SignInMethod' })

/** An attempt to sign in, as the events have it. */
const AttemptSchema = Type.Object({
  time: TimestampSchema,
  outcome: Type.Union([Type.Literal('success'), Type.Literal('failure')]),
  reason: Type.Optional(Type.String({ description: 'Why it was refused, by the list of reasons.' })),
  amr: Type.Optional(Type.Array(Type.String())),
  acr: Type.Optional(Type.String()),
  client_id: Type.Optional(Type.String()),
  address: Type.Optional(Type.String({ description: 'The network address, as far as the service keeps it.' })),
  count: Type.Optional(Type.Integer({ description: 'How many attempts one event stands for.' }))
}, { title: 'SignInAttempt' })

const ANSWER = {
  allowed: Type.Boolean({ description: 'Whether a sign-in would succeed now with a method that works.' }),
  reasons: Type.Array(ReasonSchema, { description: 'All that stands in the way of a sign-in, or of a method of it. Where another method works, the sign-in is allowed all the same.' }),
  methods: Type.Array(MethodSchema),
  required_acr: Type.Union([Type.Literal('1'), Type.Literal('mfa'), Type.Literal('phr')]),
  last_signed_in_at: Type.Optional(TimestampSchema),
  attempts: Type.Array(AttemptSchema, { maxItems: 20, description: 'The last attempts, the newest first. Each reason has its share, so that a flood of one hides no attempt with another.' })
}

export const SignInAnswerSchema = Type.Object({ user_id: Type.String(), account: Type.String(), ...ANSWER }, { title: 'SignInAnswer' })
export type SignInAnswer = Static<typeof SignInAnswerSchema>

export const SignInAnswerDataSchema = Data(SignInAnswerSchema)

export const SignInQuerySchema = Type.Object({
  client_id: QueryText('The app that they sign in to. Absent: the pages of the account.', LIMITS.id),
  acr: Type.Optional(Type.Union([Type.Literal('1'), Type.Literal('mfa'), Type.Literal('phr')], { description: 'The strength that the app asks for.' }))
}, { additionalProperties: false })

export const FindQuerySchema = Type.Object({
  q: Type.String({ minLength: 1, maxLength: LIMITS.query, description: 'An id, an account, an address, or beginnings of words: at most 256 characters.' })
}, { additionalProperties: false })

/** What a text names. */
export const FindHitSchema = Type.Object({
  kind: Type.Union([Type.Literal('user'), Type.Literal('client'), Type.Literal('session'), Type.Literal('event')]),
  id: Type.String(),
  user_id: Type.Optional(Type.String({ description: 'The person: the user, the owner of the client, whose session it is, or whom the event is about.' })),
  label: Type.String({ description: 'The name and account of a person, the name of a client, or the type of an event.' })
}, { title: 'FindHit' })
export type FindHit = Static<typeof FindHitSchema>

export const FoundDataSchema = Data(Type.Object({ hits: Type.Array(FindHitSchema, { maxItems: 20 }) }, { title: 'Found' }))

export const FindAccountQuerySchema = Type.Object({
  account: Type.String({ minLength: 1, maxLength: LIMITS.account, description: 'What somebody types to sign in: a name or an address.' }),
  ...SignInQuerySchema.properties
}, { additionalProperties: false })

/** What is known about a name that somebody types to sign in. */
export const FoundAccountSchema = Type.Object({
  user_id: Type.Optional(Type.String({ description: 'Absent: no account has the name.' })),
  account: Type.String(),
  ...ANSWER,
  tried: Type.Optional(Type.Object({
    failures: Type.Integer({ description: 'Failed attempts under this name in a row, as long as they are counted.' }), last_at: TimestampSchema
  }, { description: 'Where no account has the name.' })),
  similar: Type.Optional(Type.Array(Type.Object({
    user_id: Type.String(),
    account: Type.String(),
    as: Type.Union([Type.Literal('former_address'), Type.Literal('unproved_address'), Type.Literal('other_spelling')], {
      description: 'The name is an address that the account had lately, one that is not proved to be theirs, or one that is much like theirs.'
    })
  }), { description: 'Accounts that may be meant, where none has the name.' })),
  sign_up_until: Type.Optional(Type.String({ ...TimestampSchema, description: 'Until when a link of a sign-up with this address works.' }))
}, { title: 'FoundAccount' })
export type FoundAccount = Static<typeof FoundAccountSchema>

export const FoundAccountDataSchema = Data(FoundAccountSchema)

export const TokenPreviewQuerySchema = Type.Object({
  user_id: QueryText('The person. Absent: the app acts for itself.', LIMITS.id),
  scope: QueryText('The scopes of the request. Absent: those of a request without any.', LIMITS.query),
  resource: QueryText('The URI of a resource.', LIMITS.uri)
}, { additionalProperties: false })

const ClaimsSchema = Type.Object({}, { additionalProperties: true })

export const TokenPreviewSchema = Type.Object({
  allowed: Type.Boolean({ description: 'Whether the app would get the tokens, once the person has consented.' }),
  reasons: Type.Array(ReasonSchema),
  id_token: Type.Optional(ClaimsSchema),
  userinfo: Type.Optional(ClaimsSchema),
  access_token: ClaimsSchema,
  introspection: ClaimsSchema,
  absent: Type.Array(Type.Object({
    in: Type.Union([Type.Literal('id_token'), Type.Literal('userinfo'), Type.Literal('access_token'), Type.Literal('introspection')]),
    claim: Type.String({ description: '`*`: all of them.' }),
    reason: ReasonCodeSchema
  }), { description: 'Claims that are not there, each with its reason.' })
}, { title: 'TokenPreview' })
export type TokenPreview = Static<typeof TokenPreviewSchema>

export const TokenPreviewDataSchema = Data(TokenPreviewSchema)
