/** Buckets of 1 us up to 20 ms, and of 100 us up to 20 s; anything longer counts as 20 s. */
const FINE = 20_000
const COARSE = 200_000

/** A histogram of latencies. */
export class Histogram {
  readonly #fine = new Uint32Array(FINE)
  readonly #coarse = new Uint32Array(COARSE)
  #count = 0
  #max = 0

  get count (): number {
    return this.#count
  }

  /** Milliseconds. */
  get max (): number {
    return this.#max
  }

  record (milliseconds: number): void {
    this.#count++
    if (milliseconds > this.#max) this.#max = milliseconds
    const micros = (milliseconds * 1000) | 0
    if (micros < FINE) this.#fine[micros]!++
    else this.#coarse[Math.min(COARSE - 1, (micros / 100) | 0)]!++
  }

  /** Milliseconds. */
  percentile (share: number): number {
    let left = Math.ceil(this.#count * share)
    for (let micros = 0; micros < FINE; micros++) {
      left -= this.#fine[micros]!
      if (left <= 0) return (micros + 1) / 1000
    }
    for (let tenths = 0; tenths < COARSE; tenths++) {
      left -= this.#coarse[tenths]!
      if (left <= 0) return (tenths + 1) / 10
    }
    return NaN
  }
}
