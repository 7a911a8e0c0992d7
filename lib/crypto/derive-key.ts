import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** Derives a key for one purpose from the secret key (RFC 5869). A key for one purpose reveals nothing about the others. */
export function deriveKey (key: KeyObject, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key.export(), '', `fastify-identity ${purpose}`, 32)))
}
