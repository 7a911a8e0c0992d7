import { type KeyObject, createHmac, createSecretKey, randomBytes } from 'node:crypto'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'

const DAY = 24 * 60 * 60_000
const KEY_BYTES = 32

/** The key of a set of hashes. It is sealed for itself, so that a rotation of the secret key changes no hash. */
interface HashKeyRecord extends Document {
  revision: number
  /** 32 bytes, sealed under the configured secret key. */
  sealed: string
}

/** A text that is remembered. The id is an HMAC of it. */
interface HashRecord extends Document {
  expired_at: string
}

export interface KeyedHashesParts {
  store: Store
  now: Clock
  box: SecretBox
  /** For how many days events are kept, and hashes with them. */
  days?: number | undefined
}

/**
 * What is remembered of people who were deleted: keyed hashes, as long as events tell of them.
 * @param collection where the hashes are
 * @param key_id the document of their key, in the collection `keys`
 */
export function createKeyedHashes ({ store, now, box, days = 400 }: KeyedHashesParts, collection: string, key_id: string) {
  const keys = store.collection<HashKeyRecord>('keys')
  const hashes = store.collection<HashRecord>(collection)
  /** No rotation changes it. */
  let key: KeyObject | undefined

  async function readKey (): Promise<KeyObject> {
    const found = await keys.get(key_id)
    if (found !== null) return createSecretKey(Buffer.from(box.open(found.sealed, key_id), 'base64url'))
    await keys.insert({ id: key_id, revision: 0, sealed: box.seal(randomBytes(KEY_BYTES).toString('base64url'), key_id) }).catch((error: unknown) => {
      // Another process was faster.
      if (!(error instanceof DuplicateKeyError)) throw error
    })
    return await readKey()
  }

  async function toId (text: string): Promise<string> {
    key ??= await readKey()
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
