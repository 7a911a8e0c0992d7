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
  let keys: Stored | undefined

  /** Earlier releases derived them from the key that sealed. Hashes of theirs are found again, those of before a rotation that goes on too. */
  async function derive (): Promise<Stored> {
    const seal = await store.collection<Seal>('meta').get(SEAL_ID)
    const first = box.keyIds.indexOf(seal?.former?.[0] ?? seal?.key_id ?? box.keyId)
    const key = box.keys[Math.max(first, 0)]!
    return Object.fromEntries(PURPOSES.map((purpose) => [purpose, deriveKey(key, purpose).export().toString('base64url')])) as Stored
  }

  return {
    async open ({ dryRun = false } = {}) {
      const derived = await derive()
      const isMissing = dryRun && await store.collection('keys').get(ID) === null
      keys = isMissing ? derived : JSON.parse(await readStoredKey({ store, box }, ID, () => JSON.stringify(derived))) as Stored
    },

    get (purpose) {
      if (keys === undefined) throw new Error('the keys of hashes are not open yet')
      return createSecretKey(Buffer.from(keys[purpose], 'base64url'))
    }
  }
}
