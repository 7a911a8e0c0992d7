import { paramError } from '../errors.ts'
import type { Actor } from '../roles.ts'
import { BATCH_SIZE, type Document, type Filter, type Store } from '../store/port.ts'
import { parseSearch } from '../words.ts'
import { type Page, type PageRequest, type Position, toStart } from './cursor.ts'
import { createReads } from './reads.ts'
import { parseSort } from './sort.ts'

/** What callers ask of every list. */
interface ListRequest extends Position {
  sort?: string
  /** Not empty: only what it finds (lib/words.ts), in the usual order. */
  search?: string
  /** Seconds in which the page is wanted. */
  deadline?: number
}

/** A count that may have stopped. */
export interface Counted {
  count: number
  /** There are more. */
  more?: true
}

/**
 * The conditions of a request, with its search.
 * @param others parameters that cannot be given with a search, by name
 * @throws ErrParam
 */
export function withSearch (filter: Filter, search: string | undefined, others: Readonly<Record<string, string | undefined>>): Filter {
  const words = parseSearch(search)
  if (words === undefined) return filter
  for (const [name, value] of Object.entries(others)) if (value) throw paramError(name, 'cannot be given together with search')
  return { ...filter, begins: { words } }
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
    const { deadline, limit = 100 } = request
    const sort = parseSort(request.sort, sorts, usual)
    if (deadline !== undefined && (limit === 0 || limit > BATCH_SIZE)) throw paramError('deadline', `needs a limit from 1 to ${BATCH_SIZE}`)
    return { filter, sort, ...toStart(request, sort), limit, until: deadline === undefined ? undefined : Date.now() + deadline * 1_000 }
  }

  async function countSome (filter: Filter, limit: number | undefined): Promise<number> {
    // Keys that a filter may compare for equality are those of an index.
    const urgent = filter.equal !== undefined && filter.contains === undefined && filter.begins === undefined
    return await collection.count(await reads.plan(collection, filter), { urgent, limit })
  }

  return {
    /** @param actor the caller; absent: the program itself */
    async count (filter: Filter, actor?: Actor): Promise<number> {
      return await reads.count(() => countSome(filter, undefined), actor)
    },

    /** The same up to a number, where counting stops. */
    async countUpTo (filter: Filter, max: number, actor?: Actor): Promise<Counted> {
      const found = await reads.count(() => countSome(filter, max + 1), actor)
      return found > max ? { count: max, more: true } : { count: found }
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
