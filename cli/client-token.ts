import { CreateServiceTokenSchema } from '../schemas/client.ts'
import { defined } from '../lib/defined.ts'
import { repeated, required, value } from './args.ts'
import { CLIENT, OPERATOR, type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { checkInput, readClientId } from './input.ts'
import { printList, toBatches } from './output.ts'
import { TOKEN_COLUMNS } from './token-columns.ts'

export const clientTokenCommands: Commands = {
  'client token create': {
    summary: 'Make a service token, with which a client acts for itself, and show it.',
    example: 'client token create ID --name SCIM --scope users:read',
    flags: {
      client: CLIENT,
      name: required('NAME', 'What it is for.'),
      scope: repeated('SCOPE', 'A scope of the client that it may use'),
      resource: value('URI', 'The resource that it is for, instead of this service.'),
      expires: value('TIME', 'RFC 3339: when it ends, at most two years ahead. Without it, in 365 days.')
    },
    creates: false,
    async run (context) {
      const { services: { serviceTokens }, args } = context
      const clientId = await readClientId(context)
      const data = defined({ name: args.required('name'), scopes: args.all('scope'), resource: args.optional('resource'), expiresAt: args.optional('expires') })
      return { clientId, ...await serviceTokens.add(clientId, checkInput(CreateServiceTokenSchema, { data }), OPERATOR) }
    }
  },

  'client token list': {
    summary: 'List the service tokens of a client and their last use. Not the tokens themselves.',
    example: 'client token list ID',
    flags: { client: CLIENT },
    creates: false,
    async run (context) {
      await printList(context, toBatches(await context.services.serviceTokens.list(await readClientId(context), OPERATOR)), TOKEN_COLUMNS)
    }
  },

  'client token remove': {
    summary: 'End a service token of a client.',
    example: 'client token remove ID --token TOKEN_ID',
    flags: { client: CLIENT, token: required('ID', 'The id of the token.'), yes: YES },
    creates: false,
    async run (context) {
      const { services: { serviceTokens }, args } = context
      const [clientId, id] = [await readClientId(context), args.required('token')]
      await confirm(context, 'End this service token? Programs that use it lose their access.')
      await serviceTokens.remove(clientId, id, OPERATOR)
      return { clientId, id }
    }
  }
}
