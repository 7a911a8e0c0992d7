import { LRUCache } from 'lru-cache'
import { deepFreeze } from '../../freeze.ts'
import type { Document } from '../port.ts'
import { findChanged } from './changes.ts'
import type { Versions } from './operations.ts'
import { getTurn } from './turn.ts'

/** The bound of one collection, in characters of stored text. Each document counts for OVERHEAD more. */
const SIZE = 24_000_000
const OVERHEAD = 500

/** A cached document, frozen because callers share it. */
export interface Entry<T extends Document = Document> {
  readonly document: T
  /** Unique, and larger than that of every document cached before. */
  readonly stamp: number
}

/**
 * Decoded documents of look-ups, all of one version of the store's content. Every commit of this engine, in any process,
 * creates a new version, a random number. Equal versions therefore mean equal content, even after a backup was restored.
 * A commit of another program leaves no version, and nothing is cached until there is one.
 *
 * The version is read once per turn of the event loop, and together with every document that is read. Another version evicts the documents
 * that have changed since (changes.ts), or all where nobody knows which:
 * - A document is evicted when its write is requested, and not cached again until the write was answered.
 * - The answer to a batch gives the versions before and after it. If the cache is of the version before, the rest of it is
 *   also of the version after. Otherwise the next look-up follows.
 * - While a batch is in flight and nobody knows which documents have changed, the version may be that of the batch: look-ups bypass the
 *   cache until the answer.
 */
export class DocumentCache {
  readonly #readVersion: () => string | null
  readonly #readChanges: () => string
  readonly #getTurn: () => number
  readonly #collections = new Map<string, CollectionCache>()
  /** The version of all cached documents; null when nothing is cached. */
  #version: string | null = null
  #turn = Number.NaN
  /** Whether the last version that was read is that of the cached documents. */
  #isCurrent = false
  /** Whether a batch was sent to the writer and not answered yet. */
  #inFlight = false
  #stamp = 0
  /** Increases whenever a document may have changed. */
  #generation = 0

  /** @param readChanges the last changes of the content. Absent: nobody knows them */
  constructor (readVersion: () => string | null, { turn = getTurn, readChanges = () => '' }: { turn?: () => number, readChanges?: () => string } = {}) {
    this.#readVersion = readVersion
    this.#readChanges = readChanges
    this.#getTurn = turn
  }

  collection (name: string): CollectionCache {
    let collection = this.#collections.get(name)
    if (collection === undefined) this.#collections.set(name, collection = new CollectionCache(() => ++this.#stamp, () => { this.#generation++ }))
    return collection
  }

  /** Whether look-ups may use cached documents. Reads the version unless that was done in this turn. */
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
  accepts (version: string | null): boolean {
    this.#isCurrent = version !== null && (version === this.#version || this.#follow(version))
    return this.#isCurrent
  }

  /** To be called when a batch is sent to the writer. */
  send (): void {
    this.#inFlight = true
  }

  /** To be called when the batch is answered, with null when it may or may not have been committed. */
  answer (versions: Versions | null): void {
    this.#inFlight = false
    this.#turn = Number.NaN
    if (versions === null) {
      this.#clear()
      this.#version = null
    } else if (this.#version === null || versions.before === this.#version) this.#version = versions.after
  }

  /** Drops what has changed since the version of the cached documents. @returns whether the others are of this version */
  #follow (version: string): boolean {
    const changed = this.#version === null ? null : findChanged(this.#readChanges(), this.#version, version)
    if (changed === null) {
      if (this.#inFlight) return false
      this.#clear()
    } else {
      if (changed.length > 0) this.#generation++
      for (const { collection, id } of changed) this.#collections.get(collection)?.drop(id)
    }
    this.#version = version
    return true
  }

  #clear (): void {
    this.#generation++
    for (const collection of this.#collections.values()) collection.clear()
  }
}

/** The cached documents of one collection. */
export class CollectionCache {
  /** Without `max`: with it, lru-cache would allocate that many entries, and reset all of them at each `clear`. */
  readonly #entries = new LRUCache<string, Entry>({ maxSize: SIZE })
  /** Counts this store's requested and unanswered writes, by document id. */
  readonly #writes = new Map<string, number>()
  readonly #nextStamp: () => number
  readonly #onWrite: () => void

  constructor (nextStamp: () => number, onWrite: () => void) {
    this.#nextStamp = nextStamp
    this.#onWrite = onWrite
  }

  /** Only after `isCurrent`, in the same synchronous call. */
  get (id: string): Entry | undefined {
    return this.#entries.get(id)
  }

  /**
   * Decodes and caches a document of an accepted version. A document that is cached already has the same content, and keeps
   * its stamp. Returns undefined while a write of the document is pending.
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

  /** To be called when another process has changed this document. */
  drop (id: string): void {
    this.#entries.delete(id)
  }

  /** To be called when a write of this document is requested. */
  beginWrite (id: string): void {
    this.#onWrite()
    this.#entries.delete(id)
    this.#writes.set(id, (this.#writes.get(id) ?? 0) + 1)
  }

  /** To be called when that write is answered, or given up before it was sent. */
  endWrite (id: string): void {
    const writes = this.#writes.get(id) ?? 0
    if (writes > 1) this.#writes.set(id, writes - 1)
    else this.#writes.delete(id)
  }

  clear (): void {
    this.#entries.clear()
  }
}
