import { crc32 } from 'node:zlib'
import { randomText } from '../ids.ts'

/** Scanners of source code find a leaked secret by this prefix, and know by the checksum that it is one. */
export const PREFIX = 'fi_sec_'

/** Characters of [0-9A-Za-z]: 256 random bits. */
const LENGTH = 43

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** The CRC32 of a text: 6 digits of base 62. */
export function toChecksum (text: string): string {
  let [rest, digits] = [crc32(text), '']
  for (let index = 0; index < 6; index++) {
    digits = DIGITS[rest % DIGITS.length] + digits
    rest = Math.floor(rest / DIGITS.length)
  }
  return digits
}

/** A new named secret. */
export function createSecretText (): string {
  const random = randomText(LENGTH)
  return PREFIX + random + toChecksum(random)
}
