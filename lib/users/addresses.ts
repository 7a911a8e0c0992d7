import type { UserRecord } from '../records.ts'
import type { Collection } from '../store/port.ts'

/** Whether an account is an address: the two formats of accounts differ in this character. */
export function isAddress (account: string): boolean {
  return account.includes('@')
}

/** The addresses that nobody else may have. */
export function listAddresses (account: string, email?: string): string[] {
  return [...new Set([account, email])].filter((address) => address !== undefined).filter(isAddress)
}

/** Where mails to the user go: the verified address, or the account as long as there is none. */
export function findMailbox ({ account, email }: Pick<UserRecord, 'account' | 'email'>): string | undefined {
  return email ?? (isAddress(account) ? account : undefined)
}

/**
 * Finds a user by what they type to sign in: the account, or the verified address. Always two reads, whether or not there is
 * such a user. On a record of an earlier release only the account is found.
 */
export async function findByName (users: Collection<UserRecord>, typed: string): Promise<UserRecord | null> {
  const name = typed.toLowerCase()
  const [byAccount, byAddress] = await Promise.all([users.getBy('account', name), users.getBy('addresses', name)])
  return byAccount ?? byAddress
}

/**
 * Whether the address is somebody's, other than this user's. The unique items decide; this spares the work before the write,
 * and finds the accounts of records of earlier releases, which are not among the items.
 */
export async function isTaken (users: Collection<UserRecord>, address: string, user_id?: string): Promise<boolean> {
  const holder = await findByName(users, address)
  return holder !== null && holder.id !== user_id
}
