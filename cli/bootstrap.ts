import type { Commands } from './command.ts'
import { printRecord } from './output.ts'
import { TTL } from './token.ts'

export const bootstrapCommands: Commands = {
  bootstrap: {
    summary: 'Create the first admin, a client of theirs and an access token. Works only while there is no admin.',
    flags: {
      account: { type: 'string', value: 'ACCOUNT', text: "The admin's account; `admin` unless given." },
      ttl: { type: 'string', value: 'SECONDS', text: 'Lifetime of the access token; an hour unless given.' }
    },
    creates: true,
    async run (context) {
      const { services, args } = context
      const account = args.optional('account')
      const ttl = args.integer('ttl', TTL)
      const made = await services.bootstrap({ ...(account !== undefined && { account }), ...(ttl !== undefined && { ttl }) })
      printRecord(context, made, 'The password and the token are shown only once.')
    }
  }
}
