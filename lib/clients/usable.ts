import { type ClientRecord, isVouchedFor } from '../records/client.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import type { Store } from '../store/port.ts'

/** A client, and why it signs nobody in. */
export interface FoundClient {
  client: ClientRecord | null
  /** The user who owns it. Null: nobody, or a deleted one. */
  owner: UserRecord | null
  /** Undefined for a client that may take part in a sign-in. */
  reason?: 'unknown_client' | 'client_disabled' | 'owner_stopped' | undefined
}

/**
 * Why a client signs nobody in and gets no tokens: it is disabled, or only its owner stands for it, and the owner is disabled,
 * expired or deleted. A client without an owner stops only when it is disabled. The access tokens that a client holds stay valid until they
 * expire: their look-up does not read the owner.
 */
function findStop (client: ClientRecord, owner: UserRecord | null, now: string): FoundClient['reason'] {
  if (client.disabled_at !== undefined) return 'client_disabled'
  const needsOwner = client.userId !== undefined && !isVouchedFor(client)
  return needsOwner && (owner === null || !isActive(owner, now)) ? 'owner_stopped' : undefined
}

const OWNER = { userId: 'users' }

/** Finds a client, also a stopped one, with the reason. One look-up. @param now ISO 8601 */
export async function findWithReason (store: Store, id: string, now: string): Promise<FoundClient> {
  const found = await store.collection<ClientRecord>('clients').getLinked(id, OWNER)
  if (found === null) return { client: null, owner: null, reason: 'unknown_client' }
  const owner = found.linked.userId as UserRecord | null
  return { client: found.document, owner, reason: findStop(found.document, owner, now) }
}

/**
 * Finds a client that may take part in a sign-in or get tokens; null if there is none, or it is stopped. One look-up.
 * @param now ISO 8601
 */
export async function findUsable (store: Store, id: string, now: string): Promise<ClientRecord | null> {
  const { client, reason } = await findWithReason(store, id, now)
  return reason === undefined ? client : null
}
