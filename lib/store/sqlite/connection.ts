import { accessSync, closeSync, constants, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { type FileId, checkFile } from './database-file.ts'
import type { Statement } from './sql.ts'

/** Prepared statements one connection keeps. Their texts come from the code, so a program has some dozens. */
const STATEMENTS = 300

/** SQLITE_BUSY. */
const BUSY = 5

export interface ConnectionOptions {
  /** Milliseconds to wait for a lock that another connection holds. It holds the thread, too. */
  busy: number
  /** Kibibytes of pages the connection keeps; the system's own cache is below it. */
  cache?: number
}

/** One SQLite connection with its prepared statements. */
export class Connection {
  readonly database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  /** @param file a path, or a file that is open already: the connection is refused if another file is found at its path */
  constructor (file: string | FileId, { busy, cache = 2_000 }: ConnectionOptions) {
    const path = typeof file === 'string' ? file : file.path
    // Before as well as after: SQLite would create a missing file, and the file may be replaced in between.
    if (typeof file !== 'string') checkFile(file)
    this.database = new DatabaseSync(path, { timeout: busy })
    try {
      if (typeof file !== 'string') checkFile(file)
      // FULL syncs the log at every commit: what is acknowledged is on the disk. fullfsync is for macOS, where a plain
      // fsync leaves the data in the drive's cache. The log is cut back after long readers have let it grow.
      this.database.exec(`PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
        PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -${cache}`)
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

  /** The number of rows written. */
  run ({ sql, values }: Statement): number {
    return Number(this.prepare(sql).run(...values).changes)
  }

  /** The first row. */
  get<T> ({ sql, values }: Statement): T | undefined {
    return this.prepare(sql).get(...values) as T | undefined
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
 * Turns a file to write-ahead logging, which it keeps. SQLite does not wait for every lock by itself when two processes
 * do so with a new file at once; `pause` holds the thread between attempts.
 */
export function useLog (connection: Connection, timeout: number, pause: () => void = sleep): void {
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

/** Makes the directories and the file where there are none, for the owner only, and throws when it cannot be written. */
export function prepareFile (path: string): void {
  const made = mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // One that is there is not opened: on POSIX closing it would drop the locks that this process's connections have on it.
  if (existsSync(path)) accessSync(path, constants.W_OK)
  else closeSync(openSync(path, 'a', 0o600))
  // A new directory's own entry must be on the disk too. SQLite itself syncs the one that holds the file.
  if (made !== undefined) for (let at = dirname(path); at.length >= dirname(made).length; at = dirname(at)) syncDirectory(at)
}

/** Systems that cannot open a directory need no sync of it. */
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
