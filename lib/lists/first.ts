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
