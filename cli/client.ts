import { isShownConfidential } from '../lib/clients/show-client.ts'
import { CreateClientSchema, PatchClientSchema, type Client } from '../schemas/client.ts'
import { defined } from '../lib/defined.ts'
import { type Args, choice, repeated, required, toggle, UsageError, value } from './args.ts'
import { claimFlag, readClaimFlags } from './claims.ts'
import { SECRET_FLAGS, filterClients, readSecretFilter } from './client-filter.ts'
import { CLIENT, OPERATOR, type Commands, type Context, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { checkInput, readClientId, requireUser } from './input.ts'
import { printList, toCell } from './output.ts'

/** A client with the account of its owner, for a terminal. */
type Shown = Client & { owner?: string | undefined }

const COLUMNS = {
  CLIENT_ID: 'clientId',
  NAME: 'name',
  OWNER: (client: Shown) => client.owner ?? client.userId,
  KIND: (client: Client) => isShownConfidential(client) ? 'confidential' : 'public',
  SCOPES: (client: Client) => client.scopes.join(','),
  CREATED: 'createdAt'
} as const

/** The name stands beside; the commands take the end of an id too. */
const HINTS = { short: ['CLIENT_ID'], keep: ['CLIENT_ID', 'KIND'] }

/** Flags for the settings of a client that only the operator decides. */
const OPERATOR_FLAGS = {
  grant: repeated('GRANT', 'code, refresh, client or device', 'By default, by kind.'),
  pkce: choice('HOW', ['required', 'optional'], 'required, or optional for a confidential client whose library has no PKCE.'),
  'first-party': toggle('Your own client: it signs users in without asking for their consent.'),
  'id-token-claims': choice('WHEN', ['on', 'off'], 'on: its ID tokens contain the claims of the granted scopes, for libraries that do not call ' +
    'userinfo; or off.'),
  'backchannel-logout-uri': value('URL', "Where it is notified that a user's sign-in has ended (OpenID Connect Back-Channel Logout); '' " +
    'to remove.'),
  role: repeated('ROLE', "A role of the client's own tokens, which make it a service account"),
  claim: claimFlag('id_token, userinfo, introspection, jwt', "'' for none.")
} as const

/** The scopes of the flag. A comma is legal in a scope, but means a list wherever scopes are typed. */
function readScopes (args: Args): string[] {
  const scopes = args.all('scope')
  if (scopes.some((scope) => scope.includes(','))) throw new UsageError('--scope: must not contain a comma; repeat the flag for each scope')
  return scopes
}

function readOperatorFlags (args: Args): object {
  const [pkce, claims] = [args.optional('pkce'), args.optional('id-token-claims')]
  const [grants, roles, logoutUri] = [args.all('grant'), args.all('role'), args.optional('backchannel-logout-uri')]
  return defined({
    grants: grants.length > 0 ? grants : undefined,
    pkce,
    first_party: args.has('first-party') ? true : undefined,
    id_token_claims: claims === undefined ? undefined : claims === 'on',
    claims: readClaimFlags(args),
    backchannelLogoutUri: logoutUri === undefined ? undefined : logoutUri === '' ? null : logoutUri,
    roles: roles.length > 0 ? Object.fromEntries(roles.map((role) => [role, true])) : undefined
  })
}

function readTokenAuth (args: Args): object {
  const [tokenAuth, until, idTokenAlg] = [args.optional('token-auth'), args.optional('former-until'), args.optional('id-token-alg')]
  const [signedRequests, profile] = [args.optional('signed-requests'), args.optional('profile')]
  return defined({
    tokenAuth,
    former: until === undefined ? undefined : { until },
    idTokenAlg,
    signedRequests,
    profile
  })
}

/** Adds the accounts of owners where a person reads them. */
async function * withOwners ({ services: { users }, json, look }: Context, batches: AsyncIterable<Client[]>): AsyncGenerator<Shown[]> {
  const isRead = look.width !== undefined && !json
  for await (const batch of batches) {
    const owners = new Map<string, string | undefined>()
    for (const { userId = '' } of isRead ? batch : []) if (!owners.has(userId)) owners.set(userId, (await users.get(userId))?.account)
    yield batch.map((client) => ({ ...client, owner: owners.get(client.userId ?? '') }))
  }
}

export const clientCommands: Commands = {
  'client create': {
    summary: 'Register a client.',
    example: 'client create --owner ann@example.com --name Shop --redirect-uri https://shop.example/callback',
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
    summary: 'Change a client. A list replaces the old one.',
    example: 'client patch ID --name Shop --scope orders:read',
    flags: {
      client: CLIENT,
      name: value('NAME', 'Display name.'),
      'redirect-uri': repeated('URI', 'An absolute URI'),
      scope: repeated('SCOPE', 'A scope'),
      ...OPERATOR_FLAGS,
      'token-auth': choice('HOW', ['none', 'secret', 'private_key_jwt'], 'How it authenticates: none, secret or private_key_jwt.'),
      'former-until': value('TIME', 'With --token-auth: the old method passes too, until then (RFC 3339, 30 days at most).'),
      'id-token-alg': choice('ALG', ['RS256', 'ES256'], 'RS256 or ES256: how its ID and logout tokens are signed.'),
      'signed-requests': choice('HOW', ['required', 'optional'], 'required, for a client with keys: its authorization requests must be signed; or optional.'),
      profile: choice('NAME', ['fapi2', 'none'], 'fapi2, for a client with private_key_jwt: the FAPI 2.0 Security Profile; or none.'),
      'third-party': toggle('No longer your own client.'),
      disable: toggle('Revoke its tokens and issue no new ones.'),
      enable: toggle('Enable it again.'),
      'regen-secret': toggle('Replace its secret, which revokes its tokens.'),
      'take-over': value('ACCOUNT', 'Make this account its owner. This revokes its tokens, and replaces its secret if it has one.'),
      yes: YES
    },
    async run (context) {
      const { services: { clients }, args } = context
      args.refuseBoth('disable', 'enable')
      args.refuseBoth('first-party', 'third-party')
      const [name, scopes] = [args.optional('name'), readScopes(args)]
      const data = defined({
        name,
        redirectUris: args.all('redirect-uri').length > 0 ? args.all('redirect-uri') : undefined,
        scopes: scopes.length > 0 ? scopes : undefined,
        ...readOperatorFlags(args),
        ...readTokenAuth(args),
        ...(args.has('third-party') && { first_party: false }),
        disabled: args.has('disable') || args.has('enable') ? args.has('disable') : undefined
      })
      const clientId = await readClientId(context)
      const before = await clients.require(clientId, OPERATOR)
      const owner = args.optional('take-over') === undefined ? undefined : await requireUser(context, 'take-over')
      const patch = defined({ data, regen_secret: args.has('regen-secret') ? true : undefined, take_over: owner === undefined ? undefined : true })
      const checked = checkInput(PatchClientSchema, patch)
      if (args.has('regen-secret') || owner !== undefined) {
        await confirm(context, `Revoke the tokens of the client ${toCell(before.name)}, and replace its secret?`)
      }
      await clients.patch(clientId, checked, owner === undefined ? OPERATOR : { ...OPERATOR, user_id: owner.user_id })
      const { clientSecret } = await clients.require(clientId, OPERATOR)
      // The patch may also have made a new secret, when the operator has begun to vouch for the client (lib/clients/kinds.ts).
      return defined({ clientId, clientSecret: clientSecret !== before.clientSecret ? clientSecret : undefined })
    }
  },

  'client list': {
    summary: 'List clients.',
    example: 'client list --owner ann@example.com',
    flags: {
      owner: value('ACCOUNT', 'Only clients of this account.'),
      search: value('TEXT', 'Only clients with words of the name, or an id, that begin so, in any case and without accents.'),
      ...SECRET_FLAGS,
      limit: value('N', 'Maximum number; all clients by default.')
    },
    creates: false,
    async run (context) {
      const { services, args } = context
      const user = args.optional('owner') === undefined ? undefined : (await requireUser(context, 'owner')).user_id
      const search = defined({ search: args.optional('search') })
      const isWanted = readSecretFilter(args, services, Date.now())
      if (isWanted === undefined) {
        await printList(context, withOwners(context, services.clients.list({ user, ...search, limit: args.limit() }, OPERATOR)), COLUMNS, HINTS)
      } else {
        const found = filterClients(services.clients.list({ user, ...search, limit: 0 }, OPERATOR), isWanted, args.limit())
        await printList(context, withOwners(context, found), COLUMNS, HINTS)
      }
    }
  },

  'client delete': {
    summary: 'Delete a client with all its tokens.',
    example: 'client delete ID',
    flags: { client: CLIENT, yes: YES },
    async run (context) {
      const { clients } = context.services
      const { clientId, name, userId } = await clients.require(await readClientId(context), OPERATOR)
      await confirm(context, `Delete the client ${toCell(name)}?`)
      await clients.remove(clientId, OPERATOR)
      return { clientId, name, userId }
    }
  },

  'client export': {
    summary: "Export all clients as CSV, with their secrets. In the bridge's format.",
    example: 'client export --csv clients.csv',
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
