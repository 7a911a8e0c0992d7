import { value } from './args.ts'
import type { Commands } from './command.ts'
import { printRecord } from './output.ts'
import { TTL } from './token.ts'

export const bootstrapCommands: Commands = {
  bootstrap: {
    summary: 'Create the first admin, a client of theirs and an access token. Works only while there is no admin.',
    flags: {
      account: value('ACCOUNT', "The admin's account; `admin` by default."),
      ttl: value('SECONDS', 'Lifetime of the access token; one hour by default.')
    },
    creates: true,
    async run (context) {
      const { services, args } = context
      const made = await services.bootstrap({ account: args.optional('account'), ttl: args.integer('ttl', TTL) })
      printRecord(context, made, 'The password and the token are shown only once.')
    }
  }
}
