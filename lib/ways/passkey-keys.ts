import { createPublicKey } from 'node:crypto'
import { listAlgorithms } from '../crypto/public-keys.ts'

/** Ed25519, ES256 and RS256 (RFC 9053), the best one first. */
export const ALGORITHMS = [-8, -7, -257]

/** A public key in COSE: its members by their labels (RFC 9052, 7). */
export interface CoseKey { get (label: number): unknown }

/** Labels of all kinds of keys, of EC2 and OKP (RFC 9053, 7), and of RSA (RFC 8230, 4). */
const [KTY, ALG, CRV, X, Y, N, E] = [1, 3, -1, -2, -3, -1, -2]

/** Bytes of a coordinate on P-256, and of a point on edwards25519. */
const COORDINATE = 32

const P = 2n ** 255n - 19n
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n

function raise (base: bigint, exponent: bigint): bigint {
  let result = 1n
  for (let square = base % P, rest = exponent; rest > 0n; rest >>= 1n, square = square * square % P) if ((rest & 1n) === 1n) result = result * square % P
  return result
}

/** Whether an encoded y has an x on edwards25519 (RFC 8032, 5.1.3): OpenSSL imports what has none, and then verifies nothing. */
function isPoint (encoded: Uint8Array): boolean {
  const bytes = Buffer.from(encoded).reverse()
  bytes[0]! &= 0x7f
  const y = BigInt(`0x${bytes.toString('hex')}`)
  if (y >= P) return false
  const square = (y * y + P - 1n) * raise(D * y * y + 1n, P - 2n) % P
  return square === 0n || raise(square, (P - 1n) / 2n) === 1n
}

const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

const isLong = (value: unknown): value is Uint8Array => value instanceof Uint8Array && value.length === COORDINATE

/** The key as a JSON Web Key of its own `alg`. Undefined where its type, curve or sizes are not those of the algorithm. */
function toJwk (key: CoseKey): Record<string, string> | undefined {
  const [x, y] = [key.get(X), key.get(Y)]
  const isKind = (alg: number, kty: number, crv?: number) => key.get(ALG) === alg && key.get(KTY) === kty && (crv === undefined || key.get(CRV) === crv)
  if (isKind(-7, 2, 1) && isLong(x) && isLong(y)) return { alg: 'ES256', kty: 'EC', crv: 'P-256', x: encode(x), y: encode(y) }
  if (isKind(-8, 1, 6) && isLong(x) && isPoint(x)) return { alg: 'EdDSA', kty: 'OKP', crv: 'Ed25519', x: encode(x) }
  const [n, e] = [key.get(N), key.get(E)]
  return isKind(-257, 3) && n instanceof Uint8Array && e instanceof Uint8Array ? { alg: 'RS256', kty: 'RSA', n: encode(n), e: encode(e) } : undefined
}

/**
 * Whether signatures of a passkey can be verified with this key: a passkey that is enrolled is demanded at the next sign-in. Without an
 * attestation, nobody has signed the key itself.
 */
export function isVerifiable (key: CoseKey): boolean {
  const jwk = toJwk(key)
  if (jwk === undefined || !listAlgorithms(jwk).includes(jwk['alg']!)) return false
  try {
    return createPublicKey({ key: jwk, format: 'jwk' }).type === 'public'
  } catch {
    return false
  }
}
