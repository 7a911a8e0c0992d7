import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSqliteStore } from '../../../../lib/store/sqlite.ts'

/** A store that gives up soon, and another connection to its file. */
async function start (t: Test) {
  const file = join(t.testdir(), 'ping.db')
  const store = await openSqliteStore(`sqlite:${file}`, { collections: [{ name: 'things', keys: {} }], now: Date.now, timeout: 200 })
  const raw = new DatabaseSync(file)
  t.teardown(async () => {
    raw.close()
    await store.close()
  })
  return { store, raw, things: store.collection('things') }
}

t.test('a store that cannot write does not answer a ping, until it can', async (t) => {
  const { store, raw, things } = await start(t)
  await things.insert({ id: 'a' })
  await store.ping()

  raw.exec('BEGIN IMMEDIATE')
  await store.ping()
  await t.rejects(things.insert({ id: 'b' }), { code: 'ErrDb' })
  await t.rejects(Promise.all([store.ping(), store.ping()]), { code: 'ErrDb', cause: { message: /locked/ } })
  raw.exec('ROLLBACK')
  await store.ping()
  raw.exec('BEGIN IMMEDIATE')
  await store.ping()
  raw.exec('ROLLBACK')
  t.ok(await things.get('a'))
})

t.test('a write that succeeds shows that the store can write', async (t) => {
  const { store, raw, things } = await start(t)
  const fail = async () => {
    raw.exec('BEGIN IMMEDIATE')
    await t.rejects(things.insert({ id: 'b' }), { code: 'ErrDb' })
    raw.exec('ROLLBACK')
  }
  await fail()
  await things.insert({ id: 'a' })
  raw.exec('BEGIN IMMEDIATE')
  await store.ping()
  raw.exec('ROLLBACK')

  await fail()
  t.equal(await things.delete('nobody'), false, 'one that changes nothing does not')
  raw.exec('BEGIN IMMEDIATE')
  await t.rejects(store.ping(), { code: 'ErrDb' })
  raw.exec('ROLLBACK')
})
