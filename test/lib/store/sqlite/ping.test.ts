import { truncateSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSqliteStore } from '../../../../lib/store/sqlite.ts'

/** A store whose file refuses large writes on request, like a full disk: a page may still fit. */
async function start (t: Test) {
  const file = join(t.testdir(), 'ping.db')
  const store = await openSqliteStore(`sqlite:${file}`, { collections: [{ name: 'things', keys: {} }], now: Date.now })
  const raw = new DatabaseSync(file)
  t.teardown(async () => {
    raw.close()
    await store.close()
  })
  function refuse (name: string, table: string, length: string) {
    raw.exec(`CREATE TRIGGER ${name} BEFORE INSERT ON "${table}" WHEN length(NEW.${length}) > 4096 BEGIN SELECT RAISE(ROLLBACK, 'no room'); END`)
  }
  return {
    file,
    raw,
    store,
    things: store.collection<{ id: string, text?: string }>('things'),
    refuseWrites () {
      refuse('refuse_things', 'things', 'doc')
      refuse('refuse_probes', 'store.probe', 'data')
    },
    allowWrites: () => raw.exec('DROP TRIGGER refuse_things; DROP TRIGGER refuse_probes')
  }
}

const LARGE = 'x'.repeat(10_000)

t.test('a store that has no room for a real write does not answer a ping, until it has', async (t) => {
  const { store, things, refuseWrites, allowWrites } = await start(t)
  await store.ping()
  refuseWrites()
  await t.rejects(Promise.all([store.ping(), store.ping()]), { code: 'ErrDb', cause: { message: /no room/ } }, 'though no write has failed')
  allowWrites()
  await store.ping()
  refuseWrites()
  await t.rejects(things.insert({ id: 'b', text: LARGE }), { code: 'ErrDb' })
  await t.rejects(store.ping(), { code: 'ErrDb', cause: { message: /no room/ } })
})

t.test('a recent write counts as an answer to a ping; one that changes nothing does not', async (t) => {
  const { store, things, refuseWrites } = await start(t)
  await things.insert({ id: 'a' })
  refuseWrites()
  await store.ping()
  await t.rejects(things.insert({ id: 'b', text: LARGE }), { code: 'ErrDb' })
  t.equal(await things.delete('nobody'), false)
  await t.rejects(store.ping(), { code: 'ErrDb' })
})

t.test('a ping reads the file, not the cached pages of before', async (t) => {
  const { file, raw, store } = await start(t)
  await store.ping()
  raw.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  truncateSync(file, 4096)
  await t.rejects(store.ping(), { code: 'ErrDb' })
})

t.test('a closed store does not answer a ping', async (t) => {
  const store = await openSqliteStore('sqlite::memory:', { collections: [{ name: 'things', keys: {} }], now: Date.now })
  store.verify?.()
  await store.close()
  t.throws(() => store.verify?.(), { code: 'ErrDb' })
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
