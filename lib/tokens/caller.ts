import { isVouchedFor } from '../records/client.ts'
import { deepFreeze } from '../freeze.ts'
import type { ClientRecord } from '../records/client.ts'
import { type GrantRecord, type TokenRecord, toUserHolder } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import { API_RESOURCE_ID, isApiScope, isForClients } from '../api-scopes.ts'
import { narrowScopes } from '../resources/registry.ts'
import { type Roles, holdsRole } from '../roles.ts'
import type { Strength } from '../proofs.ts'
import { PERSONAL, type Valid, isOfClient } from './validity.ts'

/** The key of a caller's power. It is for this service's own API, not for a host's routes. */
export const POWER = Symbol('power')

/** The permissions of a token in this service's own API: those of the roles, narrowed to the scopes. */
export interface Power {
  /** The roles of the user, or of a client that acts for itself. */
  readonly roles: Readonly<Roles>
  /** Scopes of the API. Absent: all of them, for an operator's unrestricted token. */
  readonly scopes?: readonly string[]
  /** Whether the API accepts the token's audience. */
  readonly accepted: boolean
  /** True for a personal access token, which may call what the column `personal` of the access table lets it. */
  readonly personal?: true
}

/**
 * The caller of a request: the user and the client of its access token. The optional fields are not in tokeninfo, so they are
 * absent in an app that checks tokens over HTTP (plugins/remote.ts). A caller from the store is frozen, because requests with the
 * same token share it.
 */
export interface Caller {
  /** `client` when the client acts for itself (client credentials). The user is then its owner, and the roles are the client's own. */
  readonly subject: 'user' | 'client'
  /**
   * `roles` are the roles that the token may use, all of the user's or none; see chooseRoles.
   */
  readonly user: Readonly<Pick<UserRecord, 'account' | 'name' | 'roles'> & { user_id: string }>
  readonly client: { readonly clientId: string, readonly name?: string, readonly scopes?: readonly string[], readonly userId?: string }
  readonly token: {
    /** SHA-256 of the token, base64url. It identifies the token and cannot be used as one. */
    readonly id: string
    /** The client's scopes, narrowed to those granted. */
    readonly scopes: readonly string[]
    /** The resource that the token was requested for (RFC 8707). Absent: none. */
    readonly audience?: string
    /** True where the token has no roles because its client did not request the scope `roles`, which would give it the user's. */
    readonly roles_withheld?: true
    /** The name of a service or personal access token. Absent: another token. */
    readonly name?: string
    /** The user's epoch at this look-up. A write on the user's behalf must fail once the epoch has changed. */
    readonly user_epoch?: number
    readonly created_at?: string
    readonly expired_at?: string
    readonly grant_id?: string
  }
  /** How the user has signed in. Absent for a token that comes from no sign-in. */
  readonly auth?: Readonly<Strength>
  readonly isAdmin: boolean
  readonly [POWER]?: Power
}

/** Whose a token with a name is, as its record says. */
export const toHolder = ({ subject, user, client }: Pick<Caller, 'subject' | 'user' | 'client'>): string =>
  subject === 'client' ? client.clientId : toUserHolder(user.user_id)

/**
 * Whether a token may use its user's roles wherever it is accepted; `asked` if its client must have requested the scope `roles`.
 * Roles grant power, so a sign-in alone does not give them to an app. At a resource, they require that the client still has one of
 * its scopes, and that the operator vouches for the client or the user has granted it their roles there.
 */
function findRolesRule ({ kind, operator, resource_id }: TokenRecord, client: ClientRecord, scopes: string[]): boolean | 'asked' {
  if (kind === PERSONAL) return (resource_id === undefined || scopes.length > 0) && 'asked'
  // Nobody knows whose a client from a document is.
  if (client.document !== undefined && operator === undefined) return false
  if (operator !== undefined) return operator === 'unrestricted' || resource_id !== undefined
  if (resource_id === undefined) return client.first_party === true && 'asked'
  return scopes.length > 0 && (isVouchedFor(client) || 'asked')
}

/**
 * The roles that a token may use. The scopes of a token for a resource are those of the resource, so the grant says there whether
 * the user has granted their roles. Of a personal access token, its own record says so.
 */
function chooseRoles (
  record: TokenRecord, user: UserRecord, client: ClientRecord, grant: GrantRecord | null, scopes: string[]
): { roles: Roles, roles_withheld: boolean } {
  const rule = findRolesRule(record, client, scopes)
  const granted = record.resource_id === undefined || record.kind === PERSONAL ? record.scopes : grant?.scopes
  const isGranted = rule === 'asked' ? granted?.includes('roles') === true : rule
  return { roles: isGranted ? user.roles : {}, roles_withheld: rule === 'asked' && !isGranted }
}

/** Builds the caller of a valid access token. Null for a token without a user or a client. */
export function toCaller ({ record, user, client, grant, registry }: Valid<TokenRecord>, adminRole: string): Caller | null {
  if (user === null || client === null) return null
  const { resource, resource_id } = record
  const isClient = isOfClient(record)
  const held = isClient ? client.roles ?? {} : user.roles
  const scopes = narrowScopes(record, client, registry)
  const { roles, roles_withheld } = isClient ? { roles: held, roles_withheld: false } : chooseRoles(record, user, client, grant, scopes)
  return deepFreeze({
    subject: isClient ? 'client' : 'user',
    user: { user_id: user.id, account: user.account, name: user.name, roles },
    client: { clientId: client.id, name: client.name, scopes: client.scopes, ...(client.userId !== undefined && { userId: client.userId }) },
    token: {
      id: record.id,
      scopes,
      user_epoch: user.epoch,
      created_at: record.created_at,
      expired_at: record.expired_at,
      ...(record.grant_id !== undefined && { grant_id: record.grant_id }),
      ...(resource !== undefined && { audience: resource }),
      ...(record.name !== undefined && { name: record.name }),
      ...(roles_withheld && { roles_withheld: true as const })
    },
    ...(record.auth !== undefined && { auth: record.auth }),
    isAdmin: holdsRole(roles, adminRole),
    [POWER]: {
      roles: held,
      ...(record.operator !== 'unrestricted' && { scopes: scopes.filter((scope) => isApiScope(scope) && (!isClient || isForClients(scope))) }),
      accepted: resource_id === undefined || resource_id === API_RESOURCE_ID,
      ...(record.kind === PERSONAL && { personal: true as const })
    }
  })
}
