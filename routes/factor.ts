import type { FastifyInstance } from 'fastify'
import { FactorsDataSchema, FactorsResetSchema, RemoveFactorQuerySchema } from '../schemas/factor.ts'
import { createRows, data } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Second factors of users (docs/second-factor.md). They are added on the account pages only. */
export async function factorRoutes (app: FastifyInstance, { writeLimit }: Pick<RouteSettings, 'writeLimit'>): Promise<void> {
  const { heldFactors } = app.identity
  const add = createRows(app, 'factor', { writeLimit })

  add('listFactors', 'GET /user/factors', "List the caller's methods of two-factor authentication", {
    answer: data(FactorsDataSchema, 'The factors, and the number of backup codes that are left.'),
    errors: ['ErrNotFound'],
    run: ({ caller }) => heldFactors.list(caller.user.user_id)
  })

  add('removeFactor', 'DELETE /user/factors/:factorId', "Remove one of the caller's methods of two-factor authentication", {
    description: 'It asks for a fresh sign-in with two-factor authentication: otherwise 401 with the error `insufficient_user_authentication`. ' +
      "All the caller's codes and tokens are revoked, unless `end_sessions=false` keeps them. The backup codes go with the last factor.",
    query: RemoveFactorQuerySchema,
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params: { factorId }, query, actor }) => heldFactors.remove(actor, factorId, { isEnd: query.end_sessions !== 'false' })
  })

  add('resetFactors', 'POST /user/:userId/factors/reset', 'Reset the two-factor authentication of a user, with their backup codes', {
    description: "For somebody who has lost them. It revokes all the user's codes and tokens. While a factor is demanded of the user, they add a new one " +
      'only with a link, which is emailed, or in the answer where the user gets no email. Administrators cannot reset their own.',
    answer: data(FactorsResetSchema, 'How many factors the user had, and what became of the link.'),
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params, actor }) => heldFactors.reset(params.userId, actor)
  })
}
