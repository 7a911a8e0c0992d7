import { type AddressChange, type UserRecord, listAddresses } from '../records.ts'
import type { Json } from '../store/port.ts'
import { restoreProof } from '../users/address-proof.ts'

/**
 * The fields of a user's record with the address from before a change, for an undo. It and all later changes can be undone no more.
 * @param changes those that can be undone, the latest one last
 */
export function restoreAddress ({ account }: UserRecord, changes: readonly AddressChange[], index: number): { set: { [field: string]: Json }, unset: string[] } {
  const { set, unset } = restoreProof(changes[index]!)
  return { set: { ...set, addresses: listAddresses(account, changes[index]!.email), address_changes: changes.slice(0, index) }, unset }
}
