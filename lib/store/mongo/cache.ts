import { LRUCache } from 'lru-cache'
import { deepFreeze } from '../../freeze.ts'
import type { Document } from '../port.ts'

/** Documents of one collection that are kept, and their size as characters of JSON. */
const COUNT = 20_000
const SIZE = 16_000_000

interface Kept { document: Document, sent: number }

/** A statement that reads, from before it is sent to its answer. */
export interface Read {
  readonly sent: number
  readonly stamp: number
}

/**
 * Documents of look-ups, each for some time after the statement that read it was sent. Other processes' writes are seen
 * that much late, this one's never: what a write touches is forgotten when it is asked for, and what a statement read
 * of it is not kept if any of the time between the asking for the write and its answer fell into the statement's.
 */
export class StaleCache {
  readonly #staleness: number
  readonly #elapsed: () => number
  readonly #collections = new Map<string, LRUCache<string, Kept>>()
  /** How many own writes of a document are not answered yet. */
  readonly #pending = new Map<string, number>()
  readonly #reads = new Set<Read>()
  /** When own writes were answered, as stamps in their order: those that a read under way may have missed. */
  readonly #written = new Map<string, number>()
  #stamp = 0

  /**
   * @param staleness milliseconds
   * @param elapsed milliseconds of a clock that is never set
   */
  constructor (staleness: number, elapsed: () => number) {
    this.#staleness = staleness
    this.#elapsed = elapsed
  }

  /** Frozen, and the same object while it is kept. */
  get (collection: string, id: string): Document | undefined {
    const documents = this.#collections.get(collection)
    const kept = documents?.get(id)
    if (kept === undefined || this.#elapsed() - kept.sent <= this.#staleness) return kept?.document
    documents?.delete(id)
    return undefined
  }

  /** A statement is about to be sent. Ends with `end`. */
  begin (): Read {
    const read = { sent: this.#elapsed(), stamp: this.#stamp }
    this.#reads.add(read)
    return read
  }

  /**
   * Keeps what a statement has read, unless a write may have changed it since.
   * @returns the document, frozen; what is kept and as new, when there is such
   */
  keep ({ sent, stamp }: Read, collection: string, document: Document): Document {
    const name = toName(collection, document.id)
    if (this.#pending.has(name) || (this.#written.get(name) ?? 0) > stamp) return deepFreeze(document)
    let documents = this.#collections.get(collection)
    if (documents === undefined) this.#collections.set(collection, documents = new LRUCache({ max: COUNT, maxSize: SIZE }))
    const before = documents.peek(document.id)
    if (before !== undefined && before.sent >= sent) return before.document
    documents.set(document.id, { document: deepFreeze(document), sent }, { size: JSON.stringify(document).length })
    return document
  }

  end (read: Read): void {
    this.#reads.delete(read)
    const [oldest] = this.#reads
    for (const [name, stamp] of this.#written) {
      if (oldest !== undefined && stamp > oldest.stamp) return
      this.#written.delete(name)
    }
  }

  /** A write of this process is asked for. Ends with `release`. */
  touch (collection: string, ids: string[]): void {
    for (const id of ids) {
      this.#collections.get(collection)?.delete(id)
      const name = toName(collection, id)
      this.#pending.set(name, (this.#pending.get(name) ?? 0) + 1)
    }
  }

  /** The write is answered, or never will be. */
  release (collection: string, ids: string[]): void {
    for (const id of ids) {
      const name = toName(collection, id)
      const count = this.#pending.get(name) ?? 0
      if (count > 1) this.#pending.set(name, count - 1)
      else this.#pending.delete(name)
      if (this.#reads.size === 0) continue
      this.#written.delete(name)
      this.#written.set(name, ++this.#stamp)
    }
  }

  /** Forgets all; the store is closed. */
  clear (): void {
    this.#collections.clear()
  }
}

function toName (collection: string, id: string): string {
  return `${collection}/${id}`
}
