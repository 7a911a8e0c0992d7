import type { MongoClient } from 'mongodb'
import { IdentityError } from '../errors.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { BoundedCalls } from './mongo/bounded-calls.ts'
import { closeClient, createClient, toDatabaseName, toDbOptions, toHosts } from './mongo/client.ts'
import { MongoCollection, type Context } from './mongo/collection.ts'
import { Handles } from './mongo/handles.ts'
import { type ClientOption, HostClient } from './mongo/host-client.ts'
import { ensureIndexes, isNew, lacksIndexes } from './mongo/indexes.ts'
import { KeyedMutex } from './mongo/keyed-mutex.ts'
import { MongoState, STATE_COLLECTION, checkDatabase, createState, toDelay } from './mongo/state.ts'
import { WatchedClient } from './mongo/watched-client.ts'
import { type Collection, type Document, type Store, type StoreOptions, NoDatabaseError, OutdatedError } from './port.ts'
import { LAYOUT, type Opener } from './state.ts'

const DEFAULT_TIMEOUT = 10_000

export interface MongoStoreOptions extends StoreOptions {
  /** The store then takes only the database's name from the URL. */
  client?: ClientOption | undefined
  /** For tests. */
  timers?: Timers
}

/**
 * Opens the store in a MongoDB database, standalone or a replica set, and makes the declared indexes.
 * @param url `mongodb://` or `mongodb+srv://`; its path names the database, `identity` by default
 * @throws IdentityError ErrDb when the server does not answer in time or an index cannot be made: a process that cannot
 *   reach its store at the start exits, and its supervisor restarts it. An open store recovers by itself.
 * @throws TypeError when the URL is invalid
 */
export async function openMongoStore (url: string, options: MongoStoreOptions): Promise<Store> {
  const { collections, client: handedIn, timeout = DEFAULT_TIMEOUT, timers = TIMERS, onError } = options
  const client = typeof handedIn === 'object'
    ? new HostClient(handedIn, timeout, timers)
    : new WatchedClient({ create: handedIn ?? (() => createClient(url, timeout)), timeout, timers, onError, onOutage: (error) => calls.fail(error) })
  const calls: BoundedCalls = new BoundedCalls(timeout, { onAnswer: () => client.onAnswer(), admit: () => client.admit(), timers })
  const handles = new Handles(toDatabaseName(url), timeout)
  const specs = new Map(collections.map((spec) => [spec.name, spec]))
  const state = new MongoState({ calls, handle: () => handles.get(client.current, STATE_COLLECTION), opener: toOpener(options), timers })
  const context: Context = {
    calls,
    admit: () => state.admit(),
    mutex: new KeyedMutex(),
    handle: (name) => handles.get(client.current, name),
    spec: (name) => {
      const spec = specs.get(name)
      if (spec === undefined) throw new TypeError('the collection is not declared')
      return spec
    }
  }

  async function close (): Promise<void> {
    await calls.close()
    await client.close()
  }

  try {
    await client.open()
    await (handedIn === undefined ? prepare(url, options, timeout, timers) : makeIndexes(client.current, url, options, timeout))
  } catch (error) {
    await close()
    if (error instanceof OutdatedError) throw error
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
    state,
    ping: () => calls.run(async () => {
      await client.ping()
      await state.admit()
    }),
    close: () => (closing ??= close())
  }
}

const toOpener = ({ layout = LAYOUT, moving = false }: MongoStoreOptions): Opener => ({ layout, moving })

/** Creates the indexes with a separate client, which waits as long as it takes to index a large collection. */
async function prepare (url: string, options: MongoStoreOptions, timeout: number, timers: Timers): Promise<void> {
  // A server that hangs still fails: the driver's heartbeat detects it.
  const client = createClient(url, timeout, { socketTimeoutMS: 0, maxPoolSize: 1 })
  try {
    await makeIndexes(client, url, options, timeout)
  } finally {
    await closeClient(client, timeout, timers)
  }
}

async function makeIndexes (client: MongoClient, url: string, options: MongoStoreOptions, timeout: number): Promise<void> {
  const { collections, create = true, migrate = true, onWarning } = options
  const db = client.db(toDatabaseName(url), toDbOptions(timeout))
  const made = await isNew(db, collections)
  if (made && !create) throw new NoDatabaseError(`database ${db.databaseName}: `)
  if (made) await createState(db, toOpener(options))
  const state = await checkDatabase(db, toOpener(options))
  if (migrate) await ensureIndexes(db, collections)
  else if (await lacksIndexes(db, collections)) throw new OutdatedError(state, toDelay(timeout))
  if (made) onWarning?.(`a new, empty database was made: ${db.databaseName} at ${toHosts(url)}`)
}
