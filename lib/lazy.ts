/** Opens a resource at its first use, once for all callers. After a failure, the next call tries again. */
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

  /** Resolves to the resource if it was opened or is being opened, and to undefined otherwise. Never rejects, so that closing can go on. */
  async peek (): Promise<T | undefined> {
    return await this.#opened?.catch(() => undefined)
  }
}
