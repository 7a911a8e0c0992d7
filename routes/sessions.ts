import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { EndSessionsQuerySchema, SessionListQuerySchema, SessionSchema } from '../schemas/sessions.ts'
import { permError } from '../lib/errors.ts'
import { requireScope } from '../plugins/admission.ts'
import { requireCaller, toActor } from '../plugins/auth.ts'
import { sendList } from './list-reply.ts'
import { NoContentSchema, errors, list } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['auth']

/**
 * The id of the user whose sessions are requested.
 * @throws ErrPerm for another user's, unless the caller is an admin
 */
function chooseUser (own: string, requested: string | undefined, isAdmin: boolean): string {
  if (requested === undefined || requested === '' || requested === own) return own
  if (!isAdmin) throw permError('user', "only an admin may name another user's id")
  return requested
}

/** The token sessions of a user. */
export const sessionRoutes: FastifyPluginAsyncTypebox<Pick<RouteSettings, 'stallTimeout' | 'writeLimit'>> = async (app, { stallTimeout, writeLimit }) => {
  const { clients, tokens, tokenSessions } = app.identity
  app.addHook('preHandler', writeLimit)

  app.get('/auth/sessions', {
    config: { access: 'listSessions', crossOrigin: true },
    schema: {
      operationId: 'listSessions',
      tags,
      summary: "List the caller's token sessions",
      description: 'Each sign-in to a client starts one. Tokens minted without a refresh token belong to none.',
      querystring: SessionListQuerySchema,
      response: { 200: list(SessionSchema, 'The valid sessions.'), ...errors('ErrLimit') }
    }
  }, async (request, reply) => {
    const { user, token } = requireCaller(request)
    const { user: requested, format } = request.query
    const user_id = chooseUser(user.user_id, requested, request.isAdmin)
    return await sendList(request, reply, { batches: tokenSessions.list(user_id, token.grant_id) }, { format, stallTimeout })
  })

  app.delete('/auth/sessions', {
    config: { access: 'endSessions', crossOrigin: true },
    schema: {
      operationId: 'endSessions',
      tags,
      summary: "End the caller's other sessions, or all of them",
      description: "Ends the user's token sessions and sign-in sessions, and every other token that acts for the user, those of the user's own clients included.",
      querystring: EndSessionsQuerySchema,
      response: { 204: NoContentSchema, ...errors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { user, token } = requireCaller(request)
    const { user: requested, all, regen_secrets } = request.query
    const user_id = chooseUser(user.user_id, requested, request.isAdmin)
    const actor = toActor(request, tokens)
    if (regen_secrets === 'true') {
      requireScope(actor, 'clients:write')
      await clients.replaceSecrets(user_id, actor)
    }
    await tokenSessions.end(user_id, all === 'true' || user_id !== user.user_id ? undefined : token)
    return reply.code(204).send(undefined)
  })
}
