import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { toTimestamp } from '../clock.ts'
import { storeError } from '../errors.ts'
import { type Collection, type Document, type Store, StoreLostError, type StoreOptions } from './port.ts'
import { LAYOUT, type StateRecord } from './state.ts'
import type { Backend } from './sqlite/backend.ts'
import { SqliteCollection } from './sqlite/collection.ts'
import { FileBackend } from './sqlite/file.ts'
import { MemoryBackend } from './sqlite/memory.ts'
import { checkSpecs } from './sqlite/sql.ts'
import { createStateRecord } from './sqlite/state-record.ts'

/** Default of StoreOptions.timeout, in milliseconds. */
const TIMEOUT = 10_000
/** Default of StoreOptions.walLimit, in MiB. */
const WAL_LIMIT = 1024
/** Milliseconds between sweeps of expired documents. */
const SWEEP_INTERVAL = 60_000

/**
 * Opens `sqlite:PATH`, and creates a missing file unless `create` is false, or `sqlite::memory:`, a new empty store for tests.
 * @throws Error that tells the operator why the file cannot be used
 */
export async function openSqliteStore (url: string, options: StoreOptions): Promise<Store> {
  const { collections, timeout = TIMEOUT, onError = () => {}, onWarning = () => {}, create = true, migrate = true, walLimit = WAL_LIMIT, renderers, layout = LAYOUT, moving = false } = options
  const opener = { layout: { version: layout.version, oldestReader: layout.oldestReader }, moving }
  const path = parsePath(url)
  checkSpecs(collections)
  if (path === ':memory:') return new SqliteStore(new MemoryBackend(collections, opener), options)
  try {
    return new SqliteStore(await FileBackend.open(path, {
      collections, opener, timeout, onLost: onError, renderers, create, migrate, walLimit, onWarning
    }), options)
  } catch (error) {
    throw new Error(`DATABASE_URL: cannot open ${path}: ${findReason(error, path)}`, { cause: error })
  }
}

/** The path in a URL. `sqlite:a/b` is relative to the working directory; `sqlite:/a/b` and `sqlite:///a/b` are absolute. */
export function parsePath (url: string): string {
  const path = url.replace(/^sqlite:/i, '')
  if (path === '') throw new Error('DATABASE_URL: sqlite: must be followed by a path')
  if (/^\/\/(?!\/)/.test(path)) throw new Error('DATABASE_URL: sqlite: takes a path, not a host: write sqlite:PATH')
  return path
}

/** Primary result codes: SQLITE_IOERR, SQLITE_FULL and SQLITE_NOTADB. */
const NO_ROOM = [10, 13]
const NOT_A_DATABASE = 26

/** Bytes below which a disk counts as full: SQLite needs some pages, and the index of the log. */
const LITTLE = 2 ** 18

/**
 * What an operator should know about a file that cannot be opened.
 * @param countFree returns the free bytes of the disk
 */
export function findReason (error: unknown, path: string, countFree = countFreeBytes): string {
  const root = error as Error & { errcode?: number }
  if (root.name === 'IdentityError') return findReason(root.cause, path, countFree)
  if (root.errcode === NOT_A_DATABASE) return 'it is not an SQLite database'
  return NO_ROOM.includes((root.errcode ?? 0) & 0xff) && countFree(dirname(path)) < LITTLE
    ? `there is no space left on its disk (${root.message})`
    : root.message
}

function countFreeBytes (directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

class SqliteStore implements Store {
  readonly engine = 'sqlite'
  readonly state: StateRecord
  readonly #backend: Backend
  readonly #options: StoreOptions
  readonly #collections: ReadonlyMap<string, SqliteCollection<Document>>
  readonly #timer: NodeJS.Timeout
  #sweeping = false
  #closed: Promise<void> | null = null

  constructor (backend: Backend, options: StoreOptions) {
    this.#backend = backend
    this.#options = options
    this.state = createStateRecord(backend)
    this.#collections = new Map([...backend.tables].map(([name, table]) => [name, new SqliteCollection(backend, table)]))
    this.#timer = setInterval(() => { void this.#sweep() }, SWEEP_INTERVAL).unref()
  }

  collection<T extends Document> (name: string): Collection<T> {
    const collection = this.#collections.get(name)
    if (collection === undefined) throw new TypeError(`no collection ${name} is declared`)
    return collection as unknown as Collection<T>
  }

  async ping (): Promise<void> {
    this.verify()
    await this.#backend.ping()
  }

  verify (): void {
    if (this.#closed !== null) throw storeError(new Error('the store is closed'))
    this.#backend.verify()
  }

  close (): Promise<void> {
    clearInterval(this.#timer)
    this.#closed ??= this.#backend.close()
    return this.#closed
  }

  async #sweep (): Promise<void> {
    // The previous sweep may take longer than the interval.
    if (this.#sweeping) return
    this.#sweeping = true
    const { now, collections, onError } = this.#options
    try {
      const time = toTimestamp(now())
      for (const { name, expiry } of collections) {
        if (expiry !== undefined) await this.collection(name).deleteMany({ before: { [expiry]: time } })
      }
    } catch (error) {
      // A lost store was reported once, and nothing in it expires.
      if ((error as Error).cause instanceof StoreLostError) clearInterval(this.#timer)
      else onError?.(error)
    } finally {
      this.#sweeping = false
    }
  }
}
