import type { MongoClient } from 'mongodb'
import type { Timers } from '../../timers.ts'
import { within } from './bounded-calls.ts'
import { ping, toStepTimeout } from './client.ts'

/**
 * A host's MongoClient, or a function that makes one. The store closes what the function made, and calls it again when a
 * client does not recover. A client that is handed in itself is never closed or replaced.
 */
export type ClientOption = MongoClient | (() => MongoClient | Promise<MongoClient>)

/** A client that the host handed in, used instead of a WatchedClient. */
export class HostClient {
  readonly current: MongoClient
  readonly #timeout: number
  readonly #timers: Timers

  /** @param timeout milliseconds that one call may take */
  constructor (client: MongoClient, timeout: number, timers: Timers) {
    this.current = client
    this.#timeout = toStepTimeout(timeout)
    this.#timers = timers
  }

  async open (): Promise<void> {
    await this.ping()
  }

  async ping (): Promise<void> {
    try {
      await within(this.#timeout, () => ping(this.current), this.#timers)
    } catch (cause) {
      throw new Error('the MongoClient that was handed in does not answer, and the store never replaces it: hand in a function that makes one', { cause })
    }
  }

  onAnswer (): void {}

  /** It has no checks that would find the server again, so its calls try. */
  admit (): void {}

  async close (): Promise<void> {}
}
