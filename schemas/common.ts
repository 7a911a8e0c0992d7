import { Type, type Static, type TSchema } from '@sinclair/typebox'

/** Limits of input from callers. Characters are Unicode code points. */
export const LIMITS = {
  /** Bytes of a request body. */
  body: 64 * 1024,
  /** Items in redirectUris and in scopes. */
  items: 100,
  uri: 2048,
  scope: 128,
  name: 256,
  account: 254,
  password: 1024,
  /** Bytes of `info` as JSON. */
  info: 16 * 1024,
  /** Bytes of `attributes` as JSON. */
  attributes: 4 * 1024,
  /** Characters of any id in a path or a query. */
  id: 128,
  /** Characters of a percent-encoded id in a path, where one character may become 12. */
  encodedId: 12 * 128,
  /** Characters of a query parameter that is a list or a text. */
  query: 1024,
  /** Characters of a cursor. Cursors that the service creates are shorter. */
  cursor: 4096,
  /** Characters of the token of a link; ours are 43. */
  token: 512,
  /** Characters of an access token; opaque ones are 43. */
  accessToken: 4096
} as const

/** Copies a schema and sets its description. */
export const describe = <T extends TSchema>(schema: T, description: string): T => ({ ...schema, description })

/** A time as the service sends it: ISO 8601, UTC, milliseconds. */
export const TimestampSchema = Type.String({
  format: 'date-time',
  description: 'ISO 8601, UTC, with milliseconds.',
  examples: ['2026-11-21T02:51:00.000Z']
})

/** A user or client id in a path. */
export const IdSchema = Type.String({ minLength: 1, maxLength: LIMITS.id })

/** Role name -> `true`, or an object of the operator's own attributes. */
export const RolesSchema = Type.Record(
  Type.String(),
  Type.Union([Type.Literal(true), Type.Object({}, { additionalProperties: true })]),
  {
    maxProperties: LIMITS.items,
    description: 'Roles held, by name. A role that is present is held; its value is true or an object of attributes.'
  }
)

/** Roles in a response. They were checked when they were written, and are not checked again for each response. */
export const HeldRolesSchema = Type.Unsafe<Static<typeof RolesSchema>>(
  Type.Object({}, { additionalProperties: true, description: RolesSchema.description })
)

/** The user's own free-form JSON. */
export const InfoSchema = Type.Object({}, {
  additionalProperties: true,
  description: `Any JSON object without empty keys, at most ${LIMITS.info} bytes as JSON.`
})

/** What the operator knows of a user. */
export const AttributesSchema = Type.Object({}, {
  additionalProperties: true,
  description: `A JSON object that administrators and imports set, and the user only reads: what claims of clients and resources are made of. At most ${LIMITS.attributes} bytes as JSON, without empty keys.`
})

/**
 * An object with every field of a schema's type. An optional field may be undefined, which JSON omits, but must be present. So code
 * that builds a T field by field no longer compiles when the schema gets a new field.
 */
export type Complete<T> = { [K in keyof Required<T>]: T[K] }

/** Wraps the body of every successful JSON response. */
export const Data = <T extends TSchema>(schema: T) => Type.Object({ data: schema })

/** An option of every plugin with routes. */
export const InHostDocumentSchema = Type.Boolean({
  default: false, description: "Describes the routes in the host's own @fastify/swagger document too, which must be OpenAPI 3.1."
})

/** The wrapping of a list. */
export const FormatSchema = Type.Union([Type.Literal('object'), Type.Literal('array')], {
  description: '`object` (default) answers { "data": [...] }, `array` the bare array.'
})

/** The query parameters every list has. */
export const PageSchema = {
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: 'Records to skip.' })),
  after: Type.Optional(Type.String({
    maxLength: LIMITS.cursor,
    description: 'The cursor in the Link header of the previous page, for the same sort; instead of offset.'
  })),
  before: Type.Optional(Type.String({
    maxLength: LIMITS.cursor,
    description: 'The cursor in the Link header of the next page, for the same sort and a limit of at most 100: the records before it, in the same order; instead of after and offset.'
  })),
  limit: Type.Optional(Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 100,
    description: 'Maximum number of records; 0 means no limit.'
  })),
  format: Type.Optional(FormatSchema)
}

/** A text query parameter. An empty value counts as absent. */
export const QueryText = (description: string, maxLength: number = LIMITS.query) =>
  Type.Optional(Type.String({ maxLength, description }))

/** The query parameters of a list that may search. */
export const DeadlineQuery = {
  deadline: Type.Optional(Type.Integer({
    minimum: 1,
    maximum: 30,
    description: 'Seconds in which the page must be found, for a limit of 1 to 100. Otherwise the search is given up: 503 ErrBusy. Absent: no such bound.'
  }))
}

/** The query parameter of a count that may stop. */
export const MaxQuery = {
  max: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, description: 'Counting stops here: `more` says that there are more. Absent: all are counted.' }))
}

export const CountSchema = Data(Type.Object({
  count: Type.Integer({ minimum: 0 }),
  more: Type.Optional(Type.Literal(true, { description: 'There are more than `max`, where counting has stopped.' }))
}, { title: 'Count' }))
