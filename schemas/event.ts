import { Type, type Static } from '@sinclair/typebox'
import { LIMITS, PageSchema, QueryText, TimestampSchema } from './common.ts'
import { ReasonCodeSchema } from './reason.ts'

/** Who acted, and how. */
const ActorSchema = Type.Object({
  via: Type.Union([Type.Literal('page'), Type.Literal('api'), Type.Literal('console'), Type.Literal('cli'), Type.Literal('system')], {
    description: 'A page, a call of the API, the console of administrators and support staff, the command line, or the service itself and the program that embeds it.'
  }),
  user_id: Type.Optional(Type.String()),
  client_id: Type.Optional(Type.String({ description: 'The client of the token.' })),
  token_id: Type.Optional(Type.String({ description: 'The id of the token, which is not the token.' })),
  act: Type.Optional(Type.Object({ client_id: Type.String() }, { description: "A client that acted on the user's behalf with a token of another client's. Nothing makes such tokens yet." }))
})

/** A sign-in method of a person. */
const MethodSchema = Type.Object({
  kind: Type.Union([Type.Literal('password'), Type.Literal('passkey'), Type.Literal('totp'), Type.Literal('recovery'), Type.Literal('upstream')], {
    description: 'A password, a passkey, an authenticator app, backup codes, or an identity at another provider.'
  }),
  id: Type.Optional(Type.String({ description: 'Its id among the methods of the person; `password` for the password. Absent: one of several, or of nobody.' }))
})

/** An event of the feed. */
export const EventSchema = Type.Object({
  id: Type.String({ description: 'A ULID, the same wherever the event appears.', examples: ['01KAGZ3V5M7Q2W8E9R0T1Y2U3A'] }),
  cursor: Type.String({ description: 'Its position in the feed, for `after`.', examples: ['5f0c1a2b.1042'] }),
  type: Type.String({ examples: ['user.disabled'] }),
  time: TimestampSchema,
  actor: ActorSchema,
  target: Type.Object({ kind: Type.String({ examples: ['user'] }), id: Type.String() }),
  user_id: Type.Optional(Type.String({ description: 'The user whose account it is about.' })),
  client_id: Type.Optional(Type.String({ description: 'The client that it is about.' })),
  owner_id: Type.Optional(Type.String({ description: 'The owner of a client that acted for itself. The event is then about no account.' })),
  address: Type.Optional(Type.String({ description: 'The network address that the request came from, as far as the service keeps it. Of an event that stands for several: the last one.' })),
  addresses: Type.Optional(Type.Union([Type.Integer(), Type.Literal('more')], { description: 'Of an event that stands for several failures: how many network addresses they came from; `more` than 20.' })),
  request_id: Type.Optional(Type.String()),
  outcome: Type.Union([Type.Literal('success'), Type.Literal('failure')]),
  changed: Type.Optional(Type.Array(Type.String(), { description: 'The names of changed fields, never their values.' })),
  granted: Type.Optional(Type.Array(Type.String(), { description: 'Roles that the user got.' })),
  removed: Type.Optional(Type.Array(Type.String(), { description: 'Roles that the user lost.' })),
  reason: Type.Optional(ReasonCodeSchema),
  method: Type.Optional(MethodSchema),
  methods: Type.Optional(Type.Array(MethodSchema, { description: 'Of `factor.reset` and `factor.undone`: what was removed.' })),
  amr: Type.Optional(Type.Array(Type.String(), { description: 'Of `sign_in.succeeded`: what was proved (RFC 8176).' })),
  acr: Type.Optional(Type.String({ description: 'Of `sign_in.succeeded`: its strength.', examples: ['mfa'] })),
  mail: Type.Optional(Type.String({ description: 'Of `mail.sent` and `mail.failed`: the kind of the email.', examples: ['forgot'] })),
  failure: Type.Optional(Type.String({ description: 'Of `mail.failed`: why, in codes of the mail server or of the connection.', examples: ['550'] })),
  refusal: Type.Optional(Type.Object({ rule: Type.String(), value: Type.String() }, { description: 'Why a document was refused: the rule, and the value that was seen.' })),
  count: Type.Optional(Type.Integer({ description: 'How many times it happened, where one event stands for several.' })),
  counts: Type.Optional(Type.Record(Type.String(), Type.Integer(), { description: 'Of an import: how many lines had each result. Of `events.counted`: how many events there were of each type.' })),
  accounts: Type.Optional(Type.Array(Type.Object({ user_id: Type.String(), count: Type.Integer() }), { description: 'Of `events.counted`: the accounts with most of them, at most a hundred.' })),
  via: Type.Optional(Type.Object({
    upstream: Type.String({ description: 'Its id in the option upstreams.' }),
    subject: Type.Optional(Type.String({ description: 'A hash of who somebody is there. It is the same in all events of an identity. Absent: the provider has named nobody.' })),
    former: Type.Optional(Type.String({ description: 'Of `identity.refused`: the hash of the identity that the account has. Absent: it has lost it, or has it elsewhere.' }))
  }, { description: 'The identity at another provider that somebody signed in with, or that was linked, unlinked, refused or expected.' }))
}, { title: 'Event' })
export type Event = Static<typeof EventSchema>

const FILTER = {
  type: QueryText('Only events of this type, such as `user.deleted`, or of a kind, such as `user.*`.', 64),
  user: QueryText('Only events about the account of this user.', LIMITS.id),
  client: QueryText('Only events about this client.', LIMITS.id),
  reason: QueryText('Only events with this reason, such as `wrong_password`.', 64),
  from: QueryText('Only events at or after this time (RFC 3339).', 64),
  to: QueryText('Only events before this time (RFC 3339).', 64)
}

export const EventListQuerySchema = Type.Object({
  ...FILTER,
  sort: QueryText('`time:desc` (default) or `time:asc`.', 16),
  ...PageSchema
}, { additionalProperties: false })
export type EventListQuery = Static<typeof EventListQuerySchema>

export const EventFeedQuerySchema = Type.Object({
  after: Type.Optional(Type.String({
    maxLength: 64,
    description: 'The cursor of the last event that the caller has, or `now` to begin. Absent: from the oldest stored event.'
  })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 100 })),
  wait: Type.Optional(Type.Integer({
    minimum: 0,
    maximum: 25,
    default: 25,
    description: 'Seconds to wait for an event if there is none yet.'
  }))
}, { additionalProperties: false })

export const EventFeedSchema = Type.Object({
  data: Type.Array(EventSchema),
  after: Type.String({ description: 'The next cursor.' })
}, { title: 'EventFeed' })
