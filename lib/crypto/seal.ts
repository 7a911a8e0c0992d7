import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import { retryWrite } from '../retry.ts'
import { type SecretKeyOptions, findKeyFile } from './secret-key.ts'

/** The store's record of the secret keys, by their ids. A key is first announced, then seals, and is retired in the end. */
export interface Seal extends Document {
  /** The key that seals. */
  key_id: string
  /** Keys that sealed earlier. Stored texts may still need them. */
  former?: string[]
  /** Keys that some process was started with, and that have not sealed anything yet. */
  announced?: string[]
  /** Former keys that no stored text needs any more. They never seal again. */
  retired?: string[]
  /** Counts writes. Absent in a record of an earlier release. */
  revision?: number
}

/** The id of the document in `meta` that names the keys of the store. */
export const SEAL_ID = 'secret-key'

/** The most retired keys, and the most announced keys, that the record holds. */
const REMEMBERED = 16

/** Whether the store was opened with a key before. */
export async function isSealed (store: Store): Promise<boolean> {
  return await store.collection<Seal>('meta').get(SEAL_ID) !== null
}

/**
 * The change to the record when a process starts with these keys. Null when nothing changes.
 * @throws Error when the process could not open stored texts, or would seal texts that other processes cannot open
 */
function follow (seal: Seal, keyIds: readonly string[], where: string): Partial<Seal> | null {
  const { key_id, former = [], announced = [], retired = [] } = seal
  const first = keyIds[0] as string
  if (!keyIds.includes(key_id)) {
    const reason = retired.includes(first) || former.includes(first) ? `: it was replaced by the key with the id ${key_id}` : ''
    throw new Error(`the secret key${where} is not the one this database was sealed with${reason}`)
  }
  const missing = former.find((id) => !keyIds.includes(id))
  if (missing !== undefined) {
    throw new Error(`the secret key with the id ${missing} is missing${where}, and stored secrets may still be sealed with it: put it after the others, and run \`keys reseal\``)
  }
  if (first === key_id) {
    const added = keyIds.filter((id) => ![key_id, ...former, ...announced, ...retired].includes(id))
    return added.length === 0 ? null : { announced: [...announced, ...added].slice(-REMEMBERED) }
  }
  // This process was started with the former order of keys. The write increments the revision, so `keys reseal` notices it.
  if (former.includes(first)) return {}
  if (announced.includes(first)) return { key_id: first, former: [...former, key_id], announced: announced.filter((id) => id !== first) }
  throw new Error(retired.includes(first)
    ? `the secret key with the id ${first} comes first${where}, but it was replaced by the one with the id ${key_id}: remove it`
    : `the secret key with the id ${first} comes first${where}, and is new to this database: put it after the one with the id ${key_id}, restart every process, and only then put it first`)
}

/** Where the keys are configured, for messages. */
function describeSource (options: SecretKeyOptions): string {
  const file = findKeyFile(options)
  return file === null ? '' : ` in ${file}`
}

/**
 * Compares the configured keys with the record of a store.
 * @param keyIds the key that seals comes first
 * @throws Error that says what to configure
 */
export function compareSecretKeys (seal: Seal, keyIds: readonly string[], options: SecretKeyOptions): void {
  follow(seal, keyIds, describeSource(options))
}

/**
 * Compares the configured keys with those of the store, and records the changes.
 * @param keyIds the key that seals comes first
 * @param dryRun only compares
 * @throws Error that says what to configure
 */
export async function checkSecretKeys (store: Store, keyIds: readonly string[], options: SecretKeyOptions, dryRun = false): Promise<void> {
  const meta = store.collection<Seal>('meta')
  const where = describeSource(options)
  await retryWrite('the record of the secret keys', async () => {
    const stored = await meta.get(SEAL_ID)
    if (stored === null) {
      const [first = '', ...announced] = keyIds
      const seal: Seal = { id: SEAL_ID, key_id: first, announced, revision: 0 }
      if (dryRun) return seal
      return await meta.insert(seal).then(() => seal, (error: unknown) => {
        if (error instanceof DuplicateKeyError) return null
        throw error
      })
    }
    const change = follow(stored, keyIds, where)
    if (change === null || dryRun) return stored
    if (stored.revision === undefined) {
      await meta.update(SEAL_ID, { increment: { revision: 1 } })
      return null
    }
    return await meta.update(SEAL_ID, { set: change, increment: { revision: 1 } }, { equal: { revision: stored.revision } })
  })
}

/** The record after a restore of a backup that these keys open. */
export function toRestored (seal: Seal, keyIds: readonly string[]): Seal {
  const [first = seal.key_id] = keyIds
  const { key_id, former = [], retired = [] } = seal
  if (first === key_id || retired.includes(first)) return seal
  return { ...seal, key_id: first, former: [...former, key_id].filter((id) => id !== first), announced: [] }
}

/** Marks the former keys as retired, unless a process was started since `seal` was read. Resolves to whether it did. */
export async function retireFormer (store: Store, { revision, former = [], retired = [] }: Seal): Promise<boolean> {
  const set = { former: [], retired: [...retired, ...former].slice(-REMEMBERED) }
  const where = { equal: { revision: revision ?? 0 } }
  return await store.collection<Seal>('meta').update(SEAL_ID, { set, increment: { revision: 1 } }, where) !== null
}
