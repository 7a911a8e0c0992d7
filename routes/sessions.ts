import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { EndSessionsQuerySchema, SessionListQuerySchema, SessionSchema } from '../schemas/sessions.ts'
import { IdentityError } from '../lib/errors.ts'
import { requireCaller } from '../plugins/auth.ts'
import { sendList } from './list-reply.ts'
import { NoContentSchema, errors, list } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['auth']

/** Whose sessions are meant. Nobody takes himself for another: one who may not is told so, before anything ends. */
function choose (own: string, asked: string | undefined, isAdmin: boolean): string {
  if (asked === undefined || asked === '' || asked === own) return own
  if (!isAdmin) throw new IdentityError('ErrPerm', "user: another's sessions are for an admin")
  return asked
}

/** Token sessions as their users see them. */
export const sessionRoutes: FastifyPluginAsyncTypebox<Pick<RouteSettings, 'stallTimeout'>> = async (app, { stallTimeout }) => {
  const { tokenSessions } = app.identity

  app.get('/auth/sessions', {
    config: { access: 'listSessions', crossOrigin: true },
    schema: {
      operationId: 'listSessions',
      tags,
      summary: "List the caller's token sessions",
      description: 'One for each sign-in to a client. Tokens that were minted without a refresh token belong to none.',
      querystring: SessionListQuerySchema,
      response: { 200: list(SessionSchema, 'The sessions that stand.'), ...errors('ErrLimit') }
    }
  }, async (request, reply) => {
    const { user, token } = requireCaller(request)
    const { user: asked, format } = request.query
    const user_id = choose(user.user_id, asked, request.isAdmin)
    return await sendList(request, reply, { batches: tokenSessions.list(user_id, token.grant_id) }, { format, stallTimeout })
  })

  app.delete('/auth/sessions', {
    config: { access: 'endSessions', crossOrigin: true },
    schema: {
      operationId: 'endSessions',
      tags,
      summary: "End the caller's other sessions, or all of them",
      description: "Ends token sessions, sign-ins at browsers, and every token that acts for the user, those of the user's own clients among them.",
      querystring: EndSessionsQuerySchema,
      response: { 204: NoContentSchema, ...errors('ErrNotFound') }
    }
  }, async (request, reply) => {
    const { user, token } = requireCaller(request)
    const { user: asked, all } = request.query
    const user_id = choose(user.user_id, asked, request.isAdmin)
    await tokenSessions.end(user_id, all === 'true' || user_id !== user.user_id ? undefined : token)
    return reply.code(204).send(undefined)
  })
}
