import { Type, type Static } from '@sinclair/typebox'
import { ClientListQuerySchema } from './client.ts'
import { FormatSchema, LIMITS } from './common.ts'

const Milliseconds = (fallback: number, description: string) =>
  Type.Integer({ minimum: 1, maximum: 3_600_000, default: fallback, description: `Milliseconds ${description}` })

/** The options of the bridge that are plain data. Defaults stand here and nowhere else. */
export const BridgeOptionsSchema = Type.Object({
  upstream: Type.String({
    minLength: 1,
    description: "Base URL of the service's API, http or https; `/api/v1/client` is added to its path."
  }),
  escapeFormulae: Type.Boolean({
    default: true, description: 'A CSV cell that a spreadsheet would run as a formula gets a leading `\'`.'
  }),
  filename: Type.String({
    pattern: '^[\\w][\\w. -]{0,127}$', default: 'clients.csv', description: 'Name of the CSV file that is offered for download.'
  }),
  bodyLimit: Type.Integer({
    minimum: 0, maximum: 1024 * 1024 * 1024, default: LIMITS.body, description: 'Bytes of a request body at most.'
  }),
  maxConnections: Type.Integer({
    minimum: 1, maximum: 65_535, default: 64, description: 'Connections to the upstream at most; requests past them wait.'
  }),
  connectTimeout: Milliseconds(5_000, 'for a connection to the upstream.'),
  headersTimeout: Milliseconds(30_000, "until the upstream's answer begins."),
  bodyTimeout: Milliseconds(60_000, 'between two parts of a body, and for a request body as a whole.'),
  stallTimeout: Milliseconds(60_000, 'a reader may take nothing of a response before it is broken off.')
}, { additionalProperties: false })

export type BridgeSettings = Static<typeof BridgeOptionsSchema>

/** The query of the bridge's list: the service's own, and one format more. */
export const BridgeListQuerySchema = Type.Object({
  ...ClientListQuerySchema.properties,
  format: Type.Optional(Type.Union([FormatSchema, Type.Literal('csv')], {
    description: '`csv` answers CSV, as `Accept: text/csv` does; what else there is, is passed on.'
  }))
})
