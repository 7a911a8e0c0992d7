import { LRUCache } from 'lru-cache'
import { deepFreeze } from '../../freeze.ts'
import type { Document } from '../port.ts'
import type { Versions } from './operations.ts'
import { getTurn } from './turn.ts'

/** The bound of one collection: characters of stored text, and so many more for each document. */
const SIZE = 24_000_000
const OVERHEAD = 500

/** A cached document, frozen because its readers share it. */
export interface Entry<T extends Document = Document> {
  readonly document: T
  /** Increases with every document that is read into the cache. */
  readonly stamp: number
}

/**
 * Decoded documents of look-ups, all of one version of the store's content. Every commit of any process makes a new
 * version, a random number, so that an equal version means equal content, also after a backup was restored.
 *
 * The version is read once per turn of the event loop, and again with every document that is read. A version that is not
 * the cached one empties the cache, with one exception: the commit of an own batch. The documents that a batch writes
 * are evicted when the write is requested and not cached again until it was answered, and the answer says which version the
 * batch changed into which. Until then a new version may be the batch's or another process's: look-ups bypass the cache.
 */
export class DocumentCache {
  readonly #readVersion: () => string
  readonly #getTurn: () => number
  readonly #collections = new Map<string, CollectionCache>()
  /** The version of all cached documents; null when it is unknown and there are none. */
  #version: string | null = null
  #turn = Number.NaN
  /** Whether the version last read is the one of the cached documents. */
  #isCurrent = false
  /** A batch of this store's was sent to the writer and not answered. */
  #inFlight = false
  #stamp = 0
  /** Increases whenever a document may have changed. */
  #generation = 0

  constructor (readVersion: () => string, turn: () => number = getTurn) {
    this.#readVersion = readVersion
    this.#getTurn = turn
  }

  collection (name: string): CollectionCache {
    let collection = this.#collections.get(name)
    if (collection === undefined) this.#collections.set(name, collection = new CollectionCache(() => ++this.#stamp, () => { this.#generation++ }))
    return collection
  }

  /** Whether look-ups may use cached documents. Reads the version if this turn has not done so. */
  isCurrent (): boolean {
    const turn = this.#getTurn()
    if (turn !== this.#turn) {
      this.accepts(this.#readVersion())
      this.#turn = turn
    }
    return this.#isCurrent
  }

  /** See Collection.getGeneration. */
  getGeneration (): number | undefined {
    return this.isCurrent() ? this.#generation : undefined
  }

  /** Whether documents read together with this version may be cached. */
  accepts (version: string): boolean {
    this.#isCurrent = version === this.#version || !this.#inFlight
    if (this.#isCurrent && version !== this.#version) {
      this.#clear()
      this.#version = version
    }
    return this.#isCurrent
  }

  /** Call when a batch is sent to the writer. */
  send (): void {
    this.#inFlight = true
  }

  /** Call when the batch is answered, with null when it is unknown whether it was committed. */
  answer (versions: Versions | null): void {
    this.#inFlight = false
    if (versions?.before !== this.#version) this.#clear()
    this.#version = versions?.after ?? null
    this.#turn = Number.NaN
  }

  #clear (): void {
    this.#generation++
    for (const collection of this.#collections.values()) collection.clear()
  }
}

/** The cached documents of one collection. */
export class CollectionCache {
  /** Without a maximal count, for which it would allocate the room at once and walk through it at each `clear`. */
  readonly #entries = new LRUCache<string, Entry>({ maxSize: SIZE })
  /** Own writes that were requested and not answered, by document id. */
  readonly #writes = new Map<string, number>()
  readonly #nextStamp: () => number
  readonly #onWrite: () => void

  constructor (nextStamp: () => number, onWrite: () => void) {
    this.#nextStamp = nextStamp
    this.#onWrite = onWrite
  }

  /** Valid only while `isCurrent` holds, that is, at once. */
  get (id: string): Entry | undefined {
    return this.#entries.get(id)
  }

  /**
   * Caches a document of an accepted version, decoded from this text. A document that is cached already has the same content
   * and keeps its stamp. Undefined while an own write of the document is pending: its content may be about to change.
   */
  add <T extends Document>(id: string, text: string): Entry<T> | undefined {
    if (this.#writes.has(id)) return undefined
    let entry = this.#entries.get(id)
    if (entry === undefined) {
      entry = { document: deepFreeze(JSON.parse(text) as T), stamp: this.#nextStamp() }
      this.#entries.set(id, entry, { size: text.length + OVERHEAD })
    }
    return entry as Entry<T>
  }

  /** Call when an own write of this document is requested. */
  beginWrite (id: string): void {
    this.#onWrite()
    this.#entries.delete(id)
    this.#writes.set(id, (this.#writes.get(id) ?? 0) + 1)
  }

  /** Call when that write is answered, or abandoned. */
  endWrite (id: string): void {
    const writes = this.#writes.get(id) ?? 0
    if (writes > 1) this.#writes.set(id, writes - 1)
    else this.#writes.delete(id)
  }

  clear (): void {
    this.#entries.clear()
  }
}
