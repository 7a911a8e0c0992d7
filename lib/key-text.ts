import { createPublicKey } from 'node:crypto'
import { paramError } from './errors.ts'

/** The most characters of keys that somebody types or pastes: five RSA keys of 4,096 bits. */
export const LONGEST_KEYS = 8_192

/**
 * Public keys as people have them: one in PEM, a JSON Web Key, or a set of them.
 * @throws ErrParam
 */
export function parseKeys (text: string): { keys: unknown[] } {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) throw paramError('jwks', 'must be a public key, and this one is private: keep it where it is')
  try {
    if (text.includes('-----BEGIN')) return { keys: [createPublicKey(text).export({ format: 'jwk' })] }
    const read = JSON.parse(text) as { keys?: unknown } | null
    return { keys: Array.isArray(read?.keys) ? read.keys : [read] }
  } catch {
    throw paramError('jwks', 'must be a public key in PEM, a JSON Web Key, or a set of them')
  }
}
