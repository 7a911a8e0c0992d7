import { link, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { generateSecretKey, parseSecretKey } from './secrets.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import { makeDirectory, writeWholeFile } from '../whole-file.ts'

const FILE = 'secret.key'

export interface SecretKeyOptions {
  /** The store's URL. A generated key is stored beside an embedded database. */
  database: string
  secretKey?: string | undefined
  dataDir?: string | undefined
  production: boolean
}

/** The folder for generated secrets. Null for a store in memory. */
export function findDataDir ({ database, dataDir }: Pick<SecretKeyOptions, 'database' | 'dataDir'>): string | null {
  if (dataDir !== undefined) return dataDir
  if (database === 'sqlite::memory:') return null
  return database.startsWith('sqlite:') ? dirname(database.slice('sqlite:'.length)) : 'data'
}

async function readKey (file: string): Promise<Buffer | null> {
  try {
    return parseSecretKey(await readFile(file, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Writes a new key file. If another process was first, its key is used. */
async function makeKey (directory: string): Promise<Buffer> {
  await makeDirectory(directory)
  const key = generateSecretKey()
  const file = join(directory, FILE)
  try {
    await writeWholeFile(file, (draft) => draft.writeFile(`${key.toString('base64')}\n`), link)
    return key
  } catch (error) {
    const other = (error as NodeJS.ErrnoException).code === 'EEXIST' ? await readKey(file) : null
    if (other === null) throw error
    return other
  }
}

/**
 * The key that seals client secrets: the configured one, else the file `secret.key` in the data folder, generated at the
 * first start. Production requires a configured key.
 * @throws Error that says what to configure
 */
export async function resolveSecretKey (options: SecretKeyOptions): Promise<Buffer> {
  if (options.secretKey !== undefined) return parseSecretKey(options.secretKey)
  if (options.production) {
    throw new Error('in production a secret key must be configured: secretKey, or IDENTITY_SECRET_KEY or IDENTITY_SECRET_KEY_FILE')
  }
  const directory = findDataDir(options)
  if (directory === null) return generateSecretKey()
  return await readKey(join(directory, FILE)) ?? await makeKey(directory)
}

/**
 * Compares the key with the one the store was first opened with. Another key could not open the stored secrets.
 * @throws Error when they differ
 */
export async function checkSecretKey (store: Store, keyId: string): Promise<void> {
  const meta = store.collection<Document & { key_id: string }>('meta')
  const mine = { id: 'secret-key', key_id: keyId }
  let known = await meta.get(mine.id)
  if (known === null) {
    try {
      await meta.insert(mine)
      return
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
      known = await meta.get(mine.id)
    }
  }
  if (known?.key_id !== keyId) throw new Error('the secret key is not the one this database was sealed with')
}
