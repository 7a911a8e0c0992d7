import { type Cipheriv, createCipheriv, type KeyObject } from 'node:crypto'

/**
 * Opens many short texts that AES-256-GCM sealed (NIST SP 800-38D, with an IV of 96 bits). Node makes a cipher for each
 * text, which costs many times what its two or three blocks do: here the blocks of a whole batch go through one AES of
 * OpenSSL's, and the hash that authenticates each text is computed beside it. Every text is authenticated before it is
 * given. The hash looks products up in a table, as implementations without a machine instruction for it do.
 */

const BLOCK = 16
const IV = 12
const TAG = 16
/** Bytes of a text, and of its context, at most. */
const LONGEST = 64
/** Bytes kept of a text. */
const STRIDE = IV + TAG + LONGEST + BLOCK
/** Texts whose blocks go through AES together. */
const BATCH = 128
/** 32-bit words of a block. */
const WORDS = 4

export interface Sealed {
  /** Holds the IV, the tag and the ciphertext as base64url, from `offset` to its end. */
  text: string
  offset: number
  /** What was authenticated with it. */
  context: string
}

const toBlocks = (bytes: number) => Math.ceil(bytes / BLOCK)

/** The hash's key times every value of a byte at each place of a block, in GCM's order of bits. */
function makeProducts (key: Buffer): Int32Array {
  const products = new Int32Array(BLOCK * 256 * WORDS)
  let [a, b, c, d] = [key.readInt32BE(0), key.readInt32BE(4), key.readInt32BE(8), key.readInt32BE(12)]
  for (let place = 0; place < BLOCK; place++) {
    const at = (byte: number) => (place * 256 + byte) * WORDS
    for (let bit = 0x80; bit > 0; bit >>= 1) {
      products.set([a, b, c, d], at(bit))
      // Times x: a shift to the right, and the field's polynomial for the bit that falls out.
      const fallen = (d & 1) === 0 ? 0 : 0xe1000000
      d = (d >>> 1) | (c << 31)
      c = (c >>> 1) | (b << 31)
      b = (b >>> 1) | (a << 31)
      a = (a >>> 1) ^ fallen
    }
    for (let byte = 3; byte < 256; byte++) {
      const lowest = byte & -byte
      for (let word = 0; word < WORDS; word++) products[at(byte) + word] = products[at(lowest) + word]! ^ products[at(byte ^ lowest) + word]!
    }
  }
  return products
}

/** Opens what was sealed under one key. */
export class GcmOpener {
  readonly #aes: Cipheriv
  readonly #products: Int32Array
  /** Of each text of a batch: IV, tag and ciphertext; and bytes of the latter. */
  readonly #packed = Buffer.alloc(BATCH * STRIDE)
  readonly #lengths = new Int32Array(BATCH)
  /** The blocks that AES turns into a keystream: of each text one for its tag, and those for its ciphertext. */
  readonly #counters = Buffer.alloc(BATCH * (BLOCK + LONGEST))
  /** What is hashed of a text: context and ciphertext, each filled up to whole blocks, and their lengths in bits. */
  readonly #hashed = Buffer.alloc(LONGEST + LONGEST + BLOCK)
  readonly #hash = new Int32Array(WORDS)

  constructor (key: KeyObject) {
    // The plain cipher, block by block: the counters and the hash are ours.
    this.#aes = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false)
    this.#products = makeProducts(this.#aes.update(Buffer.alloc(BLOCK)))
  }

  /** The texts; null for one that is not authentic, or that is beyond what is done here: longer, or its context not ASCII. */
  open (sealed: readonly Sealed[]): (string | null)[] {
    const texts: (string | null)[] = []
    for (let start = 0; start < sealed.length; start += BATCH) this.#openBatch(sealed.slice(start, start + BATCH), texts)
    return texts
  }

  #openBatch (batch: readonly Sealed[], texts: (string | null)[]): void {
    const packed = this.#packed
    const counters = this.#counters
    let blocks = 0
    for (const [index, { text, offset }] of batch.entries()) {
      const at = index * STRIDE
      const length = packed.write(text.slice(offset), at, STRIDE, 'base64url') - IV - TAG
      const isOurs = length >= 0 && length <= LONGEST
      this.#lengths[index] = isOurs ? length : -1
      const count = isOurs ? 1 + toBlocks(length) : 0
      for (let counter = 1; counter <= count; counter++) {
        const to = blocks++ * BLOCK
        for (let byte = 0; byte < IV; byte++) counters[to + byte] = packed[at + byte]!
        counters[to + BLOCK - 1] = counter
      }
    }
    const stream = this.#aes.update(counters.subarray(0, blocks * BLOCK))
    let from = 0
    for (const [index, { context }] of batch.entries()) {
      const length = this.#lengths[index]!
      texts.push(length === -1 ? null : this.#openOne(context, index * STRIDE, length, stream, from))
      if (length !== -1) from += (1 + toBlocks(length)) * BLOCK
    }
  }

  #openOne (context: string, at: number, length: number, stream: Buffer, from: number): string | null {
    const packed = this.#packed
    const body = at + IV + TAG
    const size = this.#fillHashed(context, body, length)
    if (size === null) return null
    this.#computeHash(size)
    let difference = 0
    for (let word = 0; word < WORDS; word++) {
      difference |= this.#hash[word]! ^ stream.readInt32BE(from + word * 4) ^ packed.readInt32BE(at + IV + word * 4)
    }
    if (difference !== 0) return null
    for (let byte = 0; byte < length; byte++) packed[body + byte]! ^= stream[from + BLOCK + byte]!
    return packed.toString('utf8', body, body + length)
  }

  /** Bytes to be hashed; null for a context that is too long or not ASCII. Loops, as a call for so few bytes costs more. */
  #fillHashed (context: string, body: number, length: number): number | null {
    const hashed = this.#hashed
    if (context.length > LONGEST) return null
    let end = 0
    while (end < context.length) {
      const code = context.charCodeAt(end)
      if (code > 0x7f) return null
      hashed[end++] = code
    }
    while (end % BLOCK !== 0) hashed[end++] = 0
    for (let byte = 0; byte < length; byte++) hashed[end++] = this.#packed[body + byte]!
    while (end % BLOCK !== 0) hashed[end++] = 0
    hashed.fill(0, end, end + BLOCK)
    hashed.writeUInt16BE(context.length * 8, end + 6)
    hashed.writeUInt16BE(length * 8, end + 14)
    return end + BLOCK
  }

  /** GHASH of the first bytes of `#hashed`. */
  #computeHash (size: number): void {
    const products = this.#products
    const hashed = this.#hashed
    let [a, b, c, d] = [0, 0, 0, 0]
    for (let at = 0; at < size; at += BLOCK) {
      let [e, f, g, h] = [0, 0, 0, 0]
      for (let place = 0; place < BLOCK; place++) {
        const word = place < 4 ? a : place < 8 ? b : place < 12 ? c : d
        const byte = ((word >>> (24 - (place & 3) * 8)) & 0xff) ^ hashed[at + place]!
        const entry = (place * 256 + byte) * WORDS
        e ^= products[entry]!
        f ^= products[entry + 1]!
        g ^= products[entry + 2]!
        h ^= products[entry + 3]!
      }
      [a, b, c, d] = [e, f, g, h]
    }
    this.#hash.set([a, b, c, d])
  }
}
