import type { Keyset, Scalar, SortKey } from './port.ts'

/** How a key stands to a value. `present` is any value; `absent` is none, or null. */
export type Condition =
  | { key: string, relation: 'is' | 'above' | 'below', value: Scalar }
  | { key: string, relation: 'present' }
  | { key: string, relation: 'absent' }

/**
 * What comes after a place in a sort, as ranges that share no document: equalities on the keys of more weight, and one
 * bound. Each is one stretch of an index that begins with the sort's keys, so that an engine goes to the place instead
 * of walking to it. Missing comes before every value, as in every sort.
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
    // No two documents share an id: what follows it decides nothing.
    if (key === 'id') break
    equal.push(value === null ? { key, relation: 'absent' } : { key, relation: 'is', value })
  }
  return ranges
}
