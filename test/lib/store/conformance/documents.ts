import type { Json } from '../../../../lib/store/port.ts'
import type { Cases, Thing } from './suite.ts'

/** Text that engines are known to mangle: NUL, the ends of the planes, combining marks, bidi, a byte-order mark. */
export const TEXTS = ['', ' ', '\u0000', 'a\u0000b', '\u0001\u001f\u007f', "'\"`;--", '\\', '\ufeffx', 'e\u0301', '\u00e9', '\uffff', '\u{10000}',
  '\u{10ffff}', '\ud7ff\ue000', 'שלום', '𝒳 👩‍👩‍👧', '$set', '%_*?[]']

export const VALUES: Record<string, Json> = {
  null: null,
  true: true,
  false: false,
  zero: 0,
  negative: -12.5,
  fraction: 0.1 + 0.2,
  small: 5e-324,
  large: 1.7976931348623157e308,
  'greatest integer': Number.MAX_SAFE_INTEGER,
  'least integer': Number.MIN_SAFE_INTEGER,
  'beyond 32 bits': 2 ** 32 + 1,
  'empty array': [],
  'empty object': {},
  'empty values': ['', null, [], {}],
  nested: { a: { b: [{ c: null }, [[]]] } },
  'keys with a dot': { 'a.b': 1, '.': { '..': 2 }, 'x.': [{ '.y': 3 }] },
  'keys with a dollar': { $set: { $gt: '' }, $: 1, $$ROOT: [{ $ne: null }] },
  'keys of any text': Object.fromEntries(TEXTS.filter((text) => !text.includes('\u0000')).map((text) => [text, text])),
  'names of Object.prototype': { constructor: 1, toString: { hasOwnProperty: null } },
  'a long text': 'ŁÓDŹ '.repeat(20_000)
}

export const documents: Cases = {
  'a document comes back as it went in': async (t, { things }) => {
    for (const [name, value] of Object.entries(VALUES)) {
      const thing: Thing = { id: name, value, list: [value], map: { value } }
      await things.insert(thing)
      t.strictSame(await things.get(name), thing, name)
    }
  },

  'a text comes back as it went in, from a key, an id and a field alike': async (t, { things }) => {
    for (const text of TEXTS) {
      const thing: Thing = { id: `id ${text}`, name: text, field: text }
      await things.insert(thing)
      t.strictSame(await things.get(thing.id), thing, JSON.stringify(text))
      t.strictSame(await things.getBy('name', text), thing, `${JSON.stringify(text)} by its key`)
    }
    t.equal(await things.count(), TEXTS.length)
  },

  'many documents are read by ids, unique keys and unique items at once': async (t, { things }) => {
    const all: Thing[] = TEXTS.map((text, index) => ({ id: `id ${text}`, name: text, aliases: [`t${index}`, `u${index}`] }))
    for (const thing of all) await things.insert(thing)
    const sorted = (list: Thing[]) => list.map(({ id }) => id).sort()
    const wanted = sorted(all)
    t.strictSame(sorted(await things.getMany('id', [...all.map(({ id }) => id), 'none', all[0]!.id])), wanted, 'by id')
    t.strictSame(sorted(await things.getMany('name', [...TEXTS, 'none'])), wanted, 'by a unique key')
    t.strictSame(sorted(await things.getMany('aliases', all.flatMap(({ aliases }) => aliases as string[]))), wanted, 'by an item, each once')
    t.strictSame(await things.getMany('id', [all[3]!.id]), [all[3]])
    t.strictSame(await things.getMany('id', []), [])
    t.strictSame(await things.getMany('id', ['none']), [])
    await t.rejects(things.getMany('id', Array.from({ length: 101 }, String)), TypeError)
    await t.rejects(things.getMany('owner', ['a']), TypeError, 'no unique key')
    await t.rejects(things.getMany('id', [{ $gt: '' }] as unknown as string[]), TypeError)
  },

  'top-level fields may hold a dot or a leading dollar': async (t, { things }) => {
    const thing: Thing = { id: 'a', 'x.y': 1, $set: { id: 'b' }, $: [], '.': null, 'name.': 'n' }
    await things.insert(thing)
    t.strictSame(await things.get('a'), thing)
    await things.put(thing)
    t.strictSame(await things.get('a'), thing)
  },

  'a declared key comes back absent, null or empty as it was': async (t, { things }) => {
    await things.insert({ id: 'absent' })
    await things.insert({ id: 'null', name: null, owner: null, rank: null, live: null })
    await things.insert({ id: 'empty', name: '', owner: '', rank: 0, live: false })
    t.strictSame(await things.get('absent'), { id: 'absent' })
    t.strictSame(await things.get('null'), { id: 'null', name: null, owner: null, rank: null, live: null })
    t.strictSame(await things.get('empty'), { id: 'empty', name: '', owner: '', rank: 0, live: false })
  },

  'a field that is undefined is absent': async (t, { things }) => {
    await things.insert({ id: 'a', name: undefined, field: undefined, kept: 1 })
    t.strictSame(await things.get('a'), { id: 'a', kept: 1 })
    await things.put({ id: 'a', rank: undefined, other: undefined })
    t.strictSame(await things.get('a'), { id: 'a' })
  },

  'what is missing is null': async (t, { things }) => {
    t.equal(await things.get('nobody'), null)
    t.equal(await things.getBy('name', 'nobody'), null)
    t.equal(await things.getLinked('nobody', { owner: 'owners' }), null)
  },

  'an id is one text: case, accents and lookalikes are other ids': async (t, { things }) => {
    await things.insert({ id: 'Abc' })
    for (const id of ['abc', 'ABC', 'Abc ', 'Ａbc', 'Abc\u0000', '']) t.equal(await things.get(id), null, JSON.stringify(id))
  },

  'getBy finds by each unique key, of any type': async (t, { things }) => {
    await things.insert({ id: 'a', name: 'one', serial: 1 })
    await things.insert({ id: 'b', name: 'two', serial: 0 })
    t.equal((await things.getBy('name', 'two'))?.id, 'b')
    t.equal((await things.getBy('serial', 0))?.id, 'b')
    t.equal((await things.getBy('serial', 1))?.id, 'a')
  },

  'getLinked gives the document and those its fields point at': async (t, { store, things }) => {
    const lookUp = async (id: string, links: Record<string, string>) => {
      const { document, linked } = (await things.getLinked(id, links))!
      return { document, linked }
    }
    const owners = store.collection<Thing>('owners')
    await owners.put({ id: 'o1', title: 'first' })
    await owners.put({ id: 'o2', title: 'second' })
    await things.insert({ id: 'a', owner: 'o1', deputy: 'o2' })
    await things.insert({ id: 'b', owner: 'gone', deputy: null })
    await things.insert({ id: 'c', owner: 'a', deputy: 'c' })
    t.strictSame(await lookUp('a', { owner: 'owners', deputy: 'owners' }), {
      document: { id: 'a', owner: 'o1', deputy: 'o2' },
      linked: {
        owner: { id: 'o1', title: 'first' },
        deputy: { id: 'o2', title: 'second' }
      }
    })
    t.strictSame(await lookUp('b', { owner: 'owners', deputy: 'owners' }), {
      document: { id: 'b', owner: 'gone', deputy: null },
      linked: { owner: null, deputy: null }
    })
    t.strictSame(await lookUp('b', {}), { document: { id: 'b', owner: 'gone', deputy: null }, linked: {} })
    await t.rejects(async () => things.getLinked('a', { owner: 'nowhere' }), TypeError, 'an undeclared collection throws')
    t.strictSame(await lookUp('c', { owner: 'things', deputy: 'things' }), {
      document: { id: 'c', owner: 'a', deputy: 'c' },
      linked: { owner: { id: 'a', owner: 'o1', deputy: 'o2' }, deputy: { id: 'c', owner: 'a', deputy: 'c' } }
    }, 'in its own collection too')
    await t.rejects(async () => things.getLinked('a', { elsewhere: 'owners' }), TypeError, 'an undeclared key throws')
    await t.rejects(async () => things.getLinked('a', { rank: 'owners' }), TypeError, 'and one that holds no text')
    await t.rejects(async () => things.getLinked('nobody', { owner: 'nowhere' }), TypeError, 'and whether or not there is a document')
  },

  'two answers of getLinked with the same stamp have the same content': async (t, { store, things }) => {
    const owners = store.collection<Thing>('owners')
    const LINKS = { owner: 'owners', deputy: 'owners' }
    await owners.put({ id: 'o', title: 'first' })
    await things.insert({ id: 'a', owner: 'o' })
    await things.insert({ id: 'b', owner: 'o' })
    await things.insert({ id: 'orphan', owner: 'gone' })
    /** The contents of `a` by stamp. */
    const contents = new Map<number, string>()
    const look = async () => {
      const { stamp, ...content } = await things.getLinked('a', LINKS) ?? {}
      if (stamp === undefined) return
      const text = JSON.stringify(content)
      t.equal(contents.get(stamp) ?? text, text)
      contents.set(stamp, text)
    }
    const changes: (() => Promise<unknown>)[] = [
      () => owners.update('o', { set: { title: 'second' } }),
      () => things.update('a', { set: { rank: 1 } }),
      () => things.put({ id: 'a', owner: 'o', rank: 2 }),
      () => owners.delete('o'),
      () => owners.insert({ id: 'o', title: 'third' }),
      () => things.update('b', { set: { rank: 1 } }),
      () => things.deleteMany({ equal: { rank: 2 } }),
      () => things.insert({ id: 'a', owner: 'o', rank: 3 })
    ]
    for (const change of changes) {
      for (let time = 0; time < 3; time++) await look()
      const done = change()
      await look()
      await done
    }
    for (let time = 0; time < 3; time++) await look()
    for (let time = 0; time < 2; time++) t.equal((await things.getLinked('orphan', LINKS))?.stamp, undefined, 'none while a document is missing')
  },

  'what a caller holds is his own: changing it changes no store': async (t, { things }) => {
    const thing: Thing = { id: 'a', tags: ['x'] }
    await things.insert(thing)
    ;(thing.tags as Json[]).push('y')
    const copy = await things.get('a')
    t.strictSame(copy?.tags, ['x'])
    ;(copy?.tags as Json[]).push('z')
    t.strictSame((await things.get('a'))?.tags, ['x'])
  }
}
