import { type KeyObject, createHmac, createSecretKey, randomBytes } from 'node:crypto'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { readStoredKey } from '../crypto/stored-key.ts'
import type { Document } from '../store/port.ts'

const DAY = 24 * 60 * 60_000
const KEY_BYTES = 32

/** A text that is remembered. The id is an HMAC of it. */
interface HashRecord extends Document {
  expired_at: string
}

export interface KeyedHashesParts extends Pick<Base, 'store' | 'now' | 'box'> {
  /** For how many days events are kept, and hashes with them. */
  days?: number | undefined
}

/**
 * Keeps keyed hashes of texts about people who were deleted, for as long as their events are kept.
 * @param collection where the hashes are
 * @param key_id the document of their key, in the collection `keys`
 */
export function createKeyedHashes ({ store, now, box, days = 400 }: KeyedHashesParts, collection: string, key_id: string) {
  const hashes = store.collection<HashRecord>(collection)
  /** No rotation changes it. */
  let key: KeyObject | undefined

  async function toId (text: string): Promise<string> {
    if (key === undefined) {
      const stored = await readStoredKey({ store, box }, key_id, () => randomBytes(KEY_BYTES).toString('base64url'))
      key = createSecretKey(Buffer.from(stored, 'base64url'))
    }
    return createHmac('sha256', key).update(text).digest('base64url')
  }

  return {
    async remember (text: string): Promise<void> {
      await hashes.put({ id: await toId(text), expired_at: toTimestamp(now() + days * DAY) })
    },

    async has (text: string): Promise<boolean> {
      const record = await hashes.get(await toId(text))
      return record !== null && record.expired_at > toTimestamp(now())
    }
  }
}
