import type { Collection as Native } from 'mongodb'
import type { CollectionSpec, Document, Linked } from '../port.ts'
import type { Call, Calls } from './calls.ts'
import { type Stored, decodeDocument, encodeName } from './documents.ts'

/** Look-ups in one statement: what they need is decoded in one go, in a millisecond. */
const BATCH = 32

/** Statements of one shape that are under way at once. What comes while all are waits, to go together in the next. */
const STATEMENTS = 8

type Found = { document: Stored } & Record<string, Stored[]>

/** One field that holds an id, and the collection it is of. */
export interface Link {
  field: string
  spec: CollectionSpec
}

interface LookupsOptions {
  native: Native<Stored>
  links: Link[]
  /** Bounds a statement, beside those who wait for it: one that hangs must not keep its place for ever. */
  calls: Calls
}

interface Waiting<T> {
  id: string
  call: Call
  resolve: (linked: Linked<T> | null) => void
  reject: (error: unknown) => void
}

/**
 * Look-ups of one shape: documents of a collection, each with those its fields point at.
 *
 * Those that are asked for in one turn of the event loop share one statement, and so do those that come while several
 * statements are under way: it is sent after each of them was asked for, so each sees all that was acknowledged before.
 * A server spends little more on it than on one look-up, and the driver, which costs more than all else here, nothing.
 */
export class Lookups<T extends Document> {
  readonly #native: Native<Stored>
  readonly #calls: Calls
  readonly #joins: readonly (Link & { as: string })[]
  readonly #stages: readonly object[]
  #waiting: Waiting<T>[] = []
  #statements = 0
  #scheduled = false

  constructor ({ native, links, calls }: LookupsOptions) {
    this.#native = native
    this.#calls = calls
    this.#joins = links.map((link, index) => ({ ...link, as: `linked${index}` }))
    // The document is put into a field of its own, so that none of its names meets those of what is looked up.
    this.#stages = [
      { $project: { _id: 0, document: '$$ROOT' } },
      ...this.#joins.map(({ field, spec, as }) => (
        { $lookup: { from: spec.name, localField: `document.${encodeName(field)}`, foreignField: '_id', as } }
      ))
    ]
  }

  /** Those who ask for one id at a time may share the answer. */
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
      while (this.#statements < STATEMENTS && this.#waiting.length > 0) this.#send(this.#waiting.splice(0, BATCH))
    })
  }

  #send (all: Waiting<T>[]): void {
    const batch = all.filter(({ call }) => !call.over)
    if (batch.length === 0) return
    this.#statements++
    this.#ask([...new Set(batch.map(({ id }) => id))])
      .then((found) => {
        for (const { id, resolve } of batch) resolve(found.get(id) ?? null)
      }, (error: unknown) => {
        for (const { reject } of batch) reject(error)
      })
      .finally(() => {
        this.#statements--
        if (this.#waiting.length > 0) this.#schedule()
      })
  }

  async #ask (ids: string[]): Promise<Map<string, Linked<T>>> {
    const $match = { _id: ids.length === 1 ? ids[0] : { $in: ids } }
    const pipeline = [{ $match }, ...this.#stages]
    const found = await this.#calls.run(() => this.#native.aggregate<Found>(pipeline).toArray())
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
