import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Page, mapBatches } from '../lib/lists/cursor.ts'
import { LIST_TYPES, type ListOptions, type ListSource, renderList, renderPieces } from '../lib/lists/listing.ts'
import { JSON_TYPE, NDJSON_TYPE, prefersCsv, selectType } from '../lib/lists/negotiation.ts'

/** How a list is sent as CSV. */
export interface Csv { columns: readonly string[], toRow: (record: never) => object }

interface ListReplyOptions {
  /** Milliseconds, see lib/lists/listing.ts. */
  stallTimeout: number
  /** Absent: the list is never sent as CSV. */
  csv?: Csv | undefined
}

async function * writeCsv<T> (batches: AsyncIterable<T[]>, { columns, toRow }: Csv): AsyncGenerator<string> {
  // Loaded when the first CSV list is requested.
  const { toCsv } = await import('../lib/lists/csv.ts')
  const rows = mapBatches(batches, (record) => toRow(record as never))
  for await (const lines of toCsv(rows, { escapeFormulae: true, columns, isRecord: () => true })) if (lines.length > 0) yield lines.toString()
}

async function send<T> (request: FastifyRequest, reply: FastifyReply, list: ListSource<T>, options: ListOptions): Promise<FastifyReply> {
  const isHead = request.method === 'HEAD'
  // A stream, so that Fastify sends no Content-Length: the length is unknown before the list is read.
  const body = isHead ? Readable.from([]) : await renderList(list, options)
  reply.vary('Accept')
  return reply.type(LIST_TYPES[options.format]).send(body)
}

/** The query of every list. */
type ListQuery = Record<string, unknown> & { format?: 'object' | 'array' }

/**
 * Links the pages beside this one (RFC 8288). A reference is the query alone, so it resolves at whatever path the caller sees the
 * list: under a prefix, behind a proxy, on a bridge (RFC 3986, 5.2.2).
 */
function linkPages (reply: FastifyReply, { offset: _offset, after: _after, before: _before, ...query }: ListQuery, { after, before }: Page<unknown>): void {
  const link = (rel: 'next' | 'prev', cursor: { after: string } | { before: string }): string => {
    const reference = new URLSearchParams(Object.entries({ ...query, ...cursor }).map(([name, value]): [string, string] => [name, String(value)]))
    return `<?${reference}>; rel="${rel}"`
  }
  const links = [...(after === undefined ? [] : [link('next', { after })]), ...(before === undefined ? [] : [link('prev', { before })])]
  if (links.length > 0) reply.header('link', links.join(', '))
}

/**
 * Sends a list in the format that the request asks for, with a link to the next page. A failure after the first byte destroys the
 * connection. HEAD is answered with headers only; the list is not read.
 */
export async function sendList<T> (
  request: FastifyRequest, reply: FastifyReply, list: Page<T>, { stallTimeout, csv }: ListReplyOptions
): Promise<FastifyReply> {
  const query = request.query as ListQuery
  linkPages(reply, query, list)
  if (csv !== undefined && prefersCsv(request.headers.accept)) {
    return await send(request, reply, { batches: list.batches, render: () => writeCsv(list.batches, csv) }, { format: 'csv', stallTimeout })
  }
  const isNdjson = selectType(request.headers.accept, [JSON_TYPE, NDJSON_TYPE]) === NDJSON_TYPE
  return await send(request, reply, list, { format: isNdjson ? 'ndjson' : query.format ?? 'object', stallTimeout })
}

/**
 * Sends the pieces of one JSON document while they are written. A failure after the first byte destroys the connection.
 * @param pieces null for HEAD, which is answered with headers only
 */
export async function sendDocument (reply: FastifyReply, pieces: AsyncIterable<string> | null, { stallTimeout }: ListReplyOptions): Promise<FastifyReply> {
  const format = 'document'
  const body = pieces === null ? Readable.from([]) : await renderPieces(pieces, { format, stallTimeout })
  return reply.type(LIST_TYPES[format]).send(body)
}
