import { type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'

const signInThread = promisify(sign)

/** Bytes of each of the two numbers of a signature by P-256. */
const NUMBER = 32

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')

/** The last bytes of a number, which has a zero before them where its first bit would be a sign. */
const toNumber = (bytes: Buffer): Buffer => Buffer.concat([Buffer.alloc(NUMBER), bytes]).subarray(-NUMBER)

/**
 * The two numbers one after the other (RFC 7518, 3.4), from their sequence in DER (RFC 3279, 2.2.3): a tag and a length, and for each number
 * a tag, a length and its bytes. Node does it itself with `dsaEncoding`, which doubles the time of a signature.
 */
function toConcatenation (der: Buffer): Buffer {
  const end = 4 + der.readUInt8(3)
  return Buffer.concat([toNumber(der.subarray(4, end)), toNumber(der.subarray(end + 2))])
}

/**
 * A signed JWT (RFC 7515, 3.1), with these members in its header. A signature of ES256 takes less time than the way to a thread and back, so it is
 * made here; one of RS256 takes ten times as long, and is made in a thread.
 */
export async function signJwt (claims: object, header: { alg: 'ES256' | 'RS256', kid: string, typ: string }, key: KeyObject): Promise<string> {
  const text = `${encode(header)}.${encode(claims)}`
  const bytes = Buffer.from(text)
  const signature = header.alg === 'ES256' ? toConcatenation(sign('sha256', bytes, key)) : await signInThread('sha256', bytes, key)
  return `${text}.${signature.toString('base64url')}`
}
