import { toTimestamp } from '../clock.ts'
import type { Collection, Document, Store, StoreOptions } from './port.ts'
import type { Backend } from './sqlite/backend.ts'
import { SqliteCollection } from './sqlite/collection.ts'
import { FileBackend } from './sqlite/file.ts'
import { MemoryBackend } from './sqlite/memory.ts'
import { checkSpecs } from './sqlite/sql.ts'

/** Milliseconds any one operation may take, where the options say nothing. */
const TIMEOUT = 10_000
/** Milliseconds between sweeps of expired documents. */
const SWEEP = 60_000

/**
 * Opens `sqlite:PATH`, a file that is made when there is none, or `sqlite::memory:`, which is for tests and a store of
 * its own each time. Rejects with an error for the operator when the file cannot be used.
 */
export async function openSqliteStore (url: string, options: StoreOptions): Promise<Store> {
  const { collections, timeout = TIMEOUT, onError = () => {} } = options
  const path = pathOf(url)
  checkSpecs(collections)
  if (path === ':memory:') return new SqliteStore(new MemoryBackend(collections), options)
  try {
    return new SqliteStore(await FileBackend.open(path, { collections, timeout, onLost: onError, renderers: options.renderers }), options)
  } catch (error) {
    throw new Error(`DATABASE_URL: cannot open ${path}: ${reasonOf(error)}`, { cause: error })
  }
}

/** `sqlite:a/b` is below the working directory, `sqlite:/a/b` and `sqlite:///a/b` are not. */
function pathOf (url: string): string {
  const path = url.replace(/^sqlite:/i, '')
  if (path === '') throw new Error('DATABASE_URL: sqlite: is followed by a path')
  if (/^\/\/(?!\/)/.test(path)) throw new Error('DATABASE_URL: sqlite: takes a path and no host: write sqlite:PATH')
  return path
}

/** SQLITE_NOTADB. */
const NOT_A_DATABASE = 26

function reasonOf (error: unknown): string {
  const root = error as Error & { errcode?: number }
  if (root.name === 'IdentityError') return reasonOf(root.cause)
  return root.errcode === NOT_A_DATABASE ? 'it is no SQLite database' : root.message
}

class SqliteStore implements Store {
  readonly engine = 'sqlite'
  readonly #backend: Backend
  readonly #options: StoreOptions
  readonly #collections: ReadonlyMap<string, SqliteCollection<Document>>
  readonly #timer: NodeJS.Timeout
  #sweeping = false
  #closed: Promise<void> | null = null

  constructor (backend: Backend, options: StoreOptions) {
    this.#backend = backend
    this.#options = options
    this.#collections = new Map([...backend.tables].map(([name, table]) => [name, new SqliteCollection(backend, table)]))
    this.#timer = setInterval(() => this.#sweep(), SWEEP).unref()
  }

  collection<T extends Document> (name: string): Collection<T> {
    const collection = this.#collections.get(name)
    if (collection === undefined) throw new TypeError(`no collection ${name} is declared`)
    return collection as unknown as Collection<T>
  }

  async ping (): Promise<void> {
    await this.#backend.check()
  }

  close (): Promise<void> {
    clearInterval(this.#timer)
    this.#closed ??= this.#backend.close()
    return this.#closed
  }

  async #sweep (): Promise<void> {
    // A sweep may take longer than the interval.
    if (this.#sweeping) return
    this.#sweeping = true
    const { now, collections, onError } = this.#options
    try {
      const time = toTimestamp(now())
      for (const { name, expiry } of collections) {
        if (expiry !== undefined) await this.collection(name).deleteMany({ before: { [expiry]: time } })
      }
    } catch (error) {
      onError?.(error)
    } finally {
      this.#sweeping = false
    }
  }
}
