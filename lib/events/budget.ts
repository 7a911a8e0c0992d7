const HOUR = 60 * 60_000

/** Bytes that events may take in an hour. Callers share them. */
export class Budget {
  readonly #most: number
  readonly #shares = new Map<string, number>()
  #spent = 0
  #since = Number.NEGATIVE_INFINITY

  constructor (most: number) {
    this.#most = most
  }

  /** Begins an hour if the last one is over. */
  begin (time: number): void {
    if (time - this.#since < HOUR) return
    this.#since = time
    this.#spent = 0
    this.#shares.clear()
  }

  /** Whether half is spent. */
  get isShort (): boolean {
    return this.#spent >= this.#most / 2
  }

  /** Takes bytes for a summary, which belongs to no single caller. It may use the first half of all bytes only. */
  take (bytes: number): boolean {
    if (this.isShort) return false
    this.#spent += bytes
    return true
  }

  /**
   * Takes bytes for one caller. Nobody has more than what is left for the others, so whoever spends the most always leaves as much.
   * @param name the network of a stranger, or the account or client of a known caller
   */
  share (name: string, bytes: number): boolean {
    const own = (this.#shares.get(name) ?? 0) + bytes
    if (own > this.#most - this.#spent - bytes) return false
    this.#shares.set(name, own)
    this.#spent += bytes
    return true
  }
}
