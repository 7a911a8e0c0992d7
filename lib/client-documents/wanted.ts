import { groupAddress } from '../throttling/networks.ts'

/**
 * A result that several callers wait for. Each address waits for its own turn, the first one to have its turn fetches, and all callers share
 * the result. So nobody waits longer because a busy network wants the same.
 */
export class Wanted<T> {
  /** By address. */
  readonly #turns = new Map<string, Promise<T>>()
  readonly #found = Promise.withResolvers<T>()
  readonly #ending = new AbortController()
  readonly #isVerdict: (error: unknown) => boolean
  #fetching: Promise<T> | undefined
  #callers = 0

  /** @param isVerdict whether a failure is everybody's too */
  constructor (isVerdict: (error: unknown) => boolean) {
    this.#isVerdict = isVerdict
    // All callers may have gone.
    this.#found.promise.catch(() => {})
  }

  get isBegun (): boolean { return this.#fetching !== undefined }

  /** Whether nobody waits for it. */
  get isOver (): boolean { return this.#callers === 0 }

  /** Aborted when there is a result. */
  get signal (): AbortSignal { return this.#ending.signal }

  /** Waits for the result, by the turn of the caller's address or by that of another one. */
  async wait (address: string, take: () => Promise<T>): Promise<T> {
    const key = groupAddress(address)
    const turn = this.#turns.get(key) ?? take().finally(() => { this.#turns.delete(key) })
    this.#turns.set(key, turn)
    this.#callers++
    try {
      return await Promise.race([this.#found.promise, turn])
    } finally {
      this.#callers--
    }
  }

  /** Fetches, or joins the fetch that runs. */
  async join (fetch: () => Promise<T>): Promise<T> {
    return await (this.#fetching ??= this.#fetch(fetch))
  }

  async #fetch (fetch: () => Promise<T>): Promise<T> {
    try {
      const result = await fetch()
      this.#found.resolve(result)
      this.#ending.abort()
      return result
    } catch (error) {
      this.#fetching = undefined
      if (this.#isVerdict(error)) {
        this.#found.reject(error)
        this.#ending.abort()
      }
      throw error
    }
  }
}
