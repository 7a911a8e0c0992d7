/** The most bytes of a record. A person with many roles in another system may have hundreds of KiB. */
export const MAX_RECORD = 1024 * 1024

export const TOO_LONG = `is longer than ${MAX_RECORD / 1024} KiB`

/** Space between the parts of a JSON text (RFC 8259, 2). */
export const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The bytes of one record, which may arrive in several chunks. A record that is too long is not kept. */
export class Collector {
  readonly #limit: number
  #pieces: Buffer[] = []
  #size = 0

  constructor (limit: number = MAX_RECORD) {
    this.#limit = limit
  }

  add (piece: Buffer): void {
    this.#size += piece.length
    if (this.#size > this.#limit) this.#pieces = []
    else if (piece.length > 0) this.#pieces.push(piece)
  }

  /** The bytes, or null if there were too many. The next record begins. */
  take (): Buffer | null {
    const [first] = this.#pieces
    const whole = this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces)
    const bytes = this.#size > this.#limit ? null : whole
    this.#pieces = []
    this.#size = 0
    return bytes
  }
}
