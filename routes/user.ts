import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { Data } from '../schemas/common.ts'
import {
  CreateUserSchema, DeleteUserQuerySchema, PatchProfileSchema, PatchUserSchema, ProfileSchema, UserCountQuerySchema, UserCreatedSchema,
  UserItemSchema, UserListQuerySchema, UserQuerySchema
} from '../schemas/user.ts'
import type { ApiScope } from '../lib/api-scopes.ts'
import { scopeError } from '../lib/errors.ts'
import { toUserTag } from '../lib/users/show-user.ts'
import { requireScope } from '../plugins/admission.ts'
import { findAskedLanguage } from '../plugins/mail-language.ts'
import { OwnDataSchema } from '../schemas/export.ts'
import { sendDocument } from './list-reply.ts'
import { NoContentSchema, json } from './responses.ts'
import { type Answer, count, createRows, data, done, pages } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Done, with the number of clients that stop with their owner; without the header where it is undefined. */
const stopped: Answer<number | undefined> = {
  ...done,
  schema: {
    ...NoContentSchema,
    headers: {
      'Identity-Clients': Type.Integer({
        minimum: 0,
        description: 'After a user was disabled or deleted: how many of their clients sign nobody in any more, or were removed.'
      })
    }
  },
  write ({ reply }, number) {
    if (number !== undefined) reply.header('identity-clients', number)
    return reply.code(204).send()
  }
}

/** The data has what these scopes let an app read. */
const OWN_DATA_SCOPES: readonly ApiScope[] = ['account:security', 'account:read', 'clients:read']

/** The own data of a person, while it is written. */
const ownDocument: Answer<AsyncIterable<string> | null> = {
  status: 200,
  schema: json(OwnDataSchema, 'The data.'),
  write: async ({ reply }, pieces, { stallTimeout }) => await sendDocument(reply, pieces, { stallTimeout: stallTimeout! })
}

/** User accounts (docs/api.md). */
export async function userRoutes (app: FastifyInstance, settings: RouteSettings): Promise<void> {
  const { users, clients, ownData } = app.identity
  const add = createRows(app, 'user', settings)

  add('getProfile', 'GET /user', "Read the caller's own profile", {
    answer: data(Data(ProfileSchema), 'The profile.'),
    errors: ['ErrNotFound'],
    run: ({ caller }) => users.requireProfile(caller.user.user_id)
  })

  add('exportOwnData', 'GET /user/export', "Export the caller's own data", {
    description: 'Everything that the service stores about the caller, without secrets, once an hour. It asks for a fresh sign-in: ' +
      'otherwise 401 with the error `insufficient_user_authentication`. Beside `account:security`, the token needs `account:read` and `clients:read`.',
    answer: ownDocument,
    errors: ['ErrNotFound', 'ErrLimit'],
    isRecorded: true,
    async run ({ request, actor }) {
      if (!OWN_DATA_SCOPES.every(actor.holds ?? (() => true))) throw scopeError(OWN_DATA_SCOPES)
      await users.confirm(actor, { mayType: false, mayBeRestricted: true })
      return request.method === 'HEAD' ? null : await ownData.read(actor.user_id)
    }
  })

  add('patchProfile', 'PATCH /user', "Change the caller's own profile or password", {
    description: "A new password revokes all the caller's codes and tokens.",
    body: PatchProfileSchema,
    errors: ['ErrNotFound'],
    limit: settings.passwordLimit,
    async run ({ body, actor }) {
      const replaces = body.regen_secrets === true
      if (replaces) requireScope(actor, 'clients:write')
      await users.patchOwn(actor.user_id, body, actor)
      if (replaces) await clients.replaceSecrets(actor.user_id, actor)
    }
  })

  add('createUser', 'POST /user', 'Create a user', {
    body: CreateUserSchema,
    answer: data(UserCreatedSchema, 'The id of the new user.'),
    errors: ['USER_EXIST'],
    run: ({ request, body, actor }) => users.create(body, { actor, language: findAskedLanguage(request) })
  })

  add('countUsers', 'GET /user/count', 'Count users', {
    query: UserCountQuerySchema,
    answer: count('The number of matching users.'),
    run: ({ query, actor }) => users.countUpTo(query, actor)
  })

  add('listUsers', 'GET /user/list', 'List users', {
    query: UserListQuerySchema,
    answer: pages(UserItemSchema, 'The matching users.'),
    run: ({ query, actor }) => users.page(query, actor)
  })

  add('getUser', 'GET /user/:userId', 'Read a user', {
    query: UserQuerySchema,
    answer: data(Data(UserItemSchema), 'The user.'),
    errors: ['ErrNotFound'],
    isRecorded: true,
    description: 'The header `ETag` is for `If-Match` of a patch.',
    async run ({ params, query, actor, reply }) {
      const user = await users.read(params.userId, actor, query)
      reply.header('etag', toUserTag(user))
      return user
    }
  })

  add('patchUser', 'PATCH /user/:userId', 'Change, disable or enable a user', {
    isMatched: true,
    description: "A new password, or disabling the account, revokes all the user's codes and tokens. The last administrator cannot be " +
      'disabled or lose the role: 403. With `If-Match`, it is refused with 412 when one of the fields that it sends has changed since the user was read.',
    body: PatchUserSchema,
    answer: stopped,
    errors: ['USER_EXIST', 'ErrNotFound'],
    async run ({ params: { userId }, body, actor, request }) {
      await users.patch(userId, body, actor, request.headers['if-match'])
      return body.disable === true ? await clients.countDependent(userId) : undefined
    }
  })

  add('deleteUser', 'DELETE /user/:userId', 'Delete a user with all the codes and tokens that act for the user', {
    description: "The user's clients stay, with the id of the deleted user as their owner, unless `clients=delete` removes them, which " +
      'needs the scope clients:write too. ' +
      'Those that stay sign nobody in, unless the operator vouches for them. The last administrator cannot be deleted: 403.',
    query: DeleteUserQuerySchema,
    answer: stopped,
    errors: ['ErrNotFound'],
    async run ({ params: { userId }, query, actor }) {
      const isWithClients = query.clients === 'delete'
      if (isWithClients) requireScope(actor, 'clients:write')
      await users.remove(userId, actor)
      // Afterwards: if this is interrupted, the clients that are left sign nobody in any more.
      return isWithClients ? await clients.removeOwned(userId, actor) : await clients.countDependent(userId)
    }
  })
}
