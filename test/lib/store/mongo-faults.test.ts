import { MongoClient } from 'mongodb'
import t, { type Test } from 'tap'
import { openMongoStore } from '../../../lib/store/mongo.ts'
import type { CollectionSpec, Store } from '../../../lib/store/port.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { waitUntil } from '../../helpers/wait.ts'
import { type Thing, fill, read } from './conformance/suite.ts'
import { createPlaces } from './mongo/places.ts'
import { type Mode, type Proxy, startProxy } from './mongo/proxy.ts'
import { type SkippableTimers, createSkippableTimers } from './mongo/skippable-timers.ts'

// Tests skip time to reach a deadline, because real deadlines are too long.

const TIMEOUT = 60_000

const COLLECTIONS: CollectionSpec[] = [{ name: 'things', keys: { name: 'string', rank: 'number' }, unique: ['name'], indexes: [['rank']] }]

if (MONGODB_URL === undefined) {
  t.skip('MONGODB_URL is not set', async () => {})
} else {
  for (const [name, run] of Object.entries(cases(MONGODB_URL))) await t.test(name, run)
}

interface Faulty {
  proxy: Proxy
  url: string
  timers: SkippableTimers
  open: (url?: string) => Promise<Store>
}

function cases (server: string): Record<string, (t: Test) => Promise<void>> {
  const places = createPlaces(t, server)

  /** Sets up a database behind its own proxy. */
  async function setUp (t: Test, place: string, options: Record<string, string> = {}): Promise<Faulty> {
    const [target] = new MongoClient(server).options.hosts
    const proxy = await startProxy(t, { host: target!.host ?? '127.0.0.1', port: target!.port ?? 27017 })
    const timers = createSkippableTimers()
    // Direct, because a member of a replica set would send the driver past the proxy.
    const url = places.url(place, { directConnection: 'true', ...options }).replace(/\/\/(?:([^@/]*)@)?[^/]*/, (_, user?: string) => (
      `//${user === undefined ? '' : `${user}@`}127.0.0.1:${proxy.port}`))
    return {
      proxy,
      url,
      timers,
      open: async (at = url) => {
        const store = await openMongoStore(at, { collections: COLLECTIONS, now: Date.now, timeout: TIMEOUT, timers })
        t.teardown(() => store.close())
        return store
      }
    }
  }

  const outage = (mode: Mode) => async (t: Test) => {
    const { proxy, timers, open } = await setUp(t, mode)
    const { ferretdb } = await places.client.db(places.database(mode)).command({ buildInfo: 1 })
    const store = await open()
    const things = store.collection<Thing>('things')
    await fill(things, 250, (number) => ({ rank: number }))

    for (const round of ['first', 'second']) {
      const list = things.stream()[Symbol.asyncIterator]()
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
      const outcomes = Object.entries(calls).map(async ([name, call]) => {
        const error = await Promise.resolve(call()).then(() => null, (error: unknown) => error)
        return [name, error] as const
      })
      timers.skip(TIMEOUT)
      for (const [name, error] of await Promise.all(outcomes)) {
        t.match(error, { code: 'ErrDb', statusCode: 503, cause: Error }, `${name} in the ${round} outage`)
      }
      await t.resolves(async () => list.return?.(), 'leaving the list that failed')

      // FerretDB 2.7 crashes when the request for a batch and the end of its cursor, which both hang, reach it at once.
      if (ferretdb !== undefined) proxy.set('down')
      proxy.set('pass')
      await recovery(store)
      t.equal((await things.get('t000007'))?.rank, 7, 'reads again')
      t.equal((await things.update('t000007', { set: { round } }))?.round, round, 'writes again')
      t.ok((await read(things)).things.length >= 250, 'lists again')
    }
  }

  return {
    'a server that hangs: each call fails at its deadline, and works again when it answers': outage('freeze'),
    'a server that is down: each call fails at its deadline, and works again when it is back': outage('down'),

    'a store whose first call meets an outage recovers like any other': async (t) => {
      const { proxy, timers, open } = await setUp(t, 'first')
      const store = await open()
      for (const mode of ['down', 'freeze'] as const) {
        proxy.set(mode)
        const failed = t.rejects(store.ping(), { code: 'ErrDb' }, mode)
        timers.skip(TIMEOUT)
        await failed
        proxy.set('pass')
        await t.resolves(recovery(store), `after ${mode}`)
      }
    },

    'connections that hang for good are replaced, without traffic; calls in flight and open lists fail': async (t) => {
      const { proxy, timers, open } = await setUp(t, 'lost')
      const store = await open()
      const things = store.collection<Thing>('things')
      await fill(things, 250)
      const list = things.stream()[Symbol.asyncIterator]()
      t.equal((await list.next()).value?.length, 100)
      proxy.lose()
      const pending = t.rejects(things.get('t000001'), { code: 'ErrDb' })
      // None of these checks gets an answer.
      for (let second = 0; second < 12; second++) timers.skip(1_000)
      // Its deadline is far off, but the close of the old client fails it.
      await pending
      const next = t.rejects(list.next(), { code: 'ErrDb' })
      timers.skip(TIMEOUT)
      await next
      t.equal((await things.get('t000001'))?.id, 't000001')
    },

    'a store whose server hangs closes at the deadline': async (t) => {
      const { proxy, timers, open } = await setUp(t, 'closing')
      const store = await open()
      const things = store.collection<Thing>('things')
      await fill(things, 150)
      const list = things.stream()[Symbol.asyncIterator]()
      await list.next()
      proxy.set('freeze')
      const pending = things.get('t000001').then(() => null, (error: unknown) => error)
      const closing = store.close()
      timers.skip(TIMEOUT)
      t.match(await pending, { code: 'ErrDb' }, 'a call in flight is answered')
      await settled()
      timers.skip(TIMEOUT)
      await closing
      await t.rejects(list.next(), { code: 'ErrDb' })
    },

    'a closed store leaves no connection': async (t) => {
      const { proxy, open } = await setUp(t, 'connections')
      const store = await open()
      await Promise.all(Array.from({ length: 5 }, (_, id) => store.collection<Thing>('things').insert({ id: `t${id}` })))
      t.ok(proxy.open() > 1)
      await Promise.all([store.close(), store.close()])
      await waitUntil('the end of every connection', () => proxy.open() === 0)
    },

    'a store does not open on a server that is down or hangs, and the error names the server without the credentials': async (t) => {
      const { proxy, url, timers, open } = await setUp(t, 'unopened')
      for (const mode of ['down', 'freeze'] as const) {
        proxy.set(mode)
        const opening = open(url.replace('//', '//someone:s3cret@')).then(() => null, (error: Error) => error)
        timers.skip(TIMEOUT)
        const error = await opening
        t.match(error, { code: 'ErrDb', message: `MongoDB at 127.0.0.1:${proxy.port} cannot be opened: ` }, mode)
        t.notMatch(JSON.stringify([error?.message, error?.stack, String(error?.cause)]), /s3cret|someone/)
      }
      proxy.set('pass')
      await t.resolves(open(), 'and opens when the server is there')
    },

    'making the indexes may take longer than a call': async (t) => {
      const { proxy, timers, open } = await setUp(t, 'long')
      const held = proxy.holdAt('createIndexes')
      const opening = open()
      await held
      timers.skip(10 * TIMEOUT)
      proxy.set('pass')
      await t.resolves(opening)
    },

    'a server that hangs while the indexes are made is detected by the heartbeat': async (t) => {
      const { proxy, url, open } = await setUp(t, 'indexes', { heartbeatFrequencyMS: '500', connectTimeoutMS: '3000' })
      proxy.freezeAt('createIndexes')
      await t.rejects(open(url), { code: 'ErrDb' })
    }
  }
}

async function settled (): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
}

/** Resolves once the store has reconnected by itself. Some calls fail at once, without I/O. */
async function recovery (store: Store): Promise<void> {
  await waitUntil('an answer to a ping', async () => await store.ping().then(() => true, () => false))
}
