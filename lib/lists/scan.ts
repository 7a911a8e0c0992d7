import { BATCH_SIZE, type Collection, type Document, type Filter, type Keyset } from '../store/port.ts'

/**
 * Batches of all that match, by their ids, each from a list of its own. What the service looks up for itself is read
 * so: a long list waits for one of the places that readers of long lists may hold.
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
