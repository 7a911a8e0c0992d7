import { type AddressChange, type UserRecord, listAddresses } from '../records.ts'
import type { Json } from '../store/port.ts'
import { restoreProof } from '../users/address-proof.ts'
import type { AccountContext } from './context.ts'

/**
 * The fields of a user's record with the address from before a change, for an undo. It and all later changes can be undone no more. An
 * upstream that claims the user by the present address goes on claiming them: otherwise an undo would lead out of its rule.
 * @param changes those that can be undone, the latest one last
 */
export function restoreAddress (record: UserRecord, changes: readonly AddressChange[], index: number, findOnly: AccountContext['findOnly']): { set: { [field: string]: Json }, unset: string[] } {
  const { account, roles } = record
  const { email } = changes[index]!
  const { set, unset } = restoreProof(changes[index]!)
  const only = findOnly?.(record)?.id
  const isLeft = only !== undefined && findOnly?.({ account, roles, ...(email !== undefined && { email }) })?.id !== only
  return {
    set: { ...set, addresses: listAddresses(account, email), address_changes: changes.slice(0, index), ...(isLeft && { held_by: only }) },
    unset
  }
}
