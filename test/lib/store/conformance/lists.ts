import type { ListQuery, PageQuery, SortKey } from '../../../../lib/store/port.ts'
import { renderThings } from '../../../fixtures/things-renderer.ts'
import { type Cases, each, fill, ids, read, serialId } from './suite.ts'

/** `name:asc,rank:desc` as sort keys. */
function by (text: string): SortKey[] {
  return text.split(',').map((item) => {
    const [key, direction] = item.split(':')
    return { key: key!, direction: direction as 'asc' | 'desc' }
  })
}

export const lists: Cases = {
  'an empty collection lists nothing, not even an empty batch': async (t, { things }) => {
    t.strictSame(await read(things), { things: [], sizes: [] })
  },

  'a list without a sort goes by id': async (t, { things }) => {
    for (const id of ['b', 'B', 'a', 'aa', '1', 'ä']) await things.insert({ id })
    t.strictSame(await ids(things), ['1', 'B', 'a', 'aa', 'b', 'ä'])
  },

  'a list gives whole documents': async (t, { things }) => {
    const thing = { id: 'a', name: 'n', rank: null, map: { 'x.y': [{}] } }
    await things.insert(thing)
    t.strictSame((await read(things)).things, [thing])
    t.strictSame((await read(things, { sort: by('name:desc'), filter: { equal: { name: 'n' } } })).things, [thing])
  },

  'several sort keys count in order, and the id ends them in the direction of the last': async (t, { things }) => {
    await things.insert({ id: 'a', owner: 'x', rank: 1 })
    await things.insert({ id: 'b', owner: 'x', rank: 1 })
    await things.insert({ id: 'c', owner: 'x', rank: 2 })
    await things.insert({ id: 'd', owner: 'y', rank: 1 })
    await things.insert({ id: 'e', owner: 'y', rank: 10 })
    const orders: Record<string, string> = {
      'owner:asc': 'abcde',
      'owner:desc': 'edcba',
      'rank:asc': 'abdce',
      'rank:desc': 'ecdba',
      'owner:asc,rank:asc': 'abcde',
      'owner:asc,rank:desc': 'cbaed',
      'owner:desc,rank:asc': 'deabc',
      'owner:desc,rank:desc': 'edcba',
      'rank:asc,owner:desc': 'dbace',
      'rank:desc,owner:asc': 'ecabd',
      'id:desc': 'edcba'
    }
    for (const [sort, order] of Object.entries(orders)) t.equal((await ids(things, { sort: by(sort) })).join(''), order, sort)
    t.equal((await ids(things, { sort: by('rank:desc'), filter: { equal: { owner: 'x' } } })).join(''), 'cba', 'with a filter too')
  },

  'texts sort by code point': async (t, { things }) => {
    const texts = ['', '\u0000', ' ', '10', '9', 'A', 'B', 'Z', '_', 'a', 'aA', 'aa', 'b', 'e\u0301', 'z', '~', 'é', 'ł', '٣', 'あ', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}', '\u{10ffff}']
    await each([...texts].reverse().entries(), ([index, name]) => things.insert({ id: serialId(index), name }))
    const names = async (sort: string) => (await read(things, { sort: by(sort) })).things.map(({ name }) => name)
    t.strictSame(await names('name:asc'), texts)
    t.strictSame(await names('name:desc'), [...texts].reverse())
  },

  'numbers sort by value, booleans false first': async (t, { things }) => {
    const ranks = [-1e9, -1, -0.5, 0, 0.1, 1, 2, 10, 2 ** 40, Number.MAX_SAFE_INTEGER]
    await each([...ranks].reverse(), (rank) => things.insert({ id: `r${rank}`, rank, live: rank > 0 }))
    t.strictSame((await read(things, { sort: by('rank:asc') })).things.map(({ rank }) => rank), ranks)
    t.strictSame((await read(things, { sort: by('live:asc,rank:asc') })).things.map(({ rank }) => rank), ranks)
    t.strictSame((await read(things, { sort: by('live:desc,rank:asc') })).things.map(({ rank }) => rank), [...ranks.slice(4), ...ranks.slice(0, 4)])
  },

  'what is missing sorts first ascending and last descending, null like absent': async (t, { things }) => {
    await things.insert({ id: 'a', name: 'x', rank: 1, live: true })
    await things.insert({ id: 'b', name: '', rank: -1, live: false })
    await things.insert({ id: 'c', name: null, rank: null, live: null })
    await things.insert({ id: 'd' })
    await things.insert({ id: 'e', name: null, rank: null, live: null })
    for (const key of ['name', 'rank', 'live']) {
      t.equal((await ids(things, { sort: by(`${key}:asc`) })).join(''), 'cdeba', `${key}:asc`)
      t.equal((await ids(things, { sort: by(`${key}:desc`) })).join(''), 'abedc', `${key}:desc`)
    }
  },

  'offset and limit cut the sorted result': async (t, { things }) => {
    await fill(things, 12, (number) => ({ rank: -number }))
    const cut = async (query: { offset?: number, limit?: number }) => (await ids(things, { sort: by('rank:asc'), ...query })).map((id) => Number(id.slice(1)))
    t.strictSame(await cut({}), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    t.strictSame(await cut({ limit: 0 }), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    t.strictSame(await cut({ limit: 3 }), [11, 10, 9])
    t.strictSame(await cut({ offset: 2, limit: 3 }), [9, 8, 7])
    t.strictSame(await cut({ offset: 10 }), [1, 0])
    t.strictSame(await cut({ offset: 10, limit: 0 }), [1, 0])
    t.strictSame(await cut({ offset: 10, limit: 100 }), [1, 0])
    t.strictSame(await cut({ offset: 12 }), [])
    t.strictSame(await cut({ offset: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER }), [])
  },

  'pages of equal keys are stable: together they are the whole list': async (t, { things }) => {
    await fill(things, 40, (number) => ({ rank: number % 2 }))
    for (const sort of ['rank:asc', 'rank:desc', 'rank:asc,owner:desc']) {
      const pages = []
      for (let offset = 0; offset < 40; offset += 7) pages.push(...await ids(things, { sort: by(sort), offset, limit: 7 }))
      t.strictSame(pages, await ids(things, { sort: by(sort) }), sort)
      t.equal(new Set(pages).size, 40)
    }
  },

  'a list comes in batches of 100, none of them empty': async (t, { things }) => {
    await fill(things, 250, (number) => ({ rank: number % 3 }))
    t.strictSame((await read(things)).sizes, [100, 100, 50])
    t.strictSame((await read(things, { limit: 200 })).sizes, [100, 100])
    t.strictSame((await read(things, { limit: 101 })).sizes, [100, 1])
    t.strictSame((await read(things, { limit: 100 })).sizes, [100])
    t.strictSame((await read(things, { limit: 99 })).sizes, [99])
    t.strictSame((await read(things, { offset: 150 })).sizes, [100])
    t.strictSame(await ids(things), Array.from({ length: 250 }, (_, number) => serialId(number)))
    t.strictSame(await ids(things, { sort: by('id:desc'), offset: 20 }), Array.from({ length: 230 }, (_, number) => serialId(229 - number)))
    t.equal((await read(things, { sort: by('rank:asc'), filter: { equal: { rank: 1 } } })).things.length, 83)
  },

  'a page has at most one document more than a batch, and comes in one': async (t, { things }) => {
    await fill(things, 250, (number) => ({ rank: number % 3 }))
    const page = async (query?: PageQuery) => (await Array.fromAsync(things.page(query))).map((batch) => batch.map(({ id }) => id))
    t.strictSame((await page()).map(({ length }) => length), [100])
    t.strictSame((await page({ limit: 101 })).map(({ length }) => length), [101])
    t.strictSame(await page({ filter: { equal: { rank: 9 } } }), [])
    const after = { values: [1], id: serialId(4) }
    for (const query of [{ limit: 3 }, { offset: 240, limit: 20 }, { sort: by('rank:desc'), limit: 101 }, { sort: by('rank:asc'), after, limit: 90 }]) {
      t.strictSame(await page(query), [await ids(things, query)])
    }
    for (const limit of [0, 102]) await t.rejects(async () => await page({ limit }), TypeError)
  },

  'a page of large documents is whole and in order': async (t, { things }) => {
    await fill(things, 12, (number) => ({ rank: number % 2, map: { text: 'x'.repeat(200_000) } }))
    for (const query of [{}, { sort: by('rank:desc'), limit: 11 }, { sort: by('rank:asc,name:desc'), offset: 3, limit: 8 }]) {
      const batches = await Array.fromAsync(things.page(query))
      t.notOk(batches.some(({ length }) => length === 0))
      t.strictSame(batches.flat().map(({ id }) => id), await ids(things, query))
    }
  },

  'an urgent read answers as any other': async (t, { things }) => {
    await fill(things, 20, (number) => ({ owner: `o${number % 2}`, rank: number }))
    const filter = { equal: { owner: 'o1' } }
    t.equal(await things.count(filter, { urgent: true }), 10)
    for (const query of [{ sort: by('id:desc'), limit: 3 }, { filter, sort: by('name:asc') }]) {
      t.strictSame((await Array.fromAsync(things.page({ ...query, urgent: true }))).flat().map(({ id }) => id), await ids(things, query))
    }
  },

  'leaving the loop early frees the cursor': async (t, { store, things }) => {
    await fill(things, 350)
    for (let round = 0; round < 100; round++) {
      for await (const batch of things.stream()) {
        if (batch.length === 100) break
      }
      const thrown = new Error('thrown in the loop')
      await t.rejects(async () => {
        for await (const batch of things.stream()) if (batch.length === 100) throw thrown
      }, thrown)
    }
    t.equal((await read(things)).things.length, 350, 'a hundred lists later a list still opens')
    await store.ping()
  },

  'many lists may be read at once, each with its own cursor': async (t, { things }) => {
    await fill(things, 230)
    const all = Array.from({ length: 230 }, (_, number) => serialId(number))
    const results = await Promise.all(Array.from({ length: 30 }, (_, index) => ids(things, { offset: index })))
    for (const [index, result] of results.entries()) t.strictSame(result, all.slice(index))
  },

  'two lists may be read in step': async (t, { things }) => {
    await fill(things, 250)
    const up = things.stream()[Symbol.asyncIterator]()
    const down = things.stream({ sort: by('id:desc') })[Symbol.asyncIterator]()
    for (const size of [100, 100, 50]) {
      const [one, two] = [await up.next(), await down.next()]
      t.equal(one.value?.length, size)
      t.equal(two.value?.length, size)
    }
    t.strictSame([(await up.next()).done, (await down.next()).done], [true, true])
  },

  'writing while a list is read is safe': async (t, { things }) => {
    await fill(things, 350, (number) => ({ rank: number }))
    const seen: string[] = []
    for await (const batch of things.stream({ sort: by('rank:asc') })) {
      seen.push(...batch.map(({ id }) => id))
      if (seen.length !== 100) continue
      await each(Array.from({ length: 50 }, (_, number) => serialId(number)), (id) => things.update(id, { increment: { rank: 10_000 } }))
      await each(Array.from({ length: 50 }, (_, number) => serialId(300 + number)), (id) => things.delete(id))
      await each(Array.from({ length: 50 }, (_, number) => `new ${number}`), (id) => things.insert({ id, rank: -1 }))
    }
    const untouched = seen.filter((id) => id >= serialId(50) && id < serialId(300))
    t.strictSame(untouched, Array.from({ length: 250 }, (_, number) => serialId(50 + number)), 'what nobody wrote comes once, in order')
    t.ok(seen.length <= 350 + 100, 'the list ends')
    t.equal(await things.count(), 350, 'and the writes are done')
  },

  'what a list has given can be written while it is open, one by one': async (t, { things }) => {
    await fill(things, 220)
    let changed = 0
    for await (const batch of things.stream()) {
      for (const { id } of batch) if (await things.update(id, { set: { owner: 'seen' } })) changed++
    }
    t.equal(changed, 220)
    t.equal(await things.count({ equal: { owner: 'seen' } }), 220)
  },

  'a rendered list comes in pieces, the first of one batch and none empty, with separators across them': async (t, { engine, things }) => {
    const { render } = things
    t.equal(render !== undefined, engine.renders === true)
    if (render === undefined) return
    const readPieces = (query: ListQuery) => Array.fromAsync(render(query, renderThings()))
    t.strictSame(await readPieces({}), [])
    await fill(things, 450, (number) => ({ rank: number % 3, map: { text: `"${number}" \u{1F34F} ä ${'x'.repeat(300)}` } }))
    for (const query of [{}, { sort: by('rank:desc') }, { limit: 250, offset: 60 }, { limit: 100 }, { limit: 101 }, { filter: { equal: { rank: 1 } } }]) {
      const pieces = await readPieces(query)
      const expected = (await read(things, query)).things
      t.equal(pieces.join(''), expected.map((thing) => ` ${JSON.stringify(thing)}`).join(';'))
      t.equal(pieces[0]!.split(';').length, 100)
      t.equal(pieces.length > 1, expected.length > 100)
      t.notOk(pieces.includes(''))
    }
    t.throws(() => render({ sort: by('nothing:asc') }, renderThings()), TypeError)
    await t.rejects(Array.fromAsync(render({}, { ...renderThings(), renderer: 'toString' })), { code: 'ErrDb', cause: { message: 'no renderer toString is registered' } })
  },

  'leaving a rendered list early, or a renderer that fails, frees the cursor': async (t, { things }) => {
    const { render } = things
    if (render === undefined) return
    await fill(things, 350, () => ({ map: { text: 'x'.repeat(1_000) } }))
    // More often than there are cursors.
    for (let round = 0; round < 70; round++) {
      if (round % 3 === 0) for await (const piece of render({}, renderThings())) if (piece.length > 0) break
      const failing = serialId(round % 2 === 0 ? 5 : 340)
      if (round % 3 !== 0) await t.rejects(Array.fromAsync(render({}, renderThings({ failing }))), { code: 'ErrParam', message: 'thing: fails' })
    }
    t.equal((await Array.fromAsync(render({}, renderThings()))).join('').split(';').length, 350)
  }
}
