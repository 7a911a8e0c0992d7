import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

const ALLOWED = 'access-control-allow-origin'

/** Seconds a browser keeps the answer to a preflight. */
const KEPT = '3600'

/**
 * Lets a page of any origin read the answer (Fetch, 3.3). It carries no cookie and none is looked at: whoever has the token
 * could ask by other means. What a host's own CORS says first stands. Who asks from no page, and sends no Origin, needs none of it.
 */
export function allowOrigin (request: FastifyRequest, reply: FastifyReply): void {
  if (request.headers.origin === undefined || reply.hasHeader(ALLOWED)) return
  reply.headers({ [ALLOWED]: '*', 'access-control-expose-headers': 'WWW-Authenticate, Retry-After' })
}

/**
 * Answers preflights (Fetch, 4.8): a browser sends one for the Authorization header, and without a token.
 * @param routes methods by path
 */
export function answerPreflights (app: FastifyInstance, routes: Record<string, string>): void {
  for (const [url, methods] of Object.entries(routes)) {
    app.options(url, { schema: { hide: true } }, (_request, reply) => {
      if (!reply.hasHeader(ALLOWED)) {
        reply.headers({
          [ALLOWED]: '*',
          'access-control-allow-methods': methods,
          'access-control-allow-headers': 'authorization, content-type',
          'access-control-max-age': KEPT
        })
      }
      return reply.code(204).send(undefined)
    })
  }
}
