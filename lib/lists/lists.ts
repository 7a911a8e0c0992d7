import type { Actor } from '../roles.ts'
import type { Document, Filter, Store } from '../store/port.ts'
import { type Page, type PageRequest, type Position, toStart } from './cursor.ts'
import { createReads } from './reads.ts'
import { parseSort } from './sort.ts'

/** What callers ask of every list. */
interface ListRequest extends Position {
  sort?: string
}

/**
 * Counts and lists of a collection for callers, who take turns.
 * @param name of the collection, and of its renderer (lib/renderers.ts)
 * @param sorts names in the API -> stored keys
 * @param usual a valid `sort` parameter, for requests without one
 */
export function createLists<T extends Document> (
  store: Store, name: string, sorts: Readonly<Record<string, string>>, usual: string
) {
  const collection = store.collection<T>(name)
  const reads = createReads(store)

  function toListQuery (filter: Filter, request: ListRequest): PageRequest {
    const sort = parseSort(request.sort, sorts, usual)
    return { filter, sort, ...toStart(request, sort), limit: request.limit ?? 100 }
  }

  return {
    /** @param actor the caller; absent: the program itself */
    async count (filter: Filter, actor?: Actor): Promise<number> {
      // Keys that a filter may compare for equality are those of an index.
      const urgent = filter.equal !== undefined && filter.contains === undefined
      return await reads.count(() => collection.count(filter, { urgent }), actor)
    },

    /**
     * Batches of records. The whole request is checked before the first batch.
     * @throws ErrParam for an invalid sort, or a cursor of another sort
     */
    list<V> (filter: Filter, request: ListRequest, show: (record: T) => V): AsyncIterable<V[]> {
      return reads.list(collection, toListQuery(filter, request), show)
    },

    /**
     * The same list as a page, with the cursor of the next one if the limit is at most 100.
     * @param options of the renderer, which shows a record as `show` does
     * @throws as `list`
     */
    async page<V> (filter: Filter, request: ListRequest, show: (record: T) => V, options: object, actor?: Actor): Promise<Page<V>> {
      return await reads.page(collection, toListQuery(filter, request), show, { renderer: { renderer: name, options }, caller: actor })
    }
  }
}
