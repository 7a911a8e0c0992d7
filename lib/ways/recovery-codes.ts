import { hash, randomBytes } from 'node:crypto'

/** Codes of one set. */
const CODES = 10

/** Bytes of a code: 120 bits, so that a plain hash protects it. */
const CODE_BYTES = 15

/** Crockford's base32: no letter looks like a digit. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

const GROUP = 4

/** Writes 120 bits as 24 characters in groups. */
function encode (bytes: Buffer): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 5) {
    // 40 bits are 8 characters.
    let value = bytes.readUIntBE(at, 5)
    let part = ''
    for (let index = 0; index < 8; index++, value = Math.floor(value / 32)) part = ALPHABET[value % 32]! + part
    text += part
  }
  return text.replaceAll(new RegExp(`.{${GROUP}}(?=.)`, 'g'), '$&-')
}

/** A code as it is compared: people leave out hyphens, and type O for 0, and I or L for 1. */
function normalize (code: string): string {
  return code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
}

export const hashCode = (code: string): string => hash('sha256', normalize(code), 'base64url')

/** A new set of codes. They are shown once; the store has their hashes. */
export function createCodes (): { codes: string[], hashes: string[] } {
  const codes = Array.from({ length: CODES }, () => encode(randomBytes(CODE_BYTES)))
  return { codes, hashes: codes.map(hashCode) }
}
