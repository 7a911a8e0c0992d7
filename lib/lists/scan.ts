import { BATCH_SIZE, type Collection, type Document, type Filter, type Keyset } from '../store/port.ts'

/**
 * Batches of all documents that match, in the order of their ids, each from a short list. Use this for internal scans: a
 * streamed list would queue behind users' downloads for a cursor.
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
