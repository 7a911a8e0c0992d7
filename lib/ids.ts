import { randomFillSync } from 'node:crypto'
import { monotonicFactory, ulid } from 'ulid'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Bytes of this value or higher would make some characters more likely, so they are drawn again. */
const EVEN = 256 - 256 % ALPHABET.length

/** Random bytes, fetched in bulk because the call costs more than the bytes. A used byte is overwritten with 0. */
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

/** Characters of [0-9A-Za-z] from the CSPRNG, all equally likely. */
export function randomText (length: number): string {
  let text = ''
  while (text.length < length) {
    const byte = drawByte()
    if (byte < EVEN) text += ALPHABET[byte % ALPHABET.length]
  }
  return text
}

/** The random source for ulid, which selects one of 32 characters by a fraction. Its own source makes a system call per character. */
function drawFraction (): number {
  return drawByte() % 32 / 32
}

/** Creates a generator of strictly increasing ULIDs, also within one millisecond. */
export function createUlids (): (now: number) => string {
  const generate = monotonicFactory(drawFraction)
  return (now) => generate(now)
}

/** Generates a user or client id: a ULID, which sorts by time, and 8 random characters; 34 in all. */
export function generateId (now: number): string {
  return ulid(now, drawFraction) + randomText(8)
}
