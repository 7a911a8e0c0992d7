/** Something that is opened at its first use: once for all who ask, and again when that failed. */
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

  /** What is open, or about to be; undefined for nothing. Never rejects, so that whoever closes can go on. */
  async peek (): Promise<T | undefined> {
    return await this.#opened?.catch(() => undefined)
  }
}
