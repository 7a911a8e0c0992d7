import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError, paramError } from '../lib/errors.ts'
import { STATUS_CODES } from '../lib/node-http.ts'
import { findResponse } from './connections.ts'
import { sendError, toErrorBody } from './errors.ts'

const REASONS: Record<string, [statusCode: number, message: string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request: did not arrive in time'],
  HPE_HEADER_OVERFLOW: [431, 'headers: are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'body: has chunk extensions that are too large']
}

/** Refuses HTTP/1.1 without Host (RFC 9112, 3.2) in the common error format. Node's own answer has no body, and is turned off. */
export function requireHost (app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined) sendError(paramError('host', 'is required'), request, reply)
    else done()
  })
}

/** Answers an `Expect` other than 100-continue (RFC 9110, 10.1.1) in the common error format. Node's own answer has no body. */
export function refuseExpectations (app: FastifyInstance): void {
  app.server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const body = JSON.stringify(toErrorBody(new IdentityError('ErrParam', 'expect: only 100-continue is known', { statusCode: 417 })))
    response.writeHead(417, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), connection: 'close' }).end(body)
  })
}

/** Connections with a request that may take as long as it makes progress. */
const long = new WeakSet<Socket>()

/** Lets this request take longer than the server's limit for requests, which is for small ones. */
export function allowLong ({ raw: { socket } }: FastifyRequest, { raw: response }: FastifyReply): void {
  long.add(socket)
  response.once('close', () => long.delete(socket))
}

/** Answers input that is not HTTP in the common error format, and closes the connection. There is no request yet. */
export function handleMalformed (this: FastifyInstance, error: ConnectionError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && long.has(socket)) return
  const [statusCode, message] = REASONS[error.code] ?? [400, 'request: is not valid HTTP']
  this.log.debug({ statusCode, code: error.code }, 'malformed request')
  // With pipelining a response may be in flight: these bytes would become a part of it.
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
