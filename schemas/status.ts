import { type Static, Type } from '@sinclair/typebox'
import { Data, TimestampSchema } from './common.ts'

const Codes = <const Names extends readonly string[]>(names: Names, description: string) =>
  Type.Union(names.map((name) => Type.Literal(name as Names[number])), { description })

/** What an operator should look at. A published code never changes. */
export const ATTENTION_CODES = [
  'not_ready',
  'mail_stalled', 'logout_stalled', 'webhook_stalled', 'secret_stalled', 'event_stalled',
  'mail_failed', 'logout_failed', 'webhook_failed', 'secret_failed', 'event_failed',
  'webhooks_stopped', 'credentials_end',
  'people_unproved', 'people_unreachable', 'people_undone'
] as const

/** What an operator may set up next, the most important first. A published code never changes. */
export const NEXT_CODES = [
  'issuer_missing', 'issuer_insecure', 'secret_key', 'backup', 'mail', 'admin_factors',
  'providers_broken', 'passkeys_broken', 'agents_broken', 'migration_broken', 'webhooks_broken',
  'name', 'metrics'
] as const

export const AttentionSchema = Type.Object({
  code: Codes(ATTENTION_CODES, 'What it is: see docs/operations.md.'),
  text: Type.String({ description: 'The same as a sentence.' }),
  count: Type.Optional(Type.Integer({ minimum: 1, description: 'How many there are, where they are counted.' })),
  since: Type.Optional(Type.String({ ...TimestampSchema, description: 'Since when, where that is known.' })),
  more: Type.Optional(Type.String({ description: 'The path and the query, below `/api/v1`, of the list of them.', examples: ['/jobs?kind=mail&state=failed'] }))
}, { title: 'Attention' })
export type Attention = Static<typeof AttentionSchema>

export const NextStepSchema = Type.Object({
  code: Codes(NEXT_CODES, 'What it is: see docs/operations.md.'),
  text: Type.String({ description: 'A sentence with the option and the environment variable that set it.' })
}, { title: 'NextStep' })
export type NextStep = Static<typeof NextStepSchema>

/** The service itself, as an operator sees it. */
export const StatusSchema = Type.Object({
  version: Type.String(),
  engine: Type.String({ description: 'The engine of the store: `sqlite` or `mongodb`.' }),
  ready: Type.Boolean({ description: 'Whether this process can serve, as `/health/ready` says.' }),
  reason: Type.Optional(Type.String({ description: 'Why it is not ready.' })),
  attention: Type.Array(AttentionSchema, { description: 'What needs attention now. Empty: nothing.' }),
  next: Type.Array(NextStepSchema, { description: 'What to set up next, the most important first.' })
}, { title: 'Status' })
export type Status = Static<typeof StatusSchema>
export const StatusDataSchema = Data(StatusSchema)

export const StatusQuerySchema = Type.Object({
  held: Type.Optional(Type.Union([Type.Literal('true'), Type.Literal('false')], {
    description: '`true`: also counts the people whom upstreams with `only` hold, and who may be shut out. It reads every user, at most once in five minutes.'
  }))
}, { additionalProperties: false })

/** Where the value of a setting comes from. */
const OriginSchema = Type.Union([
  Type.Literal('default'), Type.Literal('environment'), Type.Literal('file'), Type.Literal('flag'), Type.Literal('option')
], {
  description: '`environment`: its variable; `file`: a file that a variable names; `flag`: a flag of the command `serve`; `option`: an option of the app that embeds the service.'
})

/** A setting with the value that this process uses. */
export const SettingSchema = Type.Object({
  name: Type.String({ description: 'The option, with the name of a part after a dot.', examples: ['oidc.issuer'] }),
  variable: Type.Optional(Type.String({ description: 'The environment variable that sets it. Absent: none does.', examples: ['IDENTITY_ISSUER'] })),
  value: Type.Optional(Type.Unknown({
    description: 'Its value, as the variable or the option has it. Of a secret only `set`, of a URL with credentials what is not secret. Absent: it is not set.'
  })),
  origin: OriginSchema
}, { title: 'Setting' })
export type Setting = Static<typeof SettingSchema>
export const SettingsDataSchema = Data(Type.Object({
  settings: Type.Array(SettingSchema, { description: 'In the order of docs/configuration.md, or of the options.' })
}))

/** A test mail that was accepted. */
export const TestMailDataSchema = Data(Type.Object({
  mail_id: Type.String({ description: 'Its id in `GET /user/{userId}/mails`, which says what became of it.' })
}))
