import type { FastifyInstance } from 'fastify'
import {
  ClientCountQuerySchema, ClientCreatedSchema, ClientItemSchema, ClientListQuerySchema, ClientSchema, CreateClientSchema, PatchClientSchema
} from '../schemas/client.ts'
import { Data } from '../schemas/common.ts'
import { count, createRows, data, pages } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Registered clients (docs/api.md). */
export async function clientRoutes (app: FastifyInstance, settings: RouteSettings): Promise<void> {
  const { clients } = app.identity
  const add = createRows(app, 'client', settings)

  add('createClient', 'POST /client', 'Register a client', {
    body: CreateClientSchema,
    answer: data(ClientCreatedSchema, 'The id of the new client.'),
    errors: ['USER_NOT_EXIST'],
    run: ({ body, actor }) => clients.create(body, actor)
  })

  add('countClients', 'GET /client/count', 'Count clients', {
    query: ClientCountQuerySchema,
    answer: count('The number of clients the caller may see.'),
    run: ({ query, actor }) => clients.count(query.user, actor)
  })

  add('listClients', 'GET /client/list', 'List clients', {
    query: ClientListQuerySchema,
    answer: pages(ClientItemSchema, 'The clients the caller may see.'),
    run: ({ query, actor }) => clients.page(query, actor)
  })

  add('getClient', 'GET /client/:clientId', 'Read a client', {
    answer: data(Data(ClientSchema), 'The client.'),
    errors: ['ErrNotFound'],
    run: ({ params, actor }) => clients.require(params.clientId, actor)
  })

  add('patchClient', 'PATCH /client/:clientId', 'Change a client, or give it a new secret', {
    body: PatchClientSchema,
    errors: ['ErrNotFound'],
    run: ({ params, body, actor }) => clients.patch(params.clientId, body, actor)
  })

  add('deleteClient', 'DELETE /client/:clientId', 'Delete a client with its codes and tokens', {
    errors: ['ErrNotFound'],
    run: ({ params, actor }) => clients.remove(params.clientId, actor)
  })

  add('deleteClientsOfUser', 'DELETE /client/user/:userId', 'Delete all clients of a user', {
    run: async ({ params, actor }) => { await clients.removeOwned(params.userId, actor) }
  })
}
