import type { Scalar } from '../port.ts'
import type { Call } from './calls.ts'
import { isDeadlock } from './errors.ts'

/**
 * Writers of one unique value go one after the other, in the order they came. mongod would sort them out by itself;
 * FerretDB, whose unique indexes are PostgreSQL's exclusion constraints, lets them deadlock, and takes a second to
 * find out for each. What other processes write at the same time may still deadlock: the one undone tries again.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>()

  /** @param values what the write holds of unique keys, with the names of collection and key */
  async take<T> (values: [collection: string, key: string, value: Scalar][], call: Call, write: () => Promise<T>): Promise<T> {
    const names = values.map((value) => JSON.stringify(value))
    const before = names.map((name) => this.#last.get(name))
    const { promise: done, resolve } = Promise.withResolvers<void>()
    for (const name of names) this.#last.set(name, done)
    try {
      await Promise.all(before)
      return await attempt(call, write)
    } finally {
      resolve()
      for (const name of names) if (this.#last.get(name) === done) this.#last.delete(name)
    }
  }
}

async function attempt<T> (call: Call, write: () => Promise<T>): Promise<T> {
  for (;;) {
    if (call.over) throw new Error('the time was up before the turn')
    try {
      return await write()
    } catch (error) {
      if (!isDeadlock(error)) throw error
    }
  }
}
