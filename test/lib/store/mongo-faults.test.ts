import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import { openMongoStore } from '../../../lib/store/mongo.ts'
import type { CollectionSpec, Store } from '../../../lib/store/port.ts'
import { type Thing, fill, read } from './conformance/suite.ts'
import { MONGODB_URL, createPlaces } from './mongo/places.ts'
import { type Mode, type Proxy, startProxy } from './mongo/proxy.ts'

/** Milliseconds that one operation may take here: short, so that the tests are. */
const TIMEOUT = 600

const COLLECTIONS: CollectionSpec[] = [{ name: 'things', keys: { name: 'string', rank: 'number' }, unique: ['name'], indexes: [['rank']] }]

if (MONGODB_URL === undefined) {
  t.skip('MONGODB_URL is not set', async () => {})
} else {
  for (const [name, run] of Object.entries(cases(MONGODB_URL))) await t.test(name, run)
}

interface Faulty {
  proxy: Proxy
  url: string
  open: (url?: string) => Promise<Store>
}

function cases (server: string): Record<string, (t: Test) => Promise<void>> {
  const places = createPlaces(t, server)

  /** A place behind a proxy of its own. */
  async function setUp (t: Test, place: string, options: Record<string, string> = {}): Promise<Faulty> {
    const [target] = new MongoClient(server).options.hosts
    const proxy = await startProxy(t, { host: target!.host ?? '127.0.0.1', port: target!.port ?? 27017 })
    // Directly: a member of a replica set would send the driver past the proxy.
    const url = places.url(place, { directConnection: 'true', ...options }).replace(/\/\/(?:([^@/]*)@)?[^/]*/, (_, user?: string) => (
      `//${user === undefined ? '' : `${user}@`}127.0.0.1:${proxy.port}`))
    return {
      proxy,
      url,
      open: async (at = url) => {
        const store = await openMongoStore(at, { collections: COLLECTIONS, now: Date.now, timeout: TIMEOUT })
        t.teardown(() => store.close())
        return store
      }
    }
  }

  const outage = (mode: Mode) => async (t: Test) => {
    const { proxy, open } = await setUp(t, mode)
    const store = await open()
    const things = store.collection<Thing>('things')
    await fill(things, 250, (number) => ({ rank: number }))

    for (const round of ['first', 'second']) {
      const list = things.list()[Symbol.asyncIterator]()
      t.equal((await list.next()).value?.length, 100)
      proxy.set(mode)
      const calls: Record<string, () => unknown> = {
        get: () => things.get('t000001'),
        getBy: () => things.getBy('name', 'n'),
        getLinked: () => things.getLinked('t000001', {}),
        insert: () => things.insert({ id: `insert ${round}`, name: `insert ${round}` }),
        put: () => things.put({ id: `put ${round}` }),
        update: () => things.update('t000001', { set: { rank: -1 } }),
        delete: () => things.delete('nobody'),
        deleteMany: () => things.deleteMany({ equal: { rank: -2 } }),
        count: () => things.count(),
        'a new list': () => read(things),
        'a list midway': () => list.next(),
        ping: () => store.ping()
      }
      const outcomes = await Promise.all(Object.entries(calls).map(async ([name, call]) => {
        const error = await bounded(async () => call()).then(() => null, (error: unknown) => error)
        return [name, error] as const
      }))
      for (const [name, error] of outcomes) t.match(error, { code: 'ErrDb', statusCode: 503, cause: Error }, `${name} in the ${round} outage`)
      await t.resolves(bounded(async () => list.return?.()), 'leaving the list that failed')

      proxy.set('pass')
      await recovery(store)
      t.equal((await things.get('t000007'))?.rank, 7, 'reads again')
      t.equal((await things.update('t000007', { set: { round } }))?.round, round, 'writes again')
      t.ok((await read(things)).things.length >= 250, 'lists again')
    }
  }

  return {
    'a server that hangs: each call fails in time, and works again when it answers': outage('freeze'),
    'a server that is down: each call fails in time, and works again when it is back': outage('down'),

    'a store whose first call meets an outage outlives it like any other': async (t) => {
      const { proxy, open } = await setUp(t, 'first')
      const store = await open()
      for (const mode of ['down', 'freeze'] as const) {
        proxy.set(mode)
        await t.rejects(bounded(() => store.ping()), { code: 'ErrDb' }, mode)
        proxy.set('pass')
        await t.resolves(recovery(store), `after ${mode}`)
      }
    },

    'connections that are lost without a sign are replaced': async (t) => {
      const { proxy, open } = await setUp(t, 'lost', { maxPoolSize: '2' })
      const store = await open()
      const things = store.collection<Thing>('things')
      await fill(things, 10)
      proxy.lose()
      const outcomes = await bounded(() => Promise.allSettled(Array.from({ length: 10 }, () => things.get('t000001'))))
      t.ok(outcomes.some(({ status }) => status === 'rejected'), 'they were in use')
      await recovery(store)
      t.equal((await things.get('t000001'))?.id, 't000001')
    },

    'a store closed while its server hangs is closed in time': async (t) => {
      const { proxy, open } = await setUp(t, 'closing')
      const store = await open()
      const things = store.collection<Thing>('things')
      await fill(things, 150)
      const list = things.list()[Symbol.asyncIterator]()
      await list.next()
      proxy.set('freeze')
      const pending = things.get('t000001').then(() => null, (error: unknown) => error)
      await bounded(() => store.close())
      t.match(await pending, { code: 'ErrDb' }, 'what was accepted has its answer')
      await t.rejects(list.next(), { code: 'ErrDb' })
    },

    'a store that is closed leaves no connection': async (t) => {
      const { proxy, open } = await setUp(t, 'connections')
      const store = await open()
      await Promise.all(Array.from({ length: 5 }, (_, id) => store.collection<Thing>('things').insert({ id: `t${id}` })))
      t.ok(proxy.open() > 1)
      await Promise.all([store.close(), store.close()])
      await bounded(async () => { while (proxy.open() > 0) await new Promise(setImmediate) })
      t.equal(proxy.open(), 0)
    },

    'a store does not open on a server that is down or hangs, and says where without the credentials': async (t) => {
      const { proxy, url, open } = await setUp(t, 'unopened')
      for (const mode of ['down', 'freeze'] as const) {
        proxy.set(mode)
        const secret = url.replace('//', '//someone:s3cret@')
        const error = await bounded(() => open(secret)).then(() => null, (error: Error) => error)
        t.match(error, { code: 'ErrDb', message: `MongoDB at 127.0.0.1:${proxy.port} cannot be opened: ` }, mode)
        t.notMatch(JSON.stringify([error?.message, error?.stack, String(error?.cause)]), /s3cret|someone/)
      }
      proxy.set('pass')
      await t.resolves(open(), 'and opens when the server is there')
    },

    'indexes may take longer to make than any call may': async (t) => {
      const { proxy, open } = await setUp(t, 'long')
      const clock = await setUp(t, 'clock')
      const other = await clock.open()
      clock.proxy.set('freeze')
      const held = proxy.holdAt('createIndexes')
      const opening = open()
      await held
      // Each ping that fails here is the time of one call gone by.
      for (let call = 0; call < 3; call++) await t.rejects(other.ping(), { code: 'ErrDb' })
      proxy.set('pass')
      await t.resolves(opening)
    },

    'a server that hangs while the indexes are made is found out by its heartbeat': async (t) => {
      const { proxy, url, open } = await setUp(t, 'indexes', { heartbeatFrequencyMS: '500' })
      proxy.freezeAt('createIndexes')
      await t.rejects(bounded(() => open(url)), { code: 'ErrDb' })
    }
  }
}

/** Fails when work takes far longer than one operation may. */
async function bounded<T> (work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const bound = new Promise<never>((_resolve, reject) => { timer = setTimeout(() => reject(new Error('not in time')), 10 * TIMEOUT) })
  try {
    return await Promise.race([work(), bound])
  } finally {
    clearTimeout(timer)
  }
}

/** The driver finds out by itself that the server is back, at its next look. */
async function recovery (store: Store): Promise<void> {
  await bounded(async () => {
    // Let the driver look in between: some calls fail at once, without I/O.
    while (!await store.ping().then(() => true, () => false)) await new Promise(setImmediate)
  })
}
