import { LRUCache } from 'lru-cache'
import type { Document } from '../port.ts'

/** Characters of stored text that one collection's decoded documents may come from, and their number. */
const SIZE = 16_000_000
const COUNT = 20_000

/** What one batch of this process's own writes did to the file's version. */
export interface Versions {
  /** Before the batch, within its transaction. */
  from: number
  /** At its commit. */
  to: number
}

/**
 * Decoded documents of look-ups. Exact: what any connection of any process has committed is seen by the next look-up,
 * as without a cache.
 *
 * The file carries a version that triggers move at every change of a row, whoever makes it. It is read at every
 * look-up, which takes some microseconds: what was read once in a turn of the event loop would miss what was committed
 * since, and a turn's end cannot be told exactly. One that is not the version known here empties the cache, unless it is explained by this
 * process's own writes: what those touch is forgotten when they are asked for, and not kept again until they are
 * answered, and the answer tells whether another process's write came between.
 */
export class DocumentCache {
  readonly #readVersion: () => number
  readonly #collections = new Map<string, LRUCache<string, Document>>()
  /** Own writes that are not answered yet: by collection, then by id; '' is for a write whose ids are not known. */
  readonly #pending = new Map<string, Map<string, number>>()
  #known = Number.NaN
  #inFlight = false

  constructor (readVersion: () => number) {
    this.#readVersion = readVersion
  }

  /** Whether look-ups may use the cache and add to it now. Not while a version may be our own write's or another's. */
  isUsable (): boolean {
    const version = this.#readVersion()
    if (version === this.#known) return true
    if (this.#inFlight) return false
    this.#restart(version)
    return true
  }

  /** Only after `isUsable`, at once. */
  get (collection: string, id: string): Document | undefined {
    return this.#collections.get(collection)?.get(id)
  }

  /** Keeps a document that was read right after `isUsable`, frozen: all who ask for it share it. */
  set (collection: string, document: Document, length: number): void {
    const pending = this.#pending.get(collection)
    if (pending !== undefined && (pending.has('') || pending.has(document.id))) return
    let documents = this.#collections.get(collection)
    if (documents === undefined) {
      documents = new LRUCache({ max: COUNT, maxSize: SIZE })
      this.#collections.set(collection, documents)
    }
    documents.set(document.id, freeze(document), { size: length })
  }

  /** A write of this process is asked for: of one document, or without an id of any. Ends with `release`. */
  touch (collection: string, id: string = ''): void {
    if (id === '') this.#collections.get(collection)?.clear()
    else this.#collections.get(collection)?.delete(id)
    let pending = this.#pending.get(collection)
    if (pending === undefined) this.#pending.set(collection, pending = new Map())
    pending.set(id, (pending.get(id) ?? 0) + 1)
  }

  /** The write is answered, or never will be. */
  release (collection: string, id: string = ''): void {
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
    if (versions !== null && versions.from === this.#known) this.#known = versions.to
    else this.#restart(versions?.to ?? Number.NaN)
  }

  #restart (version: number): void {
    for (const documents of this.#collections.values()) documents.clear()
    this.#known = version
  }
}

function freeze<T> (value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value)
    for (const item of Object.values(value)) freeze(item)
  }
  return value
}
