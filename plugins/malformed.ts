import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { findResponse } from './draining.ts'
import { toErrorBody } from './errors.ts'

const REASONS: Record<string, [statusCode: number, message: string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request: did not come in whole in time'],
  HPE_HEADER_OVERFLOW: [431, 'headers: are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'body: has chunk extensions that are too large']
}

/** Answers what is not HTTP, before there is a request, in the same form as every error; then the connection ends. */
export function handleMalformed (this: FastifyInstance, error: ConnectionError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const [statusCode, message] = REASONS[error.code] ?? [400, 'request: is not valid HTTP']
  this.log.debug({ statusCode, code: error.code }, 'a malformed request')
  // Where a response has begun, as with pipelining, these bytes would become a part of it.
  if (socket.writable && findResponse(socket)?.headersSent !== true) {
    const body = JSON.stringify(toErrorBody(new IdentityError('ErrParam', message, { statusCode })))
    socket.write([
      `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode]}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '', body
    ].join('\r\n'))
  }
  socket.destroy()
}
