import { LIMITS } from '../../schemas/common.ts'
import { paramError } from '../errors.ts'
import { BATCH_SIZE, type Collection, type Document, type Keyset, type ListQuery, type Rendering, type SortKey } from '../store/port.ts'
import { toKeyset } from '../store/seek.ts'

/**
 * A cursor is the keyset of a page's last record, as text that is opaque to callers: the record's values of the sort keys, and its
 * id. It contains no secret and grants nothing, because filters and roles are applied again to the next page.
 */

/** The version of a cursor's format. A cursor of another version is refused. */
const VERSION = 1

/** One page of a list, or a list that is too long for one. */
export interface Page<T> {
  batches: AsyncIterable<T[]>
  /** The same records as JSON texts with separators. Present for a long list, if the store can render it in another thread. */
  render?: (separator: string) => AsyncIterable<string>
  /** The cursor of the next page. Absent on the last page, and without a limit or with one above 100. */
  after?: string
}

function nameSort (sort: SortKey[]): string {
  return sort.map(({ key, direction }) => `${key}:${direction}`).join()
}

export function encodeCursor (sort: SortKey[], { values, id }: Keyset): string {
  return Buffer.from(JSON.stringify([VERSION, nameSort(sort), values, id])).toString('base64url')
}

/** @throws ErrParam for an invalid cursor, or a cursor of another sort */
export function decodeCursor (text: string, sort: SortKey[]): Keyset {
  const [version, name, values, id] = parse(text)
  const isKeyset = version === VERSION && typeof name === 'string' && typeof id === 'string' && id.length <= LIMITS.id &&
    Array.isArray(values) && values.every((value) => value === null || typeof value === 'string')
  if (!isKeyset) throw paramError('after', 'is not a cursor of this list')
  if (name !== nameSort(sort) || values.length !== sort.length) throw paramError('after', 'is a cursor of another sort')
  return { values, id }
}

function parse (text: string): unknown[] {
  const bytes = Buffer.from(text, 'base64url')
  // Buffer.from skips characters that are not base64url.
  if (text.length > LIMITS.cursor || bytes.toString('base64url') !== text) return []
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

/**
 * Converts the start of a page to a part of a store's query.
 * @throws ErrParam for a cursor together with an offset above 0, and as decodeCursor
 */
export function toStart ({ after, offset }: { after?: string, offset?: number }, sort: SortKey[]): Pick<ListQuery, 'after' | 'offset'> {
  if (!after) return { offset: offset ?? 0 }
  // An offset of 0 is allowed, because generated clients send the default.
  if (offset !== undefined && offset !== 0) throw paramError('after', 'cannot be given together with offset')
  return { after: decodeCursor(after, sort) }
}

/** Reads a stream while it holds one of the process's cursors. */
export type Hold = <B>(open: () => AsyncIterable<B>) => AsyncIterable<B>

/**
 * Reads a page. It queries one record more than the limit, to find out whether another page follows. A list without a limit, or with
 * a limit above BATCH_SIZE, has no cursor, and is streamed if it is longer than that.
 *
 * When the records of a page are too large for one batch, only their ids stay in memory, because the reader may be slow. Each batch
 * is then read again when it is sent.
 * @param renderer shows a record as `toView` does
 */
export async function readPage<T extends Document, V> (
  collection: Collection<T>, query: ListQuery, toView: (record: T) => V, hold: Hold, renderer?: Omit<Rendering, 'separator'>
): Promise<Page<V>> {
  const { limit = 0 } = query
  const isLong = limit === 0 || limit > BATCH_SIZE
  const { batches, after } = await readShortPage(collection, query, isLong ? BATCH_SIZE : limit)
  if (!isLong || after === undefined) return { batches: mapBatches(batches, toView), after }
  const { render } = collection
  return {
    batches: mapBatches(hold(() => collection.stream(query)), toView),
    render: render !== undefined && renderer !== undefined ? (separator) => hold(() => render(query, { ...renderer, separator })) : undefined
  }
}

async function readShortPage<T extends Document> (collection: Collection<T>, query: ListQuery, limit: number): Promise<Page<T>> {
  const { sort = [] } = query
  let first: T[] = []
  let last: T | undefined
  const parts: string[][] = []
  let left = limit
  for await (const batch of collection.page({ ...query, limit: limit + 1 })) {
    const part = batch.slice(0, Math.max(left, 0))
    if (part.length > 0) {
      first = parts.length === 0 ? part : []
      parts.push(part.map(({ id }) => id))
      last = part.at(-1)
    }
    left -= batch.length
  }
  const after = left < 0 && last !== undefined ? encodeCursor(sort, toKeyset(last, sort)) : undefined
  return { batches: parts.length > 1 ? reread(collection, parts) : replay(first), after }
}

/** Reads records again by their ids. Omits records that were deleted meanwhile. */
async function * reread<T extends Document> (collection: Collection<T>, parts: string[][]): AsyncGenerator<T[], void, undefined> {
  for (const part of parts) {
    const found: T[] = []
    for (const id of part) {
      const document = await collection.get(id)
      if (document !== null) found.push(document)
    }
    if (found.length > 0) yield found
  }
}

async function * replay<T> (batch: T[]): AsyncGenerator<T[], void, undefined> {
  if (batch.length > 0) yield batch
}

/** The same batches, each record as callers see it. */
export async function * mapBatches<T, V> (batches: AsyncIterable<T[]>, toView: (record: T) => V): AsyncGenerator<V[], void, undefined> {
  for await (const batch of batches) yield batch.map(toView)
}
