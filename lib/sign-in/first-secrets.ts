import { rm } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { UserRecord } from '../records/user.ts'
import type { Store } from '../store/port.ts'
import { readCode } from '../failure.ts'

/** The file with the first admin's password. It is written when the first start has no terminal to print the password to. */
export function toFirstSecretsFile (directory: string): string {
  return resolve(join(directory, 'first-admin.txt'))
}

/**
 * Removes the file with the first admin's password once they have signed in.
 * @returns a function to call after each sign-in; it never rejects
 */
export function createFirstSecrets ({ store, directory, onWarning }: {
  store: Store, directory: string, onWarning: (message: string) => void
}) {
  const file = toFirstSecretsFile(directory)
  const users = store.collection<UserRecord>('users')
  return async function removeFirstSecrets (user_id: string): Promise<void> {
    if (!existsSync(file)) return
    try {
      if ((await users.get(user_id))?.bootstrap !== undefined) await rm(file, { force: true })
    } catch (error) {
      onWarning(`${file} holds the first admin's password and could not be removed (${readCode(error)}): remove it`)
    }
  }
}
