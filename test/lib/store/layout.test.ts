import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { COLLECTIONS as OURS } from '../../../lib/store/collections.ts'
import { type OpenStoreOptions, openStore } from '../../../lib/store/index.ts'
import { type Step, migrateDocuments, recheckWords } from '../../../lib/store/migrator.ts'
import { openMongoStore } from '../../../lib/store/mongo.ts'
import { type ClientRecord, createClientRecord } from '../../../lib/records/client.ts'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { type CollectionSpec, DuplicateKeyError, type Store } from '../../../lib/store/port.ts'
import { LAYOUT } from '../../../lib/store/state.ts'
import { createMarking } from '../../../lib/user-changes/administrators.ts'
import { TIMERS } from '../../../lib/timers.ts'
import type { Ways } from '../../../lib/way.ts'
import { createMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { startCommand } from '../../helpers/process.ts'
import { COLLECTIONS, type Thing, fill, serialId } from './conformance/suite.ts'

t.setTimeout(120_000)

const ENGINES: [name: string, makeUrl: (t: Test) => string, options: { skip?: string }][] = [
  ['SQLite', (t) => `sqlite:${t.testdir()}/store.db`, {}],
  ['MongoDB', (t) => createMongoDatabase(t, MONGODB_URL!), MONGODB_URL === undefined ? { skip: 'MONGODB_URL is not set' } : {}]
]

const [now, next] = [LAYOUT.version, LAYOUT.version + 1]

async function open (t: Test, url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const store = await openStore(url, { collections: COLLECTIONS, ...options })
  t.teardown(() => store.close())
  return store
}

/** A migration to a layout in which a thing's `rank` is `grade`. */
const toGrades: Step = {
  version: next,
  collection: 'things',
  toChange: ({ rank }) => rank === undefined ? null : { change: { set: { grade: rank }, unset: ['rank'] }, where: { equal: { rank: Number(rank) } } }
}

for (const [name, makeUrl, options] of ENGINES) {
  t.test(`on ${name}`, options, async (t) => {
    t.test('a new database has the numbers of the release', async (t) => {
      const url = makeUrl(t)
      const store = await open(t, url)
      t.strictSame((await store.state.read()).state, LAYOUT)
      const found = await store.state.read()
      await open(t, url)
      t.strictSame(await store.state.read(), found, 'a second process writes nothing')
    })

    t.test('a later layout that this release can read opens, and is not changed', async (t) => {
      const url = makeUrl(t)
      const later = await open(t, url, { layout: { version: now + 7, oldestReader: now } })
      await later.collection<Thing>('things').insert({ id: 'a', grade: 1 })
      const ours = await open(t, url)
      await ours.collection<Thing>('things').update('a', { set: { name: 'n' } })
      t.strictSame((await ours.state.read()).state, { version: now + 7, oldestReader: now })
      t.strictSame(await later.collection<Thing>('things').get('a'), { id: 'a', grade: 1, name: 'n' }, 'both work side by side')
    })

    t.test('one that it cannot read does not open, and a running process turns unready', async (t) => {
      const url = makeUrl(t)
      let time = 0
      const ours = name === 'SQLite' ? await open(t, url) : await openMongoStore(url, { collections: COLLECTIONS, now: Date.now, timers: { ...TIMERS, now: () => time } })
      t.teardown(() => ours.close())
      const things = ours.collection<Thing>('things')
      await things.insert({ id: 'a' })
      const later = await open(t, url, { layout: { version: next, oldestReader: next } })
      time += 1_000
      await t.rejects(things.insert({ id: 'b' }), { code: 'ErrDb', cause: { message: /^it was written by a later release$/ } })
      await t.rejects(ours.ping(), { code: 'ErrDb' })
      t.match(await things.get('a'), { id: 'a' }, 'it reads')
      await t.rejects(openStore(url, { collections: COLLECTIONS }), /: it was written by a later release$/)
      await later.collection<Thing>('things').insert({ id: 'b' })
    })

    t.test('a database of the release before the ways opens, and that release then refuses it', async (t) => {
      const url = makeUrl(t)
      const former: OpenStoreOptions = { collections: OURS, layout: { version: 3, oldestReader: 2 } }
      const before = await openStore(url, former)
      const users = before.collection<UserRecord>('users')
      await users.insert(createUserRecord(0, { id: 'u1', account: 'ann', roles: {}, password: 'p', name: '', info: {} }))
      await before.close()
      const ours = await open(t, url, { collections: OURS, timeout: 1_000 })
      t.match((await ours.state.read()).state, LAYOUT)
      const ways: Ways = { w1: { kind: 'upstream', key: 'k1', at: '2026-11-23T00:00:00.000Z', upstream: 'corp' } }
      await ours.collection<UserRecord>('users').update('u1', { set: { ways, way_keys: ['k1'] } })
      t.match(await ours.collection<UserRecord>('users').getBy('way_keys', 'k1'), { id: 'u1', ways })
      // That release would ignore the ways, and let people in by the password alone.
      await t.rejects(openStore(url, former), /: it was written by a later release$/)
    })

    t.test('a database of the release before named secrets opens, its clients with reserved scopes are marked, and that release refuses it', async (t) => {
      const url = makeUrl(t)
      const former: OpenStoreOptions = { collections: OURS, layout: { version: 4, oldestReader: 4 } }
      const before = await openStore(url, former)
      const client = (id: string, scopes: string[]) => createClientRecord(0, { id, name: id, userId: 'u1', redirectUris: [], scopes, secret: 'sealed', revision: 0 })
      await before.collection<ClientRecord>('clients').insertMany([client('c1', ['groups', 'read']), client('c2', ['group']), client('c3', [])])
      let time = 0
      const running = name === 'SQLite' ? before : await openMongoStore(url, { ...former, collections: OURS, now: Date.now, timers: { ...TIMERS, now: () => time } })
      // After these times, no earlier process relies on the former numbers.
      const ours = await open(t, url, { collections: OURS, timeout: 1_000 })
      time += 1_000
      t.match((await ours.state.read()).state, { version: 7, oldestReader: 6, words_checked: /Z$/ })
      const clients = ours.collection<ClientRecord>('clients')
      t.strictSame([(await clients.get('c1'))?.reserved, (await clients.get('c2'))?.reserved, await clients.count({ equal: { reserved: true } })], [true, undefined, 1])
      await clients.update('c3', { set: { tokenAuth: 'secret' }, unset: ['secret'] })
      // That release would take c3 for a public client, and give its tokens to anybody. It writes none, and turns unready.
      await t.rejects(running.collection('access_tokens').insert({ id: 't' }), { code: 'ErrDb', cause: { message: /^it was written by a later release$/ } })
      await t.rejects(running.ping(), { code: 'ErrDb' })
      await t.rejects(openStore(url, former), /: it was written by a later release$/)
      for (const store of new Set([before, running])) await store.close()
    })

    t.test('what a release without words writes gets them at the first start, while that release goes on, and at a later start', async (t) => {
      const url = makeUrl(t)
      // SQLite lets one release at a time use a file.
      const isShared = name !== 'SQLite'
      const theirs = OURS.map(({ search: _search, ...spec }: CollectionSpec): CollectionSpec => spec)
      const former: OpenStoreOptions = { collections: isShared ? OURS : theirs, layout: { version: 6, oldestReader: 6 } }
      const [time, HOUR] = [Date.parse('2026-11-29T08:00:00.000Z'), 3_600_000]
      let before = await openStore(url, former)
      const add = async (id: string, name: string, at: number) => {
        const users = before.collection<UserRecord>('users')
        await users.insert(createUserRecord(at, { id, account: id, roles: {}, name, info: {} }))
        await before.collection<ClientRecord>('clients').insert({ ...createClientRecord(at, { id: `c${id}`, name, redirectUris: [], scopes: [], revision: 0 }), words: [] })
      }
      await add('u1', 'Łucja Pierwsza', time)
      if (!isShared) await before.close()
      const start = async (at: number): Promise<Store> => {
        const store = await openStore(url, { collections: OURS, timeout: 1_000, now: () => at })
        await recheckWords(store, { now: () => at })
        return store
      }
      const find = async (store: Store, word: string): Promise<number[]> => (
        await Promise.all(['users', 'clients'].map((collection) => store.collection(collection).count({ begins: { words: [word] } }))))
      let ours = await start(time)
      t.match((await ours.state.read()).state, { version: 7, oldestReader: 6, words_checked: '2026-11-29T08:00:00.000Z' })
      t.strictSame([await find(ours, 'lucj'), await find(ours, 'u1')], [[1, 1], [1, 0]])
      if (!isShared) {
        await ours.close()
        before = await openStore(url, former)
      }
      await add('u2', 'Druga', time + HOUR)
      await before.collection<UserRecord>('users').update('u1', { set: { name: 'Renamed', modified_at: new Date(time + HOUR).toISOString() }, increment: { revision: 1 } })
      await before.collection<ClientRecord>('clients').update('cu1', { set: { name: 'Renamed', modifiedAt: new Date(time + HOUR).toISOString() }, increment: { revision: 1 } })
      await before.close()
      if (isShared) {
        t.strictSame([await find(ours, 'drug'), await find(ours, 'lucj')], [[0, 0], [1, 1]], 'until then they are found by what they were')
        await ours.close()
      }
      ours = await start(time + 2 * HOUR)
      t.strictSame([await find(ours, 'drug'), await find(ours, 'renam'), await find(ours, 'lucj')], [[1, 1], [1, 1], [0, 0]])
      t.match((await ours.collection<UserRecord>('users').get('u1'))?.words, ['u1', 'renamed'])
      const found = await ours.state.read()
      await recheckWords(ours, { now: () => time + 2 * HOUR + 1_000 })
      t.strictSame(await ours.state.read(), found, 'processes that start together check once')
      await ours.close()
    })

    t.test('a step changes every document once, even if other processes migrate too', async (t) => {
      const url = makeUrl(t)
      const old = await open(t, url)
      await fill(old.collection<Thing>('things'), 230, (number) => ({ rank: number }))
      let calls = 0
      const steps = [{ ...toGrades, toChange: (thing: Parameters<Step['toChange']>[0]) => { calls++; return toGrades.toChange(thing) } }]
      const layout = { version: next, oldestReader: now }
      const stores = await Promise.all([0, 1, 2].map(() => open(t, url, { layout, migrator: { steps } })))
      t.equal(calls, 230, 'one process at a time has the lease')
      t.strictSame((await stores[0]!.state.read()).state, layout)
      for (let number = 0; number < 230; number += 50) t.strictSame(await stores[1]!.collection('things').get(serialId(number)), { id: serialId(number), grade: number })
      await open(t, url, { layout, migrator: { steps } })
      t.equal(calls, 230, 'and once only')
    })

    t.test('a step does not overwrite what an earlier release writes meanwhile', async (t) => {
      const url = makeUrl(t)
      const old = await open(t, url)
      const things = old.collection<Thing>('things')
      await things.insert({ id: 'a', rank: 1 })
      let first = true
      const steps = [{
        ...toGrades,
        toChange (thing: Parameters<Step['toChange']>[0]) {
          const step = toGrades.toChange(thing)
          if (step === null || !first) return step
          first = false
          // Now the document no longer matches the one that the step has read.
          return { ...step, where: { equal: { rank: 2 } } }
        }
      }]
      await open(t, url, { layout: { version: next, oldestReader: now }, migrator: { steps } })
      t.strictSame(await things.get('a'), { id: 'a', grade: 1 })
    })

    t.test('a migration that is killed half-way is taken over', async (t) => {
      const url = makeUrl(t)
      const old = await openStore(url, { collections: COLLECTIONS })
      await fill(old.collection<Thing>('things'), 150, (number) => ({ rank: number }))
      await old.close()
      const child = startCommand(t, process.execPath, { args: [fileURLToPath(new URL('../../fixtures/migrating-child.ts', import.meta.url)), url, '100'], env: {} })
      t.equal(await child.ended, 'SIGKILL')
      await t.rejects(openStore(url, { collections: COLLECTIONS }), /: it was written by a later release$/, 'an earlier release is kept out first')
      const layout = { version: next, oldestReader: next }
      const store = await open(t, url, { layout, timeout: 2_000, migrator: { steps: [toGrades], lease: 100 } })
      t.strictSame((await store.state.read()).state, layout)
      let count = 0
      for await (const batch of store.collection<Thing>('things').stream()) {
        for (const { id, grade, rank } of batch) if (rank === undefined && id === serialId(Number(grade))) count++
      }
      t.equal(count, 150)
    })
  })
}

t.test('a database of layout 6, as its release wrote it, opens, and its users and clients are found by the beginnings of words', async (t) => {
  const path = `${t.testdir()}/store.db`
  const database = new DatabaseSync(path)
  database.exec(readFileSync(new URL('../../fixtures/store-layout-6.sql', import.meta.url), 'utf8'))
  database.close()
  const collections = OURS.filter(({ name }) => ['users', 'credentials', 'clients', 'access_tokens', 'meta'].includes(name))
  const store = await open(t, `sqlite:${path}`, { collections })
  t.match((await store.state.read()).state, { ...LAYOUT, admin_role: 'admin', words_checked: /Z$/ })
  const users = store.collection<UserRecord>('users')
  const find = async (collection: string, ...words: string[]): Promise<string[]> => {
    const found: string[] = []
    for await (const batch of store.collection(collection).page({ filter: { begins: { words } } })) found.push(...batch.map(({ id }) => id))
    return found
  }
  t.strictSame(await find('users', 'zolc', 'lac'), ['01M8F0Y6G0ZOFIA'])
  t.strictSame(await find('users', 'петр'), ['01M8F0Y6G0IVAN'])
  t.strictSame(await find('users', 'nameless'), ['01M8F0Y6G0NAMELESS'])
  t.strictSame(await find('users', 'bird'), ['01M8F0Y6G0EARLY'], 'also a record without a revision')
  t.strictSame(await find('clients', 'zabka'), ['01M8F0Y6G0SHOP'])
  t.strictSame(await find('clients', 'docs', 'doc'), ['https://doc.example/app.json'])
  t.match((await users.get('01M8F0Y6G0ZOFIA'))?.words, ['zofia', 'lacka', 'zolc', 'example', 'com', 'corp'])
  t.match(await users.get('01M8F0Y6G0ZOFIA'), { revision: 0, modified_at: '2026-11-28T08:00:00.000Z' }, 'nothing else changes')
})

t.test('a database of layout 4, as its release wrote it, opens, and knows which clients have reserved scopes', async (t) => {
  const path = `${t.testdir()}/store.db`
  const database = new DatabaseSync(path)
  database.exec(readFileSync(new URL('../../fixtures/store-layout-4.sql', import.meta.url), 'utf8'))
  database.close()
  const collections = OURS.filter(({ name }) => ['users', 'credentials', 'clients', 'access_tokens', 'meta'].includes(name))
  const store = await open(t, `sqlite:${path}`, { collections })
  t.match((await store.state.read()).state, { ...LAYOUT, admin_role: 'admin' })
  const clients = store.collection<ClientRecord>('clients')
  t.match(await clients.get('c1'), { secret: 'k.sealed', epoch: 0, reserved: undefined })
  t.match(await clients.get('c2'), { scopes: ['groups', 'read'], reserved: true })
  t.equal(await clients.count({ equal: { reserved: true } }, { urgent: true }), 1, 'by an index')
})

t.test('a database of layout 3, as its release wrote it, opens, and gets what the ways need', async (t) => {
  const path = `${t.testdir()}/store.db`
  const database = new DatabaseSync(path)
  database.exec(readFileSync(new URL('../../fixtures/store-layout-3.sql', import.meta.url), 'utf8'))
  database.close()
  const collections = OURS.filter(({ name }) => ['users', 'credentials', 'clients', 'access_tokens', 'meta'].includes(name))
  const store = await open(t, `sqlite:${path}`, { collections })
  t.match((await store.state.read()).state, { ...LAYOUT, admin_role: 'admin' })
  const users = store.collection<UserRecord>('users')
  t.match(await users.getBy('account', 'ann@example.com'), { id: 'u1', administers: true, addresses: ['ann@example.com'] })
  await users.update('u1', { set: { way_keys: ['k1'] } })
  t.match(await users.getBy('way_keys', 'k1'), { id: 'u1' })
  await t.rejects(users.insert(createUserRecord(0, { id: 'u2', account: 'bob', roles: {}, name: '', info: {}, way_keys: ['k1'] })), new DuplicateKeyError('way_keys'))
  t.match(await store.collection<Thing>('access_tokens').getLinked('t1', { user_id: 'users', client_id: 'clients' }), { linked: { user_id: { id: 'u1' }, client_id: { id: 'c1' } } })
})

t.test('a database of layout 2, as the release before the numbers wrote it, opens, and its triggers for addresses work beside ours', async (t) => {
  const path = `${t.testdir()}/store.db`
  const old = new DatabaseSync(path)
  old.exec(readFileSync(new URL('../../fixtures/store-layout-2.sql', import.meta.url), 'utf8'))
  const schema = () => old.prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT IN ('store.layout', 'store.changes') AND name NOT LIKE 'sqlite_%' ORDER BY name").all()
  const before = schema()
  const isOther = ({ name }: Record<string, unknown>) => !String(name).startsWith('users')
  const known = old.prepare('SELECT collection, key FROM "store.keys"').all() as { collection: string, key: string }[]
  const ours: CollectionSpec[] = OURS.filter(({ name }) => before.some((row) => row.name === name))
  const theirs = ours.map(({ search: _search, ...spec }: CollectionSpec): CollectionSpec => {
    const isKnown = (key: string) => known.some((one) => one.collection === spec.name && one.key === key)
    return { ...spec, keys: Object.fromEntries(Object.entries(spec.keys).filter(([key]) => isKnown(key))), indexes: (spec.indexes ?? []).filter((keys) => keys.every(isKnown)) }
  })
  for (const [collections, what] of [[theirs, 'by that release'], [ours, 'by this one'], [theirs, 'by that release again']] as const) {
    const store = await openStore(`sqlite:${path}`, { collections })
    if (what === 'by this one') await migrateDocuments(store, { layout: LAYOUT, now: Date.now, marking: createMarking('admin') })
    const { words_checked: _checked, ...state } = (await store.state.read()).state
    t.strictSame(state, { ...LAYOUT, ...(what !== 'by that release' && { admin_role: 'admin' }) }, what)
    if (what === 'by this one') t.match(await store.collection<Thing>('users').get('u1'), { administers: true })
    t.match(await store.collection<Thing>('users').getBy('account', 'ann@example.com'), { name: 'Ann', addresses: ['ann@example.com'], revision: 2 })
    t.match(await store.collection<Thing>('meta').get('secret-key'), { key_id: 'mlYrCmVz' })
    const token = await store.collection<Thing>('access_tokens').getLinked('t1', { user_id: 'users', client_id: 'clients' })
    t.match(token, { linked: { user_id: { id: 'u1' }, client_id: { id: 'c1' } } })
    await store.collection<Thing>('users').put({ id: 'u2', account: 'bob' })
    if (what === 'by that release') t.strictSame(schema().filter(isOther), before.filter(isOther), 'all that the other release looks at is the same, but for the addresses')
    await store.close()
  }
  const triggers = before.filter(({ name }) => String(name).startsWith('users.addresses.'))
  t.equal(triggers.length, 6, 'an index and five triggers')
  // The changes that the earlier release makes to the file: no column for addresses, and triggers that read the documents.
  old.exec('DELETE FROM "store.keys" WHERE collection = \'users\' AND key = \'addresses\'')
  for (const { sql } of triggers) old.exec(String(sql).replace(/^CREATE (INDEX|TRIGGER) /, 'CREATE $1 IF NOT EXISTS '))
  const add = old.prepare('INSERT INTO users (id, doc, account) VALUES (?, ?, ?)')
  const carol = { id: 'u3', account: 'carol', addresses: ['carol@example.com'] }
  add.run(carol.id, JSON.stringify(carol), carol.account)
  t.throws(() => add.run('u4', JSON.stringify({ ...carol, id: 'u4' }), 'dave'), /UNIQUE constraint failed: users.addresses/, 'and they work beside ours')
  const store = await openStore(`sqlite:${path}`, { collections: ours })
  const users = store.collection<Thing>('users')
  t.match(await users.getBy('addresses', 'carol@example.com'), { id: 'u3' })
  await t.rejects(users.insert({ id: 'u5', account: 'eve', addresses: ['carol@example.com'] }), DuplicateKeyError)
  await users.update('u3', { set: { addresses: ['carol@example.org'] } })
  await users.insert({ id: 'u5', account: 'eve', addresses: ['carol@example.com'] })
  await store.close()
  t.equal(old.prepare('PRAGMA user_version').get()!.user_version, LAYOUT.oldestReader, 'the number that a release of layout 2 refuses')
  old.close()
})
