import type { FastifyInstance } from 'fastify'
import { invalidRequest } from '../lib/oidc/oauth-error.ts'
import { ROUTES } from '../lib/oidc/routes.ts'
import { type OidcMount, passOn, sendOAuthError } from '../plugins/oidc.ts'
import { LIMITS } from '../schemas/common.ts'

const FORM = 'application/x-www-form-urlencoded'

/** Token introspection (RFC 7662). A request from a page needs CORS for its client, so oidc-provider answers it. */
export async function introspectionRoute (app: FastifyInstance, { getServer, getIssuer, introspect }: OidcMount): Promise<void> {
  app.setErrorHandler(sendOAuthError)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(FORM, { parseAs: 'string', bodyLimit: LIMITS.body }, (_request, body, done) => {
    done(null, new URLSearchParams(body as string))
  })
  app.addContentTypeParser('*', (request, _body, done) => {
    done(invalidRequest(`only ${FORM} content-type bodies are supported on POST ${request.url}`) as never)
  })
  app.post(ROUTES.introspection, {
    schema: { hide: true },
    onRequest: async (request, reply) => {
      reply.headers({ 'cache-control': 'no-store', vary: 'Origin' })
      if (request.headers.origin !== undefined) await passOn(getServer, request, reply)
    }
  }, async (request, reply) => {
    const issuer = getIssuer().href.replace(/\/$/, '')
    const { authorization } = request.headers
    const answer = await introspect({ authorization, form: request.body as URLSearchParams | undefined ?? new URLSearchParams(), issuer })
    return reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(answer)
  })
}
