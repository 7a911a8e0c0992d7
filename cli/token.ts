import { choice, required, toggle, value } from './args.ts'
import { ACCOUNT, OPERATOR, type Commands } from './command.ts'
import { IdentityError } from '../lib/errors.ts'
import type { Acr } from '../lib/proofs.ts'
import { readClientId, readLine, requireUser } from './input.ts'

/** Lifetime in seconds that may be requested for an access token: up to ten years. */
export const TTL = { minimum: 1, maximum: 10 * 365 * 24 * 60 * 60 }

export const tokenCommands: Commands = {
  'token create': {
    summary: 'Mint an access token for a user and a client.',
    example: 'token create ann@example.com --client ID --ttl 600',
    flags: {
      account: { ...ACCOUNT, text: 'The user that the token acts for.' },
      client: required('ID', 'The client it belongs to.'),
      ttl: value('SECONDS', 'Lifetime; one hour by default.'),
      refresh: toggle('Also mint a linked refresh token, which the authorization server redeems.'),
      scopes: value('A,B', 'Limit the token to these scopes of the client or of the API, comma-separated. By default it has all the ' +
        "user's rights."),
      acr: choice('CLASS', ['1', 'mfa', 'phr'], '1, mfa or phr: as if the user had just signed in so: with a password, with two-factor authentication, or with a ' +
        'passkey. By default it comes from no sign-in.'),
      resource: value('URI', 'The resource that the token is for, instead of this service.')
    },
    async run (context) {
      const { services, args } = context
      const ttl = args.integer('ttl', TTL)
      const { user_id } = await requireUser(context)
      const scopes = args.optional('scopes')?.split(',').map((scope) => scope.trim()).filter(Boolean)
      return await services.tokens.mint({
        user_id,
        client_id: await readClientId(context),
        refresh: args.has('refresh'),
        ttl,
        resource: args.optional('resource'),
        acr: args.optional('acr') as Acr | undefined,
        scopes: scopes && [...new Set(scopes)]
      })
    }
  },

  'token revoke': {
    summary: 'End a token or a named secret that was leaked. It is read from stdin.',
    example: 'token revoke',
    flags: {},
    creates: false,
    async run (context) {
      const ended = await context.services.leaks.end(await readLine(context, 'token revoke', 'token'), OPERATOR)
      if (ended === null) throw new IdentityError('ErrNotFound', 'stdin: it is no valid token and no secret of a client, or it has ended already')
      return ended
    }
  }
}
