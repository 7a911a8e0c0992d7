import { IdentityError } from '../errors.ts'
import type { ClientRecord } from '../records.ts'
import type { Actor } from '../roles.ts'
import type { Collection } from '../store/port.ts'

/** @throws ErrLimit when this user may have no further client */
export type CheckClientQuota = (userId: string, actor: Pick<Actor, 'isAdmin'>) => Promise<void>

/**
 * Creates the check of how many clients a user may have. It counts the clients that the user owns, whoever registered them,
 * and an admin registers any number for anyone. Calls at the same time count the same clients: together they may exceed the
 * limit by their number less one. The store has no transactions, and a quota that holds approximately still bounds what
 * a user can store.
 * @param limit false: none
 */
export function createClientQuota (clients: Pick<Collection<ClientRecord>, 'count'>, limit: number | false): CheckClientQuota {
  return async (userId, { isAdmin }) => {
    if (limit === false || isAdmin) return
    if (await clients.count({ equal: { userId } }) < limit) return
    // Without Retry-After: waiting does not help.
    throw new IdentityError('ErrLimit', `clients: a user may have at most ${limit}`)
  }
}
