import { type Begins, BATCH_SIZE, type Collection, type Document, type Filter, type Keyset, type SortKey } from '../store/port.ts'
import { toKeyset } from '../store/seek.ts'
import { type Page, type PageRequest, encodeCursor, readAgain, replay, turn } from './cursor.ts'
import { readFirst } from './first.ts'

/**
 * Lists of what is found by the beginnings of words. They have one order, that of the collection's search, so that a page needs no sort of
 * everything that is found: a word that few have leads to them, and words that many have are met on the way through the order. A way that
 * meets little ends early, with a cursor to go on from: no page costs more than these windows, whatever is asked.
 * @module
 */

/** So many documents with a word are read and sorted for each page. Where more have it, the first hundred are met sooner. */
const FEW = 1_000

/** Documents that a page goes through, first and then. */
const WINDOWS = [5_000, 100_000]

/** How to find the words. */
export async function planBegins<T extends Document> (collection: Collection<T>, words: readonly string[]): Promise<Begins> {
  let rarest: { word: string, count: number } | undefined
  for (const word of words) {
    const count = await collection.count({ begins: { words: [word] } }, { limit: FEW + 1 })
    if (count <= (rarest?.count ?? FEW)) rarest = { word, count }
    if (count === 0) break
  }
  if (rarest === undefined) return { words, isCommon: true }
  const { word: first } = rarest
  return { words: [first, ...words.filter((word) => word !== first)] }
}

/** The key that a search is sorted by. */
const orderOf = ([first]: SortKey[]): string => first?.key ?? 'id'

/** The end of a window, as a value of the order; undefined where the list ends before it. */
async function findEnd<T extends Document> (
  collection: Collection<T>, { sort = [], after, isBackward = false }: PageRequest, size: number
): Promise<string | undefined> {
  const key = orderOf(sort)
  const from = after?.values[0]
  const filter: Filter = typeof from !== 'string' ? {} : { [isBackward ? 'before' : 'since']: { [key]: from } }
  const found = await readFirst(collection, { filter, sort: isBackward ? turn(sort) : sort, offset: size })
  const end = found === undefined ? null : toKeyset(found, sort).values[0]
  // Where so many have the same value, there is no end between them.
  return typeof end === 'string' && end !== from ? end : undefined
}

/** Reads what is found, one document more than the page has, and where the search has ended, if it has not come to the end of the list. */
async function walk<T extends Document> (collection: Collection<T>, request: PageRequest, limit: number) {
  const { sort = [], isBackward = false, filter } = request
  const key = orderOf(sort)
  const found: T[] = []
  let isLarge = false
  let next: Keyset | undefined
  let { after, offset } = request
  for (const size of WINDOWS) {
    const end = await findEnd(collection, { ...request, after }, size)
    const kind = isBackward ? 'since' : 'before'
    const within = end === undefined ? filter : { ...filter, [kind]: { ...filter?.[kind], [key]: end } }
    let batches = 0
    for await (const batch of collection.page({ filter: within, sort: isBackward ? turn(sort) : sort, after, offset, limit: limit + 1 - found.length })) {
      found.push(...batch)
      if (++batches > 1) isLarge = true
    }
    next = end === undefined ? undefined : { values: [end], id: '' }
    if (next === undefined || found.length > limit) break
    after = next
    offset = 0
  }
  return { found, isLarge, next }
}

/** A page of at most BATCH_SIZE documents with words that many have. It may have fewer, or none, although others follow. */
export async function readCommonPage<T extends Document> (collection: Collection<T>, request: PageRequest): Promise<Page<T>> {
  const { sort = [], after: position, isBackward = false, limit = BATCH_SIZE } = request
  const { found, isLarge, next } = await walk(collection, request, limit)
  const page = found.slice(0, limit)
  const [near, far] = [page[0], page.at(-1)]
  const ahead = found.length > limit && far !== undefined ? toKeyset(far, sort) : next
  const behind = position !== undefined && near !== undefined ? toKeyset(near, sort) : undefined
  const documents = isBackward ? page.toReversed() : page
  const [after, before] = (isBackward ? [behind, ahead] : [ahead, behind]).map((keyset) => keyset && encodeCursor(sort, keyset))
  return { batches: isLarge ? readAgain(collection, documents) : replay(documents), after, before }
}
