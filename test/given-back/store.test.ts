import t, { type Test } from 'tap'
import { openStore } from '../../lib/store/index.ts'
import { BoundedCalls } from '../../lib/store/mongo/bounded-calls.ts'
import { MongoCollection } from '../../lib/store/mongo/collection.ts'
import { KeyedMutex } from '../../lib/store/mongo/keyed-mutex.ts'
import type { Collection, CollectionSpec, Document, Store } from '../../lib/store/port.ts'
import { type GivenBackOptions, checkRow, findKept, watchSizes } from '../helpers/given-back.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'

const collections: CollectionSpec[] = [{ name: 'things', keys: { name: 'string', owner: 'string' }, unique: ['name'], indexes: [['name']] }]
const LINKS = { owner: 'things' }

/** Documents of the collection: several batches. */
const COUNT = 350

interface Thing extends Document { name: string, owner: string }

const make = (number: number): Thing => ({ id: `id${String(number).padStart(4, '0')}`, name: `name ${number}`, owner: 'id0000' })

/** The ways in which a list ends, and what the reader gets. */
const LISTS: Record<string, (list: AsyncIterable<unknown[]>) => Promise<unknown>> = {
  'is read to its end': async (list) => {
    let count = 0
    for await (const batch of list) count += batch.length
    return count
  },
  'is left': async (list) => {
    for await (const batch of list) if (batch.length > 0) break
  },
  'is left by an error': async (list) => {
    for await (const batch of list) if (batch.length > 0) throw new Error('the reader fails')
  },
  'is never begun': async (list) => {
    list[Symbol.asyncIterator]()
  },
  'is left while a batch is read': async (list) => {
    const iterator = list[Symbol.asyncIterator]()
    await iterator.next()
    const next = iterator.next()
    await Promise.all([next, iterator.return?.()])
  }
}

const CALLS: Record<string, (things: Collection<Thing>, index: number) => unknown> = {
  get: (things) => things.get('id0001'),
  getBy: (things) => things.getBy('name', 'name 1'),
  getLinked: async (things) => await things.getLinked('id0001', LINKS),
  count: (things) => things.count(),
  'count of some': (things) => things.count({ equal: { name: 'name 1' } }),
  update: (things, index) => things.update('id0001', { set: { note: String(index) } }),
  'an update that does not match': (things) => things.update('id0001', { set: { note: 'x' } }, { equal: { name: 'other' } }),
  'insert and delete': async (things) => {
    await things.insert(make(9_999))
    await things.delete(make(9_999).id)
  },
  'an insert that clashes': async (things) => {
    const { name } = await Promise.resolve(things.insert(make(1))).then(() => ({ name: 'no clash' }), (error: Error) => error)
    if (name === 'no clash') throw new Error(name)
  }
}

async function checkStore (t: Test, url: string): Promise<void> {
  const { opened: store, sizes } = await watchSizes(async () => await openStore(url, { collections, now: Date.now, onError: () => {} }))
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  await things.insertMany(Array.from({ length: COUNT }, (_, number) => make(number)))
  const options: GivenBackOptions = { sizes, times: 4 }
  for (const [what, read] of Object.entries(LISTS)) {
    for (const method of ['page', 'stream'] as const) {
      const call = async () => await read(things[method]({ sort: [{ key: 'name', direction: 'asc' }] })).catch(() => {})
      t.strictSame(await findKept(call, options), [], `a ${method} that ${what}`)
    }
  }
  for (const [what, call] of Object.entries(CALLS)) t.strictSame(await findKept(async (index) => await call(things, index), options), [], what)
}

const ENGINES: Record<string, (t: Test) => string> = {
  'SQLite in memory': () => 'sqlite::memory:',
  SQLite: (t) => `sqlite:${t.testdir()}/store.db`,
  MongoDB: (t) => createMongoDatabase(t, MONGODB_URL!)
}

for (const [engine, toUrl] of Object.entries(ENGINES)) {
  const options = { skip: engine === 'MongoDB' && MONGODB_URL === undefined && 'MONGODB_URL is not set' }
  t.test(`${engine}: calls and lists give back everything, however they end`, options, async (t) => await checkStore(t, toUrl(t)))

  t.test(`${engine}: a store that is closed gives back its connections, threads and timers, also with a list open`, options, async (t) => {
    const url = toUrl(t)
    const kept = await findKept(async () => {
      const store: Store = await openStore(url, { collections, now: Date.now, onError: () => {} })
      const things = store.collection<Thing>('things')
      for (let number = 0; number < 150; number++) await things.put(make(number))
      const left = things.stream()[Symbol.asyncIterator]()
      await left.next()
      await things.count()
      await store.close()
      await left.next().catch(() => {})
      await left.return?.()
    }, { times: 3 })
    t.strictSame(kept, [])
  })
}

/** What the cursor of a server does. */
const CURSORS: Record<string, { batches: number, fault?: Error, isHanging?: boolean }> = {
  'that ends': { batches: 2 },
  'that fails at once': { batches: 0, fault: new Error('down') },
  'that fails later': { batches: 1, fault: new Error('down') },
  'that hangs later': { batches: 1, isHanging: true }
}

for (const [what, { batches, fault, isHanging = false }] of Object.entries(CURSORS)) {
  for (const [how, read] of Object.entries(LISTS)) {
    t.test(`a cursor on MongoDB ${what}, whose list ${how}, is closed`, async (t) => {
      const open = new Set<object>()
      const find = () => {
        let left = batches
        const cursor = {
          killed: false,
          async hasNext () {
            open.add(cursor)
            if (left > 0) return true
            if (isHanging) await new Promise(() => {})
            if (fault !== undefined) throw fault
            return false
          },
          readBufferedDocuments () {
            left--
            return [{ _id: 'a' }]
          },
          async close () { open.delete(cursor) }
        }
        return cursor
      }
      const { opened: list, sizes } = await watchSizes(() => {
        const calls = new BoundedCalls(isHanging ? 20 : 60_000)
        const context = { calls, mutex: new KeyedMutex(), admit: async () => {}, handle: () => ({ reads: { find } }), spec: () => collections[0]! }
        return new MongoCollection<Thing>(context as never, 'things')
      })
      await checkRow(t, { call: async () => { await read(list.stream()).catch(() => {}) }, outcome: undefined, sizes: { ...sizes, 'open cursors': open }, times: 3 })
      t.equal(open.size, 0)
    })
  }
}

/** What the server answers to a statement of look-ups. */
const ANSWERS: Record<string, { answer: () => Promise<unknown[]>, outcome: unknown, timeout?: number }> = {
  'that is answered': { answer: async () => [], outcome: null },
  'that fails': { answer: () => Promise.reject(new Error('down')), outcome: 'ErrDb' },
  'that hangs': { answer: () => new Promise(() => {}), outcome: 'ErrDb', timeout: 20 }
}

for (const [what, { answer, outcome, timeout = 60_000 }] of Object.entries(ANSWERS)) {
  t.test(`a look-up on MongoDB ${what} gives back its slot and its call`, async (t) => {
    let statements = 0
    const aggregate = () => {
      statements++
      return { toArray: answer }
    }
    const { opened: things, sizes } = await watchSizes(() => {
      const context = { calls: new BoundedCalls(timeout), mutex: new KeyedMutex(), admit: async () => {}, handle: () => ({ reads: { aggregate } }), spec: () => collections[0]! }
      return new MongoCollection<Thing>(context as never, 'things')
    })
    // More than there are slots.
    const times = 12
    await checkRow(t, { call: async (index) => await things.getLinked(`id ${index}`, LINKS), outcome, sizes, times })
    t.equal(statements, times + 1, 'each one is sent')
  })
}
