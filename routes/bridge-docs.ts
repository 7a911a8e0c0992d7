import { Type, type TSchema } from '@sinclair/typebox'
import { BridgeListQuerySchema } from '../schemas/bridge.ts'
import {
  ClientCountQuerySchema, ClientCreatedSchema, ClientItemSchema, ClientSchema, CreateClientSchema, PatchClientSchema
} from '../schemas/client.ts'
import { CountSchema, Data, IdSchema } from '../schemas/common.ts'
import type { ErrorCode } from '../lib/errors.ts'
import { NoContentSchema, errors, json, pagedList } from './responses.ts'

const client = Type.Object({ client_id: IdSchema })
const user = Type.Object({ user_id: IdSchema })

function clientList () {
  const { content, ...rest } = pagedList(ClientItemSchema, 'The clients the caller may see.')
  return { ...rest, content: { ...content, 'text/csv': { schema: Type.String({ description: 'A header line, then one client per row.' }) } } }
}

interface Schemas { params?: TSchema, body?: TSchema, querystring?: TSchema }

const describe = (hasBody: boolean) => (operationId: string, summary: string, schemas: Schemas, kinds: ErrorCode[], answer?: unknown) => ({
  operationId,
  summary,
  tags: ['bridge'],
  ...schemas,
  response: { ...(answer === undefined ? { 204: NoContentSchema } : { 200: answer }), ...errors([...kinds, 'ErrRsc'], { hasBody }) }
})
const [read, write] = [describe(false), describe(true)]

/** The bridge's routes in OpenAPI. These schemas validate and serialise nothing: the upstream does. */
export const DOCS = {
  create: write('bridgeCreateClient', 'Register a client', { body: CreateClientSchema }, ['USER_NOT_EXIST', 'ErrLimit'],
    json(ClientCreatedSchema, 'The id of the new client.')),
  count: read('bridgeCountClients', 'Count clients', { querystring: ClientCountQuerySchema }, [],
    json(CountSchema, 'How many clients the caller may see.')),
  list: read('bridgeListClients', 'List clients, as JSON or as CSV', { querystring: BridgeListQuerySchema }, [], clientList()),
  get: read('bridgeGetClient', 'Read a client', { params: client }, ['ErrNotFound'], json(Data(ClientSchema), 'The client.')),
  patch: write('bridgePatchClient', 'Change a client, or give it a new secret', { params: client, body: PatchClientSchema },
    ['ErrNotFound', 'ErrLimit']),
  remove: write('bridgeDeleteClient', 'Remove a client with its codes and tokens', { params: client },
    ['ErrNotFound', 'ErrPerm', 'ErrLimit']),
  removeOwned: write('bridgeDeleteClientsOfUser', 'Remove all clients of a user', { params: user }, ['ErrPerm', 'ErrLimit'])
}
