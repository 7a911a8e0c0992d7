import { readFileSync } from 'node:fs'
import { DatabaseSync, backup } from 'node:sqlite'
import t from 'tap'
import { COLLECTIONS } from '../../../../lib/store/collections.ts'
import { openStore } from '../../../../lib/store/index.ts'
import type { CollectionSpec, Filter, SortKey } from '../../../../lib/store/port.ts'
import { Connection } from '../../../../lib/store/sqlite/connection.ts'
import { readVersion, runBatch } from '../../../../lib/store/sqlite/operations.ts'
import { isCurrent, migrate } from '../../../../lib/store/sqlite/schema.ts'
import { type Statement, Table } from '../../../../lib/store/sqlite/sql.ts'
import type { Thing } from '../conformance/suite.ts'

const now = Date.now

function open (path: string): Connection {
  return new Connection(path, { busy: 1_000 })
}

t.test('a database written by release 0.1 opens, and works', async (t) => {
  const path = `${t.testdir()}/store.db`
  const old = new DatabaseSync(path)
  old.exec(readFileSync(new URL('../../../fixtures/store-0.1.sql', import.meta.url), 'utf8'))
  old.close()
  const store = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now })
  t.teardown(() => store.close())
  const users = store.collection<Thing>('users')
  const ann = await users.getBy('account', 'ann@example.com')
  t.match(ann, { roles: { admin: true }, info: { 'a.b': { $x: ['é', null] } }, revision: 3 })
  const found = await store.collection<Thing>('access_tokens').getLinked('x3Jc0v7W1tVQx9mQd6q3yQ0l2o8Yw5n4b1r6s7t8u9A', { user_id: 'users', client_id: 'clients' })
  t.match(found, { document: { scopes: ['openid'] }, linked: { user_id: { account: 'ann@example.com' }, client_id: { name: "Ann's app" } } })
  const names = []
  for await (const batch of users.stream({ sort: [{ key: 'account', direction: 'desc' }] })) names.push(...batch.map(({ account }) => account))
  t.strictSame(names, ['bob', 'ann@example.com'])
  await t.rejects(users.insert({ id: 'new', account: 'bob' }), { name: 'DuplicateKeyError', field: 'account' })
  t.equal((await users.update(ann!.id, { increment: { revision: 1 } }))?.revision, 4)
  await store.collection('meta').insert({ id: 'new' })
  t.equal(await users.count(), 2)
})

/** Counts changes as layout 1 did: every written row increments a number. */
function countChanges (path: string, names: string[]): void {
  const old = new DatabaseSync(path)
  old.exec('CREATE TABLE "store.version" ("version" INTEGER NOT NULL); INSERT INTO "store.version" VALUES (41)')
  for (const name of names) {
    for (const event of ['INSERT', 'UPDATE', 'DELETE']) {
      old.exec(`CREATE TRIGGER "${name}.${event.toLowerCase()}" AFTER ${event} ON "${name}"
        BEGIN UPDATE "store.version" SET "version" = "version" + 1; END`)
    }
  }
  old.close()
}

t.test('a database of layout 1 that counts its changes opens, and the counter is removed', async (t) => {
  const path = `${t.testdir()}/store.db`
  const specs: CollectionSpec[] = [{ name: 'users', keys: { revision: 'number' } }, { name: 'clients', keys: { revision: 'number' } }]
  const old = new DatabaseSync(path)
  old.exec(readFileSync(new URL('../../../fixtures/store-0.1.sql', import.meta.url), 'utf8'))
  old.close()
  countChanges(path, ['users', 'clients', 'access_tokens'])
  const store = await openStore(`sqlite:${path}`, { collections: specs, now })
  t.teardown(() => store.close())
  const connection = open(path)
  t.teardown(() => connection.close())
  t.match(connection.all('PRAGMA user_version'), [{ user_version: 6 }], 'an older release refuses it')
  t.strictSame(connection.all("SELECT name FROM sqlite_schema WHERE sql LIKE '%store.version%'"), [])
  connection.database.exec("DELETE FROM clients; DELETE FROM users WHERE account = 'bob'")
  t.equal(await store.collection('users').count(), 1)
  const all = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now })
  t.teardown(() => all.close())
  t.ok(await all.collection<Thing>('users').getBy('account', 'ann@example.com'))
})

t.test('a backup of layout 1 that is restored over an open file fails the store, until it is opened again', async (t) => {
  const path = `${t.testdir()}/store.db`
  const copy = `${path}.copy`
  const old = new DatabaseSync(copy)
  old.exec(readFileSync(new URL('../../../fixtures/store-0.1.sql', import.meta.url), 'utf8'))
  old.close()
  countChanges(copy, ['users'])
  const store = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now })
  const users = store.collection<Thing>('users')
  await users.insert({ id: 'u', account: 'u' })
  t.match(await users.getLinked('u', {}), { document: { id: 'u' } })
  const source = new DatabaseSync(copy)
  await backup(source, path)
  source.close()
  for (let time = 0; time < 2; time++) {
    await t.rejects(async () => users.getLinked('u', {}), { code: 'ErrDb' })
    await t.rejects(users.insert({ id: 'v', account: 'v' }), { code: 'ErrDb' })
    await t.rejects(store.ping(), { code: 'ErrDb' })
  }
  await store.close()
  const again = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now })
  t.teardown(() => again.close())
  t.equal(await again.collection('users').count(), 2)
})

t.test('of processes of two releases on one file, the one that opened it last writes, and the other is refused', async (t) => {
  const things = (keys: CollectionSpec['keys']): CollectionSpec[] => [{ name: 'things', keys }]
  for (const [what, former, later] of [
    ['a key is new', things({ name: 'string' }), things({ name: 'string', owner: 'string' })],
    ['a key is gone', things({ name: 'string', owner: 'string' }), things({ name: 'string' })]
  ] as const) {
    const url = `sqlite:${t.testdir()}/${what.replaceAll(' ', '-')}.db`
    const before = await openStore(url, { collections: former, now })
    t.teardown(() => before.close())
    await before.collection<Thing>('things').insert({ id: 'a', name: 'a', owner: 'o' })
    const after = await openStore(url, { collections: later, now })
    t.teardown(() => after.close())
    await t.rejects(before.collection<Thing>('things').insert({ id: 'b', name: 'b', owner: 'o' }), { code: 'ErrDb', cause: { message: /another release/ } }, what)
    await t.rejects(before.collection<Thing>('things').update('a', { set: { name: 'c' } }), { code: 'ErrDb' })
    await t.rejects(before.ping(), { code: 'ErrDb' }, 'it is not ready')
    t.match(await before.collection<Thing>('things').get('a'), { name: 'a' }, 'it still reads')
    await after.collection<Thing>('things').insert({ id: 'd', name: 'd', owner: 'o' })
    const key = what === 'a key is new' ? 'owner' : 'name'
    t.equal(await after.collection<Thing>('things').count({ equal: key === 'owner' ? { owner: 'o' } : { name: 'd' } }), key === 'owner' ? 2 : 1)
    const again = await openStore(url, { collections: former, now })
    t.teardown(() => again.close())
    await again.collection<Thing>('things').insert({ id: 'e', name: 'e', owner: 'o' })
    await t.rejects(after.collection<Thing>('things').insert({ id: 'f', name: 'f' }), { code: 'ErrDb' }, 'a roll back takes the file again')
  }
})

t.test('processes of two releases that declare the same keys write side by side', async (t) => {
  const url = `sqlite:${t.testdir()}/store.db`
  const stores = [await openStore(url, { collections: COLLECTIONS, now }), await openStore(url, { collections: [...COLLECTIONS, { name: 'more', keys: {} }], now })]
  for (const [index, store] of stores.entries()) {
    t.teardown(() => store.close())
    await store.collection<Thing>('users').insert({ id: `u${index}`, account: `u${index}` })
    await store.ping()
  }
  t.equal(await stores[0]!.collection('users').count(), 2)
})

t.test('a process is refused once a release of a later layout has opened the file', async (t) => {
  const path = `${t.testdir()}/store.db`
  const store = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now })
  t.teardown(() => store.close())
  await store.collection<Thing>('users').insert({ id: 'u', account: 'u' })
  const later = new DatabaseSync(path)
  later.exec('PRAGMA user_version = 99')
  later.close()
  await t.rejects(store.collection<Thing>('users').update('u', { set: { name: 'n' } }), { code: 'ErrDb', cause: { message: /later release/ } })
  await t.rejects(store.ping(), { code: 'ErrDb' })
  await t.rejects(openStore(`sqlite:${path}`, { collections: COLLECTIONS, now }), /later release/)
})

t.test('every change of a row clears the version, even from another program, and nothing else does', async (t) => {
  const connection = open(`${t.testdir()}/store.db`)
  t.teardown(() => connection.close())
  migrate(connection, [{ name: 'things', keys: { name: 'string' }, unique: ['name'] }])
  const expectChange = (sql: string, changes: boolean) => {
    const version = runBatch(connection, new Map(), []).versions!.after
    connection.database.exec(sql)
    t.equal(readVersion(connection), changes ? null : version, sql)
  }
  expectChange("INSERT INTO things (id, doc, name) VALUES ('a', '{}', 'n')", true)
  expectChange("INSERT INTO things (id, doc) SELECT value, '{}' FROM json_each('[1, 2, 3]')", true)
  expectChange("UPDATE things SET doc = '{}' WHERE id = 'a'", true)
  expectChange("UPDATE things SET doc = '{}' WHERE id = 'nobody'", false)
  expectChange("INSERT OR IGNORE INTO things (id, doc, name) VALUES ('b', '{}', 'n')", false)
  expectChange("REPLACE INTO things (id, doc, name) VALUES ('b', '{}', 'n')", true)
  expectChange("BEGIN; DELETE FROM things WHERE id = '1'; ROLLBACK", false)
  expectChange('DELETE FROM things', true)
  expectChange('PRAGMA user_version = 4; VACUUM', false)
})

t.test('a file is changed only once, and only if something is missing', async (t) => {
  const connection = open(`${t.testdir()}/store.db`)
  t.teardown(() => connection.close())
  const specs: CollectionSpec[] = [{ name: 'things', keys: { name: 'string' }, indexes: [['name']] }]
  t.equal(isCurrent(connection, specs), false)
  migrate(connection, specs)
  t.equal(isCurrent(connection, specs), true)
  const later: Record<string, CollectionSpec[]> = {
    'a key': [{ ...specs[0]!, keys: { name: 'string', rank: 'number' } }],
    'an index': [{ ...specs[0]!, indexes: [['name'], ['name', 'name']] }],
    'a unique key': [{ ...specs[0]!, unique: ['name'] }],
    'an expiry': [{ ...specs[0]!, indexes: [], expiry: 'name', unique: [] }],
    'a collection': [...specs, { name: 'others', keys: {} }]
  }
  t.equal(isCurrent(connection, later['an expiry']!), true, 'the index there is serves')
  delete later['an expiry']
  for (const [name, declared] of Object.entries(later)) {
    t.equal(isCurrent(connection, declared), false, `${name} is missing`)
    migrate(connection, declared)
    t.equal(isCurrent(connection, declared), true, `${name} is made`)
    migrate(connection, specs)
  }
})

t.test('a new key is filled from every document, for values of any type', async (t) => {
  const connection = open(`${t.testdir()}/store.db`)
  t.teardown(() => connection.close())
  migrate(connection, [{ name: 'things', keys: {} }])
  const table = new Table({ name: 'things', keys: {} })
  connection.database.exec('BEGIN')
  for (let number = 0; number < 2_500; number++) connection.run(table.insert({ id: `t${number}`, rank: number, live: number % 2 === 0 } as Thing))
  connection.run(table.insert({ id: 'odd', rank: ['x'], live: null } as Thing))
  connection.database.exec('COMMIT')
  const specs: CollectionSpec[] = [{ name: 'things', keys: { rank: 'number', live: 'boolean' }, unique: ['rank'] }]
  migrate(connection, specs)
  t.equal(connection.get<{ count: number }>(new Table(specs[0]!).count({ equal: { live: true } }))?.count, 1_250)
  t.strictSame(connection.all<{ id: string }>('SELECT id FROM things WHERE rank = 2499 OR rank IS NULL ORDER BY id').map(({ id }) => id), ['odd', 't2499'])
})

t.test('a key that becomes unique while documents share its values stops the start, and changes nothing', async (t) => {
  const path = `${t.testdir()}/store.db`
  const keys = { name: 'string' } as const
  const old = await openStore(`sqlite:${path}`, { collections: [{ name: 'things', keys }], now })
  for (const id of ['a', 'b']) await old.collection<Thing>('things').insert({ id, name: 'same' })
  await old.close()
  const collections = [{ name: 'others', keys }, { name: 'things', keys, unique: ['name'] }]
  await t.rejects(openStore(`sqlite:${path}`, { collections, now }), { message: /documents of things have duplicate values of name, which must be unique$/ })
  const connection = open(path)
  t.strictSame(connection.all("SELECT name FROM sqlite_schema WHERE name = 'others'"), [], 'the transaction is taken back')
  connection.close()
})

t.test('every declared sort and filter uses an index', async (t) => {
  const connection = new Connection(':memory:', { busy: 0 })
  t.teardown(() => connection.close())
  migrate(connection, COLLECTIONS)
  const plan = ({ sql, values }: Statement) => connection.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values).map(({ detail }) => detail).join('; ')
  for (const spec of COLLECTIONS as readonly CollectionSpec[]) {
    const table = new Table(spec)
    const { unique = [], indexes = [], expiry } = spec
    for (const keys of [...unique.map((key) => [key]), ...indexes]) {
      const filter: Filter = { equal: Object.fromEntries(keys.slice(0, -1).map((key) => [key, 'x'])) }
      for (const direction of ['asc', 'desc'] as const) {
        const sort: SortKey[] = [{ key: keys.at(-1)!, direction }]
        const text = plan(table.list({ filter, sort }, 'doc'))
        // A unique index has no id at its end: SQLite sorts the runs of equal values by it, as it walks the index.
        const allowed = unique.includes(keys[0]!) ? 'USE TEMP B-TREE FOR LAST TERM OF ORDER BY' : ''
        t.notMatch(text.replace(allowed, ''), /TEMP B-TREE/, `${spec.name} by ${keys} ${direction}: ${text}`)
        t.match(text, /USING INDEX/)
      }
      const equal = Object.fromEntries(keys.map((key) => [key, 'x']))
      for (const [name, statement] of Object.entries({ count: table.count({ equal }), findSome: table.findSome({ equal }, 10), list: table.list({ filter: { equal } }, 'doc') })) {
        t.notMatch(plan(statement), /SCAN/, `${spec.name} ${name} where ${keys}: ${plan(statement)}`)
      }
    }
    for (const key of unique) t.match(plan(table.findBy(key, 'x')), /SEARCH .* USING INDEX/)
    if (expiry !== undefined) t.notMatch(plan(table.findSome({ before: { [expiry]: 'x' } }, 10)), /SCAN/, `${spec.name} expired`)
    t.match(plan(table.find('x')), /SEARCH .* USING INDEX/)
    t.notMatch(plan(table.list({}, 'doc')), /TEMP B-TREE/)
    const links = Object.entries(spec.keys).filter(([, type]) => type === 'string').map(([key]) => [key, table] as [string, Table])
    // A table of one row is scanned.
    t.notMatch(plan({ sql: table.linked(links), values: ['x'] }).replace('SCAN store.content', ''), /SCAN/, `${spec.name} linked`)
  }
})
