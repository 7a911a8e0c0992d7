import { crc32 } from 'node:zlib'
import { randomText } from '../ids.ts'

/** By its prefix, scanners of source code find a leaked secret. */
export const PREFIXES = { secret: 'fi_sec_', service: 'fi_svc_', personal: 'fi_pat_' } as const

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

/** A new secret: its prefix, 43 random characters, and a checksum by which scanners know that it is one. */
export function createPrefixed (kind: keyof typeof PREFIXES): string {
  const random = randomText(LENGTH)
  return PREFIXES[kind] + random + toChecksum(random)
}
