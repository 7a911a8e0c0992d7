import { CreateClientSchema, type Client } from '../schemas/client.ts'
import { OPERATOR, type Commands } from './command.ts'
import { checkInput, requireUser } from './input.ts'
import { printList, printRecord } from './output.ts'

const COLUMNS = {
  CLIENT_ID: (client: Client) => client.clientId,
  NAME: (client: Client) => client.name,
  OWNER: (client: Client) => client.userId,
  KIND: (client: Client) => (client.clientSecret === undefined ? 'public' : 'confidential'),
  SCOPES: (client: Client) => client.scopes.join(','),
  CREATED: (client: Client) => client.createdAt
}

export const clientCommands: Commands = {
  'client create': {
    summary: 'Register a client.',
    flags: {
      owner: { type: 'string', value: 'ACCOUNT', required: true, text: 'The account that owns it.' },
      name: { type: 'string', value: 'NAME', required: true, text: 'Display name.' },
      'redirect-uri': { type: 'string', value: 'URI', multiple: true, text: 'https, http on this device, or a private scheme with a dot; may be repeated.' },
      scope: { type: 'string', value: 'SCOPE', multiple: true, text: 'A scope; may be repeated.' },
      credentials: { type: 'boolean', text: 'Make it confidential, with a secret.' },
      'first-party': { type: 'boolean', text: 'Your own client: it signs users in without asking for their consent.' }
    },
    async run (context) {
      const { services: { clients }, args } = context
      const { user_id: userId } = await requireUser(context, 'owner')
      const data = { redirectUris: args.all('redirect-uri'), scopes: args.all('scope'), name: args.required('name'), userId }
      const { clientId } = await clients.create(checkInput(CreateClientSchema, { data, credentials: args.has('credentials') }), OPERATOR, {
        first_party: args.has('first-party')
      })
      const { clientSecret: client_secret } = await clients.require(clientId, OPERATOR)
      printRecord(context, { client_id: clientId, ...(client_secret !== undefined && { client_secret }) })
    }
  },

  'client list': {
    summary: 'List clients.',
    flags: {
      owner: { type: 'string', value: 'ACCOUNT', text: 'Only clients of this account.' },
      limit: { type: 'string', value: 'N', text: 'Maximum number; all clients by default.' }
    },
    async run (context) {
      const { services, args } = context
      const user = args.optional('owner') === undefined ? undefined : (await requireUser(context, 'owner')).user_id
      const limit = args.integer('limit', { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) ?? 0
      await printList(context, services.clients.list({ ...(user !== undefined && { user }), limit }, OPERATOR), COLUMNS)
    }
  },

  'client export': {
    summary: "Write all clients as CSV, with their secrets, in the bridge's format.",
    flags: {
      csv: { type: 'string', value: 'FILE', required: true, text: 'The file to write, readable only by you; - is stdout.' }
    },
    async run (context) {
      const { exportClients } = await import('./export.ts')
      await exportClients(context)
    }
  }
}
