import type { Collection as Native } from 'mongodb'
import type { Stored } from '../../../../lib/store/mongo/documents.ts'

interface Statement {
  /** Its result, once it has run. */
  outcome: unknown[] | null
  run: () => unknown[]
  resolve: (found: unknown[]) => void
  reject: (error: Error) => void
}

interface Lookup { $lookup: { from: string, localField: string, as: string } }
type Ids = string | { $in: string[] }

/** A stand-in for a server and the driver: look-ups are run and answered when the test says so. */
export class ServerStandIn {
  readonly #collections = new Map<string, Map<string, Stored>>()
  readonly #ids: string[][] = []
  #inFlight: Statement[] = []

  /** The stored documents, by id. */
  collection (name: string): Map<string, Stored> {
    let documents = this.#collections.get(name)
    if (documents === undefined) this.#collections.set(name, documents = new Map())
    return documents
  }

  /** The ids of each statement, in the order they were sent. */
  ids (): string[][] {
    return this.#ids
  }

  /** Statements in flight read what is stored now, and are answered later. */
  run (): void {
    for (const statement of this.#inFlight) statement.outcome ??= statement.run()
  }

  /** Answers the oldest statements in flight. */
  answer (count = Infinity): void {
    this.run()
    for (const { resolve, outcome } of this.#inFlight.splice(0, count)) resolve(outcome!)
  }

  fail (error: Error): void {
    for (const { reject } of this.#inFlight.splice(0)) reject(error)
  }

  /** The used part of the driver's collection. */
  native (name: string): Native<Stored> {
    const aggregate = ([{ $match }, , ...lookups]: [{ $match: { _id: Ids } }, unknown, ...Lookup[]]) => ({
      toArray: () => {
        const ids = typeof $match._id === 'string' ? [$match._id] : $match._id.$in
        this.#ids.push(ids)
        const run = () => ids.flatMap((id) => this.#join(this.collection(name).get(id), lookups))
        return new Promise<unknown[]>((resolve, reject) => { this.#inFlight.push({ outcome: null, run, resolve, reject }) })
      }
    })
    return { aggregate } as unknown as Native<Stored>
  }

  #join (document: Stored | undefined, lookups: Lookup[]): object[] {
    if (document === undefined) return []
    const joined = lookups.map(({ $lookup: { from, localField, as } }) => {
      const found = this.collection(from).get(String(document[localField.replace('document.', '')]))
      return [as, found === undefined ? [] : [{ ...found }]]
    })
    return [{ document: { ...document }, ...Object.fromEntries(joined) }]
  }
}

/** Resolves once everything that an answer triggers was sent. */
export async function settled (): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
}
