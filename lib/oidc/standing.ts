import { toTimestamp } from '../clock.ts'
import type { ClientRecord, UserRecord } from '../records.ts'
import type { Collection, Document } from '../store/port.ts'
import { isUserLive } from '../tokens/tokens.ts'

/** What a record that came of a sign-in or of a client's request stands on. */
export interface Standing extends Document {
  user_id?: string
  client_id?: string
  user_epoch?: number
  client_epoch?: number
  expired_at: string
}

/** A record that stands, with the user and the client it stands on. */
export interface Found<T> {
  record: T
  user: UserRecord | null
  client: ClientRecord | null
}

const LINKS: Record<string, string> = { user_id: 'users', client_id: 'clients' }
/** Of a sign-in, which is no client's. */
export const USER_LINK = { user_id: 'users' }

/**
 * Reads a record with its user and client in one look-up. Null when it is gone or expired, or when the user or the
 * client it names is gone, may not act, or has moved its epoch on since: then the record is dead, removed or not.
 */
export async function findStanding<T extends Standing> (
  collection: Collection<T>, id: string, now: number, links = LINKS
): Promise<Found<T> | null> {
  const found = await collection.getLinked(id, links)
  if (found === null) return null
  const record = found.document
  const user = (found.linked.user_id ?? null) as UserRecord | null
  const client = (found.linked.client_id ?? null) as ClientRecord | null
  if (record.expired_at <= toTimestamp(now)) return null
  if (record.user_id !== undefined) {
    if (user === null || !isUserLive(user, toTimestamp(now)) || (record.user_epoch ?? -1) < user.epoch) return null
  }
  if (record.client_id !== undefined) {
    if (client === null || (record.client_epoch ?? -1) < client.epoch) return null
  }
  return { record, user, client }
}
