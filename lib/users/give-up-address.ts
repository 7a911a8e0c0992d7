import { checkAccount } from '../checks.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { UserRecord } from '../records.ts'
import type { Collection, Json } from '../store/port.ts'
import { findMailbox, isAddress, isTaken, listAddresses, listLiveChanges } from './addresses.ts'

export const addressTaken = (): IdentityError => new IdentityError('USER_EXIST', 'email: another user has this address')

/** Checks an address that an administrator sets. @throws ErrParam, USER_EXIST */
export async function checkFreeAddress (users: Collection<UserRecord>, text: string, user_id: string): Promise<string> {
  if (!isAddress(text)) throw paramError('email', 'must be an email address')
  let address
  try {
    address = checkAccount(text.trim())
  } catch {
    throw paramError('email', 'must be an email address')
  }
  if (await isTaken(users, address, user_id)) throw addressTaken()
  return address
}

/**
 * The change by which an administrator sets a user's address. Unlike a change by the user, no former mailbox can undo it or an
 * earlier change, since the user may have lost that mailbox to somebody else. The address counts as verified only if it was before.
 * @returns also the mailboxes that the user gives up
 */
export function giveUp (record: UserRecord, address: string, now: number): { set: { [field: string]: Json }, unset: string[], former: string[] } {
  const isSame = record.email === address
  const mailboxes = [record, ...listLiveChanges(record, now).map(({ email }) => ({ account: record.account, ...(email !== undefined && { email }) }))].map(findMailbox)
  return {
    set: { email: address, addresses: listAddresses(record.account, address) },
    unset: ['address_changes', ...isSame ? [] : ['email_verified_at']],
    former: [...new Set(mailboxes)].filter((mailbox): mailbox is string => mailbox !== undefined && mailbox !== address)
  }
}
