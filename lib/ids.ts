import { randomInt } from 'node:crypto'
import { ulid } from 'ulid'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Characters of [0-9A-Za-z] from the CSPRNG; randomInt rejects rather than folds, so no character is favoured. */
export function randomText (length: number): string {
  let text = ''
  for (let i = 0; i < length; i++) text += ALPHABET[randomInt(ALPHABET.length)]
  return text
}

/** One of ulid's 32 characters, as the fraction it asks for. Its own generator makes a system call for each character. */
function drawFraction (): number {
  return randomInt(32) / 32
}

/** Generates a user or client id: a ULID, which sorts by time, and 8 random characters; 34 in all. */
export function generateId (now: number): string {
  return ulid(now, drawFraction) + randomText(8)
}
