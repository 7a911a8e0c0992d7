import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Filter, Keyset, ListQuery, SortKey } from '../../lib/store/port.ts'
import { anyText, checkProperty, compareValues } from '../helpers/property.ts'
import { forEachEngine } from '../helpers/stores.ts'
import { COLLECTIONS, type Thing } from '../lib/store/conformance/collections.ts'
import { each, read } from '../lib/store/conformance/suite.ts'

/**
 * A model of the port's filters, sorts and pages, over a plain array. It alone defines the expected results, and shares no code
 * with an engine.
 */
function matches (thing: Thing, { equal = {}, contains = {}, before = {}, absent = [] }: Filter): boolean {
  return Object.entries(equal).every(([key, value]) => thing[key] === value) &&
    absent.every((key) => (thing[key] ?? null) === null) &&
    Object.entries(contains).every(([key, part]) => typeof thing[key] === 'string' && thing[key].includes(part)) &&
    Object.entries(before).every(([key, time]) => typeof thing[key] === 'string' && compareValues(thing[key], time) < 0)
}

type Value = string | number | boolean | null | undefined

function compareBy (sort: SortKey[]): (one: Thing, other: Thing) => number {
  const keys: SortKey[] = [...sort, { key: 'id', direction: sort.at(-1)?.direction ?? 'asc' }]
  return (one, other) => {
    for (const { key, direction } of keys) {
      const order = compareValues(one[key] as Value, other[key] as Value)
      if (order !== 0) return direction === 'asc' ? order : -order
    }
    return 0
  }
}

function select (things: Thing[], { filter = {}, sort = [], after, offset = 0, limit = 0 }: ListQuery): Thing[] {
  const compare = compareBy(sort)
  const position = after && Object.fromEntries([...sort.map(({ key }, index) => [key, after.values[index]]), ['id', after.id]]) as Thing
  const found = things.filter((thing) => matches(thing, filter)).sort(compare).filter((thing) => position === undefined || compare(thing, position) > 0)
  return found.slice(offset, limit === 0 ? undefined : offset + limit)
}

// Few values, so that documents share them and a filter often finds some.
const texts = fc.oneof(fc.constantFrom('a', 'ab', 'b', 'A', '', 'a%', 'a_b', '\\', 'a\u0308', '\ufffd', '\u{10ffff}'), anyText(4))
const numbers = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constantFrom(0.5, -0.5, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 1e300))
const times = fc.integer({ min: 0, max: 5 }).map((day) => new Date(Date.UTC(2026, 0, 1 + day)).toISOString())

const fields = fc.record({
  owner: fc.option(texts),
  deputy: texts,
  at: fc.option(times),
  rank: fc.option(numbers),
  live: fc.option(fc.boolean())
}, { requiredKeys: [] })
const things = fc.array(fields, { maxLength: 25 }).map((list) => list.map((thing, index): Thing => ({ id: `t${String(index).padStart(3, '0')}`, ...thing })))

const filters = fc.record({
  equal: fc.oneof(
    fc.record({ owner: texts }, { requiredKeys: [] }), fc.record({ rank: numbers, live: fc.boolean() }, { requiredKeys: [] }),
    fc.record({ at: times, deputy: texts }, { requiredKeys: [] }), fc.record({ id: fc.constantFrom('t000', 't001', 'none') })
  ),
  contains: fc.record({ owner: texts, deputy: texts }, { requiredKeys: [] }),
  before: fc.record({ at: times }, { requiredKeys: [] }),
  absent: fc.subarray(['owner', 'deputy', 'at', 'rank', 'live'], { maxLength: 2 })
}, { requiredKeys: [] })

const sorts = fc.uniqueArray(fc.record({ key: fc.constantFrom('owner', 'deputy', 'at', 'rank', 'live'), direction: fc.constantFrom('asc' as const, 'desc' as const) }),
  { selector: ({ key }) => key, maxLength: 3 })

/** The position of a document of the list, or of one that does not exist. */
const positions = fc.record({ index: fc.nat(30), id: fc.option(fc.constantFrom('t001x', '', 'zz')) })

const queries = fc.record({ filter: filters, sort: sorts, offset: fc.nat(5), limit: fc.nat(8) }, { requiredKeys: ['sort'] })

t.test('an engine finds, counts, sorts and pages as a plain array does', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    const collection = store.collection<Thing>('things')
    await checkProperty(t, 40, fc.asyncProperty(things, fc.array(queries, { minLength: 1, maxLength: 8 }), positions, async (list, asked, { index, id }) => {
      await collection.deleteMany({ before: { id: '~' } })
      await each(list, (thing) => collection.insert(thing))
      for (const query of asked) {
        const thing = list[index]
        const after: Keyset | undefined = thing && { values: query.sort.map(({ key }) => (thing[key] ?? null) as Keyset['values'][number]), id: id ?? thing.id }
        for (const wanted of [query, { ...query, ...(after && { after }) }]) {
          deepStrictEqual((await read(collection, wanted)).things, select(list, wanted), JSON.stringify(wanted))
        }
        deepStrictEqual(await collection.count(query.filter), select(list, { filter: query.filter ?? {} }).length, 'the count')
      }
      const [{ filter = {} }] = asked as [ListQuery]
      // The port refuses to remove everything.
      if (Object.values(filter).every((part) => Object.keys(part).length === 0)) return
      const kept = list.filter((thing) => !matches(thing, filter))
      deepStrictEqual(await collection.deleteMany(filter), list.length - kept.length, 'the number of removed documents')
      deepStrictEqual((await read(collection)).things, kept, 'the documents that stay')
    }))
  })
})
