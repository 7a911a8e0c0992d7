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
  after?: string | undefined
  /** The cursor of the previous page. Absent on the first page, on an empty one, and as `after`. */
  before?: string | undefined
}

/** A query for a page. `isBackward`: the page that ends before the position, in the order of the sort. */
export interface PageRequest extends ListQuery {
  isBackward?: boolean
  /** See PageQuery. */
  until?: number | undefined
}

function nameSort (sort: SortKey[]): string {
  return sort.map(({ key, direction }) => `${key}:${direction}`).join()
}

export function encodeCursor (sort: SortKey[], { values, id }: Keyset): string {
  return Buffer.from(JSON.stringify([VERSION, nameSort(sort), values, id])).toString('base64url')
}

/** @throws ErrParam for an invalid cursor, or a cursor of another sort */
export function decodeCursor (text: string, sort: SortKey[], name: 'after' | 'before' = 'after'): Keyset {
  const [version, sorted, values, id] = parse(text)
  const isKeyset = version === VERSION && typeof sorted === 'string' && typeof id === 'string' && id.length <= LIMITS.id &&
    Array.isArray(values) && values.every((value) => value === null || typeof value === 'string')
  if (!isKeyset) throw paramError(name, 'is not a cursor of this list')
  if (sorted !== nameSort(sort) || values.length !== sort.length) throw paramError(name, 'is a cursor of another sort')
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

/** Where a page of a list begins or ends, and its length. */
export interface Position {
  after?: string
  before?: string
  offset?: number
  limit?: number
}

/**
 * Converts the position of a page to a part of its query.
 * @throws ErrParam for a cursor together with the other one or an offset above 0, `before` without a limit up to 100, and as decodeCursor
 */
export function toStart (
  { after, before, offset = 0, limit = 100 }: Position, sort: SortKey[]
): Pick<PageRequest, 'after' | 'offset' | 'isBackward'> {
  const name = after ? 'after' : 'before'
  // Generated clients send empty cursors, and the default of the offset.
  const cursor = after || before
  if (!cursor) return { offset }
  if (after && before) throw paramError('before', 'cannot be given together with after')
  if (offset !== 0) throw paramError(name, 'cannot be given together with offset')
  if (name === 'before' && (limit === 0 || limit > BATCH_SIZE)) throw paramError('before', `needs a limit from 1 to ${BATCH_SIZE}`)
  return { after: decodeCursor(cursor, sort, name), ...(name === 'before' && { isBackward: true }) }
}

/** The same sort from its end. The id, which ends every sort, turns with the last key. */
export const turn = (sort: readonly SortKey[]): SortKey[] => sort.map(({ key, direction }) => ({ key, direction: direction === 'asc' ? 'desc' : 'asc' }))

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
  collection: Collection<T>, request: PageRequest, toView: (record: T) => V, hold: Hold, renderer?: Omit<Rendering, 'separator'>
): Promise<Page<V>> {
  const { limit = 0 } = request
  const isLong = limit === 0 || limit > BATCH_SIZE
  const { batches, after, before } = await readShortPage(collection, request, isLong ? BATCH_SIZE : limit)
  if (!isLong || after === undefined) return { batches: mapBatches(batches, toView), after, before: isLong ? undefined : before }
  const { isBackward: _isBackward, until: _until, ...query } = request
  const { render } = collection
  return {
    batches: mapBatches(hold(() => collection.stream(query)), toView),
    render: render !== undefined && renderer !== undefined ? (separator) => hold(() => render(query, { ...renderer, separator })) : undefined
  }
}

/** Names the pages beside this one. @param isCut whether more records follow in the direction of the read */
function nameNeighbours (
  { sort = [], after: position, offset = 0, isBackward = false }: PageRequest, ends: { first: Document, last: Document } | undefined, isCut: boolean
): Pick<Page<never>, 'after' | 'before'> {
  if (ends === undefined) return {}
  // Whoever came from a record, or has left out some, has others behind them.
  const hasBehind = position !== undefined || offset > 0
  const [hasBefore, hasAfter] = isBackward ? [isCut, hasBehind] : [hasBehind, isCut]
  return {
    after: hasAfter ? encodeCursor(sort, toKeyset(ends.last, sort)) : undefined,
    before: hasBefore ? encodeCursor(sort, toKeyset(ends.first, sort)) : undefined
  }
}

async function readShortPage<T extends Document> (collection: Collection<T>, request: PageRequest, limit: number): Promise<Page<T>> {
  const { isBackward = false, ...query } = request
  const { sort = [] } = query
  let batch: T[] = []
  let ends: [T, T] | undefined
  const parts: string[][] = []
  let left = limit
  for await (const read of collection.page({ ...query, ...(isBackward && { sort: turn(sort) }), limit: limit + 1 })) {
    const part = read.slice(0, Math.max(left, 0))
    const [head, tail] = [part[0], part.at(-1)]
    if (head !== undefined && tail !== undefined) {
      batch = parts.length === 0 ? part : []
      parts.push(part.map(({ id }) => id))
      ends = [ends?.[0] ?? head, tail]
    }
    left -= read.length
  }
  if (isBackward) {
    batch = batch.toReversed()
    parts.reverse().forEach((ids) => ids.reverse())
    ends?.reverse()
  }
  const neighbours = nameNeighbours(request, ends && { first: ends[0], last: ends[1] }, left < 0)
  return { batches: parts.length > 1 ? reread(collection, parts) : replay(batch), ...neighbours }
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

/** Reads documents again when they are sent, and keeps only their ids until then. */
export const readAgain = <T extends Document>(collection: Collection<T>, documents: readonly T[]): AsyncIterable<T[]> => (
  reread(collection, [documents.map(({ id }) => id)]))

export async function * replay<T> (batch: T[]): AsyncGenerator<T[], void, undefined> {
  if (batch.length > 0) yield batch
}

/** The same batches, each record as callers see it. */
export async function * mapBatches<T, V> (batches: AsyncIterable<T[]>, toView: (record: T) => V): AsyncGenerator<V[], void, undefined> {
  for await (const batch of batches) yield batch.map(toView)
}
