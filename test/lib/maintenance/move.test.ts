import t, { type Test } from 'tap'
import { type MoveOptions, move, withdrawMove } from '../../../lib/maintenance/move.ts'
import { hideCredentials, openStore } from '../../../lib/store/index.ts'
import { openMongoStore } from '../../../lib/store/mongo.ts'
import type { Collection, Store } from '../../../lib/store/port.ts'
import { TIMERS } from '../../../lib/timers.ts'
import { createMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { TEXTS, VALUES } from '../store/conformance/documents.ts'
import { COLLECTIONS, type Thing, fill, read, serialId } from '../store/conformance/suite.ts'

t.setTimeout(120_000)

const HOUR = 3_600_000
const now = Date.now
const NAMES = COLLECTIONS.map(({ name }) => name)
const skip = MONGODB_URL === undefined && 'MONGODB_URL is not set'

let files = 0
const folders = new WeakMap<Test, string>()
/** Another file of the test's own folder, which testdir would empty each time. */
function sqlite (t: Test): string {
  const folder = folders.get(t) ?? t.testdir()
  folders.set(t, folder)
  return `sqlite:${folder}/${files++}.db`
}
const mongo = (t: Test) => createMongoDatabase(t, MONGODB_URL!)

async function open (t: Test, url: string, options: object = {}): Promise<Store> {
  const store = await openStore(url, { collections: COLLECTIONS, now, ...options })
  t.teardown(() => store.close())
  return store
}

/** A step of a move waits for calls in flight: a short time, because nothing is slow here. */
const openEnd = (t: Test, url: string) => open(t, url, { moving: true, timeout: 5_000 })

async function run (t: Test, from: string, to: string, options: Partial<MoveOptions> = {}) {
  const [source, target] = [await openEnd(t, from), await openEnd(t, to)]
  try {
    return await move({ from: { store: withoutDelay(source), name: 'sqlite:here' }, to: { store: target, name: 'mongodb://there' }, collections: COLLECTIONS, now, ...options })
  } finally {
    await source.close()
    await target.close()
  }
}

/** For a test without other processes. */
function withoutDelay (store: Store): Store {
  const { state } = store
  return { engine: store.engine, ping: () => store.ping(), close: () => store.close(), collection: (name) => store.collection(name), state: { delay: 0, read: () => state.read(), change: (...args) => state.change(...args) } }
}

const readAll = async (store: Store) => Object.fromEntries(await Promise.all(NAMES.map(async (name) => [name, (await read(store.collection<Thing>(name))).things] as const)))

async function fillOddly (store: Store): Promise<void> {
  const things = store.collection<Thing>('things')
  for (const [name, value] of Object.entries(VALUES)) await things.insert({ id: `value ${name}`, value, list: [value, { value }], [name]: value })
  for (const text of TEXTS) await things.insert({ id: text, name: text, owner: text, field: text })
  await things.insert({ id: 'keys', name: null, owner: null, rank: -1e-300, live: false, aliases: ['é', 'e\u0301', '\u{10ffff}'] })
  await things.insert({ id: 'names', 'x.y': 1, $set: { id: 'b' }, '.': null, '%5F': '', _id: 3, 'a\u0000b': 4, '': 5 })
  await things.insert({ id: 'half', text: '\ud800', 10: 'b', 9: 'a' })
  await things.insert(JSON.parse('{ "id": "proto", "__proto__": { "a": 1 }, "nested": { "__proto__": [] } }'))
  let deep: Thing[string] = 'x'
  for (let level = 0; level < 150; level++) deep = level % 2 === 0 ? [deep] : { deep }
  await things.insert({ id: 'deep', deep })
  const sessions = store.collection<Thing>('sessions')
  await sessions.insert({ id: 'never' })
  await sessions.insert({ id: 'null', expired_at: null })
  for (const [id, at] of [['later', now() + 9 * HOUR], ['soon', now() + HOUR / 2], ['past', now() - HOUR]] as const) await sessions.insert({ id, expired_at: new Date(at).toISOString() })
}

t.test('documents are equal after a move there and back', async (t) => {
  for (const [name, ...path] of [['SQLite', sqlite, sqlite], ['MongoDB', mongo, sqlite]] as const) {
    await t.test(`by ${name}`, name === 'MongoDB' ? { skip } : {}, async (t) => {
      const urls = [sqlite(t), ...path.map((make) => make(t))]
      const first = await open(t, urls[0]!)
      await fillOddly(first)
      await fill(first.collection<Thing>('owners'), 450, (number) => ({ title: `t${number}` }))
      const before = await readAll(first)
      await first.close()
      const checksums = []
      for (const [index, url] of urls.slice(1).entries()) checksums.push(await run(t, urls[index]!, url))
      t.strictSame(checksums[0], checksums[1])
      t.match(checksums[0], [{ collection: 'things', documents: before.things!.length }, { documents: 450 }, { collection: 'sessions', documents: 3 }], 'what expires within an hour is not compared')
      const last = await readAll(await open(t, urls.at(-1)!))
      t.strictSame(last, { ...before, sessions: before.sessions!.filter(({ id }) => id !== 'past') }, 'what has not expired is moved')
      t.equal(JSON.stringify(last.things), JSON.stringify(before.things))
    })
  }
})

t.test('an impossible move is refused, and changes nothing', async (t) => {
  const [from, to, other] = [sqlite(t), sqlite(t), sqlite(t)]
  const source = await open(t, from)
  await source.collection<Thing>('things').insert({ id: 'a' })
  await t.rejects(run(t, from, from), /^to: is not empty, there are things$/)
  const used = await open(t, to)
  await used.collection<Thing>('owners').insert({ id: 'o' })
  await t.rejects(run(t, from, to), /^to: is not empty, there are owners$/)
  await used.collection<Thing>('owners').delete('o')
  const empty = sqlite(t)
  await t.rejects(run(t, empty, empty), /^to: is the same database$/)
  const unmarked = await openEnd(t, empty)
  t.equal((await unmarked.state.read()).state.move, undefined)
  await source.collection<Thing>('things').insert({ id: 'b' })

  const stop = new AbortController()
  const stopped = run(t, from, to, { signal: stop.signal, onProgress: () => stop.abort() })
  await t.rejects(stopped, { name: 'AbortError' })
  await t.rejects(run(t, to, other), /^from: is the target of an unfinished move from sqlite:here$/)
  await t.rejects(run(t, empty, to), /^to: takes part in another move, from sqlite:here: use an empty database$/)
  await t.rejects(run(t, empty, from), /^to: takes part in another move, to mongodb:\/\/there: use an empty database$/)
  const end = await openEnd(t, to)
  await t.rejects(withdrawMove(end), /^from: is the target of a move/)
  t.match(await run(t, from, other), [{ documents: 2 }], 'another target, which is empty, begins anew')
  await t.rejects(run(t, from, to), /^from: was moved to mongodb:\/\/there on /)
  await t.rejects(run(t, from, sqlite(t)), /^from: was moved/)
})

t.test('documents that differ at the end stop the move', async (t) => {
  const [from, to] = [sqlite(t), sqlite(t)]
  const source = await openEnd(t, from)
  await fill(source.collection<Thing>('things'), 120)
  const target = await openEnd(t, to)
  for (const [what, spoil] of [
    ['a field', (things: Collection<Thing>) => things.update(serialId(100), { set: { a: 1 } })],
    ['one is missing', (things: Collection<Thing>) => things.delete(serialId(100))],
    ['one is too many', (things: Collection<Thing>) => things.insert({ id: `${serialId(99)}.` })]
  ] as const) {
    await source.collection<Thing>('owners').put({ id: 'o' })
    // The things were copied before.
    const spoiling = wrapStore(target, ({ collection, method }, run) => collection === 'owners' && method === 'insertMany'
      ? spoil(target.collection<Thing>('things')).then(run)
      : run())
    await t.rejects(move({ from: { store: source, name: 'a' }, to: { store: spoiling, name: 'b' }, collections: COLLECTIONS, now }), /^the two databases differ in things, after 100 equal documents: empty the target, and call `move` again$/, what)
    t.ok((await target.state.read()).state.move)
    for (const name of NAMES) for (const { id } of (await read(target.collection<Thing>(name))).things) await target.collection(name).delete(id)
    const found = await target.state.read()
    await target.state.change(found, { move: undefined })
  }
})

t.test('a move that fails gives the cursor of its source back', async (t) => {
  const [source, target] = [await openEnd(t, sqlite(t)), await openEnd(t, sqlite(t))]
  await fill(source.collection<Thing>('things'), 1_000)
  let [read, open] = [0, 0]
  const watched = wrapStore(source, ({ method }, run) => {
    if (method === 'stream') open++
    if (method === 'return') open--
    if (method === 'next') read++
    return run()
  })
  const failing = wrapStore(target, ({ collection, method }, run) => collection === 'things' && method === 'insertMany' ? Promise.reject(new Error('down')) : run())
  await t.rejects(move({ from: { store: withoutDelay(watched), name: 'a' }, to: { store: failing, name: 'b' }, collections: COLLECTIONS, now }), /^down$/)
  t.ok(read > 0)
  t.equal(open, 0)
})

t.test('the running service of a source notices, and every write that it acknowledged is moved', async (t) => {
  for (const [name, make] of [['SQLite', sqlite], ['MongoDB', mongo]] as const) {
    await t.test(name, name === 'MongoDB' ? { skip } : {}, async (t) => {
      const [from, to] = [make(t), sqlite(t)]
      const service = await open(t, from)
      const things = service.collection<Thing>('things')
      await fill(things, 150)
      const acknowledged: string[] = []
      const refused: unknown[] = []
      const write = async (writer: number) => {
        for (let number = 0; refused.length < 8; number++) {
          const id = `w${writer}.${number}`
          await things.insert({ id }).then(() => acknowledged.push(id), (error: unknown) => refused.push(error))
        }
      }
      const writing = Promise.all([0, 1, 2, 3].map(write))
      const [source, target] = [await open(t, from, { moving: true, ...(name === 'MongoDB' && { timeout: 2_000 }) }), await openEnd(t, to)]
      await move({ from: { store: source, name: 'a' }, to: { store: target, name: 'b' }, collections: COLLECTIONS, now })
      await writing
      t.match(refused, refused.map(() => ({ code: 'ErrDb', cause: { message: /^it (is being|was) moved to b/ } })))
      const all = (await read(target.collection<Thing>('things'))).things.map(({ id }) => id)
      t.strictSame(all, [...all.filter((id) => id.startsWith('t')), ...acknowledged.sort()])
      t.equal(all.length, 150 + acknowledged.length)
      await t.rejects(service.ping(), { code: 'ErrDb' }, 'it is not ready')
      t.match(await things.get(serialId(0)), { id: serialId(0) }, 'it reads')
      const changes: (() => Promise<unknown>)[] = [() => things.put({ id: 'x' }), () => things.update(serialId(0), { set: { a: 1 } }), () => things.delete(serialId(0)), () => things.deleteMany({ before: { id: 'u' } }), () => things.insertMany([{ id: 'y' }])]
      for (const change of changes) await t.rejects(change(), { code: 'ErrDb' })

      t.strictSame(await withdrawMove(source), { other: 'b', isDone: true })
      const again = await open(t, from)
      await again.collection<Thing>('things').insert({ id: 'after' })
      await again.ping()
      await t.rejects(withdrawMove(source), /^from: takes part in no move$/)
    })
  }
})

t.test('a process on MongoDB asks for the state once a second, and only when it writes', { skip }, async (t) => {
  let time = 0
  const url = mongo(t)
  const store = await openMongoStore(url, { collections: COLLECTIONS, now, timers: { ...TIMERS, now: () => time } })
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  await things.insert({ id: 'a' })
  const mover = await open(t, url, { moving: true })
  const found = await mover.state.read()
  const move = { id: 'm', role: 'source', other: 'b', since: 's' } as const
  await mover.state.change(found, { move })
  t.equal(await mover.state.change(found, { move }), null, 'it has changed')
  time += 999
  await things.insert({ id: 'b' })
  time++
  await t.rejects(things.insert({ id: 'c' }), { code: 'ErrDb', cause: { message: /^it is being moved to b since s: wait for `move`/ } })
  await t.rejects(store.ping(), { code: 'ErrDb' })
  await mover.state.change(await mover.state.read(), { move: undefined })
  await things.insert({ id: 'd' })
  await store.ping()
})

t.test('the name of a database has no credentials', async (t) => {
  for (const [url, name] of [
    ['sqlite:a/b?c.db', 'sqlite:a/b?c.db'],
    ['mongodb://h:1,i/db', 'mongodb://h:1,i/db'],
    ['mongodb+srv://u:p@h/db?tls=true', 'mongodb+srv://h/db'],
    ['mongodb://u:p/?@w@h/db', 'mongodb://h/db'],
    ['mongodb://u:p@h/?authMechanismProperties=a@b', 'mongodb://b']
  ] as const) t.equal(hideCredentials(url), name)
})
