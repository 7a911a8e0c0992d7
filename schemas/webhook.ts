import { Type, type Static } from '@sinclair/typebox'
import { Data, LIMITS, PageSchema, QueryText, TimestampSchema, describe } from './common.ts'

/** Characters of a cursor of the feed, or of a time. */
const PLACE = 64

const NewWebhookSchema = Type.Object({
  name: Type.String({ minLength: 1, maxLength: LIMITS.name }),
  url: Type.String({
    maxLength: LIMITS.uri,
    description: 'Where events are sent: https, without user information and fragment, and at a public address unless `outboundHosts` allows another.'
  }),
  types: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
    minItems: 1, maxItems: LIMITS.items, description: 'The types of events that are sent: `user.deleted`, all of a kind as `user.*`, or all as `*`.'
  }),
  disabled: Type.Optional(Type.Boolean({ description: 'true: nothing is sent. When it is enabled again, it continues where it stopped.' }))
}, { additionalProperties: false })
export type NewWebhook = Static<typeof NewWebhookSchema>

export const CreateWebhookSchema = Type.Object({ data: NewWebhookSchema }, {
  additionalProperties: false,
  title: 'CreateWebhook',
  examples: [{ data: { name: 'Orders', url: 'https://orders.example.com/hooks/identity', types: ['user.*', 'session.ended'] } }]
})
export type CreateWebhook = Static<typeof CreateWebhookSchema>

export const PatchWebhookSchema = Type.Object({ data: Type.Partial(NewWebhookSchema, { additionalProperties: false }) }, {
  additionalProperties: false, title: 'PatchWebhook', examples: [{ data: { types: ['user.deleted'] } }]
})
export type PatchWebhook = Static<typeof PatchWebhookSchema>

/** A webhook in a response. */
export const WebhookSchema = Type.Object({
  webhookId: Type.String(),
  name: Type.String(),
  url: Type.String(),
  types: Type.Array(Type.String()),
  disabled: Type.Optional(Type.Literal(true)),
  failure: Type.Optional(Type.String({
    description: 'Why the service disabled it: `HTTP_410`, because the receiver answered that it is gone, or `FAILING`, after 5 days without a success.'
  })),
  cursor: Type.String({ description: 'Where the deliveries are in the feed of events.' }),
  parked: Type.Integer({ description: 'Events that were not delivered, and are tried again.' }),
  failingSince: Type.Optional(describe(TimestampSchema, 'The first of the failures since the last success.')),
  waitsUntil: Type.Optional(describe(TimestampSchema, 'No attempt is made before.')),
  createdAt: TimestampSchema,
  modifiedAt: TimestampSchema
}, { title: 'Webhook' })
export type Webhook = Static<typeof WebhookSchema>

const Secret = Type.String({ description: 'The secret that signs, for the library of the receiver. It is shown this once.', examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] })
export const WebhookCreatedSchema = Data(Type.Object({ webhookId: Type.String(), secret: Secret }))
export const WebhookSecretSchema = Data(Type.Object({ secret: Secret }))

/** An attempt to deliver an event. Only the status of the receiver's response is stored. */
export const WebhookAttemptSchema = Type.Object({
  at: TimestampSchema,
  eventId: Type.String(),
  type: Type.String({ description: 'The type of the event.' }),
  attempt: Type.Integer({ minimum: 1, description: 'Which attempt of this event it was.' }),
  outcome: Type.Union([Type.Literal('delivered'), Type.Literal('failed'), Type.Literal('given_up')], { description: '`given_up` after the tenth attempt.' }),
  status: Type.Optional(Type.Integer({ description: 'The HTTP status.' })),
  code: Type.Optional(Type.String({ description: 'Why there was no answer, such as `ETIMEDOUT`, `ECONNREFUSED`, or `EREFUSED` for an address that is not allowed.' })),
  time: Type.Integer({ description: 'Milliseconds.' })
}, { title: 'WebhookAttempt' })
export type WebhookAttempt = Static<typeof WebhookAttemptSchema>

export const WebhookAttemptsSchema = Data(Type.Array(WebhookAttemptSchema))

export const WebhookTestedSchema = Data(Type.Pick(WebhookAttemptSchema, ['status', 'code', 'time'], { title: 'WebhookTested' }))
export type WebhookTested = Static<typeof WebhookTestedSchema>['data']

export const ReplayWebhookSchema = Type.Object({
  from: Type.String({ minLength: 1, maxLength: PLACE, description: 'Where the deliveries begin again: a time (RFC 3339), a cursor of the feed, whose event is not repeated, `first` or `now`.' }),
  to: Type.Optional(Type.String({
    minLength: 1,
    maxLength: PLACE,
    description: 'Where the replay ends: a time, or the cursor of the last event. Delivery then continues where it was. Absent: there ' +
      'is no end, and delivery continues from `from`.'
  }))
}, { additionalProperties: false, title: 'ReplayWebhook', examples: [{ from: '2026-11-21T00:00:00Z' }] })
export type ReplayWebhook = Static<typeof ReplayWebhookSchema>

export const WebhookReplayedSchema = Data(Type.Object({ cursor: Type.String({ description: 'Where the deliveries are now.' }) }))

export const WebhookListQuerySchema = Type.Object({
  sort: QueryText('Comma-separated key:direction. Keys: created, modified, name. Default name:asc.'),
  ...PageSchema
}, { additionalProperties: false })
export type WebhookListQuery = Static<typeof WebhookListQuerySchema>
