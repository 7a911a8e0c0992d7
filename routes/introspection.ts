import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toIssuer } from '../lib/issuer.ts'
import { OriginError, invalidRequest } from '../lib/oidc/oauth-error.ts'
import { ROUTES } from '../lib/oidc/routes.ts'
import type { OidcMount } from '../plugins/oidc-mount.ts'
import { replyOAuthError } from '../plugins/oidc.ts'
import { readFields } from '../plugins/sign-in-forms.ts'
import { readForm } from '../plugins/utf8.ts'
import { LIMITS } from '../schemas/common.ts'
import { readCode } from '../lib/failure.ts'

const FORM = 'application/x-www-form-urlencoded'

/** Sets the CORS headers of an answer (Fetch, 3.3): the page that sent the request may read it, unless it is not allowed to. */
function setCors (request: FastifyRequest, reply: FastifyReply, allowed = true): void {
  const { origin } = request.headers
  reply.header('vary', [reply.getHeader('vary'), 'Origin'].flat().filter(Boolean).join(', '))
  if (origin === undefined) return
  reply.header('access-control-expose-headers', 'WWW-Authenticate')
  if (allowed) reply.header('access-control-allow-origin', origin)
}

function refuseType (request: FastifyRequest): Error {
  return invalidRequest(`only ${FORM} content-type bodies are supported on POST ${request.url.split('?')[0]}`)
}

/** Token introspection (RFC 7662). */
export async function introspectionRoute (app: FastifyInstance, { getIssuer, introspect }: OidcMount): Promise<void> {
  app.setErrorHandler((error, request, reply) => {
    setCors(request, reply, !(error instanceof OriginError))
    return replyOAuthError(readCode(error) === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? refuseType(request) : error, request, reply)
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(FORM, { parseAs: 'buffer', bodyLimit: LIMITS.body }, async (_request: FastifyRequest, body: Buffer) => await readForm(body))
  app.addContentTypeParser('*', (request, _body, done) => done(refuseType(request)))

  app.post(ROUTES.introspection, { schema: { hide: true } }, async (request, reply) => {
    const { authorization, origin } = request.headers
    const form = readFields(request)
    const answer = await introspect({ authorization, form, origin, issuer: toIssuer(getIssuer()), address: request.ip })
    setCors(request, reply)
    return reply.header('cache-control', 'no-store').type('application/json; charset=utf-8').send(answer)
  })
}
