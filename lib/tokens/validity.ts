import type { ClientRecord, GrantRecord, UserRecord } from '../records.ts'
import { EMPTY_REGISTRY, type Registry } from '../resources/registry.ts'
import type { Document, Linked } from '../store/port.ts'

/** The fields that decide whether a token, code, grant or sign-in session is still valid. */
export interface Revocable extends Document {
  user_id?: string
  client_id?: string
  grant_id?: string
  user_epoch?: number
  client_epoch?: number
  expired_at: string
}

/** A valid record with the records it depends on; null where it names none. */
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
  refresh_tokens: ALL,
  authorization_codes: ALL,
  device_codes: ALL,
  grants: OWNERS,
  sign_in_sessions: { user_id: 'users' }
} as const satisfies Record<string, Record<string, string>>

/** A collection whose records can be revoked. */
export type RevocableName = keyof typeof LINKS

/** Whether the user is neither disabled nor expired. */
export function isActive (user: UserRecord, now: string): boolean {
  return user.disabled_at === undefined && (user.expired_at === undefined || user.expired_at > now)
}

/**
 * Decides whether a record is valid: it and its grant have not expired, its user, client and grant exist, its user is active,
 * its client is not disabled, and the epochs of user and client have not been incremented since it was issued. Nothing else in
 * the service decides this.
 * @param now ISO 8601
 */
export function checkValidity<T extends Revocable> (found: Linked<T> | null, now: string): Valid<T> | null {
  if (found === null) return null
  const { document: record, linked } = found
  const user = (linked.user_id ?? null) as UserRecord | null
  const client = (linked.client_id ?? null) as ClientRecord | null
  const grant = (linked.grant_id ?? null) as GrantRecord | null
  const isCurrent = (issued: Revocable): boolean => (
    issued.expired_at > now &&
    (issued.user_id === undefined || (user !== null && (issued.user_epoch ?? -1) >= user.epoch)) &&
    (issued.client_id === undefined || (client !== null && (issued.client_epoch ?? -1) >= client.epoch))
  )
  if (!isCurrent(record) || (user !== null && !isActive(user, now)) || client?.disabled_at !== undefined) return null
  if (record.grant_id !== undefined && (grant === null || !isCurrent(grant))) return null
  return { record, user, client, grant, registry: (linked.registry_id ?? EMPTY_REGISTRY) as Registry }
}
