import { Type, type Static } from '@sinclair/typebox'
import { ClientListQuerySchema } from './client.ts'
import { FormatSchema, InHostDocumentSchema, LIMITS, describe } from './common.ts'

const Milliseconds = (fallback: number, description: string) =>
  Type.Integer({ minimum: 1, maximum: 3_600_000, default: fallback, description: `Milliseconds ${description}` })

/** The bridge's plain-data options. Defaults are defined here and nowhere else. */
export const BridgeOptionsSchema = Type.Object({
  upstream: Type.String({
    minLength: 1,
    description: "Base URL of the service's API, http or https; `/api/v1/client` is appended to its path."
  }),
  escapeFormulae: Type.Boolean({
    default: true, description: 'Puts a `\'` in front of a CSV cell that a spreadsheet would run as a formula.'
  }),
  filename: Type.String({
    pattern: '^[\\w][\\w. -]{0,127}$', default: 'clients.csv', description: 'Name of the downloaded CSV file.'
  }),
  inHostDocument: InHostDocumentSchema,
  cookies: Type.Boolean({
    default: false, description: 'Forwards Cookie and Set-Cookie. They are dropped by default: the host app and the upstream share no cookies.'
  }),
  bodyLimit: Type.Integer({
    minimum: 0, maximum: 1024 * 1024 * 1024, default: LIMITS.body, description: 'Maximum bytes of a request body, which is held in memory.'
  }),
  maxConnections: Type.Integer({
    minimum: 1, maximum: 65_535, default: 64, description: 'Maximum connections to the upstream; further requests wait.'
  }),
  connectTimeout: Milliseconds(5_000, 'for a connection to the upstream.'),
  headersTimeout: Milliseconds(30_000, "until the upstream's response begins."),
  bodyTimeout: Milliseconds(60_000, 'between two chunks of a response, and for a request body as a whole.'),
  stallTimeout: Milliseconds(60_000, 'after which a client that reads nothing of a response is disconnected.')
}, { additionalProperties: false })

export type BridgeSettings = Static<typeof BridgeOptionsSchema>

/** The query of the bridge's list: the service's own, with one more format. */
export const BridgeListQuerySchema = Type.Object({
  ...ClientListQuerySchema.properties,
  limit: describe(ClientListQuerySchema.properties.limit, `${ClientListQuerySchema.properties.limit.description} A CSV without it is the whole list.`),
  format: Type.Optional(Type.Union([FormatSchema, Type.Literal('csv')], {
    description: '`csv` answers CSV, as `Accept: text/csv` does; other values are forwarded.'
  }))
})
