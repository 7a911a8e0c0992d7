import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { warnOfMode } from '../../file-mode.ts'
import {
  type CollectionSpec, type CountQuery, type Filter, type ListQuery, type PageQuery, type StoreLostError, type StoreOptions, NoDatabaseError, OutdatedError
} from '../port.ts'
import type { Opener } from '../state.ts'
import type { Backend } from './backend.ts'
import { DocumentCache } from './cache.ts'
import type { Touched } from './changes.ts'
import { Connection, isLogged, measureContent, prepareFile } from './connection.ts'
import { DatabaseFile, identifyFile } from './database-file.ts'
import type { Failure } from './failure.ts'
import { type Operation, type Value, readChanges, readVersion } from './operations.ts'
import { LogLimit } from './log-limit.ts'
import { type Part, Reader } from './reader.ts'
import { isCurrent, isNew } from './schema.ts'
import { Table } from './sql.ts'
import { findState } from './state.ts'
import { createTableCheck } from './tables.ts'
import type { ThreadData } from './thread.ts'
import { Writer } from './writer.ts'

/** Milliseconds a look-up may block the event loop for a lock. With a log, readers wait only for the recovery of a file. */
const BUSY = 20
/** Milliseconds between two checks of the file, so that a damaged one is noticed without a call. */
const WATCH = 500

export interface FileOptions {
  collections: readonly CollectionSpec[]
  opener?: Opener | undefined
  /** Milliseconds an operation may take, waiting included. */
  timeout: number
  /** Called once when the file is removed, replaced or damaged. */
  onLost: (error: StoreLostError) => void
  renderers?: StoreOptions['renderers']
  /** Whether a new file may be made. */
  create: boolean
  /** Whether the tables may be changed. */
  migrate: boolean
  /** MiB. */
  walLimit: number
  onWarning: (message: string) => void
}

/** A database file: look-ups run on the main thread; writes, urgent reads and all other reads each in a thread of their own. */
export class FileBackend implements Backend {
  readonly connection: Connection
  readonly tables: ReadonlyMap<string, Table>
  readonly cache: DocumentCache
  readonly render: Backend['render']
  readonly #writer: Writer
  readonly #reader: Reader
  readonly #file: DatabaseFile
  readonly #logLimit: LogLimit
  readonly #data: ThreadData
  readonly #checkTables: () => void
  #watch: NodeJS.Timeout | undefined

  private constructor (path: string, { collections, opener, timeout, onLost, renderers, create, walLimit, onWarning }: FileOptions) {
    if (!create && !existsSync(path)) throw new NoDatabaseError()
    prepareFile(path)
    const real = realpathSync(path)
    this.connection = new Connection(real, { busy: timeout, cache: 8_000 })
    // After the connection: on an overlay file system, opening a file for writing may replace it by a copy.
    this.#file = new DatabaseFile(identifyFile(real), { onLost, measure: () => measureContent(this.connection) })
    this.#data = { file: this.#file.id, collections, opener, busy: timeout }
    this.#checkTables = createTableCheck(this.connection, collections)
    this.tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))
    this.cache = new DocumentCache(() => this.#readVersion(), { readChanges: () => this.#file.guard(() => readChanges(this.connection)) })
    this.#writer = new Writer(this.#data, { timeout, cache: this.cache, verify: (failures) => this.#verifyBatch(failures) })
    this.#reader = new Reader({ ...this.#data, renderers }, { timeout, onFailure: (failure) => this.#file.report(failure) })
    this.#logLimit = new LogLimit({ path: this.#file.id.path, limit: walLimit, endOldest: () => this.#reader.endOldest(), onWarning })
    this.render = renderers && ((table, query, rendering) => this.#reader.render(table.list(query, 'doc'), rendering))
  }

  static async open (path: string, options: FileOptions): Promise<FileBackend> {
    const { collections, opener, create, migrate, onWarning } = options
    const backend = new FileBackend(resolve(path), options)
    try {
      const made = isNew(backend.connection)
      if (made && !create) throw new NoDatabaseError()
      const isMigrated = isCurrent(backend.connection, collections, opener)
      if (!isMigrated && !migrate) throw new OutdatedError(findState(backend.connection), 0)
      // A migration syncs, and may read every document, so the writer thread runs it.
      if (!isMigrated || (migrate && !isLogged(backend.connection))) await backend.#writer.start()
      backend.connection.database.exec(`PRAGMA busy_timeout = ${BUSY}`)
      backend.#startWatch()
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

  read<R> (run: (connection: Connection) => R): R {
    this.verify()
    return this.#file.guard(() => run(this.connection))
  }

  async write (operation: Operation, touched: Touched | null): Promise<Value> {
    this.verify()
    return this.#writer.write(operation, touched)
  }

  count (table: Table, filter?: Filter, { limit, ...urgency }: CountQuery = {}): Promise<number> {
    return this.#reader.count(table.count(filter, limit), urgency)
  }

  page (table: Table, query: PageQuery): Promise<Part> {
    return this.#reader.page(table.list(query, 'doc'), query)
  }

  stream (table: Table, query: ListQuery): AsyncIterable<string[]> {
    return this.#reader.stream(table.list(query, 'doc'))
  }

  async ping (): Promise<void> {
    this.#checkFile()
    await this.#writer.check()
    // After a write of another connection SQLite reads from the file, and not from its cache.
    this.#readVersion()
  }

  /** The writer last, because the last connection to close checkpoints the log, which takes time. */
  async close (): Promise<void> {
    this.#logLimit.close()
    clearInterval(this.#watch)
    await this.#writer.drain()
    await this.#reader.close()
    this.connection.close()
    await this.#writer.close()
  }

  #startWatch (): void {
    this.#data.hasContent = true
    const check = () => {
      try {
        this.#checkFile()
      } catch {
        // A lost file was reported. After any other failure the next check tries again.
      }
    }
    check()
    this.#watch = setInterval(check, WATCH).unref()
  }

  #checkFile (): void {
    this.#file.check()
    this.#file.guard(this.#checkTables)
  }

  /** Throws ErrDb when nothing of a batch may be acknowledged. */
  #verifyBatch (failures: readonly Failure[]): void {
    // Until the store is open, a failure is the error of its opening.
    if (this.#data.hasContent === true) for (const failure of failures) this.#file.report(failure)
    this.#file.check()
  }

  /** Throws ErrDb when the file is lost: then its version no longer says what other processes see. */
  #readVersion (): string | null {
    this.#file.check()
    const version = this.#file.guard(() => readVersion(this.connection))
    if (version === null) this.#writer.renewVersion()
    return version
  }
}
