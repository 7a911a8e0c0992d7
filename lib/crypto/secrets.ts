import { createCipheriv, createDecipheriv, createHash, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { IdentityError } from '../errors.ts'

const VERSION = 'v1'
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
/** Keys that may be configured at once; a rotation needs two. */
const MOST_KEYS = 8

/** Encrypts texts with AES-256-GCM, so that a copy of the database reveals no client secret. */
export interface SecretBox {
  /** Identifies the key that seals, without revealing it. */
  readonly keyId: string
  /** The ids of all keys. The first key seals; every key opens. */
  readonly keyIds: readonly string[]
  /** The key that seals. */
  readonly key: KeyObject
  /** All keys, to create the same box in another thread. */
  readonly keys: readonly [KeyObject, ...KeyObject[]]
  /** Seals a text for one record: it opens only with the same `context`, which is authenticated with it. */
  seal (text: string, context: string): string
  /** Opens a sealed text. Throws ErrInternal when it has no key for it, the context is another, or the text was altered. */
  open (sealed: string, context: string): string
}

function parseKey (text: string): Buffer {
  const key = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  if (key.length !== KEY_BYTES || !/^[\w+/=-]+$/.test(text)) {
    throw new Error('the secret key must be 32 random bytes as base64 or hex, such as `openssl rand -base64 32` prints')
  }
  return key
}

/**
 * Reads the configured keys.
 * @param text one key, or several separated by commas or white space. Each is 32 bytes as base64, base64url or hex. The first
 *   seals, and all open
 * @throws Error that names the expected format, never the text
 */
export function parseSecretKeys (text: string): [Buffer, ...Buffer[]] {
  const keys = text.trim().split(/[\s,]+/).map(parseKey)
  if (keys.length > MOST_KEYS) throw new Error(`the secret key must be at most ${MOST_KEYS} keys`)
  if (keys.some((key, index) => keys.findIndex((other) => other.equals(key)) !== index)) throw new Error('the secret key must not contain the same key twice')
  return keys as [Buffer, ...Buffer[]]
}

export function generateSecretKey (): Buffer {
  return randomBytes(KEY_BYTES)
}

/** The id of the key that a text was sealed with. */
export function readKeyId (sealed: string): string {
  return sealed.split('.', 2)[1] ?? ''
}

function identify (key: KeyObject): string {
  return createHash('sha256').update('fastify-identity key id\n').update(key.export()).digest('base64url').slice(0, 8)
}

/** @param given the keys: the first seals, and all open */
export function createSecretBox (...given: [Buffer | KeyObject, ...(Buffer | KeyObject)[]]): SecretBox {
  // Created once: from bytes, each cipher would create a KeyObject of its own, which costs more than the sealing.
  const keys = given.map((key) => Buffer.isBuffer(key) ? createSecretKey(key) : key) as [KeyObject, ...KeyObject[]]
  const [key] = keys
  const keyIds = keys.map(identify)
  const keyId = identify(key)
  const starts = keyIds.map((id) => `${VERSION}.${id}.`)
  const start = `${VERSION}.${keyId}.`
  return {
    keyId,
    keyIds,
    key,
    keys,
    seal (text, context) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return start + Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')
    },
    open (sealed, context) {
      try {
        const used = keys[starts.findIndex((one) => sealed.startsWith(one))]
        if (used === undefined) throw new Error('sealed with a key that is not configured')
        const bytes = Buffer.from(sealed.slice(start.length), 'base64url')
        const decipher = createDecipheriv('aes-256-gcm', used, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
          .setAAD(Buffer.from(context))
          .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
        // Read as bytes: a string decoder would take a fifth of the time of opening.
        const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
        decipher.final()
        return text.toString()
      } catch (cause) {
        throw new IdentityError('ErrInternal', 'a stored secret cannot be opened', { cause })
      }
    }
  }
}
