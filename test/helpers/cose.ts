import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { isoCBOR } from '@simplewebauthn/server/helpers'

type Members = Record<string, string>

const LABELS: Record<string, [label: number, toValue: (text: string) => unknown][]> = {
  EC: [[-2, decode], [-3, decode]], OKP: [[-2, decode]], RSA: [[-1, decode], [-2, decode]]
}

const NAMES: Record<string, string[]> = { EC: ['x', 'y'], OKP: ['x'], RSA: ['n', 'e'] }

const HEADS: Record<string, [number, unknown][]> = { EC: [[1, 2], [3, -7], [-1, 1]], OKP: [[1, 1], [3, -8], [-1, 6]], RSA: [[1, 3], [3, -257]] }

function decode (text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'base64url'))
}

/** A public key in COSE, with some members replaced by their label. Undefined leaves one out. */
export function toCose (jwk: Members, changes: Record<number, unknown> = {}): Buffer {
  const kty = jwk['kty']!
  const members = new Map<number, unknown>(HEADS[kty])
  for (const [index, [label, toValue]] of LABELS[kty]!.entries()) members.set(label, toValue(jwk[NAMES[kty]![index]!]!))
  for (const [label, value] of Object.entries(changes)) {
    if (value === undefined) members.delete(Number(label))
    else members.set(Number(label), value)
  }
  return Buffer.from(isoCBOR.encode(members as never))
}

const exportKey = (publicKey: Parameters<typeof createPublicKey>[0]) => createPublicKey(publicKey).export({ format: 'jwk' }) as Members

/** A new public key of each kind. */
export const KEYS = {
  ec: () => exportKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey),
  p384: () => exportKey(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey),
  ed: () => exportKey(generateKeyPairSync('ed25519').privateKey),
  rsa: (modulusLength = 2048) => exportKey(generateKeyPairSync('rsa', { modulusLength }).privateKey)
}
