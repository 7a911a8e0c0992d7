import { BATCH_SIZE, type Collection, type Document, type Filter, type Keyset, type Urgency } from './port.ts'
import { toKeyset } from './seek.ts'

export interface ScanOptions<T> extends Urgency {
  /** A key with strings that all matching documents have, whose ascending order they are read in. Absent: that of their ids. */
  key?: string & keyof T
}

/** Reads all matching documents page by page: the service's own work never waits for a cursor behind the downloads of people. */
export async function * scan<T extends Document> (
  collection: Collection<T>, filter: Filter, { key, ...urgency }: ScanOptions<T> = {}
): AsyncGenerator<T[], void, undefined> {
  const sort = key === undefined ? [] : [{ key, direction: 'asc' as const }]
  let after: Keyset | undefined
  while (true) {
    let last: T | undefined
    let count = 0
    for await (const batch of collection.page({ filter, sort, limit: BATCH_SIZE, ...urgency, after })) {
      yield batch
      count += batch.length
      last = batch.at(-1)
    }
    if (last === undefined || count < BATCH_SIZE) return
    after = toKeyset(last, sort)
  }
}
