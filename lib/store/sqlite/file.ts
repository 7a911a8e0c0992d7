import { resolve } from 'node:path'
import { BATCH_SIZE, type CollectionSpec, type Filter, type ListQuery, type StoreOptions } from '../port.ts'
import type { Backend } from './backend.ts'
import { DocumentCache } from './cache.ts'
import { Connection, prepareFile } from './connection.ts'
import type { Operation, Value } from './operations.ts'
import { guard } from './failure.ts'
import { Reader } from './reader.ts'
import { READ_VERSION, isCurrent } from './schema.ts'
import { Table } from './sql.ts'
import { WalIndex } from './wal-index.ts'
import { type Touched, Writer } from './writer.ts'

/** Milliseconds a look-up may hold the event loop for a lock. With a log readers meet one at most while a file is recovered. */
const BUSY = 20

const VERSION = { sql: READ_VERSION, values: [] }

/** A file: look-ups on this thread; writes, lists and counts each in a thread of their own. */
export class FileBackend implements Backend {
  readonly connection: Connection
  readonly tables: ReadonlyMap<string, Table>
  readonly cache: DocumentCache
  readonly render: Backend['render']
  readonly #writer: Writer
  readonly #reader: Reader
  readonly #path: string
  #index: WalIndex | null = null

  private constructor (path: string, collections: readonly CollectionSpec[], timeout: number, renderers: StoreOptions['renderers']) {
    prepareFile(path)
    this.#path = path
    const data = { path, collections, busy: timeout }
    this.connection = new Connection(path, { busy: timeout, cache: 8_000 })
    this.tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))
    this.cache = new DocumentCache(() => guard(() => this.connection.get<{ version: number }>(VERSION)!.version))
    this.#writer = new Writer(data, { timeout, cache: this.cache })
    this.#reader = new Reader({ ...data, renderers }, { timeout })
    this.render = renderers && ((table, query, rendering) => this.#reader.render(table.list(query, 'doc'), rendering))
  }

  static async open (path: string, collections: readonly CollectionSpec[], timeout: number, renderers?: StoreOptions['renderers']): Promise<FileBackend> {
    const backend = new FileBackend(resolve(path), collections, timeout, renderers)
    try {
      // Making tables syncs, and filling a new key reads every document: that is for the thread.
      const [{ journal_mode: mode }] = backend.connection.all<{ journal_mode: string }>('PRAGMA journal_mode') as [{ journal_mode: string }]
      if (mode !== 'wal' || !isCurrent(backend.connection, collections)) await backend.#writer.start()
      backend.connection.database.exec(`PRAGMA busy_timeout = ${BUSY}`)
      backend.#watch()
      return backend
    } catch (error) {
      await backend.close()
      throw error
    }
  }

  write (operation: Operation, touched: Touched | null): Promise<Value> {
    return this.#writer.write(operation, touched)
  }

  count (table: Table, filter?: Filter): Promise<number> {
    return this.#reader.count(table.count(filter))
  }

  list (table: Table, query: ListQuery): AsyncIterable<string[]> {
    const { limit = 0 } = query
    return this.#reader.list(table.list(query, 'doc'), limit > 0 && limit <= BATCH_SIZE + 1)
  }

  check (): Promise<void> {
    return this.#writer.check()
  }

  /** The writer last: the last connection to leave folds the log into the file, which takes a while. */
  async close (): Promise<void> {
    await this.#writer.drain()
    await this.#reader.close()
    this.connection.close()
    await this.#writer.close()
    this.#index?.close()
  }

  /** The index is there, and stays, once this connection has read. */
  #watch (): void {
    this.connection.get(VERSION)
    this.#index = WalIndex.open(this.#path)
    if (this.#index !== null) this.cache.watch(this.#index)
  }
}
