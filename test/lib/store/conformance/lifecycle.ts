import type { CollectionSpec, Store } from '../../../../lib/store/port.ts'
import type { Test } from 'tap'
import { COLLECTIONS, type Cases, type Engine, type Suite, type Thing, ids } from './suite.ts'

/** Opens a store for one case, and closes it when the case ends. */
async function openOwn (t: Test, engine: Engine, place: string, collections: readonly CollectionSpec[] = COLLECTIONS): Promise<Store> {
  const store = await engine.open({ collections, now: Date.now }, place)
  t.teardown(() => store.close())
  return store
}

/** Cases that reopen a store. An engine that is not persistent skips them. */
function persistent (run: (t: Test, suite: Suite) => Promise<unknown>): Cases[string] {
  return async (t, suite) => {
    if (suite.engine.persistent === false) return t.pass('keeps nothing')
    await run(t, suite)
  }
}

export const lifecycle: Cases = {
  'a store names its engine and answers a ping': async (t, { store }) => {
    t.match(store.engine, /^(sqlite|mongodb)$/)
    t.equal(await store.ping(), undefined)
  },

  'an undeclared collection throws': async (t, { store }) => {
    for (const name of ['nothing', '', 'things ', 'constructor', '__proto__', 'things"; DROP TABLE things; --']) {
      t.throws(() => store.collection(name), TypeError, JSON.stringify(name))
    }
  },

  'collections are apart': async (t, { store, things }) => {
    const owners = store.collection<Thing>('owners')
    await things.insert({ id: 'a', owner: 'x' })
    await owners.put({ id: 'a', title: 'y' })
    t.strictSame(await things.get('a'), { id: 'a', owner: 'x' })
    t.strictSame(await owners.get('a'), { id: 'a', title: 'y' })
    await owners.delete('a')
    t.strictSame(await things.get('a'), { id: 'a', owner: 'x' })
  },

  'a store that is closed rejects everything with ErrDb, and closing again is nothing': async (t, { engine }) => {
    const store = await openOwn(t, engine, 'closed')
    const things = store.collection<Thing>('things')
    await things.insert({ id: 'a', name: 'n' })
    await store.close()
    await store.close()
    const methods: Record<string, () => unknown> = {
      insert: () => things.insert({ id: 'b' }),
      put: () => things.put({ id: 'b' }),
      get: () => things.get('a'),
      getBy: () => things.getBy('name', 'n'),
      getLinked: () => things.getLinked('a', {}),
      update: () => things.update('a', { set: { rank: 1 } }),
      delete: () => things.delete('a'),
      deleteMany: () => things.deleteMany({ equal: { name: 'n' } }),
      count: () => things.count(),
      list: () => ids(things),
      ping: () => store.ping()
    }
    for (const [name, method] of Object.entries(methods)) await t.rejects(async () => method(), { code: 'ErrDb', statusCode: 503 }, name)
  },

  'close finishes what was accepted, and a store opened again has it all': persistent(async (t, { engine }) => {
    const first = await openOwn(t, engine, 'reopened')
    const inserts = Array.from({ length: 120 }, (_, number) => first.collection<Thing>('things').insert({ id: `t${number}`, serial: number }))
    await first.close()
    const outcomes = await Promise.allSettled(inserts)
    const second = await openOwn(t, engine, 'reopened')
    const things = second.collection<Thing>('things')
    for (const [number, { status }] of outcomes.entries()) {
      t.equal(status, 'fulfilled')
      t.strictSame(await things.get(`t${number}`), { id: `t${number}`, serial: number })
    }
    await t.rejects(things.insert({ id: 'x', serial: 5 }), { name: 'DuplicateKeyError', field: 'serial' }, 'unique keys hold')
  }),

  'two stores on one place see what the other wrote at once': persistent(async (t, { engine }) => {
    const [one, two] = [await openOwn(t, engine, 'two'), await openOwn(t, engine, 'two')]
    const [ours, theirs] = [one.collection<Thing>('things'), two.collection<Thing>('things')]
    for (let round = 0; round < 20; round++) {
      const id = `t${round}`
      await ours.insert({ id, name: id, rank: 0 })
      t.equal((await theirs.get(id))?.rank, 0)
      await theirs.update(id, { increment: { rank: 1 } })
      t.equal((await ours.getLinked(id, {}))?.document.rank, 1)
      t.equal((await ids(ours, { filter: { equal: { rank: 1 } } })).length, round + 1)
    }
    const outcomes = await Promise.all([ours, theirs, ours, theirs].flatMap((things) => [things.delete('t0'), things.update('t1', { increment: { rank: 1 } })]))
    t.equal(outcomes.filter((outcome) => outcome === true).length, 1, 'a delete has one winner over both')
    t.equal((await ours.get('t1'))?.rank, 5, 'no increment is lost')
  }),

  'two stores may open a new place at the same moment': persistent(async (t, { engine }) => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => openOwn(t, engine, 'fresh')))
    await Promise.all(stores.map((store, number) => store.collection<Thing>('things').insert({ id: `t${number}`, name: `n${number}` })))
    for (const store of stores) t.equal(await store.collection<Thing>('things').count(), 4)
    await t.rejects(stores[0]!.collection<Thing>('things').insert({ id: 'x', name: 'n3' }), { name: 'DuplicateKeyError', field: 'name' }, 'unique keys hold')
  }),

  'a later release may declare new collections, keys and indexes': persistent(async (t, { engine }) => {
    const old = await openOwn(t, engine, 'grown', [{ name: 'things', keys: { owner: 'string' } }])
    const before = old.collection<Thing>('things')
    await before.insert({ id: 'a', owner: 'o', name: 'n1', rank: 2, live: true })
    await before.insert({ id: 'b', owner: 'o', name: 'n2', rank: 1, live: false })
    await before.insert({ id: 'c', owner: 'p', name: null })
    await before.insert({ id: 'd' })
    await old.close()

    const things = (await openOwn(t, engine, 'grown')).collection<Thing>('things')
    t.equal((await things.getBy('name', 'n2'))?.id, 'b')
    t.strictSame(await ids(things, { filter: { equal: { live: false } } }), ['b'])
    t.strictSame(await ids(things, { sort: [{ key: 'rank', direction: 'desc' }] }), ['a', 'b', 'd', 'c'])
    await t.rejects(things.insert({ id: 'x', name: 'n1' }), { name: 'DuplicateKeyError', field: 'name' })
    await things.insert({ id: 'e', name: 'n3', serial: 3 })
    t.equal(await things.count(), 5)
  }),

  'an older release still works on what a later one has opened': persistent(async (t, { engine }) => {
    const later = await openOwn(t, engine, 'shrunk')
    await later.collection<Thing>('things').insert({ id: 'a', name: 'n', rank: 1 })
    const older = await openOwn(t, engine, 'shrunk', [{ name: 'things', keys: { owner: 'string' } }])
    await older.collection<Thing>('things').insert({ id: 'b', owner: 'o', rank: 2 })
    t.strictSame(await older.collection<Thing>('things').get('a'), { id: 'a', name: 'n', rank: 1 })
    t.strictSame(await later.collection<Thing>('things').get('b'), { id: 'b', owner: 'o', rank: 2 })
    await older.close()
    await later.close()
    const again = (await openOwn(t, engine, 'shrunk')).collection<Thing>('things')
    t.strictSame(await ids(again, { filter: { equal: { rank: 2 } } }), ['b'], 'opened by the later one again, it is found by all its keys')
  })
}
