import { createPublicKey, hash } from 'node:crypto'
import type { ClientKey } from '../records/client.ts'

/** The most keys of a client. */
export const MOST_KEYS = 5

/** The members of a public key that are kept. */
const PUBLIC = ['kty', 'kid', 'use', 'alg', 'crv', 'x', 'y', 'n', 'e'] as const

/** Members that only a private or a symmetric key has (RFC 7518, 6). */
const SECRET = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** The most characters of a text that names a key. */
const NAME_MAX = 128

/** Bits of an RSA key, and the bits and the least value of its exponent. They bound what a signature costs that a stranger has made up. */
const RSA_BITS = { least: 2048, most: 4096 }
const EXPONENT_BITS = 32
const LEAST_EXPONENT = 3

/** Keys that are tried for one signature. */
const MOST_TRIED = 2

/** A public JSON Web Key (RFC 7517). */
export type PublicKey = { [member: string]: string }

/** A key is refused. `value` is what was seen, and never a part of a secret. */
export class KeyError extends Error {
  override readonly name = 'KeyError'
  readonly value: unknown

  constructor (message: string, value?: unknown) {
    super(message)
    this.value = value
  }
}

const countBits = (value: bigint): number => value === 0n ? 0 : value.toString(2).length

const toNumber = (text = ''): bigint => BigInt(`0x0${Buffer.from(text, 'base64url').toString('hex')}`)

/** Whether a signature by the key costs as little as it may. One of another type than RSA always does. */
export function isWithinBounds ({ kty, n, e }: PublicKey): boolean {
  if (kty !== 'RSA') return true
  const [bits, exponent] = [countBits(toNumber(n)), toNumber(e)]
  return bits >= RSA_BITS.least && bits <= RSA_BITS.most && exponent % 2n === 1n && exponent >= LEAST_EXPONENT && countBits(exponent) <= EXPONENT_BITS
}

function readKey (key: unknown, name: string): PublicKey {
  if (typeof key !== 'object' || key === null || Array.isArray(key)) throw new KeyError(`${name} must be a JSON Web Key`, typeof key)
  const members = key as Record<string, unknown>
  // The value is not repeated: somebody has published a secret.
  const secret = SECRET.find((member) => Object.hasOwn(members, member))
  if (secret !== undefined || members.kty === 'oct') throw new KeyError(`${name} must be a public key, but has the member`, secret ?? 'kty "oct"')
  const kept = Object.fromEntries(PUBLIC.flatMap((member) => typeof members[member] === 'string' ? [[member, members[member]]] : []))
  if (['kid', 'use', 'alg'].some((member) => (kept[member] ?? '').length > NAME_MAX)) {
    throw new KeyError(`${name} must have names of at most ${NAME_MAX} characters`)
  }
  try {
    createPublicKey({ key: kept, format: 'jwk' })
  } catch {
    throw new KeyError(`${name} must be an RSA, EC or OKP key`, members.kty)
  }
  if (!isWithinBounds(kept)) {
    throw new KeyError(`${name} must be an RSA key of ${RSA_BITS.least} to ${RSA_BITS.most} bits, with an odd exponent from ${LEAST_EXPONENT} to ${EXPONENT_BITS} bits`)
  }
  return kept
}

/**
 * The public keys of a JSON Web Key Set, with their known members only.
 * @throws KeyError also for a private or a symmetric key
 */
export function readPublicKeys (jwks: unknown): PublicKey[] {
  const keys = (jwks as { keys?: unknown } | null | undefined)?.keys
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MOST_KEYS) {
    throw new KeyError(`must have one to ${MOST_KEYS} keys`, Array.isArray(keys) ? keys.length : typeof keys)
  }
  return keys.map((key, index) => readKey(key, `keys[${index}]`))
}

/** The members that the thumbprint of a key covers (RFC 7638, 3.2; RFC 8037, 2), in their order. */
const REQUIRED: Record<string, string[]> = { RSA: ['e', 'kty', 'n'], EC: ['crv', 'kty', 'x', 'y'], OKP: ['crv', 'kty', 'x'] }

/** The SHA-256 thumbprint of a key. */
export function toThumbprint (key: PublicKey): string {
  const members = REQUIRED[key.kty ?? ''] ?? []
  return hash('sha256', JSON.stringify(Object.fromEntries(members.map((member) => [member, key[member]]))), 'base64url')
}

function listPossible ({ kty, crv }: PublicKey): string[] {
  if (kty === 'RSA') return ['RS256', 'PS256']
  if (kty === 'EC') return crv === 'P-256' ? ['ES256'] : []
  return crv === 'Ed25519' ? ['EdDSA', 'Ed25519'] : []
}

/** The algorithms of signatures that a key verifies here. None: the key is of no use. Stored keys are judged again: bounds may have changed. */
export function listAlgorithms (key: PublicKey): string[] {
  if ((key.use !== undefined && key.use !== 'sig') || !isWithinBounds(key)) return []
  return listPossible(key).filter((alg) => key.alg === undefined || key.alg === alg)
}

/**
 * The keys of a client, each with its thumbprint, which is also the `kid` of a key without one. A key that the client had before keeps its
 * time of creation.
 */
export function toClientKeys (given: PublicKey[], before: readonly ClientKey[] = [], time: string): ClientKey[] {
  return given.map((key) => {
    const id = toThumbprint(key)
    return { id, jwk: { ...key, kid: key.kid ?? id }, created_at: before.find((known) => known.id === id)?.created_at ?? time }
  })
}

/** The algorithm and the `kid` in the header of a signature. It says nothing yet about who has signed. */
export interface SignatureHeader { alg?: unknown, kid?: unknown }

/** The client's keys that may have made a signature: those with its `kid`, or without one the newest ones of its algorithm. */
export function listCandidates (keys: readonly ClientKey[], { alg, kid }: SignatureHeader): ClientKey[] {
  return keys
    // The key decides which algorithms there are, so that no key verifies a signature of another kind.
    .filter(({ jwk }) => typeof alg === 'string' && listAlgorithms(jwk).includes(alg) && (kid === undefined || kid === jwk.kid))
    // Several keys may have one time, because one request has set them all. The last of them counts as the newest.
    .reverse()
    .sort((one, other) => other.created_at < one.created_at ? -1 : other.created_at > one.created_at ? 1 : 0)
    .slice(0, MOST_TRIED)
}

/** What a client reads when none of its keys verifies a signature. */
export function explainRefusal ({ kid }: SignatureHeader): string {
  return kid === undefined
    ? `no key of the client verifies the signature: without a kid only the ${MOST_TRIED} newest keys of the algorithm are tried, so send the kid`
    : 'no key of the client verifies the signature'
}
