import { randomFillSync } from 'node:crypto'
import { ulid } from 'ulid'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Bytes at and above it would favour some characters: they are drawn again. */
const EVEN = 256 - 256 % ALPHABET.length

/** Bytes of the CSPRNG, fetched many at a time: a call of it costs more than the byte. Those that were drawn are 0. */
const pool = new Uint8Array(4_096)
let next = pool.length

function drawByte (): number {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  const byte = pool[next]!
  pool[next++] = 0
  return byte
}

/** Characters of [0-9A-Za-z] from the CSPRNG, none of them favoured. */
export function randomText (length: number): string {
  let text = ''
  while (text.length < length) {
    const byte = drawByte()
    if (byte < EVEN) text += ALPHABET[byte % ALPHABET.length]
  }
  return text
}

/** One of ulid's 32 characters, as the fraction it asks for. Its own generator makes a system call for each character. */
function drawFraction (): number {
  return drawByte() % 32 / 32
}

/** Generates a user or client id: a ULID, which sorts by time, and 8 random characters; 34 in all. */
export function generateId (now: number): string {
  return ulid(now, drawFraction) + randomText(8)
}
