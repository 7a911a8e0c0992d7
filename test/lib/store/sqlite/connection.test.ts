import { mkdirSync, statSync } from 'node:fs'
import t from 'tap'
import { openStore } from '../../../../lib/store/index.ts'
import { Connection, prepareFile } from '../../../../lib/store/sqlite/connection.ts'

t.test('a connection syncs every commit, of a file that logs ahead', async (t) => {
  const path = `${t.testdir()}/store.db`
  const store = await openStore(`sqlite:${path}`, { collections: [], now: Date.now })
  t.teardown(() => store.close())
  const connection = new Connection(path, { busy: 1_234 })
  t.teardown(() => connection.close())
  const pragma = (name: string) => Object.values(connection.all<Record<string, unknown>>(`PRAGMA ${name}`)[0]!)[0]
  t.equal(pragma('journal_mode'), 'wal')
  t.equal(pragma('synchronous'), 2, 'FULL')
  t.equal(pragma('fullfsync'), 1)
  t.equal(pragma('checkpoint_fullfsync'), 1)
  t.equal(pragma('busy_timeout'), 1_234)
})

t.test('prepared statements are kept, and bounded', async (t) => {
  const connection = new Connection(':memory:', { busy: 0 })
  t.teardown(() => connection.close())
  const first = connection.prepare('SELECT 0')
  t.equal(connection.prepare('SELECT 0'), first)
  for (let number = 1; number <= 299; number++) connection.prepare(`SELECT ${number}`)
  t.equal(connection.prepare('SELECT 0'), first)
  connection.prepare('SELECT 300')
  t.not(connection.prepare('SELECT 0'), first)
})

t.test('a closed connection answers nothing more', async (t) => {
  const connection = new Connection(':memory:', { busy: 0 })
  t.strictSame({ ...connection.get({ sql: 'SELECT 1 AS one', values: [] }) }, { one: 1 })
  connection.close()
  connection.close()
  t.throws(() => connection.get({ sql: 'SELECT 1 AS one', values: [] }), /not open/)
})

t.test('what is there keeps its mode', { skip: process.platform === 'win32' && 'no modes' }, async (t) => {
  const base = t.testdir()
  mkdirSync(`${base}/shared`, { mode: 0o755 })
  prepareFile(`${base}/shared/a/store.db`)
  t.equal(statSync(`${base}/shared`).mode & 0o777, 0o755)
  t.equal(statSync(`${base}/shared/a`).mode & 0o777, 0o700)
  prepareFile(`${base}/shared/a/store.db`)
  t.equal(statSync(`${base}/shared/a/store.db`).mode & 0o777, 0o600)
})
