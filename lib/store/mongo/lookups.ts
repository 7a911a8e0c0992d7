import type { Collection as Native } from 'mongodb'
import type { CollectionSpec, Document, Linked } from '../port.ts'
import type { BoundedCalls, Call } from './bounded-calls.ts'
import { type Stored, decodeDocument, encodeName } from './documents.ts'

/** Look-ups in one statement. Decoding their answer takes about a millisecond. */
const BATCH = 32

/** Statements in flight, of one Lookups. Further look-ups wait, and share the next one. */
const STATEMENTS = 8

type Found = { document: Stored } & Record<string, Stored[]>

/** A field that holds an id, and the collection of that id. */
export interface Link {
  field: string
  spec: CollectionSpec
}

interface LookupsOptions {
  /** The collection of the current client. */
  native: () => Native<Stored>
  links: Link[]
  /** Gives each statement a deadline: a statement that hangs must not occupy its slot for ever. */
  calls: BoundedCalls
}

interface Waiting<T> {
  id: string
  call: Call
  resolve: (linked: Linked<T> | null) => void
  reject: (error: unknown) => void
}

/**
 * Batches look-ups: documents of one collection, each with the documents its fields refer to.
 *
 * Look-ups of one turn of the event loop share a statement, and so do those that wait for a slot. A statement is sent
 * after all of its look-ups were requested, so it sees every write acknowledged before them. The driver's cost, the largest
 * here, is per statement.
 */
export class Lookups<T extends Document> {
  readonly #native: () => Native<Stored>
  readonly #calls: BoundedCalls
  readonly #joins: readonly { field: string, as: string }[]
  readonly #stages: readonly object[]
  #waiting: Waiting<T>[] = []
  #statements = 0
  #scheduled = false

  constructor ({ native, links, calls }: LookupsOptions) {
    this.#native = native
    this.#calls = calls
    this.#joins = links.map(({ field }, index) => ({ field, as: `linked${index}` }))
    // The document moves to a field of its own, so that none of its names can clash with `linked0`.
    this.#stages = [
      { $project: { _id: 0, document: '$$ROOT' } },
      ...links.map(({ field, spec }, index) => (
        { $lookup: { from: spec.name, localField: `document.${encodeName(field)}`, foreignField: '_id', as: `linked${index}` } }
      ))
    ]
  }

  /** Callers that ask for the same id may share the answer. */
  find (id: string, call: Call): Promise<Linked<T> | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, call, resolve, reject })
      this.#schedule()
    })
  }

  #schedule (): void {
    if (this.#scheduled || this.#statements === STATEMENTS) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      while (this.#statements < STATEMENTS && this.#waiting.length > 0) void this.#send(this.#waiting.splice(0, BATCH))
    })
  }

  async #send (all: Waiting<T>[]): Promise<void> {
    const batch = all.filter(({ call }) => !call.answered)
    if (batch.length === 0) return
    this.#statements++
    try {
      const found = await this.#ask([...new Set(batch.map(({ id }) => id))])
      for (const { id, resolve } of batch) resolve(found.get(id) ?? null)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      this.#statements--
      if (this.#waiting.length > 0) this.#schedule()
    }
  }

  async #ask (ids: string[]): Promise<Map<string, Linked<T>>> {
    const $match = { _id: ids.length === 1 ? ids[0] : { $in: ids } }
    const pipeline = [{ $match }, ...this.#stages]
    const found = await this.#calls.within(() => this.#native().aggregate<Found>(pipeline).toArray())
    return new Map(found.map((one) => [one.document._id, this.#decode(one)]))
  }

  #decode (found: Found): Linked<T> {
    const linked: Linked<T>['linked'] = {}
    for (const { field, as } of this.#joins) {
      const [stored] = found[as]!
      linked[field] = stored === undefined ? null : decodeDocument(stored)
    }
    return { document: decodeDocument<T>(found.document), linked }
  }
}
