import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { warnOfMode } from '../../file-mode.ts'
import { BATCH_SIZE, type CollectionSpec, type Filter, type ListQuery, type StoreLostError, type StoreOptions, noDatabaseError } from '../port.ts'
import type { Opener } from '../state.ts'
import type { Backend } from './backend.ts'
import { DocumentCache } from './cache.ts'
import { Connection, prepareFile } from './connection.ts'
import { DatabaseFile, identifyFile } from './database-file.ts'
import { type Operation, type Value, readVersion } from './operations.ts'
import { guard } from './failure.ts'
import { LogLimit } from './log-limit.ts'
import { Reader } from './reader.ts'
import { isCurrent, isNew } from './schema.ts'
import { Table } from './sql.ts'
import { type Touched, Writer } from './writer.ts'

/** Milliseconds a look-up may block the event loop for a lock. With a log, readers wait only for the recovery of a file. */
const BUSY = 20

export interface FileOptions {
  collections: readonly CollectionSpec[]
  opener?: Opener | undefined
  /** Milliseconds an operation may take, waiting included. */
  timeout: number
  /** Called once when the file is removed or replaced. */
  onLost: (error: StoreLostError) => void
  renderers?: StoreOptions['renderers']
  /** Whether a new file may be made. */
  create: boolean
  /** MiB. */
  walLimit: number
  onWarning: (message: string) => void
}

/** A database file: look-ups run on the main thread; writes, lists and counts each in a thread of their own. */
export class FileBackend implements Backend {
  readonly connection: Connection
  readonly tables: ReadonlyMap<string, Table>
  readonly cache: DocumentCache
  readonly render: Backend['render']
  readonly #writer: Writer
  readonly #reader: Reader
  readonly #file: DatabaseFile
  readonly #logLimit: LogLimit

  private constructor (path: string, { collections, opener, timeout, onLost, renderers, create, walLimit, onWarning }: FileOptions) {
    if (!create && !existsSync(path)) throw noDatabaseError()
    prepareFile(path)
    const real = realpathSync(path)
    this.connection = new Connection(real, { busy: timeout, cache: 8_000 })
    // After the connection: on an overlay file system, opening a file for writing may replace it by a copy.
    this.#file = new DatabaseFile(identifyFile(real), onLost)
    const data = { file: this.#file.id, collections, opener, busy: timeout }
    this.tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))
    this.cache = new DocumentCache(() => this.#readVersion())
    this.#writer = new Writer(data, { timeout, cache: this.cache, verify: () => this.#file.check() })
    this.#reader = new Reader({ ...data, renderers }, { timeout })
    this.#logLimit = new LogLimit({ path: this.#file.id.path, limit: walLimit, endOldest: () => this.#reader.endOldest(), onWarning })
    this.render = renderers && ((table, query, rendering) => this.#reader.render(table.list(query, 'doc'), rendering, query.signal))
  }

  static async open (path: string, options: FileOptions): Promise<FileBackend> {
    const { collections, opener, create, onWarning } = options
    const backend = new FileBackend(resolve(path), options)
    try {
      const made = isNew(backend.connection)
      if (made && !create) throw noDatabaseError()
      // A migration syncs, and may read every document, so the writer thread runs it.
      const [{ journal_mode: mode }] = backend.connection.all<{ journal_mode: string }>('PRAGMA journal_mode') as [{ journal_mode: string }]
      if (mode !== 'wal' || !isCurrent(backend.connection, collections, opener)) await backend.#writer.start()
      backend.connection.database.exec(`PRAGMA busy_timeout = ${BUSY}`)
      if (made) onWarning(`a new, empty database was made: ${backend.#file.id.path}`)
      warnOfMode('database', backend.#file.id.path, onWarning)
      return backend
    } catch (error) {
      await backend.close()
      throw error
    }
  }

  verify (): void {
    this.#file.checkOncePerTurn()
  }

  async write (operation: Operation, touched: Touched | null): Promise<Value> {
    this.verify()
    return this.#writer.write(operation, touched)
  }

  count (table: Table, filter?: Filter): Promise<number> {
    return this.#reader.count(table.count(filter))
  }

  list (table: Table, query: ListQuery): AsyncIterable<string[]> {
    const { limit = 0 } = query
    return this.#reader.list(table.list(query, 'doc'), limit > 0 && limit <= BATCH_SIZE + 1, query.signal)
  }

  async ping (): Promise<void> {
    this.#file.check()
    await this.#writer.check()
    // After a write of another connection SQLite reads from the file, and not from its cache.
    this.#readVersion()
  }

  /** The writer last, because the last connection to close checkpoints the log, which takes time. */
  async close (): Promise<void> {
    this.#logLimit.close()
    await this.#writer.drain()
    await this.#reader.close()
    this.connection.close()
    await this.#writer.close()
  }

  /** Throws ErrDb when the file is lost: then its version no longer says what other processes see. */
  #readVersion (): string | null {
    this.#file.check()
    const version = guard(() => readVersion(this.connection))
    if (version === null) this.#writer.renewVersion()
    return version
  }
}
