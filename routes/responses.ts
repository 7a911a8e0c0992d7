import { Type, type TSchema } from '@sinclair/typebox'
import { ErrorSchema } from '../schemas/error.ts'
import { ERRORS, type ErrorCode } from '../lib/errors.ts'

/** What any guarded route may answer; ErrPerm by an override of its row in the access table. */
const COMMON: ErrorCode[] = ['ErrParam', 'ErrUnknown', 'ErrPerm', 'ErrInternal', 'ErrDb', 'ErrBusy']

export const NoContentSchema = Type.Unsafe<undefined>({ type: 'null', description: 'Done; no body.' })

/** A JSON success. */
export function json<T extends TSchema> (schema: T, description: string): T {
  return { ...schema, description }
}

/**
 * The error responses of a route: those every route has, and its own. Kinds that share a status share a response.
 * @param kinds the kinds besides those
 */
export function errors (...kinds: ErrorCode[]): Record<never, TSchema> {
  const texts = new Map<number, string[]>()
  for (const kind of new Set([...COMMON, ...kinds])) {
    const { status, when } = ERRORS[kind]
    texts.set(status, [...texts.get(status) ?? [], `${kind}: ${when}`])
  }
  return Object.fromEntries([...texts].map(([status, lines]) => [status, { ...ErrorSchema, description: lines.join(' ') }]))
}

/** The error responses of a route that may be sent a body. */
export function writeErrors (...kinds: ErrorCode[]): Record<never, TSchema> {
  return {
    ...errors(...kinds),
    413: { ...ErrorSchema, description: 'ErrParam: The body is too large.' },
    415: { ...ErrorSchema, description: 'ErrParam: The body is not application/json.' }
  }
}

/** A list that is read in pages. */
export function pagedList (item: TSchema, description: string) {
  const Link = Type.String({
    description: 'With a limit of at most 100, and more records: the next page, as a reference of the query alone ' +
      '(RFC 8288), `<?...&after=...>; rel="next"`. Absent on the last page, and on a longer list, which is streamed.'
  })
  return { ...list(item, description), headers: { Link } }
}

/** A list: wrapped, bare, or a record a line. */
export function list (item: TSchema, description: string) {
  return {
    description,
    content: {
      'application/json': { schema: Type.Union([Type.Object({ data: Type.Array(item) }), Type.Array(item)]) },
      'application/x-ndjson': { schema: Type.String({ description: 'One record a line, each as an item of the JSON list.' }) }
    }
  }
}
