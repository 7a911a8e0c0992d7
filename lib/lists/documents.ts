import { BATCH_SIZE, type Document, type Keyset, type SortKey } from '../store/port.ts'
import { toKeyset } from '../store/seek.ts'
import { type Page, encodeCursor, toStart } from './cursor.ts'

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
export function pageDocuments<T extends Document> (
  documents: T[], sort: SortKey[], query: { after?: string, offset?: number, limit?: number }
): Page<T> {
  const { limit = 100 } = query
  const { after, offset = 0 } = toStart(query, sort)
  const sorted = documents.map((document) => ({ document, keyset: toKeyset(document, sort) }))
    .filter(({ keyset }) => after === undefined || compareKeysets(sort, keyset, after) > 0)
    .sort((one, other) => compareKeysets(sort, one.keyset, other.keyset))
  const page = sorted.slice(offset, limit === 0 ? undefined : offset + limit)
  const last = page.at(-1)
  const isCut = limit > 0 && limit <= BATCH_SIZE && sorted.length > offset + limit && last !== undefined
  return { batches: split(page.map(({ document }) => document)), after: isCut ? encodeCursor(sort, last.keyset) : undefined }
}

async function * split<T> (documents: T[]): AsyncGenerator<T[], void, undefined> {
  for (let start = 0; start < documents.length; start += BATCH_SIZE) yield documents.slice(start, start + BATCH_SIZE)
}
