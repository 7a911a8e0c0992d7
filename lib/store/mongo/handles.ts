import type { Collection, MongoClient } from 'mongodb'
import { READ_OPTIONS, toDbOptions } from './client.ts'
import type { Stored } from './documents.ts'

/** A collection of the driver. */
export interface Handle {
  writes: Collection<Stored>
  /** Without the write concern, which the driver would copy and remove for each read. */
  reads: Collection<Stored>
}

/** The driver's collections of one database, made once for each client. */
export class Handles {
  readonly #database: string
  readonly #timeout: number
  readonly #handles = new WeakMap<MongoClient, Map<string, Handle>>()

  constructor (database: string, timeout: number) {
    this.#database = database
    this.#timeout = timeout
  }

  get (client: MongoClient, name: string): Handle {
    let handles = this.#handles.get(client)
    if (handles === undefined) this.#handles.set(client, handles = new Map())
    let handle = handles.get(name)
    if (handle === undefined) {
      const [writes, reads] = [toDbOptions(this.#timeout), READ_OPTIONS]
        .map((options) => client.db(this.#database, options).collection<Stored>(name))
      handles.set(name, handle = { writes: writes!, reads: reads! })
    }
    return handle
  }
}
