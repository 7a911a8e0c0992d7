import { type Change, DuplicateKeyError, type Filter } from '../../../../lib/store/port.ts'
import { type Cases, type Thing, fill, ids, read, serialId } from './suite.ts'

export const writes: Cases = {
  'insert rejects a taken id and keeps what is there': async (t, { things }) => {
    await things.insert({ id: 'a', owner: 'first' })
    await t.rejects(things.insert({ id: 'a', owner: 'second' }), { name: 'DuplicateKeyError', field: 'id' })
    t.strictSame(await things.get('a'), { id: 'a', owner: 'first' })
  },

  'insertMany adds all documents, and names what is taken': async (t, { things }) => {
    await things.insertMany([])
    const many = Array.from({ length: 300 }, (_, number) => ({ id: serialId(number), name: `n${number}`, text: '\u0000é', none: null }))
    await things.insertMany(many)
    t.strictSame((await read(things)).things, many)
    await t.rejects(things.insertMany([{ id: 'z1' }, { id: serialId(7) }]), { name: 'DuplicateKeyError', field: 'id' })
    await t.rejects(things.insertMany([{ id: 'z2', name: 'n7' }]), { name: 'DuplicateKeyError', field: 'name' })
    await t.rejects(things.insertMany([{ id: 'z3' }, { id: 'z4', name: 4 }]), TypeError)
    t.equal(await things.get('z3'), null, 'a wrong type is found before anything is written')
    t.strictSame(await things.get(serialId(7)), many[7])
  },

  'insertMany stops at the first document that is taken': async (t, { things }) => {
    await things.insert({ id: 'taken', name: 'taken' })
    await t.rejects(things.insertMany([{ id: 'a' }, { id: 'b' }, { id: 'taken' }, { id: 'c' }]), { name: 'DuplicateKeyError', field: 'id' })
    await t.rejects(things.insertMany([{ id: 'd' }, { id: 'e', name: 'taken' }, { id: 'f' }]), { name: 'DuplicateKeyError', field: 'name' })
    t.strictSame((await read(things)).things.map(({ id }) => id).sort(), ['a', 'b', 'd', 'taken'])
  },

  'a taken unique key is one error that names the field, whichever write meets it': async (t, { things }) => {
    await things.insert({ id: 'a', name: 'taken', serial: 7 })
    await things.insert({ id: 'b', name: 'other', serial: 8 })
    const writes: Record<string, () => Promise<unknown>> = {
      'insert name': () => things.insert({ id: 'c', name: 'taken' }),
      'insert serial': () => things.insert({ id: 'c', serial: 7 }),
      'put name': () => things.put({ id: 'c', name: 'taken' }),
      'put over another serial': () => things.put({ id: 'b', serial: 7 }),
      'update name': () => things.update('b', { set: { name: 'taken' } }),
      'increment serial': () => things.update('b', { increment: { serial: -1 } })
    }
    for (const [name, write] of Object.entries(writes)) {
      const error = await write().then(() => null, (error: unknown) => error)
      t.ok(error instanceof DuplicateKeyError, name)
      t.match(error, { field: name.split(' ').at(-1), message: /^duplicate value of (name|serial)$/ }, `${name}: the field is named, the value is not`)
    }
    t.strictSame(await things.get('b'), { id: 'b', name: 'other', serial: 8 }, 'nothing was changed')
    t.equal(await things.get('c'), null)
  },

  'no item of a field of unique items is in two documents, whichever write meets it': async (t, { things }) => {
    await things.insert({ id: 'a', aliases: ['one', 'two'] })
    await things.insert({ id: 'b', name: 'b', aliases: ['three', 'three'] })
    const writes: Record<string, () => Promise<unknown>> = {
      insert: () => things.insert({ id: 'c', aliases: ['four', 'two'] }),
      put: () => things.put({ id: 'c', aliases: ['one'] }),
      'put over another': () => things.put({ id: 'b', aliases: ['three', 'one'] }),
      update: () => things.update('b', { set: { aliases: ['five', 'two'], owner: 'never' } })
    }
    for (const [name, write] of Object.entries(writes)) {
      const error = await write().then(() => null, (error: unknown) => error)
      t.ok(error instanceof DuplicateKeyError, name)
      t.match(error, { field: 'aliases', message: 'duplicate value of aliases' }, name)
    }
    t.strictSame(await things.get('b'), { id: 'b', name: 'b', aliases: ['three', 'three'] }, 'nothing was changed')
    t.equal(await things.get('c'), null)
    for (const free of ['four', 'five']) t.equal(await things.getBy('aliases', free), null, 'a refused write holds no item')
    await things.insert({ id: 'd', aliases: ['four', 'five'] })
  },

  'a document is found by each of its unique items, and an item is free once its holder let it go': async (t, { things }) => {
    await things.insert({ id: 'a', aliases: ['one', 'two'] })
    for (const item of ['one', 'two']) t.equal((await things.getBy('aliases', item))?.id, 'a')
    await things.update('a', { set: { aliases: ['two', 'three'] } })
    t.equal(await things.getBy('aliases', 'one'), null)
    t.equal((await things.getBy('aliases', 'three'))?.id, 'a')
    await things.put({ id: 'b', aliases: ['one'] })
    await things.put({ id: 'b', aliases: ['four'] })
    await things.update('b', { set: { name: 'another field' } })
    await things.insert({ id: 'c', aliases: ['one'] })
    await things.update('c', { unset: ['aliases'] })
    await things.delete('a')
    await things.insert({ id: 'd', aliases: ['one', 'two', 'three'] })
    t.equal((await things.getBy('aliases', 'two'))?.id, 'd')
    t.equal((await things.getBy('aliases', 'four'))?.id, 'b')
  },

  'absent and empty arrays of unique items never clash': async (t, { things }) => {
    for (const id of ['a', 'b']) await things.insert({ id })
    for (const id of ['c', 'd']) await things.insert({ id, aliases: [] })
    for (const id of ['e', 'f']) await things.insert({ id, aliases: [`of ${id}`] })
    for (const id of ['e', 'f']) await things.update(id, { set: { aliases: [] } })
    t.equal(await things.count(), 6)
    t.strictSame(await things.get('e'), { id: 'e', aliases: [] })
  },

  'a field of unique items takes arrays of strings': async (t, { things }) => {
    for (const aliases of ['one', null, [1], [null], [['one']], ['\ud800']]) {
      await t.rejects(things.insert({ id: 'a', aliases }), TypeError)
      await t.rejects(things.update('a', { set: { aliases } }), TypeError)
    }
    await t.rejects(things.getBy('aliases', 1), TypeError)
  },

  'unique means the same text: case, accents and zeros at the end differ': async (t, { things }) => {
    for (const [index, name] of ['e', 'E', '\u00e9', 'e\u0301', 'e\u0000', 'e ', ''].entries()) await things.insert({ id: String(index), name })
    t.equal(await things.count(), 7)
    await t.rejects(things.insert({ id: 'x', name: '' }), { name: 'DuplicateKeyError', field: 'name' })
  },

  'absent and null never clash on a unique key': async (t, { things }) => {
    for (const id of ['a', 'b']) await things.insert({ id })
    for (const id of ['c', 'd']) await things.insert({ id, name: null, serial: null })
    for (const id of ['e', 'f']) await things.insert({ id, name: `name ${id}` })
    for (const id of ['e', 'f']) await things.update(id, { unset: ['name'] })
    for (const id of ['a', 'b']) await things.update(id, { set: { name: null } })
    t.equal(await things.count(), 6)
  },

  'a unique value is free again once its holder let it go': async (t, { things }) => {
    await things.insert({ id: 'a', name: 'n' })
    await things.delete('a')
    await things.insert({ id: 'b', name: 'n' })
    await things.update('b', { set: { name: 'm' } })
    await things.insert({ id: 'c', name: 'n' })
    await things.update('c', { unset: ['name'] })
    await things.insert({ id: 'd', name: 'n' })
    await things.put({ id: 'd' })
    await things.insert({ id: 'e', name: 'n' })
    t.equal((await things.getBy('name', 'n'))?.id, 'e')
  },

  'put adds, and replaces whole': async (t, { things }) => {
    await things.put({ id: 'a', name: 'n', owner: 'o', rank: 1, extra: { x: 1 } })
    t.strictSame(await things.get('a'), { id: 'a', name: 'n', owner: 'o', rank: 1, extra: { x: 1 } })
    await things.put({ id: 'a', name: 'n', rank: 2 })
    t.strictSame(await things.get('a'), { id: 'a', name: 'n', rank: 2 })
    t.strictSame(await ids(things, { filter: { equal: { owner: 'o' } } }), [], 'the old keys find it no more')
    t.strictSame(await ids(things, { filter: { equal: { rank: 2 } } }), ['a'])
  },

  'update sets, unsets and increments top-level fields, and resolves to what it became': async (t, { things }) => {
    await things.insert({ id: 'a', name: 'n', rank: 1, gone: 1, map: { x: 1, y: 2 }, kept: [1] })
    const became = { id: 'a', name: 'm', rank: 3.5, map: { z: null }, kept: [1], fresh: -1, empty: null }
    t.strictSame(await things.update('a', {
      set: { name: 'm', map: { z: null }, empty: null },
      unset: ['gone', 'never there'],
      increment: { rank: 2.5, fresh: -1 }
    }), became)
    t.strictSame(await things.get('a'), became)
    t.strictSame(await ids(things, { filter: { equal: { rank: 3.5, name: 'm' } } }), ['a'], 'the new keys find it')
    t.equal(await things.getBy('name', 'n'), null, 'the old key does not')
  },

  'update takes a dot or a dollar in a name for a letter': async (t, { things }) => {
    await things.insert({ id: 'a', 'x.y': 1, x: { y: 1 }, $z: 1, 'gone.': 1 })
    const became = { id: 'a', 'x.y': { $gt: 1 }, x: { y: 1 }, $z: 2, '$new.1': 'v', 'n.n': 5 }
    t.strictSame(await things.update('a', {
      set: { 'x.y': { $gt: 1 }, '$new.1': 'v' },
      unset: ['gone.', 'x.z'],
      increment: { $z: 1, 'n.n': 5 }
    }), became)
    t.strictSame(await things.get('a'), became)
  },

  'update sets a text that looks like an expression as the text it is': async (t, { things }) => {
    await things.insert({ id: 'a', secret: 's' })
    const set = { copy: '$secret', all: '$$ROOT', list: ['$secret'], map: { $literal: '$secret', x: '$secret' } }
    t.strictSame(await things.update('a', { set }), { id: 'a', secret: 's', ...set })
  },

  'a field set to undefined is left as it is': async (t, { things }) => {
    await things.insert({ id: 'a', name: 'n', rank: 1 })
    t.strictSame(await things.update('a', { set: { name: undefined as never, rank: 2 } }), { id: 'a', name: 'n', rank: 2 })
  },

  'update is for what exists and for whom `where` holds': async (t, { things }) => {
    t.equal(await things.update('nobody', { set: { rank: 1 } }), null)
    t.equal(await things.count(), 0, 'it adds nothing')
    await things.insert({ id: 'a', owner: 'o', rank: 1, at: '2999-01-01T00:00:00.000Z' })
    for (const where of [{ equal: { owner: 'other' } }, { equal: { owner: 'o', rank: 2 } }, { before: { at: '2999-01-01T00:00:00.000Z' } }, { contains: { owner: 'x' } }] as Filter[]) {
      t.equal(await things.update('a', { set: { rank: 9 } }, where), null, JSON.stringify(where))
    }
    t.equal((await things.get('a'))?.rank, 1)
    t.equal((await things.update('a', { set: { rank: 9 } }, { equal: { owner: 'o', rank: 1 } }))?.rank, 9)
  },

  'a change that names a field twice, or the id, throws': async (t, { things }) => {
    await things.insert({ id: 'a', rank: 1 })
    for (const change of [
      { set: { rank: 2 }, unset: ['rank'] },
      { set: { rank: 2 }, increment: { rank: 2 } },
      { unset: ['x', 'x'] },
      { set: { id: 'b' } },
      { unset: ['id'] }
    ] as Change[]) await t.rejects(async () => things.update('a', change), TypeError, JSON.stringify(change))
    t.strictSame(await things.get('a'), { id: 'a', rank: 1 })
  },

  'a declared key holds its declared type, or the write throws': async (t, { things }) => {
    await things.insert({ id: 'a' })
    for (const fields of [{ name: 1 }, { name: ['x'] }, { rank: '1' }, { rank: NaN }, { live: 0 }, { owner: { $ne: null } }] as Omit<Thing, 'id'>[]) {
      const label = JSON.stringify(fields)
      await t.rejects(async () => things.insert({ id: 'b', ...fields }), TypeError, `insert ${label}`)
      await t.rejects(async () => things.put({ id: 'a', ...fields }), TypeError, `put ${label}`)
      await t.rejects(async () => things.update('a', { set: fields as Record<string, never> }), TypeError, `update ${label}`)
    }
    await t.rejects(async () => things.update('a', { increment: { owner: 1 } }), TypeError, 'a text is not counted up')
    t.strictSame(await things.get('a'), { id: 'a' })
    t.equal(await things.count(), 1)
  },

  'delete says whether it removed': async (t, { things }) => {
    await things.insert({ id: 'a', owner: 'o' })
    await things.insert({ id: 'b', owner: 'o' })
    t.equal(await things.delete('a', { equal: { owner: 'other' } }), false)
    t.equal(await things.delete('a', { equal: { owner: 'o' } }), true)
    t.equal(await things.delete('a'), false)
    t.equal(await things.delete('b'), true)
    t.equal(await things.count(), 0)
  },

  'deleteMany removes all that match, over many steps, and nothing else': async (t, { things }) => {
    await fill(things, 1_210, (number) => ({ owner: number % 11 === 0 ? 'kept' : 'gone' }))
    t.equal(await things.deleteMany({ equal: { owner: 'gone' } }), 1_100)
    t.equal(await things.count(), 110)
    t.equal(await things.count({ equal: { owner: 'kept' } }), 110)
    t.equal(await things.deleteMany({ equal: { owner: 'gone' } }), 0)
  },

  'deleteMany without a condition throws': async (t, { things }) => {
    await things.insert({ id: 'a' })
    for (const filter of [{}, { equal: {} }, { equal: {}, contains: {}, before: {} }]) {
      await t.rejects(async () => things.deleteMany(filter), TypeError, JSON.stringify(filter))
    }
    t.equal(await things.count(), 1)
  }
}
