import { type Static, Type } from '@sinclair/typebox'
import { Data, LIMITS, TimestampSchema } from './common.ts'

const ClientSchema = Type.Object({ client_id: Type.String(), name: Type.String() })

const PlaceSchema = Type.Object({
  browser: Type.Optional(Type.String()), system: Type.Optional(Type.String()), address: Type.Optional(Type.String())
}, { description: 'The browser and the system, as far as they are known, and the network address as far as the service keeps it.' })

/** Where a person is signed in, as support staff see it. */
export const UserSessionsSchema = Type.Object({
  browsers: Type.Array(Type.Object({
    session_id: Type.String(),
    place: PlaceSchema,
    signed_in_at: TimestampSchema,
    last_used_at: TimestampSchema,
    console_used_at: Type.Optional(Type.String({ ...TimestampSchema, description: 'When the console was last used there, up to a minute late. Absent: it was not entered.' }))
  }), { description: 'The browsers in which they are signed in, the last used first; at most 100.' }),
  sessions: Type.Array(Type.Object({
    session_id: Type.String(),
    client: ClientSchema,
    place: Type.Optional(PlaceSchema),
    created_at: TimestampSchema,
    last_used_at: TimestampSchema,
    browser_session_id: Type.Optional(Type.String({ description: 'The browser whose sign-out also ends it. Absent: none.' }))
  }), { description: 'The sessions of apps, the last used first; at most 100.' }),
  more: Type.Integer({ minimum: 0, description: 'How many are left out of both lists.' })
}, { title: 'UserSessions' })
export type UserSessions = Static<typeof UserSessionsSchema>
export const UserSessionsDataSchema = Data(UserSessionsSchema)

/** A mail to a person: never its text, its links or its address. */
export const UserMailSchema = Type.Object({
  mail_id: Type.String(),
  kind: Type.String({ examples: ['recovery'] }),
  state: Type.Union([Type.Literal('sent'), Type.Literal('waiting'), Type.Literal('failed')], {
    description: 'The mail server took it; it is sent at `due_at`; or it was given up.'
  }),
  time: Type.String({ ...TimestampSchema, description: 'When it was sent; of the others, when it was accepted.' }),
  attempts: Type.Optional(Type.Integer({ minimum: 0 })),
  due_at: Type.Optional(Type.String({ ...TimestampSchema, description: 'Of `waiting`: the next attempt.' })),
  ends_at: Type.Optional(Type.String({ ...TimestampSchema, description: 'Of `waiting`: after this time it is not sent.' })),
  failure: Type.Optional(Type.String({ description: 'Of `failed`: why, in codes of the mail server or of the connection.', examples: ['550'] }))
}, { title: 'UserMail' })
export type UserMail = Static<typeof UserMailSchema>
export const UserMailsDataSchema = Data(Type.Object({
  mails: Type.Array(UserMailSchema, { description: 'The newest first: at most 100 of each state.' })
}))

const KindSchema = Type.Union([
  Type.Literal('mail'), Type.Literal('logout'), Type.Literal('webhook'), Type.Literal('secret'), Type.Literal('event')
], { description: 'Emails, logout tokens, failed events of webhooks, notices of expiring secrets, and the publication of events.' })

/** What the service has yet to do, or gave up. */
export const JobSchema = Type.Object({
  kind: KindSchema,
  job_id: Type.String(),
  about: Type.String({ description: 'The kind of the email, or the client, the webhook or the event that it is about.' }),
  state: Type.Union([Type.Literal('waiting'), Type.Literal('failed')]),
  attempts: Type.Integer({ minimum: 0 }),
  failure: Type.Optional(Type.String({ description: 'Why the last attempt failed, in codes.' })),
  due_at: TimestampSchema,
  ends_at: TimestampSchema,
  stalled_since: Type.Optional(Type.String({ ...TimestampSchema, description: 'Since when its kind is due without an attempt of any process.' }))
}, { title: 'Job' })
export type Job = Static<typeof JobSchema>

export const JobListQuerySchema = Type.Object({
  kind: Type.Optional(KindSchema),
  state: Type.Optional(Type.Union([Type.Literal('waiting'), Type.Literal('failed')], { description: 'Absent: both.' })),
  limit: Type.Optional(Type.Integer({
    minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Maximum number of jobs of each kind in each state. Absent or 0: no limit.'
  }))
}, { additionalProperties: false })
export type JobListQuery = Static<typeof JobListQuerySchema>

export const RetryJobsSchema = Type.Object({
  data: Type.Object({
    kind: KindSchema,
    job_id: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.id, description: 'Absent: all of the kind.' }))
  }, { additionalProperties: false })
}, { additionalProperties: false, title: 'RetryJobs', examples: [{ data: { kind: 'mail' } }] })

export const JobsRetriedSchema = Data(Type.Object({ retried: Type.Integer({ minimum: 0 }) }))

/** The secret keys that encrypt what is stored. Never key material. */
export const KeysDataSchema = Data(Type.Object({
  keys: Type.Array(Type.Object({
    key_id: Type.String(),
    state: Type.Union([Type.Literal('seals'), Type.Literal('opens'), Type.Literal('new'), Type.Literal('unused'), Type.Literal('missing')], {
      description: '`seals`: new texts; `opens`: stored texts may need it; `new`: seals nothing yet; `unused`; `missing`: stored texts need it, and it is not configured.'
    }),
    texts: Type.Integer({ minimum: 0, description: 'How many stored secrets it encrypts.' })
  }, { title: 'Key' }))
}))
