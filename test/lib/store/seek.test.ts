import t from 'tap'
import { toSeekRanges } from '../../../lib/store/seek.ts'
import type { SortKey } from '../../../lib/store/port.ts'

const above = (key: string, value: string) => ({ key, relation: 'above', value })
const below = (key: string, value: string) => ({ key, relation: 'below', value })
const is = (key: string, value: string) => ({ key, relation: 'is', value })
const absent = (key: string) => ({ key, relation: 'absent' })
const present = (key: string) => ({ key, relation: 'present' })

const a = { key: 'a', direction: 'asc' } as const
const b = { key: 'b', direction: 'desc' } as const
const id = { key: 'id', direction: 'desc' } as const

t.test('the ranges after a place', async (t) => {
  const cases: [label: string, sort: SortKey[], values: (string | null)[], ranges: object[][]][] = [
    ['no sort', [], [], [[above('id', 'i')]]],
    ['ascending', [a], ['x'], [[above('a', 'x')], [is('a', 'x'), above('id', 'i')]]],
    ['ascending from what is missing', [a], [null], [[present('a')], [absent('a'), above('id', 'i')]]],
    ['descending: what is missing comes last', [b], ['x'], [[below('b', 'x')], [absent('b')], [is('b', 'x'), below('id', 'i')]]],
    ['descending from what is missing', [b], [null], [[absent('b'), below('id', 'i')]]],
    ['mixed', [a, b], ['x', 'y'], [[above('a', 'x')], [is('a', 'x'), below('b', 'y')], [is('a', 'x'), absent('b')], [is('a', 'x'), is('b', 'y'), below('id', 'i')]]],
    ['nothing counts after the id', [id, a], ['i', 'x'], [[below('id', 'i')]]]
  ]
  for (const [label, sort, values, ranges] of cases) t.strictSame(toSeekRanges(sort, { values, id: 'i' }), ranges, label)
})
