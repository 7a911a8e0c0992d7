import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync as Database, SQLInputValue, StatementSync } from 'node:sqlite'
import { makeMissing } from '../../directories.ts'
import { deadlineError } from '../../errors.ts'
import { type FileId, checkFile } from './database-file.ts'
import { DatabaseSync } from './node-sqlite.ts'
import { type Statement, WITHIN } from './sql.ts'

/** Prepared statements cached per connection. A program has some dozens, because their texts come from its code. */
const STATEMENTS = 300

/** SQLITE_BUSY. */
const BUSY = 5

export interface ConnectionOptions {
  /** Milliseconds to wait for a lock that another connection holds. The wait blocks the thread. */
  busy: number
  /** KiB of pages that the connection caches, above the cache of the operating system. */
  cache?: number
}

/** The function by which a statement ends at its deadline. SQLite calls it for each row. */
function checkDeadline (until: unknown): number {
  if (Date.now() > Number(until)) throw deadlineError()
  return 1
}

/** One SQLite connection with its prepared statements. */
export class Connection {
  readonly database: Database
  readonly #statements = new Map<string, StatementSync>()

  /**
   * @param file a path, or the identity of a file that other connections of this store have open
   * @throws StoreLostError when another file is found at the path
   */
  constructor (file: string | FileId, { busy, cache = 2_000 }: ConnectionOptions) {
    const path = typeof file === 'string' ? file : file.path
    // Checked before and after: SQLite would create a missing file, and the file may be replaced in between.
    if (typeof file !== 'string') checkFile(file)
    this.database = new DatabaseSync(path, { timeout: busy })
    try {
      if (typeof file !== 'string') checkFile(file)
      // FULL syncs the log at every commit, so that acknowledged writes are on the disk. fullfsync is for macOS, where a
      // plain fsync leaves data in the drive's cache. The size limit truncates a log that grew during long reads.
      this.database.exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
        PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -${cache}`)
      this.database.function(WITHIN, checkDeadline)
    } catch (error) {
      this.database.close()
      throw error
    }
  }

  prepare (sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      if (this.#statements.size >= STATEMENTS) this.#statements.delete(this.#statements.keys().next().value!)
      statement = this.database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  /** Runs a statement, and returns the number of rows written. */
  run ({ sql, values }: Statement): number {
    return Number(this.prepare(sql).run(...values).changes)
  }

  /** Reads the first row. */
  get<T> ({ sql, values }: Statement): T | undefined {
    return this.prepare(sql).get(...values) as T | undefined
  }

  /** Reads the row of a statement that always has one. */
  getRow<T> (statement: Statement): T {
    return this.prepare(statement.sql).get(...statement.values) as T
  }

  all<T> (sql: string, ...values: SQLInputValue[]): T[] {
    return this.prepare(sql).all(...values) as T[]
  }

  close (): void {
    this.#statements.clear()
    if (this.database.isOpen) this.database.close()
  }
}

/**
 * Switches a file to write-ahead logging, permanently. SQLite does not wait for the locks when two processes do this to a
 * new file at the same time, so it is retried here; `pause` blocks the thread between the attempts.
 */
export function enableWal (connection: Connection, timeout: number, pause: () => void = sleep): void {
  for (const deadline = performance.now() + timeout; ;) {
    try {
      connection.database.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== BUSY || performance.now() > deadline) throw error
      pause()
    }
  }
}

function sleep (): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
}

/** Whether the file has a write-ahead log. */
export function isLogged (connection: Connection): boolean {
  return connection.getRow<{ journal_mode: string }>({ sql: 'PRAGMA journal_mode', values: [] }).journal_mode === 'wal'
}

/** Bytes of the database, including what is only in its log. */
export function measureContent (connection: Connection): number {
  return connection.getRow<{ bytes: number }>({ sql: 'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size', values: [] }).bytes
}

/** Creates missing directories and a missing file, for the owner only. Throws when the file is not writable. */
export function prepareFile (path: string): void {
  const created = makeMissing(dirname(path))
  // An existing file is not opened: on POSIX, closing it would release the locks of this process's connections to it.
  if (existsSync(path)) accessSync(path, constants.W_OK)
  else closeSync(openSync(path, 'a', 0o600))
  // The entries of new directories must reach the disk too. SQLite syncs the directory of the file itself.
  if (created !== undefined) for (let at = dirname(path); at.length >= dirname(created).length; at = dirname(at)) syncDirectory(at)
}

/** Ignores errors: a system that cannot open a directory does not need its sync. */
function syncDirectory (path: string): void {
  try {
    const directory = openSync(path, 'r')
    try {
      fsyncSync(directory)
    } finally {
      closeSync(directory)
    }
  } catch {}
}
