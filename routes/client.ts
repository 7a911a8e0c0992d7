import type { FastifyInstance } from 'fastify'
import {
  ClientCountQuerySchema, ClientCreatedSchema, ClientItemSchema, ClientListQuerySchema, ClientSchema, ClientSecretsSchema, CreateClientSchema,
  CreateSecretSchema, CreateServiceTokenSchema, PatchClientSchema, SecretCreatedSchema, ServiceTokenCreatedSchema, ServiceTokensSchema
} from '../schemas/client.ts'
import { Data } from '../schemas/common.ts'
import { toClientTag } from '../lib/clients/show-client.ts'
import { count, createRows, data, pages } from './rows.ts'
import type { RouteSettings } from './settings.ts'

const MATCH = 'With `If-Match`, it is refused with 412 when the secrets have changed since they were listed.'

/** Registered clients (docs/api.md). */
export async function clientRoutes (app: FastifyInstance, settings: RouteSettings): Promise<void> {
  const { clients, serviceTokens } = app.identity
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
    run: ({ query, actor }) => clients.countUpTo(query, actor)
  })

  add('listClients', 'GET /client/list', 'List clients', {
    query: ClientListQuerySchema,
    answer: pages(ClientItemSchema, 'The clients the caller may see.'),
    run: ({ query, actor }) => clients.page(query, actor)
  })

  add('getClient', 'GET /client/:clientId', 'Read a client', {
    description: 'The header `ETag` is for `If-Match` of a patch.',
    answer: data(Data(ClientSchema), 'The client.'),
    errors: ['ErrNotFound'],
    async run ({ params, actor, reply }) {
      const client = await clients.require(params.clientId, actor)
      reply.header('etag', toClientTag(client))
      return client
    }
  })

  add('patchClient', 'PATCH /client/:clientId', 'Change a client, or give it a new secret', {
    isMatched: true,
    description: 'With `If-Match`, it is refused with 412 when one of the fields that it sends has changed since the client was read.',
    body: PatchClientSchema,
    errors: ['ErrNotFound'],
    run: ({ params, body, actor, request }) => clients.patch(params.clientId, body, actor, request.headers['if-match'])
  })

  add('addClientSecret', 'POST /client/:clientId/secret', 'Add a named secret to a client; the response contains it', {
    isMatched: true,
    description: `The previous secrets go on. ${MATCH}`,
    body: CreateSecretSchema,
    answer: data(SecretCreatedSchema, 'The id of the new secret, and the secret.'),
    errors: ['ErrNotFound'],
    run: ({ params, body, actor, request }) => clients.addSecret(params.clientId, body, actor, request.headers['if-match'])
  })

  add('listClientSecrets', 'GET /client/:clientId/secret', 'List the secrets of a client, without the secrets themselves', {
    description: 'The header `ETag` is for `If-Match`.',
    answer: data(ClientSecretsSchema, 'The secrets.'),
    errors: ['ErrNotFound'],
    async run ({ params, actor, reply }) {
      const { secrets, tag } = await clients.listSecrets(params.clientId, actor)
      reply.header('etag', tag)
      return secrets
    }
  })

  add('removeClientSecret', 'DELETE /client/:clientId/secret/:secretId', 'Remove a secret of a client, and the access tokens that it got', {
    isMatched: true,
    description: MATCH,
    errors: ['ErrNotFound'],
    run: ({ params, actor, request }) => clients.removeSecret(params.clientId, params.secretId, actor, request.headers['if-match'])
  })

  add('createClientToken', 'POST /client/:clientId/token', 'Make a service token of a client; the response contains it', {
    description: 'A long-lived access token with which the client acts for itself. Only users may make one.',
    body: CreateServiceTokenSchema,
    answer: data(ServiceTokenCreatedSchema, 'The id of the new token, the token, and its end.'),
    errors: ['ErrNotFound'],
    run: ({ params, body, actor }) => serviceTokens.add(params.clientId, body, actor)
  })

  add('listClientTokens', 'GET /client/:clientId/token', 'List the service tokens of a client, without the tokens themselves', {
    answer: data(ServiceTokensSchema, 'The valid tokens, the latest first.'),
    errors: ['ErrNotFound'],
    run: ({ params, actor }) => serviceTokens.list(params.clientId, actor)
  })

  add('removeClientToken', 'DELETE /client/:clientId/token/:tokenId', 'End a service token of a client', {
    errors: ['ErrNotFound'],
    run: ({ params, actor }) => serviceTokens.remove(params.clientId, params.tokenId, actor)
  })

  add('deleteClient', 'DELETE /client/:clientId', 'Delete a client with its codes and tokens', {
    errors: ['ErrNotFound'],
    run: ({ params, actor }) => clients.remove(params.clientId, actor)
  })

  add('deleteClientsOfUser', 'DELETE /client/user/:userId', 'Delete all clients of a user', {
    run: async ({ params, actor }) => { await clients.removeOwned(params.userId, actor) }
  })
}
