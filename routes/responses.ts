import { Type, type TSchema } from '@sinclair/typebox'
import { ErrorSchema } from '../schemas/error.ts'
import { ERRORS, type ErrorCode } from '../lib/errors.ts'

/** The errors of every guarded route. ErrPerm is among them, since any row of the access table may be overridden. */
const COMMON: ErrorCode[] = ['ErrParam', 'ErrUnknown', 'ErrPerm', 'ErrInternal', 'ErrDb', 'ErrBusy']

export const NoContentSchema = Type.Unsafe<undefined>({ type: 'null', description: 'Done; no body.' })

/** A JSON success. */
export function json<T extends TSchema> (schema: T, description: string): T {
  return { ...schema, description }
}

/**
 * The error responses of a route. Kinds with the same status share a response.
 * @param kinds the route's own kinds, beside the common ones
 */
export function errors (...kinds: ErrorCode[]): Record<never, TSchema> {
  const texts = new Map<number, string[]>()
  for (const kind of new Set([...COMMON, ...kinds])) {
    const { status, when } = ERRORS[kind]
    texts.set(status, [...texts.get(status) ?? [], `${kind}: ${when}`])
  }
  return Object.fromEntries([...texts].map(([status, lines]) => [status, { ...ErrorSchema, description: lines.join(' ') }]))
}

/** The error responses of a route that accepts a body. */
export function writeErrors (...kinds: ErrorCode[]): Record<never, TSchema> {
  return {
    ...errors(...kinds),
    413: { ...ErrorSchema, description: 'ErrParam: The body is too large.' },
    415: { ...ErrorSchema, description: 'ErrParam: The body is not application/json.' }
  }
}

/** A paginated list. */
export function pagedList (item: TSchema, description: string) {
  const Link = Type.String({
    description: 'The next page of a list with a limit of at most 100: a query-only reference (RFC 8288), ' +
      '`<?...&after=...>; rel="next"`. Absent on the last page, and on longer lists, which are streamed.'
  })
  return { ...list(item, description), headers: { Link } }
}

/** A list: an object with `data`, a bare array, or NDJSON. */
export function list (item: TSchema, description: string) {
  return {
    description,
    content: {
      'application/json': { schema: Type.Union([Type.Object({ data: Type.Array(item) }), Type.Array(item)]) },
      'application/x-ndjson': { schema: Type.String({ description: 'One record per line, each like an item of the JSON list.' }) }
    }
  }
}
