import { checkAccount } from './checks.ts'
import { IdentityError } from './errors.ts'
import type { Clients } from './clients/clients.ts'
import type { Clock } from './clock.ts'
import { generateId, randomText } from './ids.ts'
import type { UserRecord } from './records/user.ts'
import { API_SCOPES } from './api-scopes.ts'
import { type Actor, type RoleNames, holdsRole } from './roles.ts'
import { DuplicateKeyError, type Store } from './store/port.ts'
import { scan } from './store/scan.ts'
import { ACCESS_TTL, type Tokens } from './tokens/tokens.ts'
import { createToken } from './crypto/random-token.ts'
import { GENERATED_PASSWORD } from './users/password-rules.ts'
import type { Users } from './users/users.ts'

/** The value of the unique key `bootstrap` on the user that bootstrap created. */
const SLOT = 'admin'

/** The result of bootstrap. The password, the secret and the token are available only here. */
export interface Bootstrapped {
  user_id: string
  account: string
  password: string
  client_id: string
  client_secret: string
  access_token: string
}

export interface BootstrapOptions {
  account?: string
  /** Seconds until the access token expires. */
  ttl?: number
}

function exists (): IdentityError {
  return new IdentityError('ErrPerm', 'an admin exists: bootstrap only makes the first one')
}

/** The id of the client that `login` uses by default. */
export const LOGIN_CLIENT_ID = 'command-line'

/**
 * Creates a public client for `login`, so that an admin can get a token over HTTP after the first one has expired. An existing
 * client is left unchanged.
 */
async function createLoginClient ({ clients }: { clients: Clients }, actor: Actor): Promise<void> {
  const data = { redirectUris: [], scopes: Object.keys(API_SCOPES), name: 'Command line', grants: ['device' as const, 'refresh' as const] }
  await clients.create({ data }, actor, { id: LOGIN_CLIENT_ID, isLasting: false })
}

/**
 * Creates the first admin with a confidential client, a client for `login`, and an access token. It requires that no admin
 * exists. Of concurrent calls, one succeeds. The user is written after the confidential client and the token, which are useless
 * without the user. So an interrupted call leaves no admin behind and can be repeated.
 * @throws ErrPerm when an admin exists, ErrParam for an invalid account, USER_EXIST when another user has the account
 */
export async function bootstrap (
  services: { store: Store, users: Users, clients: Clients, tokens: Tokens, roles: RoleNames, now: Clock },
  { account: asked = 'admin', ttl = ACCESS_TTL }: BootstrapOptions = {}
): Promise<Bootstrapped> {
  const { store, users, clients, tokens, roles, now } = services
  const account = checkAccount(asked)
  const records = store.collection<UserRecord>('users')

  for await (const batch of scan(records, {})) {
    if (batch.some((user) => holdsRole(user.roles, roles.admin))) throw exists()
  }
  const previous = await records.getBy('bootstrap', SLOT)
  // A user who has lost the admin role keeps the account and gives up the slot.
  if (previous !== null && !holdsRole(previous.roles, roles.admin)) {
    await records.update(previous.id, { unset: ['bootstrap'], increment: { revision: 1 } }, { equal: { revision: previous.revision } })
  }

  const password = randomText(GENERATED_PASSWORD)
  const user_id = generateId(now())
  const client_id = generateId(now())
  const actor = { user_id, isAdmin: true }
  try {
    await clients.create({ data: { redirectUris: [], scopes: [], name: 'bootstrap' }, credentials: true }, actor, { id: client_id })
    const { clientSecret = '' } = await clients.require(client_id, actor)
    const access_token = createToken()
    await tokens.issue({ token: access_token, ttl, fields: { operator: 'unrestricted' } }, { user_id, client_id, user_epoch: 0, client_epoch: 0 })
    await users.create({ data: { account, password } }, { id: user_id, roles: { [roles.admin]: true }, bootstrap: SLOT })
    // Last, and errors are ignored: the admin exists now, and the caller must receive the password.
    await createLoginClient(services, actor).catch(() => {})
    return { user_id, account, password, client_id, client_secret: clientSecret, access_token }
  } catch (error) {
    await clients.remove(client_id, actor).catch(() => {})
    if (error instanceof DuplicateKeyError && error.field === 'bootstrap') throw exists()
    // A concurrent bootstrap may also cause a duplicate account, before the duplicate slot is detected.
    const other = await users.getByAccount(account)
    if (other !== null && holdsRole(other.roles, roles.admin)) throw exists()
    throw error
  }
}
