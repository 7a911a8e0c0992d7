import type { Versions } from './cache.ts'

/**
 * What the thread that writes committed last, in memory that it shares with the main thread: there as soon as it is
 * committed, while the answer waits for its turn in the event loop. It is written after the commit, never before, so that what
 * it tells stays true whatever becomes of the thread.
 */
export class LastCommit {
  readonly memory: SharedArrayBuffer
  /** The version before the last batch, and the one it made. */
  readonly #versions: BigInt64Array

  constructor (memory = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#versions = new BigInt64Array(memory)
  }

  write ({ from, to }: Versions): void {
    Atomics.store(this.#versions, 0, BigInt(from))
    Atomics.store(this.#versions, 1, BigInt(to))
  }

  /**
   * Whether one batch of ours made the one version of the other. No pair that is half of one batch and half of the next
   * does: a batch follows when the one before is answered, and its first version is no lower than that one's last.
   */
  explains ({ from, to }: Versions): boolean {
    return Number(Atomics.load(this.#versions, 0)) === from && Number(Atomics.load(this.#versions, 1)) === to
  }
}
