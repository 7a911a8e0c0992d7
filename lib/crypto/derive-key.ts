import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** A key for one purpose, derived from the secret key (RFC 5869): what is made with one reveals nothing of another. */
export function deriveKey (key: KeyObject, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key.export(), '', `fastify-identity ${purpose}`, 32)))
}
