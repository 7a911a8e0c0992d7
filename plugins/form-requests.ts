import type { FastifyInstance, FastifyRequest } from 'fastify'
import { toApiPath } from '../lib/issuer.ts'
import { IdentityError } from '../lib/errors.ts'
import { ROUTES } from '../lib/oidc/routes.ts'
import type { Look } from '../lib/pages/look.ts'
import { createPageError } from './pages.ts'
import { readForm } from './utf8.ts'

/** Characters of the query that a form becomes. Node accepts 16 KiB of request line and headers. */
const QUERY_LIMIT = 8 * 1024

const FORM = 'application/x-www-form-urlencoded'

function formError (message: string, statusCode: number): IdentityError {
  return new IdentityError('ErrParam', message, { statusCode })
}

/**
 * The endpoints that accept a posted form in place of a GET (OpenID Connect Core, 3.1.2.1; RP-Initiated Logout, 2). A browser
 * sends SameSite=Lax cookies with a GET from another site but not with a form, so the form is redirected to the GET. Nothing
 * is stored before that GET, which has its own limits.
 */
export async function formRequests (app: FastifyInstance, { getIssuer, look }: { getIssuer: () => URL, look: Look }): Promise<void> {
  app.setErrorHandler(createPageError(look))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(FORM, { parseAs: 'buffer', bodyLimit: QUERY_LIMIT }, async (_request: FastifyRequest, body: Buffer) => (
    (await readForm(body)).toString()))
  app.addContentTypeParser('*', (_request, _body, done) => done(formError(`content-type: must be ${FORM}`, 415)))

  for (const path of [ROUTES.authorization, ROUTES.end_session]) {
    app.post<{ Body: string | undefined }>(`/api/v1${path}`, { schema: { hide: true } }, (request, reply) => {
      const query = request.body ?? ''
      if (query.length > QUERY_LIMIT) throw formError('body: is too large', 413)
      const target = `${toApiPath(getIssuer())}${path}${query === '' ? '' : `?${query}`}`
      return reply.header('cache-control', 'no-store').redirect(target, 303)
    })
  }
}
