import type { FastifyInstance, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { OAuthError, invalidRequest } from '../lib/oidc/oauth-error.ts'
import { UpstreamError } from '../lib/upstreams/failure.ts'
import { LogoutTokenError } from '../lib/upstreams/logout-token.ts'
import type { OidcMount } from '../plugins/oidc-mount.ts'
import { replyOAuthError } from '../plugins/oidc.ts'
import { toNetworkTurn } from '../lib/throttling/networks.ts'
import { readFields } from '../plugins/sign-in-forms.ts'
import { readForm } from '../plugins/utf8.ts'
import { readCode } from '../lib/failure.ts'

/** Bytes of the form: a token, and what else a provider may send. */
const FORM_LIMIT = 16 * 1024

const FORM = 'application/x-www-form-urlencoded'

type Route = { Params: { id: string } }

const refuseType = () => invalidRequest(`content-type: must be ${FORM}`)

/** The error for the provider, whose own people read it: which rule the token breaks, and nothing of what it says. */
function toOAuthError (error: unknown): unknown {
  if (error instanceof LogoutTokenError) return invalidRequest(error.message)
  if (!(error instanceof UpstreamError)) return error
  if (error.refusal === 'off') return new OAuthError(404, 'invalid_request', 'path: no such upstream, or it sends no logout tokens')
  return new OAuthError(503, 'temporarily_unavailable', 'the keys of the provider cannot be read', { 'retry-after': '60' })
}

/**
 * Where other providers tell that sign-ins have ended (OpenID Connect Back-Channel Logout 1.0, 2.5). Only refused tokens are limited, by
 * the network that sends them: otherwise whoever shares it with a provider could keep its word from us.
 */
export async function upstreamLogoutRoute (app: FastifyInstance, { limits }: Pick<OidcMount, 'limits'>): Promise<void> {
  const { upstreams } = app.identity
  if (upstreams === undefined) return
  app.setErrorHandler((error, request, reply) => {
    return replyOAuthError(readCode(error) === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? refuseType() : error, request, reply)
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(FORM, { parseAs: 'buffer', bodyLimit: FORM_LIMIT }, async (_request: FastifyRequest, body: Buffer) => await readForm(body))

  app.post<Route>('/auth/upstream/:id/backchannel-logout', { schema: { hide: true } }, async (request, reply) => {
    const { id } = request.params
    const [token = '', ...more] = readFields(request).getAll('logout_token')
    try {
      if (token === '' || more.length > 0) throw new LogoutTokenError('logout_token: is required, once')
      await upstreams.logouts.receive(id, token, toNetworkTurn(request.ip))
    } catch (error) {
      if (error instanceof IdentityError) throw error
      await limits.refuse(request)
      if (error instanceof LogoutTokenError) request.log.warn({ upstream: id, reason: error.message }, 'a logout token was refused')
      throw toOAuthError(error)
    }
    return reply.code(200).header('cache-control', 'no-store').send('')
  })
}
