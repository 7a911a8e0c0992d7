import type { Clock } from '../clock.ts'
import { type UserRecord, findMailbox, listAddresses } from '../records/user.ts'
import type { Collection } from '../store/port.ts'
import { type AddressProof, type Prover, proveAddress } from '../user-changes/address-proof.ts'
import { listUndos } from '../user-changes/undos.ts'

/**
 * The fields of a user whose address is proved. The unique index on `addresses` refuses this write where another user has the address,
 * and `email_verified_at` ends the links that would verify it.
 */
export function toVerified (user: Pick<UserRecord, 'account'>, address: string, by: Prover, now: Clock): AddressProof & { addresses: string[] } {
  return { ...proveAddress(address, by, now()), addresses: listAddresses(user.account, address) }
}

/** The mailboxes of a user: theirs, and those that can still undo something. */
export function listMailboxes (record: UserRecord, now: number): string[] {
  return [...new Set([findMailbox(record), ...listUndos(record, now).map(({ mailbox }) => mailbox)])].filter((mailbox) => mailbox !== undefined)
}

/** The names by which findByName finds a user. */
export const listNames = ({ account, addresses = [] }: Pick<UserRecord, 'account' | 'addresses'>): string[] => [...new Set([account, ...addresses])]

/**
 * Finds a user by the name they type to sign in: the account or the verified address. It always makes two reads, whether or not
 * the user exists. Records of earlier releases are found by the account only.
 */
export async function findByName (users: Collection<UserRecord>, typed: string): Promise<UserRecord | null> {
  return (await findAllByName(users, typed))[0] ?? null
}

/** The users who have this name: by the account, by the address, or one by each. */
export async function findAllByName (users: Collection<UserRecord>, typed: string): Promise<UserRecord[]> {
  const name = typed.toLowerCase()
  const [byAccount, byAddress] = await Promise.all([users.getBy('account', name), users.getBy('addresses', name)])
  return [byAccount, byAddress?.id === byAccount?.id ? null : byAddress].filter((user) => user !== null)
}

/**
 * Whether another user has the address. The unique index on `addresses` decides at the write. This check avoids work before it,
 * and also finds accounts on records of earlier releases, which are not in that index.
 */
export async function isTaken (users: Collection<UserRecord>, address: string, user_id?: string): Promise<boolean> {
  const holder = await findByName(users, address)
  return holder !== null && holder.id !== user_id
}
