import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSqliteStore } from '../../../../lib/store/sqlite.ts'

/** A store whose file refuses writes when the test says so, as a full disk would. */
async function start (t: Test) {
  const file = join(t.testdir(), 'ping.db')
  const store = await openSqliteStore(`sqlite:${file}`, { collections: [{ name: 'things', keys: {} }], now: Date.now })
  const raw = new DatabaseSync(file)
  t.teardown(async () => {
    raw.close()
    await store.close()
  })
  return {
    store,
    things: store.collection('things'),
    refuseWrites: () => raw.exec('CREATE TRIGGER refuse BEFORE UPDATE ON "store.content" BEGIN SELECT RAISE(ROLLBACK, \'no room\'); END'),
    allowWrites: () => raw.exec('DROP TRIGGER refuse')
  }
}

t.test('a store that could not write does not answer a ping, until it can', async (t) => {
  const { store, things, refuseWrites, allowWrites } = await start(t)
  await things.insert({ id: 'a' })
  await store.ping()

  refuseWrites()
  await store.ping()
  await t.rejects(things.insert({ id: 'b' }), { code: 'ErrDb' })
  await t.rejects(Promise.all([store.ping(), store.ping()]), { code: 'ErrDb', cause: { message: /no room/ } })
  allowWrites()
  await store.ping()
  refuseWrites()
  await store.ping()
  allowWrites()
  t.ok(await things.get('a'))
})

t.test('a write that succeeds shows that the store can write; one that changes nothing does not', async (t) => {
  const { store, things, refuseWrites, allowWrites } = await start(t)
  refuseWrites()
  await t.rejects(things.insert({ id: 'b' }), { code: 'ErrDb' })
  allowWrites()
  await things.insert({ id: 'a' })
  refuseWrites()
  await store.ping()

  await t.rejects(things.insert({ id: 'b' }), { code: 'ErrDb' })
  allowWrites()
  t.equal(await things.delete('nobody'), false)
  refuseWrites()
  await t.rejects(store.ping(), { code: 'ErrDb' })
})

t.test('a store whose file cannot be read does not answer a ping', async (t) => {
  const { store } = await start(t)
  await store.ping()
  const other = new DatabaseSync(`${t.testdirName}/ping.db`)
  other.exec('ALTER TABLE "store.content" RENAME TO "elsewhere"')
  other.close()
  await t.rejects(store.ping(), { code: 'ErrDb', cause: { message: /no such table/ } })
})
