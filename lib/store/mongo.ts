import type { MongoClient } from 'mongodb'
import { IdentityError } from '../errors.ts'
import { Calls, within } from './mongo/calls.ts'
import { MongoCollection, type Context } from './mongo/collection.ts'
import { READ_OPTIONS, createClient, toDatabaseName, toDbOptions, toHosts } from './mongo/connection.ts'
import { ensureIndexes } from './mongo/indexes.ts'
import { Turns } from './mongo/turns.ts'
import type { Collection, CollectionSpec, Document, Store, StoreOptions } from './port.ts'

const DEFAULT_TIMEOUT = 10_000

export interface MongoStoreOptions extends StoreOptions {
  /** A client of the host's, which the store uses and never closes. The URL then only names the database. */
  client?: MongoClient
}

/**
 * Opens the store in a MongoDB database, standalone or a replica set, and makes the declared indexes.
 * @param url `mongodb://` or `mongodb+srv://`; its path names the database, `identity` by default
 * @throws IdentityError ErrDb when the server does not answer in time or an index cannot be made: a process that cannot
 *   reach its store at the start ends, and its manager starts it again. Once open, the store outlives any outage.
 * @throws TypeError when the URL is invalid
 */
export async function openMongoStore (url: string, options: MongoStoreOptions): Promise<Store> {
  const { collections, client: host, timeout = DEFAULT_TIMEOUT } = options
  const client = host ?? createClient(url, timeout)
  const calls = new Calls(timeout)
  const specs = new Map(collections.map((spec) => [spec.name, spec]))
  const context: Context = {
    db: client.db(toDatabaseName(url), toDbOptions(timeout)),
    reads: client.db(toDatabaseName(url), READ_OPTIONS),
    calls,
    turns: new Turns(),
    spec: (name) => {
      const spec = specs.get(name)
      if (spec === undefined) throw new TypeError('the collection is not declared')
      return spec
    }
  }

  async function close (): Promise<void> {
    await calls.close()
    if (host === undefined) await closeClient(client, timeout)
  }

  try {
    // Before the store is given out: a client whose very first call fails never connects again (driver 7.9).
    await within(timeout, () => context.db.command({ ping: 1 }))
    await prepare(url, collections, timeout, host)
  } catch (error) {
    await close()
    const { message } = error as Error
    throw new IdentityError('ErrDb', `MongoDB at ${toHosts(url)} cannot be opened: ${message}`, { cause: error })
  }

  const opened = new Map(collections.map(({ name }) => [name, new MongoCollection<Document>(context, name)]))
  let closing: Promise<void> | undefined
  return {
    engine: 'mongodb',
    collection: <T extends Document>(name: string) => {
      const collection = opened.get(name)
      if (collection === undefined) throw new TypeError('the collection is not declared')
      return collection as unknown as Collection<T>
    },
    ping: () => calls.run(async () => { await context.db.command({ ping: 1 }) }),
    close: () => (closing ??= close())
  }
}

/** Makes the indexes, which may take as long as the collections are large. */
async function prepare (url: string, collections: readonly CollectionSpec[], timeout: number, host?: MongoClient): Promise<void> {
  // A client for this alone, without a bound for one answer: a server that hangs is found out by its heartbeat.
  const client = host ?? createClient(url, timeout, { socketTimeoutMS: 0, maxPoolSize: 1 })
  try {
    await ensureIndexes(client.db(toDatabaseName(url), toDbOptions(timeout)), collections)
  } finally {
    if (host === undefined) await closeClient(client, timeout)
  }
}

/** The driver says goodbye to the server first, which a server that hangs would prolong. */
async function closeClient (client: MongoClient, timeout: number): Promise<void> {
  await within(timeout, () => client.close()).catch(() => {})
}
