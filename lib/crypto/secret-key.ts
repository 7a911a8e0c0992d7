import { link, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { warnOfMode } from '../file-mode.ts'
import { generateSecretKey, parseSecretKeys } from './secrets.ts'
import { makeDirectory, writeWholeFile } from '../whole-file.ts'
import { readCode } from '../failure.ts'

const FILE = 'secret.key'

export interface SecretKeyOptions {
  /** The store's URL. A generated key is stored next to an embedded database. */
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

/** Keys; the first one seals. */
type Keys = [Buffer, ...Buffer[]]

async function readKeys (file: string, onWarning: (message: string) => void): Promise<Keys | null> {
  try {
    const keys = parseSecretKeys(await readFile(file, 'utf8'))
    warnOfMode('key', file, onWarning)
    return keys
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new Error(`key file ${file}: ${code === undefined ? message : 'it cannot be read'}`, { cause: error })
  }
}

/** Writes a new key file. If another process has written it first, reads that key. */
async function makeKey (directory: string): Promise<Keys> {
  const key = generateSecretKey()
  const file = join(directory, FILE)
  try {
    await makeDirectory(directory)
    await writeWholeFile(file, (draft) => draft.writeFile(`${key.toString('base64')}\n`), link)
    return [key]
  } catch (error) {
    const other = readCode(error) === 'EEXIST' ? await readKeys(file, () => {}) : null
    if (other === null) {
      throw new Error(`key file ${file}: it cannot be written (IDENTITY_DATA_DIR names its folder): ${readCode(error)}`, { cause: error })
    }
    return other
  }
}

/** The file of the generated key. Null when none is used. */
export function findKeyFile (options: SecretKeyOptions): string | null {
  const directory = options.secretKey === undefined ? findDataDir(options) : null
  return directory === null ? null : join(directory, FILE)
}

/**
 * The keys that seal client secrets: the configured ones, else those in the file `secret.key` in the data folder, generated at
 * the first start. Production requires a configured key.
 * @param isSealed whether the store was opened with a key before. If so, a missing file is not replaced
 * @param settings.dryRun writes no file
 * @param settings.create whether a file may be made. Absent: it may
 * @throws Error that says what to configure
 */
export async function resolveSecretKeys (
  options: SecretKeyOptions, isSealed: () => Promise<boolean>, onWarning: (message: string) => void = () => {},
  { dryRun = false, create = true }: { dryRun?: boolean | undefined, create?: boolean | undefined } = {}
): Promise<Keys> {
  if (options.secretKey !== undefined) return parseSecretKeys(options.secretKey)
  if (options.production) {
    throw new Error('in production a secret key must be configured: secretKey, or IDENTITY_SECRET_KEY or IDENTITY_SECRET_KEY_FILE')
  }
  const file = findKeyFile(options)
  if (file === null) return [generateSecretKey()]
  const existing = await readKeys(file, onWarning)
  if (existing !== null) return existing
  const sealed = await isSealed()
  // Another process may have written the file and sealed the store meanwhile.
  const made = sealed ? await readKeys(file, onWarning) : null
  if (made !== null) return made
  if (sealed) {
    throw new Error(`key file ${file}: it is missing, and a new key could not open what this database was sealed with: restore the file, or configure the key`)
  }
  if (dryRun) return [generateSecretKey()]
  if (!create) throw new Error(`key file ${file}: it is missing, and only a start that may make a database makes one`)
  return await makeKey(dirname(file))
}
