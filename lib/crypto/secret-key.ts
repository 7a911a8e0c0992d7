import { link, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { warnOfMode } from '../file-mode.ts'
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

async function readKey (file: string, onWarning: (message: string) => void): Promise<Buffer | null> {
  try {
    const key = parseSecretKey(await readFile(file, 'utf8'))
    warnOfMode('key', file, onWarning)
    return key
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new Error(`key file ${file}: ${code === undefined ? message : 'it cannot be read'}`, { cause: error })
  }
}

/** Writes a new key file. If another process was first, its key is used. */
async function makeKey (directory: string): Promise<Buffer> {
  const key = generateSecretKey()
  const file = join(directory, FILE)
  try {
    await makeDirectory(directory)
    await writeWholeFile(file, (draft) => draft.writeFile(`${key.toString('base64')}\n`), link)
    return key
  } catch (error) {
    const other = (error as NodeJS.ErrnoException).code === 'EEXIST' ? await readKey(file, () => {}) : null
    if (other === null) throw new Error(`key file ${file}: it cannot be written (IDENTITY_DATA_DIR names its folder): ${(error as NodeJS.ErrnoException).code}`, { cause: error })
    return other
  }
}

/** The file of the generated key; null where none is used. */
export function findKeyFile (options: SecretKeyOptions): string | null {
  const directory = options.secretKey === undefined ? findDataDir(options) : null
  return directory === null ? null : join(directory, FILE)
}

/**
 * The key that seals client secrets: the configured one, else the file `secret.key` in the data folder, generated at the
 * first start. Production requires a configured key.
 * @param isSealed whether the store was opened with a key before: then a missing file is not replaced
 * @throws Error that says what to configure
 */
export async function resolveSecretKey (
  options: SecretKeyOptions, isSealed: () => Promise<boolean>, onWarning: (message: string) => void = () => {}
): Promise<Buffer> {
  if (options.secretKey !== undefined) return parseSecretKey(options.secretKey)
  if (options.production) {
    throw new Error('in production a secret key must be configured: secretKey, or IDENTITY_SECRET_KEY or IDENTITY_SECRET_KEY_FILE')
  }
  const file = findKeyFile(options)
  if (file === null) return generateSecretKey()
  const known = await readKey(file, onWarning)
  if (known !== null) return known
  const sealed = await isSealed()
  // Another process may have made both meanwhile.
  const made = sealed ? await readKey(file, onWarning) : null
  if (made !== null) return made
  if (sealed) throw new Error(`key file ${file}: it is missing, and a new key could not open what this database was sealed with: restore the file, or configure the key`)
  return await makeKey(dirname(file))
}

interface Seal extends Document {
  key_id: string
}

/** The id of the document in `meta` that names the key of the store. */
export const SEAL_ID = 'secret-key'

/** Whether the store was opened with a key before. */
export async function isSealed (store: Store): Promise<boolean> {
  return await store.collection<Seal>('meta').get(SEAL_ID) !== null
}

/**
 * Compares the key with the one the store was first opened with. Another key could not open the stored secrets.
 * @throws Error when they differ
 */
export async function checkSecretKey (store: Store, keyId: string, options: SecretKeyOptions): Promise<void> {
  const meta = store.collection<Seal>('meta')
  const mine = { id: SEAL_ID, key_id: keyId }
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
  if (known?.key_id === keyId) return
  const file = findKeyFile(options)
  throw new Error(`the secret key${file === null ? '' : ` in ${file}`} is not the one this database was sealed with`)
}
