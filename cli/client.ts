import { isShownConfidential } from '../lib/clients/show-client.ts'
import { CreateClientSchema, PatchClientSchema, type Client } from '../schemas/client.ts'
import { type Args, repeated, required, toggle, UsageError, value } from './args.ts'
import { SECRET_FLAGS, filterClients, readSecretFilter } from './client-filter.ts'
import { OPERATOR, type Commands } from './command.ts'
import { checkInput, requireUser } from './input.ts'
import { printList } from './output.ts'

const COLUMNS = {
  CLIENT_ID: 'clientId',
  NAME: 'name',
  OWNER: 'userId',
  KIND: (client: Client) => isShownConfidential(client) ? 'confidential' : 'public',
  SCOPES: (client: Client) => client.scopes.join(','),
  CREATED: 'createdAt'
} as const

const CLIENT = required('ID', 'The client.')

/** Flags for the settings of a client that only the operator decides. */
const OPERATOR_FLAGS = {
  grant: repeated('GRANT', 'code, refresh, client or device', 'By default, by kind.'),
  pkce: value('HOW', 'required, or optional for a confidential client whose library has no PKCE.'),
  'first-party': toggle('Your own client: it signs users in without asking for their consent.'),
  'id-token-claims': value('WHEN', 'on: its ID tokens contain the claims of the granted scopes, for libraries that do not call ' +
    'userinfo; or off.'),
  'backchannel-logout-uri': value('URL', "Where it is notified that a user's sign-in has ended (OpenID Connect Back-Channel Logout); '' " +
    'to remove.'),
  role: repeated('ROLE', "A role of the client's own tokens, which make it a service account")
} as const

/** The scopes of the flag. A comma is legal in a scope, but means a list wherever scopes are typed. */
function readScopes (args: Args): string[] {
  const scopes = args.all('scope')
  if (scopes.some((scope) => scope.includes(','))) throw new UsageError('--scope: must not contain a comma; repeat the flag for each scope')
  return scopes
}

function readOperatorFlags (args: Args): object {
  const [pkce, claims] = [args.optional('pkce'), args.optional('id-token-claims')]
  if (claims !== undefined && claims !== 'on' && claims !== 'off') throw new UsageError('--id-token-claims: must be on or off')
  const [grants, roles, logoutUri] = [args.all('grant'), args.all('role'), args.optional('backchannel-logout-uri')]
  return {
    ...(grants.length > 0 && { grants }),
    ...(pkce !== undefined && { pkce }),
    ...(args.has('first-party') && { first_party: true }),
    ...(claims !== undefined && { id_token_claims: claims === 'on' }),
    ...(logoutUri !== undefined && { backchannelLogoutUri: logoutUri === '' ? null : logoutUri }),
    ...(roles.length > 0 && { roles: Object.fromEntries(roles.map((role) => [role, true])) })
  }
}

function readTokenAuth (args: Args): object {
  const [tokenAuth, until, idTokenAlg] = [args.optional('token-auth'), args.optional('former-until'), args.optional('id-token-alg')]
  const [signedRequests, profile] = [args.optional('signed-requests'), args.optional('profile')]
  return {
    ...(tokenAuth !== undefined && { tokenAuth }),
    ...(until !== undefined && { former: { until } }),
    ...(idTokenAlg !== undefined && { idTokenAlg }),
    ...(signedRequests !== undefined && { signedRequests }),
    ...(profile !== undefined && { profile })
  }
}

export const clientCommands: Commands = {
  'client create': {
    summary: 'Register a client.',
    flags: {
      owner: required('ACCOUNT', 'The account that owns it.'),
      name: required('NAME', 'Display name.'),
      'redirect-uri': repeated('URI', 'https, http on this device, or a private scheme with a dot'),
      scope: repeated('SCOPE', 'A scope'),
      credentials: toggle('Make it confidential, with a secret.'),
      ...OPERATOR_FLAGS
    },
    async run (context) {
      const { services: { clients }, args } = context
      const scopes = readScopes(args)
      const { user_id: userId } = await requireUser(context, 'owner')
      const data = { redirectUris: args.all('redirect-uri'), scopes, name: args.required('name'), userId, ...readOperatorFlags(args) }
      const { clientId } = await clients.create(checkInput(CreateClientSchema, { data, credentials: args.has('credentials') }), OPERATOR)
      const { clientSecret } = await clients.require(clientId, OPERATOR)
      return { clientId, clientSecret }
    }
  },

  'client patch': {
    summary: 'Change a client. A list replaces the former one.',
    flags: {
      client: CLIENT,
      name: value('NAME', 'Display name.'),
      'redirect-uri': repeated('URI', 'An absolute URI'),
      scope: repeated('SCOPE', 'A scope'),
      ...OPERATOR_FLAGS,
      'token-auth': value('HOW', 'How it authenticates: none, secret or private_key_jwt.'),
      'former-until': value('TIME', 'With --token-auth: the former way passes too, until then (RFC 3339, 30 days at most).'),
      'id-token-alg': value('ALG', 'RS256 or ES256: how its ID and logout tokens are signed.'),
      'signed-requests': value('HOW', 'required, for a client with keys: its authorization requests must be signed; or optional.'),
      profile: value('NAME', 'fapi2, for a client with private_key_jwt: the FAPI 2.0 Security Profile; or none.'),
      'third-party': toggle('No longer your own client.'),
      disable: toggle('Revoke its tokens and issue no new ones.'),
      enable: toggle('Enable it again.'),
      'regen-secret': toggle('Replace its secret, which revokes its tokens.'),
      'take-over': value('ACCOUNT', 'Make this account its owner. This revokes its tokens, and replaces its secret if it has one.')
    },
    async run (context) {
      const { services: { clients }, args } = context
      const clientId = args.required('client')
      args.refuseBoth('disable', 'enable')
      args.refuseBoth('first-party', 'third-party')
      const [name, scopes] = [args.optional('name'), readScopes(args)]
      const data = {
        ...(name !== undefined && { name }),
        ...(args.all('redirect-uri').length > 0 && { redirectUris: args.all('redirect-uri') }),
        ...(scopes.length > 0 && { scopes }),
        ...readOperatorFlags(args),
        ...readTokenAuth(args),
        ...(args.has('third-party') && { first_party: false }),
        ...((args.has('disable') || args.has('enable')) && { disabled: args.has('disable') })
      }
      const before = await clients.require(clientId, OPERATOR)
      const owner = args.optional('take-over') === undefined ? undefined : await requireUser(context, 'take-over')
      const patch = { data, ...(args.has('regen-secret') && { regen_secret: true }), ...(owner !== undefined && { take_over: true }) }
      await clients.patch(clientId, checkInput(PatchClientSchema, patch), owner === undefined ? OPERATOR : { ...OPERATOR, user_id: owner.user_id })
      const { clientSecret } = await clients.require(clientId, OPERATOR)
      // The patch may also have made a new secret, when the operator has begun to vouch for the client (lib/clients/kinds.ts).
      return { clientId, ...(clientSecret !== before.clientSecret && { clientSecret }) }
    }
  },

  'client list': {
    summary: 'List clients.',
    flags: {
      owner: value('ACCOUNT', 'Only clients of this account.'),
      ...SECRET_FLAGS,
      limit: value('N', 'Maximum number; all clients by default.')
    },
    creates: false,
    async run (context) {
      const { services, args } = context
      const user = args.optional('owner') === undefined ? undefined : (await requireUser(context, 'owner')).user_id
      const isWanted = readSecretFilter(args, services.clients, Date.now())
      if (isWanted === undefined) await printList(context, services.clients.list({ user, limit: args.limit() }, OPERATOR), COLUMNS)
      else await printList(context, filterClients(services.clients.list({ user, limit: 0 }, OPERATOR), isWanted, args.limit()), COLUMNS)
    }
  },

  'client delete': {
    summary: 'Delete a client with all its tokens.',
    flags: { client: CLIENT },
    async run ({ services: { clients }, args }) {
      const { clientId, name, userId } = await clients.require(args.required('client'), OPERATOR)
      await clients.remove(clientId, OPERATOR)
      return { clientId, name, userId }
    }
  },

  'client export': {
    summary: "Export all clients as CSV, with their secrets, in the bridge's format.",
    flags: {
      csv: required('FILE', 'The file to write, readable only by you; - is stdout.')
    },
    creates: false,
    async run (context) {
      const { exportClients } = await import('./export.ts')
      return await exportClients(context)
    }
  }
}
