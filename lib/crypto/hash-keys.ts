import { type KeyObject, createSecretKey } from 'node:crypto'
import type { Store } from '../store/port.ts'
import { deriveKey } from './derive-key.ts'
import { SEAL_ID, type Seal } from './seal.ts'
import type { SecretBox } from './secrets.ts'
import { readStoredKey } from './stored-key.ts'

/** What is found again by its keyed hash: counts of wrong passwords, which account has which decoy, names in events, seeds that were imported. */
const PURPOSES = ['attempts', 'decoys', 'events', 'imported seeds'] as const
type Purpose = typeof PURPOSES[number]

/** The document of the keys, in the collection `keys`. */
const ID = 'hashes'

type Stored = Record<Purpose, string>

const toKeys = (stored: Stored) =>
  Object.fromEntries(PURPOSES.map((purpose) => [purpose, createSecretKey(Buffer.from(stored[purpose], 'base64url'))])) as Record<Purpose, KeyObject>

/** The keys of hashes that are stored, or that every process must compute alike. They stay when the secret key is rotated. */
export interface HashKeys {
  /**
   * Reads the keys. The first call of a database makes them.
   * @param options.dryRun makes none
   */
  open (options?: { dryRun?: boolean | undefined }): Promise<void>
  /** To be called after `open`. */
  get (purpose: Purpose): KeyObject
}

export function createHashKeys ({ store, box }: { store: Store, box: SecretBox }): HashKeys {
  let keys: Record<Purpose, KeyObject> | undefined

  /**
   * Derives the keys as earlier releases did, so that their hashes are found again. During a rotation these are the keys from before it, because
   * most hashes are.
   */
  async function derive (): Promise<Stored> {
    const seal = await store.collection<Seal>('meta').get(SEAL_ID)
    const first = box.keyIds.indexOf(seal?.former?.[0] ?? seal?.key_id ?? box.keyId)
    const key = box.keys[Math.max(first, 0)]!
    return Object.fromEntries(PURPOSES.map((purpose) => [purpose, deriveKey(key, purpose).export().toString('base64url')])) as Stored
  }

  return {
    async open ({ dryRun = false } = {}) {
      const isMissing = dryRun && await store.collection('keys').get(ID) === null
      keys = toKeys(isMissing ? await derive() : JSON.parse(await readStoredKey({ store, box }, ID, async () => JSON.stringify(await derive()))) as Stored)
    },

    get (purpose) {
      if (keys === undefined) throw new Error('the keys of hashes are not open yet')
      return keys[purpose]
    }
  }
}
