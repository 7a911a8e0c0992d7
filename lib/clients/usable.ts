import { type ClientRecord, type UserRecord, isActive } from '../records.ts'
import type { Store } from '../store/port.ts'
import { isVouchedFor } from './kinds.ts'

/**
 * Whether a client signs nobody in and gets no tokens: it is disabled, or only its owner stands for it, and the owner is disabled,
 * expired or deleted. A client without an owner stops only when it is disabled. The access tokens that a client holds stay valid until they
 * expire: their look-up does not read the owner.
 */
function isStopped (client: ClientRecord, owner: UserRecord | null, now: string): boolean {
  return client.disabled_at !== undefined || (client.userId !== undefined && !isVouchedFor(client) && (owner === null || !isActive(owner, now)))
}

/**
 * Finds a client that may take part in a sign-in or get tokens; null if there is none, or it is stopped. One look-up.
 * @param now ISO 8601
 */
export async function findUsable (store: Store, id: string, now: string): Promise<ClientRecord | null> {
  const found = await store.collection<ClientRecord>('clients').getLinked(id, { userId: 'users' })
  return found === null || isStopped(found.document, found.linked.userId as UserRecord | null, now) ? null : found.document
}
