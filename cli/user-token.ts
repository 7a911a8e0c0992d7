import { CreatePersonalTokenSchema } from '../schemas/personal-token.ts'
import { IdentityError } from '../lib/errors.ts'
import { defined } from '../lib/defined.ts'
import type { Services } from '../lib/identity.ts'
import { repeated, required, value } from './args.ts'
import { ACCOUNT, type Commands, OPERATOR, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { checkInput, requireUser } from './input.ts'
import { printList, toBatches } from './output.ts'
import { TOKEN_COLUMNS } from './token-columns.ts'

/** @throws ErrNotFound while they are off */
function requirePersonalTokens ({ personalTokens }: Pick<Services, 'personalTokens'>): NonNullable<Services['personalTokens']> {
  if (personalTokens === undefined) throw new IdentityError('ErrNotFound', 'personal access tokens are off: set IDENTITY_PERSONAL_TOKENS to the days that one may live')
  return personalTokens
}

export const userTokenCommands: Commands = {
  'user token create': {
    summary: 'Make a personal access token of a user, and show it.',
    example: 'user token create ann@example.com --name nightly --scope clients:read --expires 2027-11-23T00:00:00Z',
    flags: {
      account: ACCOUNT,
      name: required('NAME', 'What it is for.'),
      scope: repeated('SCOPE', 'A scope of this service, or of the resource'),
      resource: value('URI', 'The resource that it is for, instead of this service.'),
      expires: required('TIME', 'RFC 3339: when it ends, at most IDENTITY_PERSONAL_TOKENS days ahead.')
    },
    creates: false,
    async run (context) {
      const { services, args } = context
      const personalTokens = requirePersonalTokens(services)
      const { user_id } = await requireUser(context)
      const data = defined({ name: args.required('name'), scopes: args.all('scope'), resource: args.optional('resource'), expiresAt: args.required('expires') })
      return { user_id, ...await personalTokens.addFor(user_id, checkInput(CreatePersonalTokenSchema, { data }).data) }
    }
  },

  'user token list': {
    summary: 'List the personal access tokens of a user and their last use. Not the tokens themselves.',
    example: 'user token list ann@example.com',
    flags: { account: ACCOUNT },
    creates: false,
    async run (context) {
      const personalTokens = requirePersonalTokens(context.services)
      await printList(context, toBatches(await personalTokens.listOf((await requireUser(context)).user_id, OPERATOR)), TOKEN_COLUMNS)
    }
  },

  'user token remove': {
    summary: 'End a personal access token of a user.',
    example: 'user token remove ann@example.com --token TOKEN_ID',
    flags: { account: ACCOUNT, token: required('ID', 'The id of the token.'), yes: YES },
    creates: false,
    async run (context) {
      const personalTokens = requirePersonalTokens(context.services)
      const [{ user_id }, id] = [await requireUser(context), context.args.required('token')]
      await confirm(context, 'End this personal access token? Programs that use it lose their access.')
      await personalTokens.removeOf(user_id, id, OPERATOR)
      return { user_id, id }
    }
  }
}
