import { Type, type Static } from '@sinclair/typebox'
import { FormatSchema, LIMITS, QueryText, TimestampSchema, describe } from './common.ts'

/** The URL of a document, which is the id of a client that nobody has registered (docs/agents.md). */
export const DocumentUrlSchema = Type.Object({
  data: Type.Object({
    url: Type.String({ maxLength: LIMITS.id, description: 'The URL of the document, which is the id of the client.' })
  }, { additionalProperties: false })
}, { additionalProperties: false, title: 'DocumentUrl', examples: [{ data: { url: 'https://agent.example/client.json' } }] })

export const DocumentListQuerySchema = Type.Object({
  contains: QueryText('A part of the name or the URL, in any case.'),
  limit: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Maximum number of clients. Absent or 0: no limit.' })),
  format: Type.Optional(FormatSchema)
}, { additionalProperties: false })
export type DocumentListQuery = Static<typeof DocumentListQuerySchema>

export const DocumentSchema = Type.Object({
  id: Type.String({ description: 'Another id of the client, for paths: `document:` and the SHA-256 of the URL, base64url.' }),
  url: Type.String(),
  name: Type.String({ description: 'The name that the client chose. Empty: its document has not been read.' }),
  state: Type.Union([Type.Literal('allowed'), Type.Literal('blocked'), Type.Literal('new')], {
    description: '`allowed`: somebody has allowed the client. `blocked`: an operator has blocked it. `new`: its document was read, and nobody has decided.'
  }),
  fetched_at: Type.Optional(describe(TimestampSchema, 'When its document was read last.')),
  used_at: Type.Optional(describe(TimestampSchema, 'When the client was last used, to the day.'))
}, { title: 'ClientDocument' })
export type Document = Static<typeof DocumentSchema>
