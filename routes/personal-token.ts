import type { FastifyInstance } from 'fastify'
import type { PersonalTokenService } from '../lib/personal-tokens/index.ts'
import { CreatePersonalTokenSchema, PersonalTokenCreatedSchema, PersonalTokensSchema } from '../schemas/personal-token.ts'
import { createRows, data } from './rows.ts'
import type { RouteSettings } from './settings.ts'

const LISTED = 'The valid tokens, the latest first.'

interface PersonalTokenSettings extends Pick<RouteSettings, 'writeLimit' | 'passwordLimit'> {
  personalTokens: PersonalTokenService
}

/** The tokens that people make for their programs (docs/tokens.md). */
export async function personalTokenRoutes (app: FastifyInstance, { writeLimit, passwordLimit, personalTokens }: PersonalTokenSettings): Promise<void> {
  const add = createRows(app, 'user', { writeLimit })

  add('createPersonalToken', 'POST /user/token', 'Make a personal access token of the caller; the response contains it', {
    description: "A long-lived access token for a script or job, with the caller's roles at each use, narrowed to its scopes. It asks for the " +
      'password, or for a fresh sign-in of an app with account:security.',
    body: CreatePersonalTokenSchema,
    answer: data(PersonalTokenCreatedSchema, 'The id of the new token, the token, and its end.'),
    errors: ['ErrNotFound'],
    limit: passwordLimit,
    run: ({ body, actor }) => personalTokens.add(actor, body)
  })

  add('listPersonalTokens', 'GET /user/token', "List the caller's personal access tokens, without the tokens themselves", {
    answer: data(PersonalTokensSchema, LISTED),
    errors: ['ErrNotFound'],
    run: ({ caller }) => personalTokens.list(caller.user.user_id)
  })

  add('removePersonalToken', 'DELETE /user/token/:tokenId', 'End a personal access token of the caller', {
    errors: ['ErrNotFound'],
    run: ({ params, caller }) => personalTokens.remove(caller.user.user_id, params.tokenId)
  })

  add('listPersonalTokensOfUser', 'GET /user/:userId/token', 'List the personal access tokens of a user, without the tokens themselves', {
    answer: data(PersonalTokensSchema, LISTED),
    errors: ['ErrNotFound'],
    isRecorded: true,
    run: ({ params, actor }) => personalTokens.listOf(params.userId, actor)
  })

  add('removePersonalTokenOfUser', 'DELETE /user/:userId/token/:tokenId', 'End a personal access token of a user', {
    errors: ['ErrNotFound'],
    run: ({ params, actor }) => personalTokens.removeOf(params.userId, params.tokenId, actor)
  })
}
