import { BATCH_SIZE, type Document, type Keyset, type SortKey } from '../store/port.ts'
import { toKeyset } from '../store/seek.ts'
import { type Page, type Position, encodeCursor, toStart } from './cursor.ts'

/** Compares by code point, as all stores do. An absent value comes first. */
function compare (one: unknown, other: unknown): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null)
  return Buffer.compare(Buffer.from(String(one)), Buffer.from(String(other)))
}

/** Compares two positions in a list. */
function compareKeysets (sort: SortKey[], one: Keyset, other: Keyset): number {
  for (const [index, { direction }] of sort.entries()) {
    const order = compare(one.values[index], other.values[index])
    if (order !== 0) return direction === 'asc' ? order : -order
  }
  return sort.at(-1)?.direction === 'desc' ? compare(other.id, one.id) : compare(one.id, other.id)
}

/**
 * Pages documents in memory, in the order that a store would give them.
 * @throws ErrParam for an invalid cursor, or a cursor of another sort
 */
export function pageDocuments<T extends Document> (documents: T[], sort: SortKey[], query: Position): Page<T> {
  const { limit = 100 } = query
  const { after: position, offset = 0, isBackward = false } = toStart(query, sort)
  const all = documents.map((document) => ({ document, keyset: toKeyset(document, sort) }))
    .sort((one, other) => compareKeysets(sort, one.keyset, other.keyset))
  const isBeside = (keyset: Keyset): boolean => position === undefined || compareKeysets(sort, keyset, position) * (isBackward ? -1 : 1) > 0
  const beside = all.filter(({ keyset }) => isBeside(keyset))
  const start = isBackward ? Math.max(beside.length - limit, 0) : offset
  const page = beside.slice(start, limit === 0 ? undefined : start + limit)
  const [first, last] = [page[0], page.at(-1)]
  const isShort = limit > 0 && limit <= BATCH_SIZE
  if (!isShort || first === undefined || last === undefined) return { batches: split(page.map(({ document }) => document)) }
  return {
    batches: split(page.map(({ document }) => document)),
    after: last === all.at(-1) ? undefined : encodeCursor(sort, last.keyset),
    before: first === all[0] ? undefined : encodeCursor(sort, first.keyset)
  }
}

async function * split<T> (documents: T[]): AsyncGenerator<T[], void, undefined> {
  for (let start = 0; start < documents.length; start += BATCH_SIZE) yield documents.slice(start, start + BATCH_SIZE)
}
