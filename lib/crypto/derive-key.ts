import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** Derives a key for one purpose from the secret key (RFC 5869). A key for one purpose reveals nothing about the others. */
export function deriveKey (key: KeyObject, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key.export(), '', `fastify-identity ${purpose}`, 32)))
}

/** The same of each of several secret keys. */
export const deriveKeys = (keys: readonly [KeyObject, ...KeyObject[]], purpose: string): readonly [KeyObject, ...KeyObject[]] => {
  const [first, ...others] = keys
  return [deriveKey(first, purpose), ...others.map((key) => deriveKey(key, purpose))]
}
