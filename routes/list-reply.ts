import { negotiate } from '@fastify/accept-negotiator'
import { type FastifyReply, type FastifyRequest } from 'fastify'
import { LIST_TYPES, renderList } from '../lib/listing.ts'

/** How a list reads its own query. */
export interface ListReplyOptions {
  format?: 'object' | 'array' | undefined
  /** Milliseconds, see lib/listing.ts. */
  stallTimeout: number
}

const JSON_TYPE = 'application/json'
const NDJSON_TYPE = 'application/x-ndjson'

/** Sends a list in the form that was asked for; a failure after the first byte breaks the connection. */
export async function sendList<T> (
  request: FastifyRequest, reply: FastifyReply, batches: AsyncIterable<T[]>, { format = 'object', stallTimeout }: ListReplyOptions
): Promise<FastifyReply> {
  const accept = request.headers.accept
  const lines = accept !== undefined && negotiate(accept, [JSON_TYPE, NDJSON_TYPE]) === NDJSON_TYPE
  const chosen = lines ? 'ndjson' : format
  const body = await renderList(batches, { format: chosen, stallTimeout })
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
