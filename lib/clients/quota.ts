import { IdentityError } from '../errors.ts'
import type { ClientRecord } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import type { Collection } from '../store/port.ts'

/** @throws ErrLimit when this user must not have another client */
export type CheckClientQuota = (userId: string, actor: Pick<Actor, 'isAdmin'>) => Promise<void>

/**
 * Creates the check of the number of clients per user. It counts all clients that the user owns, whoever has registered them. An
 * admin may register any number for any user. Because the store has no transactions, n concurrent calls may exceed the limit by
 * n - 1. Even so, the quota bounds the data that a user can store.
 * @param limit false: no limit
 */
export function createClientQuota (clients: Pick<Collection<ClientRecord>, 'count'>, limit: number | false): CheckClientQuota {
  return async (userId, { isAdmin }) => {
    if (limit === false || isAdmin) return
    if (await clients.count({ equal: { userId } }, { urgent: true }) < limit) return
    // No Retry-After, because waiting does not help.
    throw new IdentityError('ErrLimit', `clients: a user may have at most ${limit}`)
  }
}
