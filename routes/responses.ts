import { Type, type TSchema } from '@sinclair/typebox'
import { ErrorSchema } from '../schemas/error.ts'
import { defined } from '../lib/defined.ts'
import { ERRORS, type ErrorCode } from '../lib/errors.ts'

/** The errors of every guarded route. ErrPerm is among them, since any row of the access table may be overridden. */
const COMMON: ErrorCode[] = ['ErrParam', 'ErrUnknown', 'ErrPerm', 'ErrInternal', 'ErrDb', 'ErrBusy']

export const NoContentSchema = Type.Unsafe<undefined>({ type: 'null', description: 'Done; no body.' })

const Challenge = Type.String({ description: 'That a bearer token is needed, with the error of the one that was sent (RFC 6750, 3).' })
const RetryAfter = Type.Integer({ minimum: 0, description: 'Seconds to wait.' })

/** Headers of error responses, by status. */
const HEADERS: Record<number, Record<string, TSchema>> = {
  401: { 'WWW-Authenticate': Challenge }, 403: { 'WWW-Authenticate': Challenge }, 429: { 'Retry-After': RetryAfter }, 503: { 'Retry-After': RetryAfter }
}

/** The errors of requests that never reach a route. */
const MALFORMED: Record<number, string> = { 414: 'ErrParam: The URL is too long.', 431: 'ErrParam: The headers are too large.' }

/** An error response. */
function fail (status: number, description: string): TSchema {
  return defined({ ...ErrorSchema, description, headers: HEADERS[status] })
}

/** A JSON success. */
export function json<T extends TSchema> (schema: T, description: string): T {
  return { ...schema, description }
}

/** The errors of a body. */
const BODY: Record<number, string> = {
  408: 'ErrParam: The body did not arrive in time.',
  413: 'ErrParam: The body is too large.',
  415: 'ErrParam: The body is not application/json.'
}

/** The error of a request with `If-Match`. */
const MATCH: Record<number, string> = { 412: 'ErrParam: What is to be changed has changed since the caller read it (If-Match).' }

/**
 * The error responses of a route. Kinds with the same status share a response.
 * @param kinds the route's own kinds, in addition to the common ones
 * @param options.isPublic without those of a token
 * @param options.hasBody with those of a body
 * @param options.isMatched with that of `If-Match`
 */
export function errors (kinds: ErrorCode[], { isPublic = false, hasBody = false, isMatched = false } = {}): Record<number, TSchema> {
  const texts: Record<number, string> = {}
  for (const kind of new Set([...COMMON, ...kinds])) {
    const { status, when } = ERRORS[kind]
    if (isPublic && (status === 401 || status === 403)) continue
    texts[status] = `${texts[status] === undefined ? '' : `${texts[status]} `}${kind}: ${when}`
  }
  const all = { ...texts, ...MALFORMED, ...(hasBody && BODY), ...(isMatched && MATCH) }
  return Object.fromEntries(Object.entries(all).map(([status, text]) => [status, fail(Number(status), text)]))
}

/** A paginated list. */
export function pagedList (item: TSchema, description: string) {
  const Link = Type.String({
    description: 'The pages beside this one, of a list with a limit of at most 100: query-only references (RFC 8288), ' +
      '`<?...&after=...>; rel="next", <?...&before=...>; rel="prev"`. No next on the last page, no prev on the first one, and neither on longer lists, ' +
      'which are streamed.'
  })
  return { ...list(item, description), headers: { Link } }
}

/** A list, as the document describes it. plugins/openapi-document.ts describes its other forms, a bare array and NDJSON, in its text. */
export function list (item: TSchema, description: string) {
  return { description, content: { 'application/json': { schema: Type.Object({ data: Type.Array(item) }) } } }
}
