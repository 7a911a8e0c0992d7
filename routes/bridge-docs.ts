import { Type, type TSchema } from '@sinclair/typebox'
import { BridgeListQuerySchema } from '../schemas/bridge.ts'
import {
  ClientCountQuerySchema, ClientCreatedSchema, ClientItemSchema, ClientSchema, CreateClientSchema, PatchClientSchema
} from '../schemas/client.ts'
import { CountSchema, Data, IdSchema } from '../schemas/common.ts'
import { NoContentSchema, errors, json, pagedList, writeErrors } from './responses.ts'

const client = Type.Object({ client_id: IdSchema })
const user = Type.Object({ user_id: IdSchema })

function clientList () {
  const { content, ...rest } = pagedList(ClientItemSchema, 'The clients the caller may see.')
  return { ...rest, content: { ...content, 'text/csv': { schema: Type.String({ description: 'A header line, then one client per row.' }) } } }
}

function describe (operationId: string, summary: string, rest: Record<string, unknown>) {
  return { operationId, summary, tags: ['bridge'], ...rest }
}

const done: Record<number, TSchema> = { 204: NoContentSchema }

/** The bridge's routes in OpenAPI. These schemas validate and serialise nothing: the upstream does. */
export const DOCS = {
  create: describe('bridgeCreateClient', 'Register a client', {
    body: CreateClientSchema,
    response: { 200: json(ClientCreatedSchema, 'The id of the new client.'), ...writeErrors('USER_NOT_EXIST', 'ErrLimit', 'ErrRsc') }
  }),
  count: describe('bridgeCountClients', 'Count clients', {
    querystring: ClientCountQuerySchema,
    response: { 200: json(CountSchema, 'How many clients the caller may see.'), ...errors('ErrRsc') }
  }),
  list: describe('bridgeListClients', 'List clients, as JSON or as CSV', {
    querystring: BridgeListQuerySchema,
    response: { 200: clientList(), ...errors('ErrRsc') }
  }),
  get: describe('bridgeGetClient', 'Read a client', {
    params: client,
    response: { 200: json(Data(ClientSchema), 'The client.'), ...errors('ErrNotFound', 'ErrRsc') }
  }),
  patch: describe('bridgePatchClient', 'Change a client, or give it a new secret', {
    params: client,
    body: PatchClientSchema,
    response: { ...done, ...writeErrors('ErrNotFound', 'ErrLimit', 'ErrRsc') }
  }),
  remove: describe('bridgeDeleteClient', 'Remove a client with its codes and tokens', {
    params: client,
    response: { ...done, ...writeErrors('ErrNotFound', 'ErrPerm', 'ErrLimit', 'ErrRsc') }
  }),
  removeOwned: describe('bridgeDeleteClientsOfUser', 'Remove all clients of a user', {
    params: user,
    response: { ...done, ...writeErrors('ErrPerm', 'ErrLimit', 'ErrRsc') }
  })
}
