import type { FastifyInstance } from 'fastify'
import { RemoveFactorQuerySchema } from '../schemas/factor.ts'
import { IdentitiesDataSchema, IdentityDataSchema, ReplaceIdentitySchema } from '../schemas/identity.ts'
import { createRows, data } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Identities at other providers (docs/upstreams.md). They are linked by sign-ins and on the account pages only. */
export async function identityRoutes (app: FastifyInstance, { writeLimit }: Pick<RouteSettings, 'writeLimit'>): Promise<void> {
  const { heldIdentities } = app.identity
  const add = createRows(app, 'identity', { writeLimit })

  add('listIdentities', 'GET /user/identities', "List the caller's identities at other providers", {
    answer: data(IdentitiesDataSchema, 'The identities, the first one first.'),
    errors: ['ErrNotFound'],
    run: async ({ caller }) => ({ identities: await heldIdentities.list(caller.user.user_id) })
  })

  add('removeIdentity', 'DELETE /user/identities/:identityId', "Unlink one of the caller's identities at other providers", {
    description: 'It asks for a fresh sign-in, with two-factor authentication if the person uses it: otherwise 401 with the error `insufficient_user_authentication`. ' +
      "The last way in stays. All the caller's codes and tokens are revoked, unless `end_sessions=false` keeps them.",
    query: RemoveFactorQuerySchema,
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params: { identityId }, query, actor }) => heldIdentities.remove(actor, identityId, { isEnd: query.end_sessions !== 'false' })
  })

  add('listIdentitiesOfUser', 'GET /user/:userId/identities', 'List the identities of a user at other providers', {
    answer: data(IdentitiesDataSchema, 'The identities, the first one first.'),
    errors: ['ErrNotFound'],
    run: async ({ params: { userId } }) => ({ identities: await heldIdentities.list(userId) })
  })

  add('getIdentityOfUser', 'GET /user/:userId/identities/:identityId', 'Read an identity of a user at another provider', {
    answer: data(IdentityDataSchema, 'The identity.'),
    errors: ['ErrNotFound'],
    run: ({ params: { userId, identityId } }) => heldIdentities.get(userId, identityId)
  })

  add('removeIdentityOfUser', 'DELETE /user/:userId/identities/:identityId', 'Unlink an identity of a user at another provider', {
    description: "It revokes all the user's codes and tokens, and an email tells the user. The last way in stays: give the user another one first, or disable them. " +
      'Administrators unlink their own by `DELETE /user/identities/{identityId}`.',
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params: { userId, identityId }, actor }) => heldIdentities.removeOf(userId, identityId, actor)
  })

  add('replaceIdentityOfUser', 'POST /user/:userId/identities/replace', 'Let another identity take the place of the one that a user has at a provider', {
    description: 'For the same person, who has another subject at the provider now. Their identities there are unlinked, and this one, and no other, may join the ' +
      "account by itself. It revokes all the user's codes and tokens, and an email tells the user. Administrators cannot replace their own. " +
      'Where somebody else has the address now, `POST /user/{userId}/email/release` is the way.',
    body: ReplaceIdentitySchema,
    errors: ['ErrNotFound'],
    run: ({ params: { userId }, body: { data: expected }, actor }) => heldIdentities.replaceOf(userId, expected, actor)
  })
}
