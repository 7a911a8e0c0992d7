import type { FastifyInstance } from 'fastify'

const ALLOWED = 'access-control-allow-origin'

/** Seconds a browser keeps the answer to a preflight. */
const KEPT = '3600'

/**
 * Lets pages of any origin read the answers of this scope. They carry no cookie and none is looked at: whoever has the
 * token could ask by other means. What a host's own CORS says first stands.
 */
export function allowOrigins (app: FastifyInstance): void {
  app.addHook('onRequest', (_request, reply, done) => {
    if (!reply.hasHeader(ALLOWED)) reply.headers({ [ALLOWED]: '*', 'access-control-expose-headers': 'WWW-Authenticate, Retry-After' })
    done()
  })
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
