import { value } from './args.ts'
import type { Commands } from './command.ts'
import { TTL } from './token.ts'

export const bootstrapCommands: Commands = {
  bootstrap: {
    summary: 'Create the first admin, with a client and a token. Works only while there is no admin.',
    example: 'bootstrap',
    flags: {
      account: { ...value('ACCOUNT', "The admin's account; `admin` by default."), operand: true },
      ttl: value('SECONDS', 'Lifetime of the access token; one hour by default.')
    },
    creates: true,
    async run ({ services, args }) {
      const { client_id: clientId, client_secret: clientSecret, access_token, ...admin } = await services.bootstrap({
        account: args.optional('account'), ttl: args.integer('ttl', TTL)
      })
      return [{ ...admin, clientId, clientSecret, access_token }, 'The password and the token are shown only once.']
    }
  }
}
