import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openStore } from '../../../../lib/store/index.ts'
import { type Collection, type Store, StoreLostError } from '../../../../lib/store/port.ts'
import { Connection, prepareFile } from '../../../../lib/store/sqlite/connection.ts'
import { identifyFile } from '../../../../lib/store/sqlite/database-file.ts'
import { Writer } from '../../../../lib/store/sqlite/writer.ts'
import { COLLECTIONS, type Thing, ids } from '../conformance/suite.ts'

async function open (t: Test, path: string): Promise<{ store: Store, things: Collection<Thing>, errors: unknown[] }> {
  const errors: unknown[] = []
  const store = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now: Date.now, onError: (error) => errors.push(error) })
  t.teardown(() => store.close())
  return { store, things: store.collection<Thing>('things'), errors }
}

/** Creates another database with the same tables, in one file like a backup. */
async function makeBackup (t: Test, path: string): Promise<string> {
  const { store, things } = await open(t, path)
  await things.insert({ id: 'from the backup' })
  await store.close()
  return path
}

/** Restores a backup as people usually do: removes the log, and replaces the file with the backup. */
function replace (path: string, backup: string): void {
  for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })
  renameSync(backup, path)
}

/** Checks that every call fails permanently, and that the error is reported once. */
async function isLost (t: Test, { store, things, errors }: Awaited<ReturnType<typeof open>>): Promise<void> {
  const calls: Record<string, () => unknown> = {
    get: () => things.get('a'),
    getBy: () => things.getBy('name', 'a'),
    getLinked: () => things.getLinked('a', {}),
    count: () => things.count(),
    list: () => ids(things),
    'a list of one batch': () => ids(things, { limit: 10 }),
    insert: () => things.insert({ id: 'new' }),
    put: () => things.put({ id: 'a' }),
    update: () => things.update('a', { set: { rank: 1 } }),
    delete: () => things.delete('a'),
    deleteMany: () => things.deleteMany({ equal: { name: 'a' } }),
    ping: () => store.ping()
  }
  for (const time of ['at first', 'again']) {
    for (const [name, call] of Object.entries(calls)) {
      await t.rejects(async () => await call(), { code: 'ErrDb', statusCode: 503, cause: { name: 'StoreLostError' } }, `${name} ${time}`)
    }
    await nextTurn()
  }
  t.equal(errors.length, 1)
  t.ok(errors[0] instanceof StoreLostError)
}

t.test('a database behind a symbolic link sees the writes of others, despite files next to the link', async (t) => {
  const base = t.testdir({ real: {} })
  const real = `${base}/real/store.db`
  const link = `${base}/link.db`
  const old = new DatabaseSync(`${base}/old.db`)
  old.exec('PRAGMA journal_mode = WAL; CREATE TABLE things (id)')
  for (const suffix of ['-wal', '-shm']) copyFileSync(`${base}/old.db${suffix}`, `${link}${suffix}`)
  old.close()
  symlinkSync(real, link)
  const ours = await open(t, link)
  t.ok(existsSync(real), 'a link to nothing makes the file')
  const theirs = await open(t, real)
  await ours.things.insert({ id: 'a', rank: 0 })
  for (let rank = 1; rank <= 5; rank++) {
    await theirs.things.update('a', { set: { rank } })
    await nextTurn()
    for (let time = 0; time < 2; time++) t.equal((await ours.things.getLinked('a', {}))?.document.rank, rank)
    t.strictSame(await ids(ours.things, { filter: { equal: { rank } } }), ['a'])
  }
  unlinkSync(link)
  await nextTurn()
  t.equal((await ours.things.getLinked('a', {}))?.document.rank, 5, 'the link is not needed any more')
  await ours.things.update('a', { set: { rank: 6 } })
  t.equal((await theirs.things.get('a'))?.rank, 6)
})

for (const began of ['that wrote and listed', 'that only looked something up', 'that did nothing yet']) {
  t.test(`a file that is replaced under a store ${began} fails every call`, async (t) => {
    const base = t.testdir()
    const path = `${base}/store.db`
    const backup = await makeBackup(t, `${base}/backup.db`)
    const first = await open(t, path)
    await first.things.insert({ id: 'a', name: 'a' })
    await first.store.close()
    const opened = await open(t, path)
    if (began !== 'that did nothing yet') await opened.things.getLinked('a', {})
    if (began === 'that wrote and listed') {
      await opened.things.insert({ id: 'b' })
      t.strictSame(await ids(opened.things), ['a', 'b'])
    }
    replace(path, backup)
    const content = readFileSync(path)
    await nextTurn()
    await isLost(t, opened)
    await opened.store.close()
    t.ok(readFileSync(path).equals(content), 'the new file is as it was')
    const restarted = await open(t, path)
    t.strictSame(await ids(restarted.things), ['from the backup'])
  })
}

t.test('a file that is removed fails every call, also when it comes back', async (t) => {
  const path = `${t.testdir()}/store.db`
  const opened = await open(t, path)
  await opened.things.insert({ id: 'a', name: 'a' })
  const moved = `${path}.moved`
  renameSync(path, moved)
  await nextTurn()
  await isLost(t, opened)
  renameSync(moved, path)
  await nextTurn()
  await isLost(t, opened)
})

t.test('a directory that is replaced takes the file with it', async (t) => {
  const base = t.testdir({ data: {} })
  const opened = await open(t, `${base}/data/store.db`)
  await opened.things.insert({ id: 'a', name: 'a' })
  renameSync(`${base}/data`, `${base}/before`)
  mkdirSync(`${base}/data`)
  copyFileSync(`${base}/before/store.db`, `${base}/data/store.db`)
  await nextTurn()
  await isLost(t, opened)
})

t.test('a lost file is reported once, despite the sweep', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const path = `${t.testdir()}/store.db`
  const opened = await open(t, path)
  unlinkSync(path)
  for (let minute = 0; minute < 3; minute++) {
    mock.timers.tick(60_000)
    await nextTurn()
  }
  await isLost(t, opened)
})

t.test('a list that is open when the file is replaced fails', async (t) => {
  const base = t.testdir()
  const path = `${base}/store.db`
  const backup = await makeBackup(t, `${base}/backup.db`)
  const { things } = await open(t, path)
  await Promise.all(Array.from({ length: 350 }, (_, number) => things.insert({ id: `t${number}` })))
  const list = things.stream()[Symbol.asyncIterator]()
  await list.next()
  replace(path, backup)
  await nextTurn()
  await t.rejects(list.next(), { code: 'ErrDb', cause: { name: 'StoreLostError' } })
})

t.test('a write that is committed to a file which was replaced meanwhile is not acknowledged', async (t) => {
  const base = t.testdir()
  const path = `${base}/store.db`
  const backup = await makeBackup(t, `${base}/backup.db`)
  const opened = await open(t, path)
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const writing = opened.things.insert({ id: 'a' })
  await nextTurn()
  // The thread waits for the lock, so it does not check the file before its commit.
  replace(path, backup)
  other.exec('ROLLBACK')
  await t.rejects(writing, { code: 'ErrDb', cause: { name: 'StoreLostError' } })
  await isLost(t, opened)
})

t.test('a connection to a file other than the one opened is refused, and changes nothing', async (t) => {
  const base = t.testdir()
  const path = `${base}/store.db`
  prepareFile(path)
  const file = identifyFile(path)
  new Connection(file, { busy: 0 }).close()
  renameSync(path, `${path}.old`)
  t.throws(() => new Connection(file, { busy: 0 }), { name: 'StoreLostError' })
  t.notOk(existsSync(path), 'none is made')
  writeFileSync(path, '')
  t.throws(() => new Connection(file, { busy: 0 }), { name: 'StoreLostError' })
  const writer = new Writer({ file, collections: [], busy: 0 }, { timeout: 60_000 })
  await t.rejects(writer.start(), { code: 'ErrDb', cause: { message: /was replaced/ } })
  await writer.close()
  t.equal(statSync(path).size, 0)
})
