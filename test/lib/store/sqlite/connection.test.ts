import { mkdirSync, readFileSync, statSync } from 'node:fs'
import t from 'tap'
import { openStore } from '../../../../lib/store/index.ts'
import { Connection, prepareFile, enableWal } from '../../../../lib/store/sqlite/connection.ts'
import { FileBackend } from '../../../../lib/store/sqlite/file.ts'

t.test('a connection uses a write-ahead log and syncs every commit', async (t) => {
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

t.test('a file that has left WAL mode is switched back to it', async (t) => {
  const path = `${t.testdir()}/store.db`
  const options = { collections: [], now: Date.now }
  await (await openStore(`sqlite:${path}`, options)).close()
  const setMode = (mode: string) => {
    const connection = new Connection(path, { busy: 0 })
    const rows = connection.all(`PRAGMA journal_mode${mode}`)
    connection.close()
    return rows
  }
  t.match(setMode(' = DELETE'), [{ journal_mode: 'delete' }])
  await (await openStore(`sqlite:${path}`, options)).close()
  t.match(setMode(''), [{ journal_mode: 'wal' }])
})

t.test('the switch to WAL mode waits for a lock, for which SQLite itself does not wait, but not for ever', async (t) => {
  const path = `${t.testdir()}/store.db`
  const [one, other] = [new Connection(path, { busy: 1_000 }), new Connection(path, { busy: 0 })]
  t.teardown(() => { one.close(); other.close() })
  other.database.exec('CREATE TABLE things (id); BEGIN IMMEDIATE')
  t.throws(() => enableWal(one, -1), /locked/)
  let pauses = 0
  enableWal(one, 10_000, () => { if (++pauses === 3) other.database.exec('ROLLBACK') })
  t.equal(pauses, 3)
  t.match(one.all('PRAGMA journal_mode'), [{ journal_mode: 'wal' }])
})

t.test('look-ups block the event loop for a lock for at most some milliseconds', async (t) => {
  const backend = await FileBackend.open(`${t.testdir()}/store.db`, { collections: [], timeout: 10_000, onLost: () => {}, create: true, migrate: true, walLimit: 1024, onWarning: () => {} })
  t.teardown(() => backend.close())
  t.match(backend.connection.all('PRAGMA busy_timeout'), [{ timeout: 20 }])
})

t.test('prepared statements are cached, up to a bound', async (t) => {
  const connection = new Connection(':memory:', { busy: 0 })
  t.teardown(() => connection.close())
  const first = connection.prepare('SELECT 0')
  t.equal(connection.prepare('SELECT 0'), first)
  for (let number = 1; number <= 299; number++) connection.prepare(`SELECT ${number}`)
  t.equal(connection.prepare('SELECT 0'), first)
  connection.prepare('SELECT 300')
  t.not(connection.prepare('SELECT 0'), first)
})

t.test('a closed connection answers no more calls', async (t) => {
  const connection = new Connection(':memory:', { busy: 0 })
  t.strictSame({ ...connection.get({ sql: 'SELECT 1 AS one', values: [] }) }, { one: 1 })
  connection.close()
  connection.close()
  t.throws(() => connection.get({ sql: 'SELECT 1 AS one', values: [] }), /not open/)
})

t.test('a file that is open keeps its locks when it is opened again', { skip: process.platform !== 'linux' && 'no list of locks' }, async (t) => {
  const path = `${t.testdir()}/store.db`
  const options = { collections: [], now: Date.now }
  const store = await openStore(`sqlite:${path}`, options)
  t.teardown(() => store.close())
  const locks = () => readFileSync('/proc/locks', 'utf8').split('\n').filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${statSync(path).ino} `)).length
  t.equal(locks(), 1)
  const again = await openStore(`sqlite:${path}`, options)
  t.equal(locks(), 1)
  await again.close()
  t.equal(locks(), 1)
})

t.test('existing files and directories keep their mode', { skip: process.platform === 'win32' && 'no modes' }, async (t) => {
  const base = t.testdir()
  mkdirSync(`${base}/shared`, { mode: 0o755 })
  prepareFile(`${base}/shared/a/store.db`)
  t.equal(statSync(`${base}/shared`).mode & 0o777, 0o755)
  t.equal(statSync(`${base}/shared/a`).mode & 0o777, 0o700)
  prepareFile(`${base}/shared/a/store.db`)
  t.equal(statSync(`${base}/shared/a/store.db`).mode & 0o777, 0o600)
})
