import { Readable } from 'node:stream'
import { negotiate } from '@fastify/accept-negotiator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { LIST_TYPES, type ListSource, renderList } from '../lib/lists/listing.ts'
import { requireCaller } from '../plugins/auth.ts'

/** How a list reads its own query. */
export interface ListReplyOptions {
  format?: 'object' | 'array' | undefined
  /** Milliseconds, see lib/lists/listing.ts. */
  stallTimeout: number
}

const JSON_TYPE = 'application/json'
const NDJSON_TYPE = 'application/x-ndjson'

/** Lists of more than a batch that one user may read at once: each holds a cursor, of which a store has some dozens. */
const STREAMS = 8
/** Those that are being read, by user, of each service in the process. */
const streams = new WeakMap<object, Map<string, number>>()

/** @throws ErrLimit when the caller reads as many already; the list is left then */
function countStream (request: FastifyRequest, body: Readable): void {
  const { user_id } = requireCaller(request).user
  const service = request.server.identity
  let counts = streams.get(service)
  if (counts === undefined) streams.set(service, counts = new Map())
  const count = counts.get(user_id) ?? 0
  if (count >= STREAMS) {
    body.destroy()
    throw new IdentityError('ErrLimit', `more than ${STREAMS} long lists are being read at once`, { headers: { 'retry-after': '1' } })
  }
  counts.set(user_id, count + 1)
  body.once('close', () => {
    const left = counts.get(user_id)! - 1
    if (left === 0) counts.delete(user_id)
    else counts.set(user_id, left)
  })
}

/** Sends a list in the form that was asked for; a failure after the first byte breaks the connection. To HEAD its head alone, unread. */
export async function sendList<T> (
  request: FastifyRequest, reply: FastifyReply, list: ListSource<T>, { format = 'object', stallTimeout }: ListReplyOptions
): Promise<FastifyReply> {
  const accept = request.headers.accept
  const lines = accept !== undefined && negotiate(accept, [JSON_TYPE, NDJSON_TYPE]) === NDJSON_TYPE
  const chosen = lines ? 'ndjson' : format
  const isHead = request.method === 'HEAD'
  // To HEAD a stream, of which Fastify tells no length: that of the list is not known before it is read.
  const body = isHead ? Readable.from([]) : await renderList(list, { format: chosen, stallTimeout })
  if (typeof body !== 'string' && !isHead) countStream(request, body)
  reply.vary('Accept')
  return reply.type(LIST_TYPES[chosen]).send(body)
}

/**
 * Tells of the next page. The reference is of the query alone, so that it holds at whatever path the caller sees the list:
 * under a prefix, behind a proxy, on a bridge (RFC 3986, 5.2.2).
 */
export function linkNext (request: FastifyRequest<{ Querystring: object }>, reply: FastifyReply, after: string): void {
  const { offset: _offset, after: _after, ...query } = request.query as Record<string, unknown>
  const next = new URLSearchParams(Object.entries({ ...query, after }).map(([name, value]): [string, string] => [name, String(value)]))
  reply.header('link', `<?${next}>; rel="next"`)
}
