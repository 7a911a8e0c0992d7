import type { Collection, Filter, ListQuery, Keyset, SortKey } from '../../../../lib/store/port.ts'
import { type Cases, type Thing, each, fill, ids, read, serialId } from './suite.ts'

const DIRECTIONS = ['asc', 'desc'] as const

/** Each key alone, and pairs of them, in all directions. */
const SORTS: SortKey[][] = [
  [],
  ...['id', 'owner', 'rank', 'live', 'at', 'serial'].flatMap((key) => DIRECTIONS.map((direction) => [{ key, direction }])),
  ...[['owner', 'rank'], ['live', 'id'], ['rank', 'deputy']].flatMap(([one, two]) =>
    DIRECTIONS.flatMap((first) => DIRECTIONS.map((second) => [{ key: one!, direction: first }, { key: two!, direction: second }]))),
  [{ key: 'serial', direction: 'asc' }, { key: 'rank', direction: 'desc' }],
  [{ key: 'owner', direction: 'asc' }, { key: 'live', direction: 'desc' }, { key: 'rank', direction: 'asc' }]
]

const FILTERS: (Filter | undefined)[] = [undefined, { equal: { owner: 'x' } }, { contains: { owner: 'x' }, equal: { live: true } }]

function toText (sort: SortKey[], filter?: Filter): string {
  return `${sort.map(({ key, direction }) => `${key}:${direction}`).join() || 'no sort'}, ${JSON.stringify(filter ?? {})}`
}

function placeOf (thing: Thing, sort: SortKey[]): Keyset {
  return { values: sort.map(({ key }) => (thing[key] ?? null) as string | number | boolean | null), id: thing.id }
}

/** Values that many documents share, including null and missing ones. */
function mix (number: number): Omit<Thing, 'id'> {
  const owner = ['x', 'xy', 'z', '', null, undefined][number % 6]
  const rank = [-1, 0, 0.5, 2 ** 40, null][number % 5]
  const live = [true, false, undefined][number % 3]
  const at = [undefined, '2026-11-21T02:51:00.000Z', '\u{1f600}'][number % 4]
  return { ...(owner !== undefined && { owner }), rank: rank!, ...(live !== undefined && { live }), ...(at !== undefined && { at }), ...(number % 2 === 0 && { serial: number }) }
}

/** Reads the whole list page by page, each from the last document of the previous one. */
async function walk (things: Collection<Thing>, query: ListQuery, limit: number, between: (page: number) => unknown = () => {}): Promise<string[]> {
  const { sort = [] } = query
  const seen: string[] = []
  let after: Keyset | undefined
  for (let page = 1; ; page++) {
    const { things: found } = await read(things, { ...query, limit, ...(after !== undefined && { after }) })
    seen.push(...found.map(({ id }) => id))
    if (found.length < limit) return seen
    after = placeOf(found.at(-1)!, sort)
    await between(page)
  }
}

export const places: Cases = {
  'pages by place are the whole list, for every sort, with ties, nulls and filters': async (t, { things }) => {
    await fill(things, 60, mix)
    for (const filter of FILTERS) {
      for (const sort of SORTS) {
        const query = { sort, ...(filter !== undefined && { filter }) }
        const whole = await ids(things, query)
        t.not(whole.length, 0)
        t.strictSame(await walk(things, query, filter === undefined ? 13 : 3), whole, toText(sort, filter))
      }
    }
  },

  'a place is before the same documents wherever it is, and whether or not its own is still there': async (t, { things }) => {
    await fill(things, 12, mix)
    const all = (await read(things)).things
    const [sort] = SORTS.filter(({ length }) => length === 3)
    const order = await ids(things, { sort: sort! })
    for (const [index, id] of order.entries()) {
      const after = placeOf(all.find((thing) => thing.id === id)!, sort!)
      t.strictSame(await ids(things, { sort: sort!, after }), order.slice(index + 1), id)
      await things.delete(id)
      t.strictSame(await ids(things, { sort: sort!, after, offset: 2, limit: 3 }), order.slice(index + 3, index + 6), `${id}, with offset and limit`)
      await things.put(all.find((thing) => thing.id === id)!)
    }
  },

  'what stays is met once, while other documents come and go between the pages': async (t, { things }) => {
    for (const sort of SORTS.filter(({ length }) => length === 1)) {
      const kept = Array.from({ length: 40 }, (_, number) => serialId(number * 10))
      await each(kept, (id) => things.put({ id, ...mix(Number(id.slice(1)) / 10) }))
      const whole = await ids(things, { sort })
      const seen = await walk(things, { sort }, 7, async (page) => {
        const numbers = Array.from({ length: 6 }, (_, number) => page * 7 + number)
        await each(numbers, (number) => things.put({ id: serialId(number * 10 + 5), ...mix(number), serial: 1_000 + number }))
        await each(numbers.slice(3), (number) => things.delete(serialId(number * 10 - 65)))
      })
      const stayed = seen.filter((id) => kept.includes(id))
      t.strictSame(stayed, whole, toText(sort))
      t.equal(new Set(seen).size, seen.length, 'and nothing twice')
      await each(await ids(things), (id) => things.delete(id))
    }
  },

  'a list after a place comes in batches of 100 too': async (t, { things }) => {
    await fill(things, 250, (number) => ({ rank: number % 2 }))
    const after = { values: [0], id: serialId(20) }
    const sort: SortKey[] = [{ key: 'rank', direction: 'asc' }]
    t.strictSame((await read(things, { sort, after })).sizes, [100, 100, 39])
    t.strictSame((await read(things, { sort, after, limit: 101 })).sizes, [100, 1])
    t.strictSame((await read(things, { sort, after: { values: [1], id: serialId(249) } })).sizes, [])
  },

  'a place that is none of its sort is refused': async (t, { things }) => {
    const sort: SortKey[] = [{ key: 'rank', direction: 'asc' }]
    for (const [label, query] of Object.entries({
      'too few values': { sort, after: { values: [], id: 'a' } },
      'too many values': { sort, after: { values: [1, 2], id: 'a' } },
      'values without a sort': { after: { values: [1], id: 'a' } },
      'a value of another type': { sort, after: { values: ['1'], id: 'a' } },
      'an object': { sort, after: { values: [{ $gt: 1 }], id: 'a' } },
      'no number': { sort, after: { values: [NaN], id: 'a' } },
      'no values': { sort, after: { id: 'a' } },
      'no id': { sort, after: { values: [1] } },
      'an id that is none': { sort, after: { values: [1], id: { $gt: '' } } }
    })) await t.rejects(async () => await read(things, query as unknown as ListQuery), TypeError, label)
  }
}
