import type { Collection, Document, ListQuery } from '../store/port.ts'

/** The first document of a list; undefined when there is none. */
export async function readFirst<T extends Document> (collection: Pick<Collection<T>, 'list'>, query: ListQuery = {}): Promise<T | undefined> {
  let first: T | undefined
  for await (const batch of collection.list({ ...query, limit: 1 })) first = batch[0]
  return first
}
