import type { ClientRecord } from '../records/client.ts'
import type { GrantRecord, Revocable } from '../records/token.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { API_RESOURCE_ID } from '../api-scopes.ts'
import { EMPTY_REGISTRY, type Registry } from '../resources/registry.ts'
import { type Roles, holdsRole } from '../roles.ts'
import { hasCredential } from '../records/client.ts'
import type { Linked } from '../store/port.ts'

/** A valid record with the records that it depends on. `user`, `client` and `grant` are null if it does not refer to one. */
export interface Valid<T> {
  record: T
  user: UserRecord | null
  client: ClientRecord | null
  grant: GrantRecord | null
  registry: Registry
}

const OWNERS = { user_id: 'users', client_id: 'clients' }
const ALL = { ...OWNERS, grant_id: 'grants' }

/** The records that each collection's validity depends on, for Collection.getLinked. */
export const LINKS = {
  access_tokens: { ...ALL, registry_id: 'resources' },
  refresh_tokens: { ...ALL, registry_id: 'resources' },
  authorization_codes: ALL,
  device_codes: ALL,
  grants: { ...OWNERS, registry_id: 'resources' },
  sign_in_sessions: { user_id: 'users' }
} as const satisfies Record<string, Record<string, string>>

/** A collection whose records can be revoked. */
export type RevocableName = keyof typeof LINKS

/** The kind of a token that a client has got for itself, by the grant of client credentials. */
export const CLIENT_CREDENTIALS = 'ClientCredentials'

/** The kind of a service token: a client's own, which an administrator has made. */
export const SERVICE = 'Service'

/** The kind of a personal access token: a person's, for a program of theirs. */
export const PERSONAL = 'Personal'

/**
 * Shows a personal access token as the present settings let it count: with its client, which is in no store, and its end. Null: it does not
 * count.
 */
export type PersonalRule = <T extends Revocable>(found: Linked<T>) => Linked<T> | null

/** Whether the client acts for itself with this token. */
export const isOfClient = ({ kind }: Pick<Revocable, 'kind'>): boolean => kind === CLIENT_CREDENTIALS || kind === SERVICE

/** Whether the user's epoch was not incremented since. A service token stands on its user, the owner, and not on their epoch. */
export const isOfEpoch = ({ kind, user_epoch = -1 }: Revocable, { epoch }: Pick<UserRecord, 'epoch'>): boolean => kind === SERVICE || user_epoch >= epoch

/** Whether the resource of a token is still declared with its URI, and `held` includes one of the roles that it requires, if any. */
function isAccepted ({ resource, resource_id }: Revocable, { resources }: Registry, held: Roles): boolean {
  if (resource_id === undefined || resource_id === API_RESOURCE_ID) return true
  const entry = Object.hasOwn(resources, resource_id) ? resources[resource_id] : undefined
  return entry !== undefined && entry.uri === resource && (entry.roles?.some((role) => holdsRole(held, role)) ?? true)
}

/**
 * Decides whether a record is valid: it and its grant have not expired, its user, client and grant exist, its user is active,
 * its client is not disabled and still has the secret or key that got the token, the epochs of user and client have not been
 * incremented since it was issued, its resource is declared, and if that requires roles, one of them is held. This function
 * alone decides validity.
 * @param now ISO 8601
 * @param showPersonal of personal access tokens. Absent: they are off, so that none is valid
 */
export function checkValidity<T extends Revocable> (stored: Linked<T> | null, now: string, showPersonal?: PersonalRule): Valid<T> | null {
  const found = stored?.document.kind === PERSONAL ? showPersonal?.(stored) ?? null : stored
  if (found === null) return null
  const { document: record, linked } = found
  const user = (linked.user_id ?? null) as UserRecord | null
  const client = (linked.client_id ?? null) as ClientRecord | null
  const grant = (linked.grant_id ?? null) as GrantRecord | null
  const isCurrent = (issued: Revocable): boolean => (
    issued.expired_at > now &&
    (issued.user_id === undefined || (user !== null && isOfEpoch(issued, user))) &&
    (issued.client_id === undefined || (client !== null && (issued.client_epoch ?? -1) >= client.epoch))
  )
  if (!isCurrent(record) || (user !== null && !isActive(user, now)) || client?.disabled_at !== undefined) return null
  if (record.auth_id !== undefined && (client === null || !hasCredential(client, record.auth_id))) return null
  if (record.grant_id !== undefined && (grant === null || !isCurrent(grant))) return null
  const registry = (linked.registry_id ?? EMPTY_REGISTRY) as Registry
  const held = (isOfClient(record) ? client?.roles : user?.roles) ?? {}
  return isAccepted(record, registry, held) ? { record, user, client, grant, registry } : null
}
