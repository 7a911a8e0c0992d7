import { createHash, hash } from 'node:crypto'
import { HashError, isEqual, readDigest, readSalt } from './encoding.ts'
import type { Scheme } from './scheme.ts'

/** Rounds of MD5 per millisecond. */
const SPEED = 2_000

/** The most rounds of phpass, the default of passlib. Each one reads the whole password: with one of 1 KiB they take a second. */
const ROUNDS = 2 ** 19

const ITOA64 = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const LENGTH: Record<string, number> = { md5: 16, sha1: 20, sha256: 32, sha512: 64 }

const concat = (algorithm: string, ...parts: (Buffer | string)[]): Buffer => {
  const made = createHash(algorithm)
  for (const part of parts) made.update(part)
  return made.digest()
}

/** The base64 of phpass: six bits a character, the lowest first. */
function encodeItoa64 (bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 3) {
    const count = Math.min(3, bytes.length - at)
    let value = bytes.readUIntLE(at, count)
    for (let index = 0; index <= count; index++, value >>= 6) text += ITOA64[value & 63]
  }
  return text
}

/** phpass, as WordPress before 6.8 and phpBB have it. */
const PHPASS: Scheme = {
  name: 'phpass',
  pattern: /^\$[PH]\$(?<rounds>[./\dA-Za-z])(?<salt>[./\dA-Za-z]{8})(?<digest>[./\dA-Za-z]{22})$/d,
  read ({ rounds = '', salt = '', digest = '' }) {
    const count = 2 ** ITOA64.indexOf(rounds)
    if (count < 2 ** 7 || count > ROUNDS) throw new HashError(`the number of rounds must be 128 to ${ROUNDS}`)
    return {
      work: count / SPEED,
      verify (password) {
        // Node makes a text of a digest three times as fast as a buffer.
        const input = Buffer.concat([Buffer.alloc(16), Buffer.from(password)])
        let value = hash('md5', salt + password, 'binary')
        for (let round = 0; round < count; round++) {
          input.write(value, 'latin1')
          value = hash('md5', input, 'binary')
        }
        return isEqual(Buffer.from(encodeItoa64(Buffer.from(value, 'binary'))), Buffer.from(digest))
      }
    }
  }
}

/** One round of a digest over password and salt: LDAP's `{SSHA}`, Django's MD5 and SHA-1, and tables of one's own. */
function createSalted (name: string, algorithm: string, weak = false): Scheme {
  return {
    name,
    weak,
    pattern: new RegExp(String.raw`^\$${name}\$(?<order>before|after)\$(?<salt>[\w+/]+)\$(?<digest>[\w+/]+)$`, 'd'),
    read ({ order, salt: encoded = '', digest: text = '' }) {
      const salt = readSalt(encoded)
      const digest = readDigest(text)
      if (digest.length !== LENGTH[algorithm]) throw new HashError(`the digest must have ${LENGTH[algorithm]} bytes`)
      return {
        work: 1,
        verify: (password) => isEqual(order === 'before' ? concat(algorithm, salt, password) : concat(algorithm, password, salt), digest)
      }
    }
  }
}

export const DIGEST_SCHEMES: readonly Scheme[] = [
  PHPASS,
  // LDAP servers offer little that is stronger, so these need no consent.
  createSalted('ssha', 'sha1'),
  createSalted('ssha256', 'sha256'),
  createSalted('ssha512', 'sha512'),
  createSalted('salted-md5', 'md5', true),
  createSalted('salted-sha1', 'sha1', true)
]
