/** Opens something at its first use, once for all callers. A failed attempt is repeated by the next call. */
export class Lazy<T> {
  readonly #open: () => Promise<T>
  #opened: Promise<T> | undefined

  constructor (open: () => Promise<T>) {
    this.#open = open
  }

  get (): Promise<T> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** What was opened, or is being opened, if anything. Never rejects, so that closing can go on. */
  async peek (): Promise<T | undefined> {
    return await this.#opened?.catch(() => undefined)
  }
}
