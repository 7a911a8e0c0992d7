import type { Commands } from './command.ts'
import { requireUser } from './input.ts'
import { printRecord } from './output.ts'

/** Lifetime in seconds that may be requested for an access token: up to ten years. */
export const TTL = { minimum: 1, maximum: 10 * 365 * 24 * 60 * 60 }

export const tokenCommands: Commands = {
  'token create': {
    summary: 'Mint an access token for a user and a client.',
    flags: {
      account: { type: 'string', value: 'ACCOUNT', required: true, text: 'Whom the token acts for.' },
      client: { type: 'string', value: 'ID', required: true, text: 'The client it belongs to.' },
      ttl: { type: 'string', value: 'SECONDS', text: 'Lifetime; an hour unless given.' },
      refresh: { type: 'boolean', text: 'Also mint a linked refresh token, which the authorization server redeems.' },
      scopes: { type: 'string', value: 'A,B', text: "Narrows the token to these scopes of the client or of the API, comma-separated. Unless given it has all the user's power." },
      resource: { type: 'string', value: 'URI', text: 'The resource that the token is for, instead of this service.' }
    },
    async run (context) {
      const { services, args } = context
      const ttl = args.integer('ttl', TTL)
      const scopes = args.optional('scopes')?.split(',').map((scope) => scope.trim()).filter(Boolean)
      const resource = args.optional('resource')
      const { user_id } = await requireUser(context)
      const minted = await services.tokens.mint({
        user_id,
        client_id: args.required('client'),
        refresh: args.has('refresh'),
        ...(resource !== undefined && { resource }),
        ...(scopes !== undefined && { scopes: [...new Set(scopes)] }),
        ...(ttl !== undefined && { ttl })
      })
      printRecord(context, minted)
    }
  }
}
