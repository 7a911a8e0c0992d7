import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { CountSchema, Data } from '../schemas/common.ts'
import {
  CreateUserSchema, DeleteUserQuerySchema, PatchProfileSchema, PatchUserSchema, ProfileSchema, UserCountQuerySchema, UserCreatedSchema, UserItemSchema,
  UserListQuerySchema, UserParamsSchema, UserQuerySchema
} from '../schemas/user.ts'
import { requireScope } from '../plugins/admission.ts'
import { requireCaller, toActor } from '../plugins/auth.ts'
import { findAskedLanguage } from '../plugins/mail-language.ts'
import { linkNext, sendList } from './list-reply.ts'
import { NoContentSchema, errors, json, pagedList, writeErrors } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['user']

/** The response header with the number of clients that stop with their owner. */
const STOPPED = 'identity-clients'

const StoppedSchema = Type.Unsafe<undefined>({
  ...NoContentSchema,
  headers: { 'Identity-Clients': Type.Integer({ minimum: 0, description: 'After a user was disabled or deleted: how many of their clients sign nobody in any more, or were removed.' }) }
})

/** User accounts (docs/api.md). */
export const userRoutes: FastifyPluginAsyncTypebox<RouteSettings> = async (app, { stallTimeout, passwordLimit, writeLimit }) => {
  const { users, clients, tokens } = app.identity
  app.addHook('preHandler', writeLimit)

  app.get('/user', {
    config: { access: 'getProfile', crossOrigin: true },
    schema: {
      operationId: 'getProfile',
      tags,
      summary: "Read the caller's own profile",
      response: { 200: json(Data(ProfileSchema), 'The profile.'), ...errors('ErrNotFound') }
    }
  }, async (request) => ({ data: await users.requireProfile(requireCaller(request).user.user_id) }))

  app.patch('/user', {
    config: { access: 'patchProfile', crossOrigin: true },
    preHandler: passwordLimit,
    schema: {
      operationId: 'patchProfile',
      tags,
      summary: "Change the caller's own profile or password",
      description: "A new password revokes all the caller's codes and tokens.",
      body: PatchProfileSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { user_id } = requireCaller(request).user
    const actor = toActor(request, tokens)
    const replaces = request.body.regen_secrets === true
    if (replaces) requireScope(actor, 'clients:write')
    await users.patchOwn(user_id, request.body, actor)
    if (replaces) await clients.replaceSecrets(user_id, actor)
    return reply.code(204).send(undefined)
  })

  app.post('/user', {
    config: { access: 'createUser' },
    schema: {
      operationId: 'createUser',
      tags,
      summary: 'Create a user',
      body: CreateUserSchema,
      response: { 200: json(UserCreatedSchema, 'The id of the new user.'), ...writeErrors('USER_EXIST', 'ErrLimit') }
    }
  }, async (request) => ({ data: await users.create(request.body, { actor: toActor(request, tokens), language: findAskedLanguage(request) }) }))

  app.get('/user/count', {
    config: { access: 'countUsers' },
    schema: {
      operationId: 'countUsers',
      tags,
      summary: 'Count users',
      querystring: UserCountQuerySchema,
      response: { 200: json(CountSchema, 'The number of matching users.'), ...errors() }
    }
  }, async (request) => ({ data: { count: await users.count(request.query, toActor(request, tokens)) } }))

  app.get('/user/list', {
    config: { access: 'listUsers' },
    schema: {
      operationId: 'listUsers',
      tags,
      summary: 'List users',
      querystring: UserListQuerySchema,
      response: { 200: pagedList(UserItemSchema, 'The matching users.'), ...errors('ErrLimit') }
    }
  }, async (request, reply) => {
    const page = await users.page(request.query, toActor(request, tokens))
    if (page.after !== undefined) linkNext(request, reply, page.after)
    return await sendList(request, reply, page, { format: request.query.format, stallTimeout })
  })

  app.get('/user/:userId', {
    config: { access: 'getUser' },
    schema: {
      operationId: 'getUser',
      tags,
      summary: 'Read a user',
      params: UserParamsSchema,
      querystring: UserQuerySchema,
      response: { 200: json(Data(UserItemSchema), 'The user.'), ...errors('ErrNotFound') }
    }
  }, async (request) => ({ data: await users.require(request.params.userId, request.query) }))

  app.patch('/user/:userId', {
    config: { access: 'patchUser' },
    schema: {
      operationId: 'patchUser',
      tags,
      summary: 'Change, disable or enable a user',
      description: "A new password, or disabling the account, revokes all the user's codes and tokens. The last administrator cannot be disabled or lose the role: 403.",
      params: UserParamsSchema,
      body: PatchUserSchema,
      response: { 204: StoppedSchema, ...writeErrors('USER_EXIST', 'ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { userId } = request.params
    await users.patch(userId, request.body, toActor(request, tokens))
    if (request.body.disable === true) reply.header(STOPPED, await clients.countDependent(userId))
    return reply.code(204).send(undefined)
  })

  app.delete('/user/:userId', {
    config: { access: 'deleteUser' },
    schema: {
      operationId: 'deleteUser',
      tags,
      summary: 'Delete a user with all the codes and tokens that act for the user',
      description: "The user's clients stay, with the id of the deleted user as their owner, unless `clients=delete` removes them, which needs the scope clients:write too. " +
        'Those that stay sign nobody in, unless the operator vouches for them. The last administrator cannot be deleted: 403.',
      params: UserParamsSchema,
      querystring: DeleteUserQuerySchema,
      response: { 204: StoppedSchema, ...writeErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    const { userId } = request.params
    const actor = toActor(request, tokens)
    const isWithClients = request.query.clients === 'delete'
    if (isWithClients) requireScope(actor, 'clients:write')
    await users.remove(userId, actor)
    // Afterwards: if this is interrupted, the clients that are left sign nobody in any more.
    reply.header(STOPPED, isWithClients ? await clients.removeOwned(userId, actor) : await clients.countDependent(userId))
    return reply.code(204).send(undefined)
  })
}
