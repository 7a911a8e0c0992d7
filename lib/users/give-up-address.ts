import { checkAccount } from '../checks.ts'
import type { Clock } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import { type UserFields, type UserRecord, findMailbox, isAddress, listAddresses, listPresent } from '../records/user.ts'
import type { Collection } from '../store/port.ts'
import { isTaken, listMailboxes, toVerified } from './addresses.ts'
import { keepUndos, listUndos, toUndoFields } from '../user-changes/undos.ts'

export const addressTaken = (field: 'email' | 'email_verified' = 'email'): IdentityError =>
  new IdentityError('USER_EXIST', `${field}: another user has this address`)

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

/** A change of a user's address, with the mailboxes that the user gives up. */
export interface AddressSet extends UserFields { givenUp: string[] }

/**
 * The change by which an administrator sets a user's address. Unlike a change by the user, no earlier mailbox can undo it or anything
 * earlier, since the user may have lost that mailbox to somebody else. The address counts as verified only if it was before.
 * @returns also the mailboxes that the user gives up
 */
function giveUp (record: UserRecord, address: string, now: number): AddressSet {
  const isSame = record.email === address
  const undos = toUndoFields(record, keepUndos(listUndos(record, now), ({ mailbox }) => mailbox === address))
  return {
    set: { email: address, addresses: listAddresses(record.account, address), ...undos.set },
    // Only an administrator gives somebody an address that no upstream claims.
    unset: [...undos.unset, ...listPresent(record, 'held_by'), ...isSame ? [] : ['email_verified_at'] as const],
    givenUp: listMailboxes(record, now).filter((mailbox) => mailbox !== address)
  }
}

/**
 * The change by which an administrator sets a user's address, or says that it is theirs, or both. An address that is verified already keeps
 * its proof, so that the request may be repeated.
 * @param address absent: the user keeps theirs
 * @throws ErrParam where there is nothing to verify
 */
export function setAddress (
  record: UserRecord, { address, verified = false }: { address: string | undefined, verified: boolean | undefined }, now: Clock
): AddressSet {
  const given = address === undefined ? { set: {}, unset: [], givenUp: [] } : giveUp(record, address, now())
  if (!verified) return given
  const mailbox = address ?? findMailbox(record)
  if (mailbox === undefined) throw paramError('email_verified', 'the user has no address')
  if (record.email_verified_at !== undefined && record.email === mailbox) return given
  return {
    ...given,
    set: { ...given.set, ...toVerified(record, mailbox, 'operator', now) },
    unset: given.unset.filter((field) => field !== 'email_verified_at')
  }
}
