import type { FastifyInstance } from 'fastify'
import { EndSessionsQuerySchema, SessionListQuerySchema, SessionSchema } from '../schemas/sessions.ts'
import { permError } from '../lib/errors.ts'
import { requireScope } from '../plugins/admission.ts'
import { createRows, wholeList } from './rows.ts'
import type { RouteSettings } from './settings.ts'

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
export async function sessionRoutes (app: FastifyInstance, settings: Pick<RouteSettings, 'stallTimeout' | 'writeLimit'>): Promise<void> {
  const { clients, tokenSessions } = app.identity
  const add = createRows(app, 'auth', settings)

  add('listSessions', 'GET /auth/sessions', "List the caller's token sessions", {
    description: 'Each sign-in to a client starts one. Tokens minted without a refresh token belong to none.',
    query: SessionListQuerySchema,
    answer: wholeList(SessionSchema, 'The valid sessions.'),
    run: ({ request, query, caller: { user, token } }) =>
      ({ batches: tokenSessions.list(chooseUser(user.user_id, query.user, request.isAdmin), token.grant_id) })
  })

  add('endSessions', 'DELETE /auth/sessions', "End the caller's other sessions, or all of them", {
    description: "Ends the user's token sessions and sign-in sessions, and every other token that acts for the user, those of the " +
      "user's own clients included.",
    query: EndSessionsQuerySchema,
    errors: ['ErrNotFound'],
    hasBody: false,
    async run ({ query, caller: { user, token }, actor }) {
      const user_id = chooseUser(user.user_id, query.user, actor.isAdmin)
      if (query.regen_secrets === 'true') {
        requireScope(actor, 'clients:write')
        await clients.replaceSecrets(user_id, actor)
      }
      await tokenSessions.end(user_id, query.all === 'true' || user_id !== user.user_id ? undefined : token)
    }
  })
}
