import type { Call } from './bounded-calls.ts'
import { isDeadlock } from './errors.ts'

/**
 * Runs writes that share a unique value one after another, in the order of the calls. mongod does not need this. FerretDB's
 * unique indexes are PostgreSQL exclusion constraints, on which concurrent writers deadlock, and the server takes a second
 * to detect each deadlock. A writer in another process may still cause one: the write that was undone is retried.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** @param keys one for each unique value that is written */
  async run<T> (keys: readonly string[], call: Call, write: () => Promise<T>): Promise<T> {
    const before = keys.map((key) => this.#last.get(key))
    const { promise: done, resolve } = Promise.withResolvers<void>()
    for (const key of keys) this.#last.set(key, done)
    try {
      await Promise.all(before)
      return await retryDeadlocks(call, write)
    } finally {
      resolve()
      for (const key of keys) if (this.#last.get(key) === done) this.#last.delete(key)
    }
  }
}

async function retryDeadlocks<T> (call: Call, write: () => Promise<T>): Promise<T> {
  for (;;) {
    if (call.answered) throw new Error('the deadline passed before the write could start')
    try {
      return await write()
    } catch (error) {
      if (!isDeadlock(error)) throw error
    }
  }
}
