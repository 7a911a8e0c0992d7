import { LRUCache } from 'lru-cache'
import { deepFreeze } from '../freeze.ts'
import type { ClientRecord, Roles, TokenRecord, UserRecord } from '../records.ts'
import { API_RESOURCE_ID, isApiScope, isForClients } from '../resources/api-scopes.ts'
import { narrowScopes } from '../resources/registry.ts'
import { holdsRole } from '../roles.ts'
import { CLIENT_CREDENTIALS, type Valid } from './validity.ts'

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
   * `roles` are the roles that the token may use. All of the user's roles are available to an operator's unrestricted token, to the
   * token of a first-party client with the scope `roles`, and to a token with an audience and one of its scopes. Other tokens
   * have none.
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
    /** The user's epoch at this look-up. A write on the user's behalf must fail once the epoch has changed. */
    readonly user_epoch?: number
    readonly created_at?: string
    readonly expired_at?: string
    readonly grant_id?: string
  }
  readonly isAdmin: boolean
  readonly [POWER]?: Power
}

/**
 * The roles that a token may use wherever it is accepted. Roles grant power, so a sign-in alone does not give them to an app. At a
 * resource, they require that the client still has one of its scopes.
 */
function chooseRoles ({ operator, scopes: granted, resource_id }: TokenRecord, user: UserRecord, client: ClientRecord, scopes: string[]): Roles {
  const isVouchedFor = resource_id === undefined && client.first_party === true && granted?.includes('roles') === true
  const isAtResource = resource_id !== undefined && (operator !== undefined || scopes.length > 0)
  return operator === 'unrestricted' || isVouchedFor || isAtResource ? user.roles : {}
}

/** Builds the caller of a valid access token. Null for a token without a user or a client. */
export function toCaller ({ record, user, client, registry }: Valid<TokenRecord>, adminRole: string): Caller | null {
  if (user === null || client === null) return null
  const { resource, resource_id } = record
  const isClient = record.kind === CLIENT_CREDENTIALS
  const held = isClient ? client.roles ?? {} : user.roles
  const scopes = narrowScopes(record, client, registry)
  const roles = isClient ? held : chooseRoles(record, user, client, scopes)
  return deepFreeze({
    subject: isClient ? 'client' : 'user',
    user: { user_id: user.id, account: user.account, name: user.name, roles },
    client: { clientId: client.id, name: client.name, scopes: client.scopes, userId: client.userId },
    token: {
      id: record.id,
      scopes,
      user_epoch: user.epoch,
      created_at: record.created_at,
      expired_at: record.expired_at,
      ...(record.grant_id !== undefined && { grant_id: record.grant_id }),
      ...(resource !== undefined && { audience: resource })
    },
    isAdmin: holdsRole(roles, adminRole),
    [POWER]: {
      roles: held,
      ...(record.operator !== 'unrestricted' && { scopes: scopes.filter((scope) => isApiScope(scope) && (!isClient || isForClients(scope))) }),
      accepted: resource_id === undefined || resource_id === API_RESOURCE_ID
    }
  })
}

/** The maximum number of cached callers. */
const SIZE = 20_000

interface Entry {
  caller: Caller
  /** The stamp of the look-up that the caller was built from. */
  stamp: number
  /** The store's generation in which the caller was last known to be valid. */
  generation: number | undefined
  /** Milliseconds since 1970: the earliest expiry of the token, its grant and its user. */
  expires: number
}

/**
 * A cache of callers by token id. An entry is valid while the store's generation or the stamp of its look-up is unchanged, until the
 * token, its grant or its user expires.
 */
export class CallerCache {
  readonly #entries = new LRUCache<string, Entry>({ max: SIZE })

  /** The cached caller, if nothing was written since its last look-up. */
  get (id: string, generation: number | undefined, time: number): Caller | undefined {
    if (generation === undefined) return undefined
    const entry = this.#entries.get(id)
    return entry !== undefined && entry.generation === generation && time < entry.expires ? entry.caller : undefined
  }

  /** The cached caller of a look-up with this stamp. The entry is then valid for this generation. */
  confirm (id: string, stamp: number, generation: number | undefined, time: number): Caller | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.stamp !== stamp || time >= entry.expires) return undefined
    entry.generation = generation
    return entry.caller
  }

  set ({ record, user, grant }: Valid<TokenRecord>, stamp: number, generation: number | undefined, caller: Caller): void {
    const times = [record.expired_at, user?.expired_at, grant?.expired_at].filter((time) => time !== undefined)
    this.#entries.set(record.id, { caller, stamp, generation, expires: Math.min(...times.map((time) => Date.parse(time))) })
  }
}
