import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { storeError } from '../../../lib/errors.ts'
import { openStore } from '../../../lib/store/index.ts'
import { findReason } from '../../../lib/store/sqlite.ts'
import type { StoreOptions } from '../../../lib/store/port.ts'
import { runConformance } from './conformance.ts'
import { COLLECTIONS, type Thing, each, fill, ids } from './conformance/suite.ts'

t.setTimeout(120_000)

const options: StoreOptions = { collections: COLLECTIONS, now: Date.now }
const directory = t.testdir()

t.test('the suite', async (t) => {
  await runConformance(t, {
    name: 'sqlite:FILE',
    renders: true,
    open: (options, place) => openStore(`sqlite:${directory}/${place}/store.db`, options)
  })
  await runConformance(t, {
    name: 'sqlite::memory:',
    persistent: false,
    open: (options) => openStore('sqlite::memory:', options)
  })
})

t.test('a store without renderers has no rendered lists', async (t) => {
  for (const url of [`sqlite:${t.testdir()}/store.db`, 'sqlite::memory:']) {
    const store = await openStore(url, options)
    t.teardown(() => store.close())
    t.equal(store.collection('things').render, undefined)
  }
})

t.test('a store that is closing accepts no more calls, and finishes those in flight', async (t) => {
  const url = `sqlite:${t.testdir()}/store.db`
  const store = await openStore(url, options)
  const things = store.collection<Thing>('things')
  const accepted = Array.from({ length: 700 }, (_, number) => things.insert({ id: `t${number}` }))
  const closed = store.close()
  await t.rejects(things.insert({ id: 'late' }), { code: 'ErrDb' })
  await closed
  await Promise.all(accepted)
  const again = await openStore(url, options)
  t.equal(await again.collection('things').count(), 700)
  await again.close()
})

t.test('a list in memory omits deleted documents, and yields no empty batch for them', async (t) => {
  const store = await openStore('sqlite::memory:', options)
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  await fill(things, 250, (number) => ({ owner: number >= 100 && number < 200 ? 'gone' : 'kept' }))
  const sizes = []
  for await (const batch of things.stream()) {
    if (sizes.push(batch.length) === 1) await things.deleteMany({ equal: { owner: 'gone' } })
  }
  t.strictSame(sizes, [100, 50])
})

t.test('two stores in memory are two', async (t) => {
  const [one, two] = [await openStore('sqlite::memory:', options), await openStore('sqlite::memory:', options)]
  await one.collection('things').insert({ id: 'a' })
  t.equal(await two.collection('things').get('a'), null)
  await one.close()
  await two.collection('things').insert({ id: 'a' })
  await two.close()
})

t.test('a new file and its directories are for the owner only, and a clean close leaves the file alone', async (t) => {
  const base = t.testdir()
  const store = await openStore(`sqlite:${base}/new/er/store.db`, options)
  t.teardown(() => store.close())
  await store.collection('things').insert({ id: 'a' })
  if (process.platform !== 'win32') {
    for (const path of ['new', 'new/er']) t.equal(statSync(`${base}/${path}`).mode & 0o777, 0o700, path)
    for (const name of readdirSync(`${base}/new/er`)) t.equal(statSync(`${base}/new/er/${name}`).mode & 0o777, 0o600, name)
  }
  await store.close()
  t.strictSame(readdirSync(`${base}/new/er`), ['store.db'])

  const reader = await openStore(`sqlite:${base}/new/er/store.db`, options)
  t.strictSame(await reader.collection('things').get('a'), { id: 'a' })
  await reader.close()
  t.strictSame(readdirSync(`${base}/new/er`), ['store.db'], 'nor does one that only looked something up')
})

t.test('a path is below the working directory unless it says otherwise', async (t) => {
  const base = t.testdir()
  const before = process.cwd()
  process.chdir(base)
  t.teardown(() => process.chdir(before))
  for (const [url, path] of [
    ['sqlite:one.db', `${base}/one.db`],
    ['sqlite:./in/two.db', `${base}/in/two.db`],
    [`sqlite:${base}/three.db`, `${base}/three.db`],
    [`sqlite://${base}/four.db`, `${base}/four.db`],
    ['sqlite:file:five.db?mode=memory', `${base}/file:five.db?mode=memory`]
  ] as const) {
    await (await openStore(url, options)).close()
    t.ok(statSync(path).size > 0, url)
  }
})

t.test('a path that cannot be opened is an error with the reason', async (t) => {
  const base = t.testdir({ text: 'no database, but some text that is long enough to be read as a header of one, and longer than that' })
  const made = (name: string, sql: string) => {
    const database = new DatabaseSync(`${base}/${name}`)
    database.exec(sql)
    database.close()
  }
  made('later', 'PRAGMA user_version = 1000')
  made('other', 'CREATE TABLE users (login TEXT)')
  mkdirSync(`${base}/directory`)
  const cases: [url: string, reason: RegExp][] = [
    ['sqlite:', /must be followed by a path/],
    ['sqlite://host/store.db', /not a host/],
    [`sqlite:${base}/text`, /it is not an SQLite database/],
    [`sqlite:${base}/text/store.db`, /ENOTDIR|EEXIST|ENOENT/],
    [`sqlite:${base}/directory`, /unable to open/],
    [`sqlite:${base}/later`, /written by a later release/],
    [`sqlite:${base}/other`, /tables of another program/]
  ]
  for (const [url, reason] of cases) await t.rejects(openStore(url, options), { message: reason }, url)
  for (const [url] of cases) await t.rejects(openStore(url, options), { message: /^DATABASE_URL: / })
})

t.test('a file that cannot be written is refused at the start', { skip: process.getuid?.() === 0 && 'root may write everything' }, async (t) => {
  const base = t.testdir()
  writeFileSync(`${base}/store.db`, '', { mode: 0o400 })
  await t.rejects(openStore(`sqlite:${base}/store.db`, options), { message: /EACCES/ })
})

t.test('names that SQLite cannot distinguish or store are refused', async (t) => {
  for (const collections of [
    [{ name: 'a b', keys: {} }],
    [{ name: 'sqlite_x', keys: {} }],
    [{ name: 'things', keys: {} }, { name: 'Things', keys: {} }],
    [{ name: 'things', keys: { doc: 'string' } }],
    [{ name: 'things', keys: { ID: 'string' } }],
    [{ name: 'things', keys: { name: 'string', Name: 'string' } }],
    [{ name: 'things', keys: { 'a"': 'string' } }],
    [{ name: 'things', keys: {}, unique: ['name'] }],
    [{ name: 'things', keys: {}, indexes: [['name']] }],
    [{ name: 'things', keys: {}, expiry: 'name' }]
  ] as StoreOptions['collections'][]) {
    await t.rejects(openStore('sqlite::memory:', { ...options, collections }), TypeError, JSON.stringify(collections))
  }
})

t.test('a document of any size goes through the threads', async (t) => {
  const store = await openStore(`sqlite:${t.testdir()}/store.db`, options)
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  const long = (id: number) => ({ id: String(id), text: 'x'.repeat(400_000) })
  await Promise.all([1, 2, 3, 4, 5].map((id) => things.insert(long(id))))
  const sizes = []
  for await (const batch of things.stream()) {
    sizes.push(batch.length)
    for (const thing of batch) t.strictSame(thing, long(Number(thing.id)))
  }
  t.strictSame(sizes, [2, 2, 1], 'and a batch of long ones is shorter')
  t.equal((await things.get('3'))?.text, long(3).text)
})

t.test('a sweep removes the expired documents, in bounded steps, and no others', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  for (const url of ['sqlite::memory:', `sqlite:${t.testdir()}/store.db`]) {
    const store = await openStore(url, { ...options, onError: (error) => t.fail('the sweep failed', { error }) })
    t.teardown(() => store.close())
    const sessions = store.collection<Thing>('sessions')
    const lasting: Thing[] = [{ id: 'later', expired_at: '2999-01-01T00:00:00.000Z' }, { id: 'never' }, { id: 'null', expired_at: null }]
    for (const session of lasting) await sessions.insert(session)
    await each(Array.from({ length: 620 }, (_, number) => number), (number) =>
      sessions.insert({ id: `old ${number}`, expired_at: new Date(number).toISOString() }))
    mock.timers.tick(60_000)
    while (await sessions.count() > lasting.length) await turn()
    t.strictSame(await ids(sessions), ['later', 'never', 'null'], url)
  }
})

t.test('expired documents are swept every minute, one sweep at a time, and a failure is reported', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const errors: unknown[] = []
  let sweeps = 0
  const now = () => {
    if (++sweeps === 2) throw new Error('no clock')
    return Date.now()
  }
  const store = await openStore('sqlite::memory:', { ...options, now, onError: (error) => errors.push(error) })
  const sessions = store.collection<Thing>('sessions')
  await sessions.insert({ id: 'old', expired_at: '2001-01-01T00:00:00.000Z' })
  mock.timers.tick(59_999)
  t.equal(sweeps, 0)
  mock.timers.tick(1)
  mock.timers.tick(60_000)
  t.equal(sweeps, 1, 'the second waits for the first')
  await turn()
  t.equal(await sessions.get('old'), null)
  mock.timers.tick(60_000)
  await turn()
  t.match(errors, [{ message: 'no clock' }])
  mock.timers.tick(60_000)
  t.equal(sweeps, 3, 'and it goes on')
  await turn()
  await store.close()
  mock.timers.tick(60_000)
  t.equal(sweeps, 3, 'until the store is closed')
})

t.test('a file that cannot be opened on a full disk says so', (t) => {
  const failed = (errcode: number) => storeError(Object.assign(new Error('disk I/O error'), { errcode }))
  t.equal(findReason(failed(778), '/data/a.db', (directory) => directory === '/data' ? 4096 : Infinity), 'there is no space left on its disk (disk I/O error)')
  t.equal(findReason(failed(13), '/data/a.db', () => 0), 'there is no space left on its disk (disk I/O error)')
  t.equal(findReason(failed(778), '/data/a.db', () => 2 ** 30), 'disk I/O error', 'another fault of the disk')
  t.equal(findReason(failed(5), '/data/a.db', () => 0), 'disk I/O error')
  t.end()
})
