import type { Document, Keyset, Scalar, SortKey } from './port.ts'

/** The position of a document in a sorted list. */
export function toKeyset (document: Document, sort: readonly SortKey[]): Keyset {
  const fields = document as unknown as Record<string, Scalar | null | undefined>
  return { values: sort.map(({ key }) => fields[key] ?? null), id: document.id }
}

/** A condition on one key. `absent` matches null too, and `present` any value. */
export type Condition =
  | { key: string, relation: 'is' | 'above' | 'below', value: Scalar }
  | { key: string, relation: 'present' }
  | { key: string, relation: 'absent' }

/**
 * Splits the documents after a keyset into disjoint ranges. Each range has equalities on the more significant keys and one
 * bound, so that an index which begins with the sort's keys holds it in one piece, and an engine seeks to it instead of
 * skipping documents. Absent values come before all others.
 */
export function toSeekRanges (sort: SortKey[], { values, id }: Keyset): Condition[][] {
  const ranges: Condition[][] = []
  const equal: Condition[] = []
  const keys = [...sort, { key: 'id', direction: sort.at(-1)?.direction ?? 'asc' }]
  for (const [index, { key, direction }] of keys.entries()) {
    const value = key === 'id' ? id : values[index] ?? null
    if (direction === 'asc') ranges.push([...equal, value === null ? { key, relation: 'present' } : { key, relation: 'above', value }])
    else if (value !== null) {
      ranges.push([...equal, { key, relation: 'below', value }])
      if (key !== 'id') ranges.push([...equal, { key, relation: 'absent' }])
    }
    // Ids are unique: keys after the id decide nothing.
    if (key === 'id') break
    equal.push(value === null ? { key, relation: 'absent' } : { key, relation: 'is', value })
  }
  return ranges
}
