import { createCipheriv, createDecipheriv, createHash, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { IdentityError } from '../errors.ts'

const VERSION = 'v1'
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16

/** Seals texts with AES-256-GCM, so that the database alone yields no client secret. */
export interface SecretBox {
  /** Tells keys apart without telling a key. */
  readonly keyId: string
  /** To make the same box in another thread. */
  readonly key: KeyObject
  /** Seals a text. `context` is authenticated with it: what was sealed for one record opens for no other. */
  seal (text: string, context: string): string
  /** Opens what `seal` made. Throws ErrInternal when it was sealed with another key or context, or altered. */
  open (sealed: string, context: string): string
}

/**
 * Reads a configured key.
 * @param text 32 bytes as base64, base64url or hex
 * @throws Error that tells the form expected, never the text
 */
export function parseSecretKey (text: string): Buffer {
  const trimmed = text.trim()
  const key = /^[0-9a-f]{64}$/i.test(trimmed) ? Buffer.from(trimmed, 'hex') : Buffer.from(trimmed, 'base64')
  if (key.length !== KEY_BYTES || !/^[\w+/=-]+$/.test(trimmed)) {
    throw new Error('the secret key must be 32 random bytes as base64 or hex, such as `openssl rand -base64 32` prints')
  }
  return key
}

export function generateSecretKey (): Buffer {
  return randomBytes(KEY_BYTES)
}

export function createSecretBox (given: Buffer | KeyObject): SecretBox {
  // Made once: a cipher that is given the bytes makes one each time, which costs more than the sealing.
  const key = Buffer.isBuffer(given) ? createSecretKey(given) : given
  const keyId = createHash('sha256').update('fastify-identity key id\n').update(key.export()).digest('base64url').slice(0, 8)
  const start = `${VERSION}.${keyId}.`
  return {
    keyId,
    key,
    seal (text, context) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return start + Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')
    },
    open (sealed, context) {
      try {
        if (!sealed.startsWith(start)) throw new Error('sealed with another key')
        const bytes = Buffer.from(sealed.slice(start.length), 'base64url')
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
          .setAAD(Buffer.from(context))
          .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
        // As bytes: a decoder for the text that comes out would cost a fifth of the opening.
        const text = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
        decipher.final()
        return text.toString()
      } catch (cause) {
        throw new IdentityError('ErrInternal', 'a stored secret cannot be opened', { cause })
      }
    }
  }
}
