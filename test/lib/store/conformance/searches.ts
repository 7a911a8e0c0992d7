import type { Begins, Filter, ListQuery } from '../../../../lib/store/port.ts'
import { type Cases, type Thing, each, ids } from './suite.ts'

const BY_NAME = { sort: [{ key: 'name', direction: 'asc' }] } as const satisfies ListQuery

/** Both ways in which an engine may find words. */
const WAYS = [{}, { isCommon: true }] as const

const toFilters = (words: string[], rest: Filter = {}): Filter[] => WAYS.map((way): Filter => ({ ...rest, begins: { words, ...way } }))

export const searches: Cases = {
  'begins finds documents in which each text begins a word, and each once': async (t, { things }) => {
    await things.insertMany([
      { id: '1', name: 'd', words: ['anna', 'annabel', 'kowalska'], owner: 'o' },
      { id: '2', name: 'c', words: ['ann', 'kow'], owner: 'p' },
      { id: '3', name: 'b', words: ['kanna'], owner: 'o' },
      { id: '4', name: 'a', words: [], owner: 'o' },
      { id: '5', name: 'e', owner: 'o' },
      { id: '6', name: 'f', words: ['иван', '山田太郎', '𠀀𠀁', 'γιωργοσ', '2024'], owner: 'o' }
    ])
    const cases: [words: string[], expected: string[], rest?: Filter][] = [
      [['ann'], ['2', '1']], [['anna'], ['1']], [['annabel'], ['1']], [['annabell'], []], [['k'], ['3', '2', '1']], [['kow', 'ann'], ['2', '1']],
      [['ann', 'kow'], ['2', '1']], [['annab', 'kowa'], ['1']], [['a', 'z'], []], [['z', 'a'], []], [['nna'], []], [['ив'], ['6']], [['山'], ['6']],
      [['太郎'], []], [['𠀀'], ['6']], [['𠀁'], []], [['γι', '20', 'и'], ['6']], [['𠀀𠀁𠀂'], []],
      [['ann'], ['1'], { equal: { owner: 'o' } }], [['ann'], ['2'], { before: { name: 'd' } }], [['k'], ['1'], { contains: { name: 'd' } }]
    ]
    for (const [words, expected, rest] of cases) {
      for (const filter of toFilters(words, rest)) {
        const what = JSON.stringify(filter)
        t.strictSame(await ids(things, { filter, ...BY_NAME }), expected, what)
        t.equal(await things.count(filter), expected.length, what)
      }
    }
  },

  'begins follows every write': async (t, { things }) => {
    const find = async (word: string) => {
      const [found, walked] = await Promise.all(toFilters([word]).map((filter) => ids(things, { filter, ...BY_NAME })))
      t.strictSame(found, walked, word)
      return found
    }
    await things.insert({ id: 'a', name: 'a', words: ['one', 'two'] })
    await things.update('a', { set: { words: ['two', 'three'] } })
    t.strictSame([await find('one'), await find('two'), await find('three')], [[], ['a'], ['a']])
    await things.update('a', { set: { name: 'b' } })
    await things.update('a', { increment: { rank: 1 } }, { begins: { words: ['thr'] } })
    t.equal(await things.update('a', { increment: { rank: 1 } }, { begins: { words: ['one'] } }), null, 'a condition of a write')
    t.match(await things.get('a'), { rank: 1, words: ['two', 'three'] })
    await things.put({ id: 'a', name: 'b', words: ['four'] })
    t.strictSame([await find('three'), await find('four')], [[], ['a']])
    await things.update('a', { unset: ['words'] })
    t.strictSame(await find('four'), [])
    await things.update('a', { set: { words: ['five'] } })
    await things.delete('a')
    t.strictSame(await find('five'), [])
    await things.insertMany([{ id: 'b', name: 'b', words: ['six'] }, { id: 'c', name: 'c', words: ['six'] }])
    t.equal(await things.deleteMany({ begins: { words: ['si'] } }), 2)
    t.strictSame(await find('six'), [])
  },

  'begins is paged by keyset, in both directions, without gaps and repetitions': async (t, { things }) => {
    const all = Array.from({ length: 230 }, (_, number): Thing => (
      { id: `i${number}`, name: `n${String(number * 7 % 230).padStart(3, '0')}`, words: number % 3 === 0 ? ['abc', 'abd', 'x'] : ['b'] }))
    await things.insertMany(all)
    const wanted = all.filter(({ words }) => (words as string[]).includes('x')).toSorted((a, b) => String(a.name) < String(b.name) ? -1 : 1).map(({ id }) => id)
    for (const filter of toFilters(['ab', 'x'])) {
      for (const direction of ['asc', 'desc'] as const) {
        const found: string[] = []
        let after: ListQuery['after']
        for (;;) {
          let last: Thing | undefined
          for await (const batch of things.page({ filter, sort: [{ key: 'name', direction }], limit: 20, ...(after && { after }) })) {
            found.push(...batch.map(({ id }) => id))
            last = batch.at(-1)
          }
          if (last === undefined) break
          after = { values: [String(last.name)], id: last.id }
        }
        t.strictSame(direction === 'asc' ? found : found.toReversed(), wanted)
      }
    }
  },

  'a search while names change finds what keeps its word once': async (t, { things }) => {
    await things.insertMany(Array.from({ length: 60 }, (_, number): Thing => ({ id: `i${number}`, name: `n${number}`, words: ['same', `w${number}`] })))
    const writes = each(Array.from({ length: 60 }, (_, number) => number), async (number) => {
      await things.update(`i${number}`, { set: { words: [`v${number}`, 'same'] } })
    })
    for (const filter of toFilters(['sam'])) t.equal(new Set(await ids(things, { filter, ...BY_NAME })).size, 60)
    await writes
    for (const filter of toFilters(['w'])) t.strictSame(await ids(things, { filter, ...BY_NAME }), [])
    for (const filter of toFilters(['v', 'same'])) t.equal((await ids(things, { filter, ...BY_NAME })).length, 60)
  },

  'what is no word, and a collection without a search, throw': async (t, { things, store }) => {
    for (const words of [[], [''], ['a b'], ['a"'], ['%'], ['a', '.'], [1], { 0: 'a', length: 1 }, [{ $gt: '' }], 'a', null]) {
      await t.rejects(things.count({ begins: { words } as unknown as Begins }), TypeError, JSON.stringify(words))
    }
    for (const words of ['a', ['a b'], ['"'], [''], [1]]) {
      await t.rejects(things.insert({ id: 'a', words }), TypeError)
      await t.rejects(things.update('a', { set: { words } }), TypeError)
    }
    await t.rejects(store.collection('owners').count({ begins: { words: ['a'] } }), TypeError)
  },

  'a count stops at its limit': async (t, { things }) => {
    await things.insertMany(Array.from({ length: 30 }, (_, number): Thing => ({ id: `i${number}`, owner: number < 20 ? 'a' : 'b', words: ['abc', 'abd'] })))
    const cases: [Filter | undefined, number][] = [
      [undefined, 30], [{ equal: { owner: 'a' } }, 20], ...toFilters(['ab']).map((filter): [Filter, number] => [filter, 30]),
      ...toFilters(['ab', 'abd'], { equal: { owner: 'b' } }).map((filter): [Filter, number] => [filter, 10])
    ]
    for (const [filter, all] of cases) {
      for (const limit of [1, 5, all - 1, all, all + 1, 1_000]) t.equal(await things.count(filter, { limit }), Math.min(limit, all), JSON.stringify([filter, limit]))
    }
    t.equal(await things.count({ equal: { owner: 'a' } }, { limit: 5, urgent: false }), 5)
    for (const limit of [0, -1, 1.5, NaN]) await t.rejects(things.count(undefined, { limit }), TypeError)
  },

  'a page whose time is over is given up': async (t, { things }) => {
    await things.insertMany(Array.from({ length: 30 }, (_, number): Thing => ({ id: `i${number}`, name: `n${number}` })))
    const read = async (until: number) => {
      const found: Thing[] = []
      for await (const batch of things.page({ filter: { contains: { name: 'n1' } }, ...BY_NAME, until })) found.push(...batch)
      return found.length
    }
    t.equal(await read(Date.now() + 60_000), 11)
    await t.rejects(read(Date.now() - 1), { code: 'ErrBusy', message: /^deadline: / })
    t.equal(await read(Date.now() + 60_000), 11, 'and the next one is read')
  }
}
