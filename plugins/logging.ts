import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { LogController, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { describeError } from '../lib/failure.ts'

/** Maximum characters of a logged path. */
const PATH = 256
/** The request ids that a caller or a proxy may set: short, and safe in any log. */
const REQUEST_ID = /^[\w.-]{1,64}$/

/** pino's serializers. They log no query string, no header and no body. */
export const SERIALIZERS = {
  req: (request: FastifyRequest) => ({
    method: request.method,
    path: (request.url.split('?', 1)[0] ?? '').slice(0, PATH),
    route: request.routeOptions?.url,
    remoteAddress: request.ip
  }),
  res: ({ statusCode }: { statusCode?: number }) => ({ statusCode }),
  err: (error: unknown) => describeError(error)
}

/** The ids of the user and the client of a request; none if no guard has authenticated it. */
function describeCaller (request: FastifyRequest): { user_id?: string, client_id?: string } {
  if (!request.hasCaller) return {}
  const { user, client } = request.caller
  return { user_id: user.user_id, client_id: client.clientId }
}

/** Writes one line for each request, when its response has ended or was aborted. */
export class RequestLog extends LogController {
  readonly #callers: boolean

  /** @param callers whether the line has the ids of the user and the client */
  constructor ({ callers }: { callers: boolean }) {
    super()
    this.#callers = callers
  }

  override incomingRequest (request: FastifyRequest, reply: FastifyReply): void {
    if (!(request.log as Logger).isLevelEnabled('info')) return
    let message = 'request aborted'
    reply.raw.once('finish', () => { message = 'request completed' })
    reply.raw.once('close', () => {
      const caller = this.#callers ? describeCaller(request) : {}
      request.log.info({ req: request, res: reply, responseTime: reply.elapsedTime, ...caller }, message)
    })
  }

  /** The request's own line has the 404. Fastify's line would contain the query. */
  override routeNotFound (): void {}

  override requestCompleted (error: Error | null | undefined, request: FastifyRequest): void {
    if (error) request.log.warn({ err: error }, 'response failed')
  }

  override streamError (error: Error, request: FastifyRequest): void {
    // A client's disconnection is in the request's own line.
    const { code }: NodeJS.ErrnoException = error
    if (code !== 'ERR_STREAM_PREMATURE_CLOSE') request.log.warn({ err: error }, 'response failed after its first byte')
  }
}

/** The id of a request in the log: the caller's `X-Request-Id` where it is safe to log, else a new one. */
export function chooseRequestId ({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID()
}
