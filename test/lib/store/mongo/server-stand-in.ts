import type { Collection as Native } from 'mongodb'
import type { Stored } from '../../../../lib/store/mongo/documents.ts'

type Kind = 'look-up' | 'write'

interface Statement {
  kind: Kind
  /** What it came to, once it was run. */
  outcome: { value: unknown } | null
  run: () => unknown
  resolve: (value: unknown) => void
  reject: (error: Error) => void
}

interface Lookup { $lookup: { from: string, localField: string, as: string } }
type Ids = string | { $in: string[] }

/** A stand-in for a server and the driver: look-ups and writes are run and answered when the test says so. */
export class ServerStandIn {
  readonly #collections = new Map<string, Map<string, Stored>>()
  readonly #ids: string[][] = []
  #open: Statement[] = []

  /** What is stored, by id. */
  collection (name: string): Map<string, Stored> {
    let documents = this.#collections.get(name)
    if (documents === undefined) this.#collections.set(name, documents = new Map())
    return documents
  }

  /** The ids that look-ups asked for, in the order they were sent. */
  ids (): string[][] {
    return this.#ids
  }

  /** What is under way reads, or writes, what is stored now, and is answered later. */
  run (kind: Kind): void {
    for (const statement of this.#open) if (statement.kind === kind) statement.outcome ??= { value: statement.run() }
  }

  /** Answers the oldest statements of a kind, or the newest when the count is below 0. */
  answer (kind: Kind, count = Infinity): void {
    this.run(kind)
    for (const { resolve, outcome } of this.#take(kind, count)) resolve(outcome!.value)
  }

  fail (kind: Kind, error: Error): void {
    for (const { reject } of this.#take(kind, Infinity)) reject(error)
  }

  /** The driver's collection, as far as it is used here. A write of a document moves its epoch. */
  native (name: string): Native<Stored> {
    const documents = this.collection(name)
    const removeAll = (ids: string[]) => ids.filter((id) => documents.delete(id)).length
    const move = (id: string) => {
      const before = documents.get(id)
      if (before === undefined) return null
      const after = { ...before, epoch: Number(before.epoch) + 1 }
      documents.set(id, after)
      return after
    }
    const native = {
      aggregate: ([{ $match }, , ...lookups]: [{ $match: { _id: Ids } }, unknown, ...Lookup[]]) => ({
        toArray: () => {
          const ids = toList($match._id)
          this.#ids.push(ids)
          return this.#hold('look-up', () => ids.flatMap((id) => this.#join(documents.get(id), lookups)))
        }
      }),
      find: () => ({ toArray: async () => [...documents.values()] }),
      insertOne: (document: Stored) => this.#hold('write', () => documents.set(document._id, document)),
      replaceOne: ({ _id }: Stored) => this.#hold('write', () => move(_id)),
      findOneAndUpdate: ({ _id }: Stored) => this.#hold('write', () => move(_id)),
      findOneAndDelete: ({ _id }: Stored) => this.#hold('write', () => {
        const found = documents.get(_id) ?? null
        documents.delete(_id)
        return found
      }),
      deleteOne: ({ _id }: Stored) => this.#hold('write', () => ({ deletedCount: removeAll([_id]) })),
      deleteMany: ({ $and: [, { _id }] }: { $and: [unknown, { _id: Ids }] }) => (
        this.#hold('write', () => ({ deletedCount: removeAll(toList(_id)) })))
    }
    return native as unknown as Native<Stored>
  }

  #join (document: Stored | undefined, lookups: Lookup[]): object[] {
    if (document === undefined) return []
    const joined = lookups.map(({ $lookup: { from, localField, as } }) => {
      const found = this.collection(from).get(String(document[localField.replace('document.', '')]))
      return [as, found === undefined ? [] : [{ ...found }]]
    })
    return [{ document: { ...document }, ...Object.fromEntries(joined) }]
  }

  #hold (kind: Kind, run: () => unknown): Promise<unknown> {
    return new Promise((resolve, reject) => { this.#open.push({ kind, outcome: null, run, resolve, reject }) })
  }

  #take (kind: Kind, count: number): Statement[] {
    const all = this.#open.filter((statement) => statement.kind === kind)
    const taken = count < 0 ? all.slice(count) : all.slice(0, count)
    this.#open = this.#open.filter((statement) => !taken.includes(statement))
    return taken
  }
}

function toList (ids: Ids): string[] {
  return typeof ids === 'string' ? [ids] : ids.$in
}

/** Until what an answer sets off is sent. */
export async function settled (): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
}
