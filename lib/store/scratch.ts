import { hash } from 'node:crypto'
import { DatabaseSync } from './sqlite/node-sqlite.ts'

/** Bytes of the digest that stands for a key. With 128 bits, two of a billion keys collide with a probability of about 10^-21. */
const LENGTH = 16

const toDigest = (key: string): Buffer => hash('sha256', key, 'buffer').subarray(0, LENGTH)

/**
 * A map on the disk, for what one run must remember of a long input: its memory does not grow. It stores digests instead of its keys. Its
 * temporary file has no name, so it disappears with the process. Each call takes some microseconds.
 */
export class ScratchMap {
  readonly #database = new DatabaseSync('')
  readonly #get
  readonly #set

  constructor () {
    this.#database.exec(`
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA cache_size = -4096;
      CREATE TABLE entries (key BLOB PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      BEGIN`)
    this.#get = this.#database.prepare('SELECT value FROM entries WHERE key = ?')
    this.#set = this.#database.prepare('INSERT OR REPLACE INTO entries VALUES (?, ?)')
  }

  get (key: string): string | undefined {
    return this.#get.get(toDigest(key))?.['value'] as string | undefined
  }

  set (key: string, value: string): void {
    this.#set.run(toDigest(key), value)
  }

  close (): void {
    this.#database.close()
  }
}
