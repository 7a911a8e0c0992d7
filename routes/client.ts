import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { CountSchema, Data } from '../schemas/common.ts'
import {
  ClientCountQuerySchema, ClientCreatedSchema, ClientItemSchema, ClientListQuerySchema, ClientParamsSchema, ClientSchema, CreateClientSchema,
  OwnerParamsSchema, PatchClientSchema
} from '../schemas/client.ts'
import { toActor } from '../plugins/auth.ts'
import { linkNext, sendList } from './list-reply.ts'
import { NoContentSchema, errors, json, pagedList, writeErrors } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['client']

/** Registered clients (docs/api.md). */
export const clientRoutes: FastifyPluginAsyncTypebox<RouteSettings> = async (app, { stallTimeout, writeLimit }) => {
  const { clients, tokens } = app.identity
  app.addHook('preHandler', writeLimit)

  app.post('/client', {
    config: { access: 'createClient' },
    schema: {
      operationId: 'createClient',
      tags,
      summary: 'Register a client',
      body: CreateClientSchema,
      response: { 200: json(ClientCreatedSchema, 'The id of the new client.'), ...writeErrors('USER_NOT_EXIST', 'ErrLimit') }
    }
  }, async (request) => ({ data: await clients.create(request.body, toActor(request, tokens)) }))

  app.get('/client/count', {
    config: { access: 'countClients' },
    schema: {
      operationId: 'countClients',
      tags,
      summary: 'Count clients',
      querystring: ClientCountQuerySchema,
      response: { 200: json(CountSchema, 'The number of clients the caller may see.'), ...errors() }
    }
  }, async (request) => ({ data: { count: await clients.count(request.query.user, toActor(request, tokens)) } }))

  app.get('/client/list', {
    config: { access: 'listClients' },
    schema: {
      operationId: 'listClients',
      tags,
      summary: 'List clients',
      querystring: ClientListQuerySchema,
      response: { 200: pagedList(ClientItemSchema, 'The clients the caller may see.'), ...errors('ErrLimit') }
    }
  }, async (request, reply) => {
    const page = await clients.page(request.query, toActor(request, tokens))
    if (page.after !== undefined) linkNext(request, reply, page.after)
    return await sendList(request, reply, page, { format: request.query.format, stallTimeout })
  })

  app.get('/client/:clientId', {
    config: { access: 'getClient' },
    schema: {
      operationId: 'getClient',
      tags,
      summary: 'Read a client',
      params: ClientParamsSchema,
      response: { 200: json(Data(ClientSchema), 'The client.'), ...errors('ErrNotFound') }
    }
  }, async (request) => ({ data: await clients.require(request.params.clientId, toActor(request, tokens)) }))

  app.patch('/client/:clientId', {
    config: { access: 'patchClient' },
    schema: {
      operationId: 'patchClient',
      tags,
      summary: 'Change a client, or give it a new secret',
      params: ClientParamsSchema,
      body: PatchClientSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    await clients.patch(request.params.clientId, request.body, toActor(request, tokens))
    return reply.code(204).send(undefined)
  })

  app.delete('/client/:clientId', {
    config: { access: 'deleteClient' },
    schema: {
      operationId: 'deleteClient',
      tags,
      summary: 'Delete a client with its codes and tokens',
      params: ClientParamsSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrNotFound', 'ErrLimit') }
    }
  }, async (request, reply) => {
    await clients.remove(request.params.clientId, toActor(request, tokens))
    return reply.code(204).send(undefined)
  })

  app.delete('/client/user/:userId', {
    config: { access: 'deleteClientsOfUser' },
    schema: {
      operationId: 'deleteClientsOfUser',
      tags,
      summary: 'Delete all clients of a user',
      params: OwnerParamsSchema,
      response: { 204: NoContentSchema, ...writeErrors('ErrLimit') }
    }
  }, async (request, reply) => {
    await clients.removeOwned(request.params.userId, toActor(request, tokens))
    return reply.code(204).send(undefined)
  })
}
