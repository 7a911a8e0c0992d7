import { timingSafeEqual } from 'node:crypto'

/** The fewest and the most bytes of a digest. A shorter one would match many passwords, an empty one all. */
const DIGEST = { least: 16, most: 128 }

/** The most bytes of a salt. */
const SALT = 128

/** The reason why a hash can't be used. Its message contains nothing of the hash. */
export class HashError extends Error {}

/** Base64 without padding, as the PHC string format has it. */
export const toBase64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

function fromBase64 (text: string, what: string): Buffer {
  // Passlib writes a dot for the plus sign.
  const plain = text.replaceAll('.', '+').replace(/=+$/, '')
  const bytes = Buffer.from(plain, 'base64')
  if (toBase64(bytes) !== plain) throw new HashError(`the ${what} is not valid base64`)
  return bytes
}

/** @throws HashError */
export function readSalt (text: string): Buffer {
  const salt = fromBase64(text, 'salt')
  if (salt.length > SALT) throw new HashError(`the salt is longer than ${SALT} bytes`)
  return salt
}

/** @throws HashError */
export function readDigest (text: string): Buffer {
  const digest = fromBase64(text, 'digest')
  if (digest.length < DIGEST.least || digest.length > DIGEST.most) {
    throw new HashError(`the digest has ${digest.length} bytes, and must have ${DIGEST.least} to ${DIGEST.most}`)
  }
  return digest
}

/** @throws HashError */
export function readHex (text: string, what: string): Buffer {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) throw new HashError(`the ${what} is not hexadecimal`)
  return Buffer.from(text, 'hex')
}

/** Whether the digests are equal, compared in constant time. */
export function isEqual (one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
