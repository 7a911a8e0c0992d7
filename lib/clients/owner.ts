import type { ClientRecord } from '../records/client.ts'
import type { Filter } from '../store/port.ts'

/** Whether the user owns the client. A client without an owner belongs to nobody, not even to a caller whose id is '' or absent. */
export function isOwnedBy ({ userId }: Pick<ClientRecord, 'userId'>, user_id: string | undefined): boolean {
  return userId !== undefined && userId !== '' && userId === user_id
}

/** The filter for the clients of a user, by the same rule. Without a user it matches nothing, because no record has the id ''. */
export function filterOwned (user_id: string | undefined): Filter {
  return user_id === undefined || user_id === '' ? { equal: { userId: '', id: '' } } : { equal: { userId: user_id } }
}
