import { type ClientSecret, CreateSecretSchema } from '../schemas/client.ts'
import { defined } from '../lib/defined.ts'
import { required, value } from './args.ts'
import { CLIENT, OPERATOR, type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { checkInput, readClientId } from './input.ts'
import { printList, toBatches } from './output.ts'

const COLUMNS = {
  SECRET_ID: 'id',
  NAME: 'name',
  ENDS_IN: ({ last4 }: ClientSecret) => last4 === undefined ? '' : `...${last4}`,
  CREATED: 'createdAt',
  EXPIRES: 'expiresAt',
  LAST_USED: 'lastUsedAt'
} as const

export const clientSecretCommands: Commands = {
  'client secret add': {
    summary: 'Add a named secret to a client, and show it. The others go on.',
    example: 'client secret add ID --name deploy --expires 2027-06-30T00:00:00Z',
    flags: {
      client: CLIENT,
      name: required('NAME', 'What it is for.'),
      expires: value('TIME', 'RFC 3339: when it ends. Without it, it does not end.')
    },
    creates: false,
    async run (context) {
      const { services: { clients }, args } = context
      const clientId = await readClientId(context)
      const expiresAt = args.optional('expires')
      const data = defined({ name: args.required('name'), expiresAt })
      return { clientId, ...await clients.addSecret(clientId, checkInput(CreateSecretSchema, { data }), OPERATOR) }
    }
  },

  'client secret list': {
    summary: 'List the secrets of a client and their last use. Not the secrets themselves.',
    example: 'client secret list ID',
    flags: { client: CLIENT },
    creates: false,
    async run (context) {
      const { secrets } = await context.services.clients.listSecrets(await readClientId(context), OPERATOR)
      await printList(context, toBatches(secrets), COLUMNS)
    }
  },

  'client secret remove': {
    summary: 'Remove a secret of a client. The access tokens that it got end.',
    example: 'client secret remove ID --secret SECRET_ID',
    flags: { client: CLIENT, secret: required('ID', 'The secret; first is the readable one.'), yes: YES },
    creates: false,
    async run (context) {
      const { services: { clients }, args } = context
      const [clientId, id] = [await readClientId(context), args.required('secret')]
      await confirm(context, 'Remove this secret? The access tokens that it got end.')
      await clients.removeSecret(clientId, id, OPERATOR)
      return { clientId, id }
    }
  }
}
