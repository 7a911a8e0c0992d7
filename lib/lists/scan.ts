import { BATCH_SIZE, type Collection, type Document, type Filter, type Keyset } from '../store/port.ts'

/**
 * Reads all matching documents with one short list per batch. Use this for internal scans, because a streamed list would queue for a
 * cursor behind users' downloads.
 * @param key a key with strings that all matching documents have, whose ascending order they are read in. Absent: that of their ids
 */
export async function * scan<T extends Document, Key extends string & keyof T> (
  collection: Collection<T>, filter: Filter, key?: Key
): AsyncGenerator<T[], void, undefined> {
  const sort = key === undefined ? {} : { sort: [{ key, direction: 'asc' as const }] }
  let after: Keyset | undefined
  while (true) {
    let last: T | undefined
    let count = 0
    for await (const batch of collection.list({ filter, ...sort, limit: BATCH_SIZE, ...(after !== undefined && { after }) })) {
      yield batch
      count += batch.length
      last = batch.at(-1)
    }
    if (last === undefined || count < BATCH_SIZE) return
    after = { values: key === undefined ? [] : [String(last[key])], id: last.id }
  }
}
