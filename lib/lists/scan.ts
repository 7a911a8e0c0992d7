import { BATCH_SIZE, type Collection, type Document, type Filter, type Keyset } from '../store/port.ts'

/**
 * Reads all matching documents in the order of their ids, with one short list per batch. Use this for internal scans, because a
 * streamed list would queue for a cursor behind users' downloads.
 */
export async function * scan<T extends Document> (collection: Collection<T>, filter: Filter): AsyncGenerator<T[], void, undefined> {
  let after: Keyset | undefined
  while (true) {
    let last: T | undefined
    let count = 0
    for await (const batch of collection.list({ filter, limit: BATCH_SIZE, ...(after !== undefined && { after }) })) {
      yield batch
      count += batch.length
      last = batch.at(-1)
    }
    if (last === undefined || count < BATCH_SIZE) return
    after = { values: [], id: last.id }
  }
}
