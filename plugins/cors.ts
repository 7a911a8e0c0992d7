import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

const ALLOWED = 'access-control-allow-origin'

/** Seconds for which a browser may cache a preflight. */
const MAX_AGE = '3600'

/** The paths that a single-page app calls for its user, with their methods. */
const FOR_PAGES: Readonly<Record<string, readonly string[]>> = {
  '/auth/tokeninfo': ['GET'], '/auth/logout': ['POST'], '/auth/sessions': ['GET', 'DELETE'], '/user': ['GET', 'PATCH']
}

/** Whether pages of any origin may read the responses of an operation. */
export const isForPages = (method: string, url: string): boolean => FOR_PAGES[url]?.includes(method) === true

/**
 * Allows pages of any origin to read the response (Fetch, 3.3). Safe because these routes use no cookies: a page that has the
 * token could make the request elsewhere. A host's own CORS headers take precedence.
 */
export function allowOrigin (request: FastifyRequest, reply: FastifyReply): void {
  if (request.headers.origin === undefined || reply.hasHeader(ALLOWED)) return
  reply.headers({ [ALLOWED]: '*', 'access-control-expose-headers': 'WWW-Authenticate, Retry-After' })
}

/** Answers preflights (Fetch, 4.8), which a browser sends because of the Authorization header, without a token. */
export function answerPreflights (app: FastifyInstance): void {
  for (const [url, methods] of Object.entries(FOR_PAGES)) {
    app.options(url, { schema: { hide: true } }, (_request, reply) => {
      if (!reply.hasHeader(ALLOWED)) {
        reply.headers({
          [ALLOWED]: '*',
          'access-control-allow-methods': methods.join(', '),
          'access-control-allow-headers': 'authorization, content-type',
          'access-control-max-age': MAX_AGE
        })
      }
      return reply.code(204).send(undefined)
    })
  }
}
