import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WalIndex } from '../../../../lib/store/sqlite/wal-index.ts'

const skip = process.platform !== 'linux' && 'the index is read on Linux only'

function makeFile (t: Test): string {
  const file = join(realpathSync(t.testdir()), 'index.db')
  const made = new DatabaseSync(file)
  made.exec('PRAGMA journal_mode = WAL; CREATE TABLE "things" ("n" INTEGER)')
  made.close()
  return file
}

function connect (t: Test, file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: 5_000 })
  t.teardown(() => { if (database.isOpen) database.close() })
  database.prepare('SELECT * FROM "things"').all()
  return database
}

/** What another process does with the file, with a connection that it closes at its end. */
function elsewhere (file: string, sql: string): void {
  const code = "const d = new (require('node:sqlite').DatabaseSync)(process.argv[1]); d.exec(process.argv[2]); d.close()"
  const { status, stderr } = spawnSync(process.execPath, ['--no-warnings', '-e', code, file, sql], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}

/** How many descriptors of the index this process has, beside SQLite's own, of which there is one. */
const countOwn = (file: string) => readdirSync('/proc/self/fd').filter((fd) => {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).startsWith(`${file}-shm`)
  } catch {
    return false
  }
}).length - (existsSync(`${file}-shm`) ? 1 : 0)

t.test('each commit of anyone is seen, and nothing else', { skip }, async (t) => {
  const file = makeFile(t)
  const ours = connect(t, file)
  const theirs = connect(t, file)
  const index = WalIndex.open(file)!
  t.teardown(() => index.close())
  t.equal(index.isSame(), false, 'no header is kept yet')
  index.keep()
  t.equal(index.isSame(), true)

  const commits: Record<string, () => void> = {
    'by this connection': () => ours.exec('INSERT INTO "things" VALUES (1)'),
    'by another of this process': () => theirs.exec('INSERT INTO "things" VALUES (2)'),
    'by another process': () => elsewhere(file, 'INSERT INTO "things" VALUES (3)'),
    'after the log was begun anew': () => {
      ours.exec('PRAGMA wal_checkpoint(RESTART)')
      theirs.exec('UPDATE "things" SET "n" = 4')
    }
  }
  for (const [label, commit] of Object.entries(commits)) {
    commit()
    t.equal(index.isSame(), false, label)
    t.equal(index.isSame(), false, `${label}: until it is kept`)
    index.keep()
    t.equal(index.isSame(), true, `${label}: kept`)
  }

  ours.prepare('SELECT * FROM "things"').all()
  ours.exec('BEGIN; INSERT INTO "things" VALUES (5); ROLLBACK')
  t.equal(index.isSame(), true, 'what was read or rolled back is no commit')
  theirs.exec('BEGIN IMMEDIATE; INSERT INTO "things" VALUES (6)')
  t.equal(index.isSame(), true, 'nor is what is not committed yet')
  theirs.exec('COMMIT')
  t.equal(index.isSame(), false)
  index.keep()
  index.forget()
  t.equal(index.isSame(), false, 'forgotten')
})

t.test('to close it takes no lock from the other connections of the process', { skip }, async (t) => {
  const file = makeFile(t)
  connect(t, file)
  const ours = connect(t, file)
  const index = WalIndex.open(file)!
  const { ino } = statSync(`${file}-shm`)
  const locks = () => readFileSync('/proc/locks', 'utf8').split('\n').filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `))
  const before = locks()
  t.ok(before.length > 0, 'the connection that stays has some')
  ours.close()
  index.close()
  t.strictSame(locks(), before)
  t.equal(index.isSame(), false, 'closed')
})

t.test('its descriptor is used again, and closed when the file is gone', { skip }, async (t) => {
  const file = makeFile(t)
  const other = connect(t, file)
  const first = WalIndex.open(file)!
  t.equal(countOwn(file), 1)
  first.close()
  t.equal(countOwn(file), 1, 'somebody may have locks on it')
  const second = WalIndex.open(file)!
  t.equal(countOwn(file), 1)
  other.close()
  second.close()
  t.equal(countOwn(file), 0)
})

t.test('where there is no index there is none to read', async (t) => {
  t.equal(WalIndex.open(join(t.testdir(), 'none.db')), null)
  t.equal(WalIndex.open(join(t.testdir({ 'odd.db-shm': 'x'.repeat(100) }), 'odd.db')), null)
})
