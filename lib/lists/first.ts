import type { Collection, Document, PageQuery } from '../store/port.ts'

type Pages<T extends Document> = Pick<Collection<T>, 'page'>

/** The documents of a page. */
export async function readSome<T extends Document> (collection: Pages<T>, query: PageQuery): Promise<T[]> {
  const found: T[] = []
  for await (const batch of collection.page(query)) found.push(...batch)
  return found
}

/** The first document of a list; undefined when there is none. */
export async function readFirst<T extends Document> (collection: Pages<T>, query: PageQuery = {}): Promise<T | undefined> {
  return (await readSome(collection, { ...query, limit: 1 }))[0]
}

/** The first of what is read, in batches. @param limit 0 for all */
export async function * takeFirst<T> (batches: AsyncIterable<T[]>, limit: number): AsyncGenerator<T[]> {
  let left = limit
  for await (const batch of batches) {
    yield limit === 0 ? batch : batch.slice(0, left)
    left -= batch.length
    if (limit !== 0 && left <= 0) return
  }
}

/** What is read, in batches, without what is not wanted. */
export async function * filterBatches<T> (batches: AsyncIterable<T[]>, isWanted: (one: T) => boolean): AsyncGenerator<T[]> {
  for await (const batch of batches) yield batch.filter(isWanted)
}
