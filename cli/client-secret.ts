import { type ClientSecret, CreateSecretSchema } from '../schemas/client.ts'
import { required, value } from './args.ts'
import { OPERATOR, type Commands } from './command.ts'
import { checkInput } from './input.ts'
import { printList, toBatches } from './output.ts'

const COLUMNS = {
  SECRET_ID: 'id',
  NAME: 'name',
  ENDS_IN: ({ last4 }: ClientSecret) => last4 === undefined ? '' : `...${last4}`,
  CREATED: 'createdAt',
  EXPIRES: 'expiresAt',
  LAST_USED: 'lastUsedAt'
} as const

const CLIENT = required('ID', 'The client.')

export const clientSecretCommands: Commands = {
  'client secret add': {
    summary: 'Add a named secret to a client, and show it. The others go on.',
    flags: {
      client: CLIENT,
      name: required('NAME', 'What it is for.'),
      expires: value('TIME', 'RFC 3339: when it ends. Without it, it does not end.')
    },
    creates: false,
    async run ({ services: { clients }, args }) {
      const clientId = args.required('client')
      const expiresAt = args.optional('expires')
      const data = { name: args.required('name'), ...(expiresAt !== undefined && { expiresAt }) }
      return { clientId, ...await clients.addSecret(clientId, checkInput(CreateSecretSchema, { data }), OPERATOR) }
    }
  },

  'client secret list': {
    summary: 'List the secrets of a client, without the secrets themselves, with their last use.',
    flags: { client: CLIENT },
    creates: false,
    async run (context) {
      const { secrets } = await context.services.clients.listSecrets(context.args.required('client'), OPERATOR)
      await printList(context, toBatches(secrets), COLUMNS)
    }
  },

  'client secret remove': {
    summary: 'Remove a secret of a client. The access tokens that it got end.',
    flags: { client: CLIENT, secret: required('ID', 'The secret; first is the readable one.') },
    creates: false,
    async run ({ services: { clients }, args }) {
      const [clientId, id] = [args.required('client'), args.required('secret')]
      await clients.removeSecret(clientId, id, OPERATOR)
      return { clientId, id }
    }
  }
}
