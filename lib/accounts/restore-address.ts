import { type AddressChange, type UserRecord, listAddresses } from '../records.ts'
import type { Json } from '../store/port.ts'

/**
 * The fields of a user's record with the address from before a change, for an undo. It and all later changes can be undone no more.
 * @param changes those that can be undone, the latest one last
 */
export function restoreAddress ({ account }: UserRecord, changes: readonly AddressChange[], index: number): { set: { [field: string]: Json }, unset: string[] } {
  const { email, email_verified_at } = changes[index]!
  return {
    set: {
      addresses: listAddresses(account, email),
      address_changes: changes.slice(0, index),
      ...(email !== undefined && { email }),
      ...(email_verified_at !== undefined && { email_verified_at })
    },
    unset: email === undefined ? ['email', 'email_verified_at'] : []
  }
}
