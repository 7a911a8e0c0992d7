import { LRUCache } from 'lru-cache'
import { deepFreeze } from '../../freeze.ts'
import type { Document } from '../port.ts'

/** Characters of stored text that one collection's decoded documents may come from, and their number. */
export const SIZE = 16_000_000
export const COUNT = 20_000

/** What one batch of this process's own writes did to the file's version. */
export interface Versions {
  /** Before the batch, within its transaction. */
  from: number
  /** At its commit. */
  to: number
}

/** Tells whether anything was committed since: see wal-index.ts. */
export interface Watch {
  /** Nothing was, since what was read before the last `keep`. */
  isSame (): boolean
  keep (): void
  forget (): void
}

/** Tells what an own batch did before its answer is here: see last-commit.ts. */
export interface Commits {
  explains (versions: Versions): boolean
}

interface Kept { document: Document, length: number }

/**
 * Decoded documents of look-ups. Exact: what any connection of any process has committed is seen by the next look-up,
 * as without a cache.
 *
 * The file carries a version that triggers move at every change of a row, whoever makes it. It is read at every look-up
 * that cannot be sure that nothing was committed since the last one. One that is not the version known here empties the
 * cache, unless it is explained by this process's own writes: what those touch is forgotten when they are asked for, and
 * not kept again until they are answered, and the thread that writes tells whether another process's write came between.
 */
export class DocumentCache {
  readonly #readVersion: () => number
  readonly #collections = new Map<string, LRUCache<string, Kept>>()
  /** Own writes that are not answered yet: by collection, then by id. */
  readonly #pending = new Map<string, Map<string, number>>()
  #known = Number.NaN
  #inFlight = false
  #stamp = 0
  #watch: Watch | null = null
  #commits: Commits | null = null

  constructor (readVersion: () => number) {
    this.#readVersion = readVersion
  }

  /** From now on the version is read only where this one cannot tell that it is what it was. */
  watch (watch: Watch): void {
    this.#watch = watch
  }

  /** From now on an own batch explains the version it made from the moment it is committed, not only when it is answered. */
  follow (commits: Commits): void {
    this.#commits = commits
  }

  /** While this is what it was, no document that was here has been forgotten because of a write. */
  get stamp (): number {
    return this.#stamp
  }

  /** Whether look-ups may use the cache and add to it now. Not while a version may be our own write's or another's. */
  isUsable (): boolean {
    if (this.#watch?.isSame() === true) return true
    const version = this.#readVersion()
    if (version !== this.#known) {
      if (!this.#inFlight) this.#restart(version)
      else if (this.#commits?.explains({ from: this.#known, to: version }) === true) this.#known = version
      else return false
    }
    this.#watch?.keep()
    return true
  }

  /** Only after `isUsable`, at once. With the length of the text that it was decoded from. */
  get (collection: string, id: string): Kept | undefined {
    return this.#collections.get(collection)?.get(id)
  }

  /** Keeps a document that was read right after `isUsable`, frozen: all who ask for it share it. */
  set (collection: string, document: Document, length: number): void {
    const pending = this.#pending.get(collection)
    if (pending?.has(document.id) === true) return
    let documents = this.#collections.get(collection)
    if (documents === undefined) {
      documents = new LRUCache({ max: COUNT, maxSize: SIZE })
      this.#collections.set(collection, documents)
    }
    documents.set(document.id, { document: deepFreeze(document), length }, { size: length })
  }

  /** A write of this process to one document is asked for. Ends with `release`. */
  touch (collection: string, id: string): void {
    this.#stamp++
    this.#collections.get(collection)?.delete(id)
    let pending = this.#pending.get(collection)
    if (pending === undefined) this.#pending.set(collection, pending = new Map())
    pending.set(id, (pending.get(id) ?? 0) + 1)
  }

  /** The write is answered, or never will be. */
  release (collection: string, id: string): void {
    const pending = this.#pending.get(collection)
    const count = pending?.get(id) ?? 0
    if (count > 1) pending?.set(id, count - 1)
    else pending?.delete(id)
    if (pending?.size === 0) this.#pending.delete(collection)
  }

  /** A batch goes to the writer. */
  send (): void {
    this.#inFlight = true
  }

  /** A batch was answered; without versions it is not known what became of it. */
  answer (versions: Versions | null): void {
    this.#inFlight = false
    if (versions !== null && (versions.from === this.#known || versions.to === this.#known)) this.#known = versions.to
    else this.#restart(versions?.to ?? Number.NaN)
  }

  #restart (version: number): void {
    for (const documents of this.#collections.values()) documents.clear()
    this.#stamp++
    this.#known = version
    this.#watch?.forget()
  }
}
