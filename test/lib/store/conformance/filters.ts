import type { Filter, ListQuery } from '../../../../lib/store/port.ts'
import { type Cases, type Thing, each, found } from './suite.ts'

/** Input in place of a value, which must never be understood as an operator. */
const NOT_VALUES: Record<string, unknown> = {
  'an operator': { $ne: null },
  'a regular expression object': { $regex: '.*' },
  'an object': {},
  'an array': ['a'],
  'an empty array': [],
  null: null,
  undefined,
  'a RegExp': /.*/,
  'a Date': new Date(0),
  'a String object': Object('a'),
  'not a number': NaN,
  infinity: Infinity,
  'a bigint': 1n,
  'a function': () => true,
  'a symbol': Symbol('a')
}

export const filters: Cases = {
  'equality finds by text, number and boolean': async (t, { things }) => {
    await things.insert({ id: 'a', owner: 'o', rank: 1, live: true })
    await things.insert({ id: 'b', owner: 'O', rank: -0.5, live: false })
    await things.insert({ id: 'c', owner: '', rank: 0 })
    await things.insert({ id: 'd', owner: 'o', rank: Number.MAX_SAFE_INTEGER, live: true })
    const cases: [NonNullable<Filter['equal']>, string[]][] = [
      [{ owner: 'o' }, ['a', 'd']],
      [{ owner: '' }, ['c']],
      [{ rank: 1 }, ['a']],
      [{ rank: -0.5 }, ['b']],
      [{ rank: 0 }, ['c']],
      [{ rank: Number.MAX_SAFE_INTEGER }, ['d']],
      [{ rank: Number.MAX_SAFE_INTEGER - 1 }, []],
      [{ live: true }, ['a', 'd']],
      [{ live: false }, ['b']],
      [{ id: 'b' }, ['b']]
    ]
    for (const [equal, expected] of cases) t.strictSame(await found(things, { equal }), expected, JSON.stringify(equal))
  },

  'equality does not find what is absent or null': async (t, { things }) => {
    await things.insert({ id: 'a' })
    await things.insert({ id: 'b', owner: null, rank: null, live: null })
    for (const equal of [{ owner: '' }, { owner: 'null' }, { rank: 0 }, { live: false }] as NonNullable<Filter['equal']>[]) {
      t.strictSame(await found(things, { equal }), [], JSON.stringify(equal))
    }
  },

  'absent finds what has no value, and nothing else': async (t, { things }) => {
    await things.insert({ id: 'a' })
    await things.insert({ id: 'b', owner: null, rank: null, live: null, at: null })
    await things.insert({ id: 'c', owner: '', rank: 0, live: false, at: '2001-01-01T00:00:00.000Z' })
    await things.insert({ id: 'd', owner: 'o', live: true })
    for (const [filter, expected] of [
      [{ absent: ['owner'] }, ['a', 'b']],
      [{ absent: ['live'] }, ['a', 'b']],
      [{ absent: ['rank'] }, ['a', 'b', 'd']],
      [{ absent: ['at', 'rank'] }, ['a', 'b', 'd']],
      [{ absent: ['rank'], equal: { owner: 'o' } }, ['d']],
      [{ absent: ['owner'], equal: { owner: 'o' } }, []],
      [{ absent: [] }, ['a', 'b', 'c', 'd']]
    ] as [Filter, string[]][]) {
      t.strictSame(await found(things, filter), expected, JSON.stringify(filter))
      t.equal(await things.count(filter), expected.length)
    }
    await t.rejects(found(things, { absent: ['undeclared'] }), TypeError)
  },

  'all conditions must hold': async (t, { things }) => {
    await things.insert({ id: 'a', owner: 'o', rank: 1, name: 'xay', at: '2001' })
    await things.insert({ id: 'b', owner: 'o', rank: 2, name: 'xby', at: '2002' })
    await things.insert({ id: 'c', owner: 'p', rank: 1, name: 'xcy', at: '2003' })
    t.strictSame(await found(things, { equal: { owner: 'o', rank: 1 } }), ['a'])
    t.strictSame(await found(things, { equal: { owner: 'o' }, contains: { name: 'b' } }), ['b'])
    t.strictSame(await found(things, { equal: { rank: 1 }, contains: { name: 'x' }, before: { at: '2003' } }), ['a'])
    t.strictSame(await found(things, { contains: { name: 'x', owner: 'p' } }), ['c'])
    t.strictSame(await found(things, { equal: { name: 'xay' }, contains: { name: 'b' } }), [])
    t.strictSame(await found(things, {}), ['a', 'b', 'c'], 'no condition holds for all')
  },

  'a substring is the characters typed and no pattern': async (t, { things }) => {
    const texts = ['a.c', 'abc', 'a%c', 'a_c', 'a*c', 'a\\c', 'a[b]c', '(a)', '^a$', 'a+c', 'a?c', 'a|c', 'a/c', 'A.C', 'a\nc', 'a\u0000c', 'é', 'e\u0301', '👩‍👧', '#{a}', "a'c"]
    await each(texts.entries(), ([index, owner]) => things.insert({ id: String(index).padStart(2, '0'), owner }))
    const needles = ['.', 'a.', '%', '_', '*', '.*', '\\', '\\\\', '[', ']', '[b]', '(', ')', '^', '^a', '$', 'c$', '+', '?', '|', '/', '\n', '\u0000', '\u0000c',
      'a', 'A', 'B', 'é', 'e', '\u0301', '👩', '👧', '{', "'", 'a.c', 'zz', '\\d', '\\u0061', '(?i)a']
    for (const needle of needles) {
      const expected = texts.filter((text) => text.includes(needle))
      const batches = []
      for await (const batch of things.stream({ filter: { contains: { owner: needle } } })) batches.push(...batch)
      t.strictSame(batches.map(({ owner }) => owner), expected, JSON.stringify(needle))
      t.equal(await things.count({ contains: { owner: needle } }), expected.length, `${JSON.stringify(needle)} counted`)
    }
  },

  'the empty substring is in every text, and in nothing that is absent or null': async (t, { things }) => {
    await things.insert({ id: 'a', owner: 'x' })
    await things.insert({ id: 'b', owner: '' })
    await things.insert({ id: 'c', owner: null })
    await things.insert({ id: 'd' })
    t.strictSame(await found(things, { contains: { owner: '' } }), ['a', 'b'])
  },

  'since includes its bound, and never holds for what is absent or null': async (t, { things }) => {
    const times = ['1999-12-31T23:59:59.999Z', '2000-01-01T00:00:00.000Z', '2000-01-01T00:00:00.001Z']
    for (const [index, at] of times.entries()) await things.insert({ id: String(index), at })
    await things.insert({ id: 'absent' })
    await things.insert({ id: 'null', at: null })
    t.strictSame(await found(things, { since: { at: times[1]! } }), ['1', '2'])
    t.strictSame(await found(things, { since: { at: '' } }), ['0', '1', '2'])
    t.strictSame(await found(things, { since: { at: times[1]! }, before: { at: times[2]! } }), ['1'])
    await t.rejects(async () => found(things, { since: { rank: 1 } } as unknown as Filter), TypeError)
  },

  'before is strict, and never holds for what is absent or null': async (t, { things }) => {
    const times = ['2998-12-31T23:59:59.999Z', '2999-01-01T00:00:00.000Z', '2999-01-01T00:00:00.001Z']
    for (const [index, at] of times.entries()) await things.insert({ id: String(index), at })
    await things.insert({ id: 'null', at: null })
    await things.insert({ id: 'absent' })
    t.strictSame(await found(things, { before: { at: times[1]! } }), ['0'])
    t.strictSame(await found(things, { before: { at: times[2]! } }), ['0', '1'])
    t.strictSame(await found(things, { before: { at: times[0]! } }), [])
  },

  'count counts what a filter finds': async (t, { things }) => {
    t.equal(await things.count(), 0)
    await things.insert({ id: 'a', owner: 'o', live: true })
    await things.insert({ id: 'b', owner: 'o' })
    await things.insert({ id: 'c' })
    t.equal(await things.count(), 3)
    t.equal(await things.count({}), 3)
    t.equal(await things.count({ equal: { owner: 'o' } }), 2)
    t.equal(await things.count({ equal: { owner: 'o', live: true } }), 1)
    t.equal(await things.count({ contains: { owner: 'x' } }), 0)
  },

  'an undeclared key throws, wherever it is named': async (t, { things }) => {
    await things.insert({ id: 'a', extra: 'x' })
    for (const key of ['extra', 'nothing', 'owner.x', '$where', '__proto__', 'constructor', 'name" OR 1=1 --']) {
      const named = { [key]: 'x' }
      await refusesFilter(t, things, { equal: named }, key)
      await refusesFilter(t, things, { contains: named }, key)
      await refusesFilter(t, things, { before: named }, key)
      await t.rejects(() => collect(things, { sort: [{ key, direction: 'asc' }] }), TypeError, `sort ${key}`)
      await t.rejects(async () => things.getBy(key, 'x'), TypeError, `getBy ${key}`)
    }
    await t.rejects(async () => things.getBy('owner', 'x'), TypeError, 'getBy a key that is not unique')
    t.strictSame(await things.get('a'), { id: 'a', extra: 'x' })
  },

  'a value that is no text, number or boolean throws and never becomes an operator': async (t, { things }) => {
    await things.insert({ id: 'a', name: 'a', owner: 'a', at: 'a', rank: 1 })
    for (const [label, value] of Object.entries(NOT_VALUES)) {
      const bad = value as never
      await refusesFilter(t, things, { equal: { owner: bad } }, label)
      await refusesFilter(t, things, { contains: { owner: bad } }, label)
      await refusesFilter(t, things, { before: { at: bad } }, label)
      await t.rejects(async () => things.getBy('name', bad), TypeError, `getBy ${label}`)
      await t.rejects(async () => things.get(bad), TypeError, `get ${label}`)
      await t.rejects(async () => things.getLinked(bad, {}), TypeError, `getLinked ${label}`)
      await t.rejects(async () => things.update(bad, { set: { owner: 'b' } }), TypeError, `update ${label}`)
      await t.rejects(async () => things.delete(bad), TypeError, `delete ${label}`)
      await t.rejects(async () => things.insert({ id: bad }), TypeError, `insert ${label}`)
      await t.rejects(async () => things.put({ id: bad }), TypeError, `put ${label}`)
    }
    t.equal((await things.get('a'))?.owner, 'a')
  },

  'a value of another type than the key throws': async (t, { things }) => {
    for (const filter of [{ equal: { owner: 1 } }, { equal: { rank: '1' } }, { equal: { live: 1 } }, { contains: { rank: '1' } }, { before: { rank: '1' } }, { before: { rank: 1 } }, { contains: { rank: 1 } }, { contains: { live: true } }] as unknown as Filter[]) {
      await refusesFilter(t, things, filter, JSON.stringify(filter))
    }
    await refusesFilter(t, things, { $where: { owner: 'x' } } as Filter, 'an unknown kind of condition')
  },

  'an offset or limit that is no integer from 0, and an unknown direction, throw': async (t, { things }) => {
    for (const query of [{ offset: -1 }, { limit: -1 }, { offset: 0.5 }, { limit: NaN }, { limit: '1' as never }, { sort: [{ key: 'name', direction: 'up' as never }] }]) {
      await t.rejects(() => collect(things, query), TypeError, JSON.stringify(query))
    }
  }
}

type Things = Parameters<Cases[string]>[1]['things']

async function collect (things: Things, query: ListQuery): Promise<Thing[]> {
  const all = []
  for await (const batch of things.stream(query)) all.push(...batch)
  return all
}

/** Every method that takes a filter refuses it. */
async function refusesFilter (t: Parameters<Cases[string]>[0], things: Things, filter: Filter, label: string): Promise<void> {
  const methods: Record<string, () => Promise<unknown>> = {
    stream: () => collect(things, { filter }),
    page: () => Array.fromAsync(things.page({ filter })),
    count: async () => things.count(filter),
    update: async () => things.update('a', { set: { rank: 9 } }, filter),
    delete: async () => things.delete('a', filter),
    deleteMany: async () => things.deleteMany(filter)
  }
  for (const [name, method] of Object.entries(methods)) {
    await t.rejects(method, TypeError, `${name} by ${Object.keys(filter)[0]} refuses ${label}`)
  }
}
