import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Connection } from '../../../../lib/store/sqlite/connection.ts'
import { identifyFile } from '../../../../lib/store/sqlite/database-file.ts'
import { Reader, type ReaderOptions } from '../../../../lib/store/sqlite/reader.ts'
import { migrate } from '../../../../lib/store/sqlite/schema.ts'
import { Table } from '../../../../lib/store/sqlite/sql.ts'
import { RENDERERS, renderThings } from '../../../fixtures/things-renderer.ts'
import { createTimers } from '../../../helpers/timers.ts'
import { serialId } from '../conformance/suite.ts'

const collections = [{ name: 'things', keys: {} }]
const table = new Table(collections[0]!)
const ALL = table.list({}, 'doc')
const ONE = table.list({ limit: 1 }, 'doc')

/** A reader on a file of 350 documents, and a connection that writes there. */
function startReader (t: Test, { gate, ...options }: Partial<ReaderOptions> & { gate?: Int32Array } = {}): { reader: Reader, connection: Connection } {
  const path = `${t.testdir()}/store.db`
  const connection = new Connection(path, { busy: 1_000 })
  connection.database.exec('PRAGMA journal_mode = WAL')
  migrate(connection, collections)
  connection.database.exec('BEGIN')
  for (let number = 0; number < 350; number++) connection.run(table.insert({ id: serialId(number) }))
  connection.database.exec('COMMIT')
  const { timeout = 60_000 } = options
  const data = { file: identifyFile(path), collections, busy: timeout, renderers: RENDERERS, gate }
  const reader = new Reader(data, { timeout, ...options })
  t.teardown(async () => {
    await reader.close()
    connection.close()
  })
  return { reader, connection }
}

/** A gate for blocked-reader-thread.ts, and the function that opens it. */
function createGate () {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const open = () => {
    Atomics.store(gate, 0, 1)
    Atomics.notify(gate, 0)
  }
  return { gate, open, file: new URL('../../../fixtures/blocked-reader-thread.ts', import.meta.url) }
}

/** Whether a list's snapshot keeps the log from being folded into the file. */
function isPinned (connection: Connection): boolean {
  const [{ log, checkpointed }] = connection.all<{ log: number, checkpointed: number }>('PRAGMA wal_checkpoint(PASSIVE)') as [{ log: number, checkpointed: number }]
  return checkpointed < log
}

async function read (list: AsyncIterable<string[]>): Promise<number> {
  let rows = 0
  for await (const docs of list) rows += docs.length
  return rows
}

/** Resolves when the thread has answered everything that it was asked before. */
async function settle (reader: Reader): Promise<void> {
  await read(reader.list(ONE, true))
}

t.test('a list is a snapshot until its reader stops, reads to the end, or it fails', async (t) => {
  const { reader, connection } = startReader(t)
  let number = 1_000
  const isPinnedAfterWrite = () => {
    connection.run(table.insert({ id: serialId(number++) }))
    return isPinned(connection)
  }
  const list = reader.list(ALL, false)
  await list.next()
  t.equal(isPinnedAfterWrite(), true, 'open')
  await list.return()
  await settle(reader)
  t.equal(isPinnedAfterWrite(), false, 'left')

  t.equal(await read(reader.list(ALL, false)), 352)
  t.equal(isPinnedAfterWrite(), false, 'read to its end')

  await t.rejects(reader.list({ sql: 'SELECT doc FROM nowhere', values: [] }, false).next(), { code: 'ErrDb' })
  t.equal(isPinnedAfterWrite(), false, 'failed')
})

t.test('a batch is read ahead, and no more than one', async (t) => {
  const { reader, connection } = startReader(t)
  const list = reader.list(ALL, false)
  t.equal((await list.next()).value?.length, 100)
  await settle(reader)
  connection.run(table.insert({ id: 'z' }))
  t.equal((await list.next()).value?.length, 100)
  t.equal((await list.next()).value?.length, 100)
  t.equal((await list.next()).value?.length, 50, 'what was written after it began is not in it')
  t.equal((await list.next()).done, true)
})

t.test('a rendered list is a snapshot, until its end', async (t) => {
  const { reader, connection } = startReader(t)
  const text = 'x'.repeat(1_000)
  connection.database.exec('BEGIN')
  for (let number = 0; number < 600; number++) connection.run(table.insert({ id: `y${serialId(number)}`, ...{ text } }))
  connection.database.exec('COMMIT')
  let rendered = 0
  const list = reader.render(ALL, renderThings())
  const next = async () => {
    const { value } = await list.next()
    if (value === undefined) return false
    // A separator comes before the second of two documents.
    rendered += value.split(';').length - (rendered === 0 ? 0 : 1)
    return true
  }
  await next()
  t.equal(rendered, 100, 'the first is of one batch')
  await settle(reader)
  t.equal(isPinned(connection), false)
  connection.run(table.insert({ id: 'z' }))
  t.equal(isPinned(connection), true, 'the cursor is open')
  while (await next()) await settle(reader)
  t.equal(rendered, 950, 'what was written after it began is not in it')
  connection.run(table.insert({ id: 'zz' }))
  t.equal(isPinned(connection), false)
})

t.test('a stored document that is not JSON is an error without its text', async (t) => {
  const { reader, connection } = startReader(t)
  connection.database.exec("UPDATE things SET doc = '{\"secret\":' WHERE id = 't000007'")
  const error = await read(reader.render(ALL, renderThings()) as unknown as AsyncIterable<string[]>).catch((error: unknown) => error)
  t.match(error, { code: 'ErrInternal', message: 'a stored document cannot be read', cause: undefined })
})

t.test('no list waits for a count, even a long one', async (t) => {
  const { open, ...gate } = createGate()
  const { reader } = startReader(t, gate)
  t.teardown(open)
  let counted = false
  const count = reader.count({ sql: 'BLOCK', values: [] }).catch(() => {}).finally(() => { counted = true })
  t.equal(await read(reader.list(table.list({ limit: 100 }, 'doc'), true)), 100, 'a short list')
  t.equal(await read(reader.list(ALL, false)), 350, 'a long one')
  t.equal((await Array.fromAsync(reader.render(ALL, renderThings()))).join('').split(';').length, 350, 'one that is rendered')
  t.equal(counted, false)
  open()
  await count
  t.equal(await reader.count(table.count()), 350)
})

t.test('lists with a cursor are bounded: further long lists wait, short ones never do', async (t) => {
  const { reader } = startReader(t, { cursors: 2 })
  const [one, two] = [reader.list(ALL, false), reader.list(ALL, false)]
  await one.next()
  await two.next()
  let entered = false
  const three = reader.list(ALL, false)
  const waiting = three.next().then(() => { entered = true })
  t.equal(await read(reader.list(table.list({ limit: 100 }, 'doc'), true)), 100, 'a list of one batch')
  t.equal(entered, false)
  await one.return()
  await waiting
  t.equal(entered, true, 'the first to leave lets the next in')
  await two.return()
  t.equal(await read(three), 250)
  t.equal(await read(reader.list(ALL, false)), 350)
})

t.test('a short list of large documents is counted like a long one', async (t) => {
  const { reader, connection } = startReader(t, { cursors: 1 })
  for (let number = 0; number < 8; number++) connection.run(table.insert({ id: `z${number}`, ...{ text: 'x'.repeat(200_000) } }))
  const LARGE = table.list({ sort: [{ key: 'id', direction: 'desc' }], limit: 8 }, 'doc')
  const one = reader.list(ALL, false)
  await one.next()
  let entered = false
  const large = reader.list(LARGE, true)
  const waiting = large.next().then(({ value }) => {
    entered = true
    return value
  })
  t.equal(await read(reader.list(table.list({ limit: 100 }, 'doc'), true)), 100, 'a short one of small documents is answered')
  await settle(reader)
  t.equal(entered, false, 'the large one waits')
  await one.return()
  t.equal((await waiting)?.length, 3, 'and comes in batches')
  t.equal(await read(large), 5)
  connection.run(table.insert({ id: 'last' }))
  t.equal(isPinned(connection), false)
})

t.test('a list that waited too long for a cursor is ErrBusy', async (t) => {
  const timers = createTimers()
  const { reader } = startReader(t, { cursors: 1, timeout: 1_000, timers })
  const one = reader.list(ALL, false)
  await one.next()
  await settle(reader)
  const two = reader.list(ALL, false).next()
  two.catch(() => {})
  timers.advance(999)
  t.equal(await Promise.race([two.catch(() => 'ErrBusy'), turn('waits')]), 'waits')
  timers.advance(1)
  await t.rejects(two, { code: 'ErrBusy' })
  t.equal(await read(one), 250, 'the one that had it goes on')
  t.equal(await read(reader.list(ALL, false)), 350)
})

t.test('a list that waits for a cursor is dropped when its caller has disconnected', async (t) => {
  const { reader } = startReader(t, { cursors: 1 })
  const one = reader.list(ALL, false)
  await one.next()
  const caller = new AbortController()
  const dropped = reader.list(ALL, false, caller.signal).next()
  const rendered = reader.render(ALL, { renderer: 'things', options: {}, separator: ',' }, caller.signal).next()
  const patient = read(reader.list(ALL, false))
  caller.abort()
  await t.rejects(dropped, { message: /connection was closed/ })
  await t.rejects(rendered, { message: /connection was closed/ })
  await t.rejects(reader.list(ALL, false, caller.signal).next(), { message: /connection was closed/ }, 'nor does it begin later')
  await one.return()
  t.equal(await patient, 350, 'the next one gets the cursor')
})

t.test('lists that wait for a cursor are bounded', async (t) => {
  const { reader } = startReader(t, { cursors: 1 })
  const one = reader.list(ALL, false)
  await one.next()
  const waiting = Array.from({ length: 1_000 }, async () => {
    const list = reader.list(ALL, false)
    const { value } = await list.next()
    await list.return()
    return value?.length
  })
  await t.rejects(reader.list(ALL, false).next(), { code: 'ErrBusy' })
  await one.return()
  t.ok((await Promise.all(waiting)).every((length) => length === 100), 'those that wait are served')
})

t.test('calls that wait are bounded', async (t) => {
  const { reader } = startReader(t)
  const counts = Array.from({ length: 10_001 }, () => reader.count(table.count()))
  await t.rejects(counts.pop()!, { code: 'ErrBusy' })
  t.ok((await Promise.all(counts)).every((count) => count === 350))
})

t.test('a list that goes unread for too long loses its cursor, and then fails', async (t) => {
  const timers = createTimers()
  const { reader, connection } = startReader(t, { cursors: 1, idle: 1_000, timers })
  const one = reader.list(ALL, false)
  await one.next()
  await settle(reader)
  timers.advance(1_000)
  t.equal(await read(reader.list(ALL, false)), 350, 'another list gets the place')
  connection.run(table.insert({ id: 'z' }))
  t.equal(isPinned(connection), false)
  t.equal((await one.next()).value?.length, 100, 'what was read ahead')
  await t.rejects(one.next(), { code: 'ErrDb', cause: { message: /unread/ } })
})

t.test('a thread that dies fails its calls, and a new thread takes over', async (t) => {
  const { reader } = startReader(t, { file: new URL('../../../fixtures/dying-reader-thread.ts', import.meta.url) })
  const list = reader.list(ALL, false)
  await list.next()
  await t.rejects(reader.list({ sql: 'DIE', values: [] }, false).next(), { code: 'ErrDb', cause: { message: /thread/ } })
  t.equal(await reader.count(table.count()), 350)
  await list.next()
  await t.rejects(list.next(), { code: 'ErrDb' }, 'its cursors are gone with it')
  t.equal(await read(reader.list(ALL, false)), 350)
})

t.test('a read that takes too long is ErrDb', async (t) => {
  const timers = createTimers()
  const { open, ...gate } = createGate()
  const { reader } = startReader(t, { ...gate, timeout: 1_000, timers })
  const count = reader.count({ sql: 'BLOCK', values: [] })
  timers.advance(1_000)
  await t.rejects(count, { code: 'ErrDb', cause: { message: /more than 1000 ms/ } })
  open()
  t.equal(await reader.count(table.count()), 350, 'and its late answer is nobody else\'s')
})

t.test('a closed reader fails all its lists, even those that wait', async (t) => {
  const { reader, connection } = startReader(t, { cursors: 1 })
  const open = reader.list(ALL, false)
  await open.next()
  const waiting = reader.list(ALL, false).next()
  waiting.catch(() => {})
  await reader.close()
  await t.rejects(waiting, { code: 'ErrDb' })
  await open.next()
  await t.rejects(open.next(), { code: 'ErrDb' })
  await t.rejects(reader.count(table.count()), { code: 'ErrDb' })
  connection.run(table.insert({ id: 'z' }))
  t.equal(isPinned(connection), false)
  t.ok(new DatabaseSync(connection.database.location()!).prepare('PRAGMA integrity_check').get()?.integrity_check === 'ok')
})

t.test('the oldest list can be ended: its reader gets an error, its snapshot is released, and other lists go on', async (t) => {
  const { reader, connection } = startReader(t)
  t.equal(reader.endOldest(), false)
  const [older, younger] = [reader.list(ALL, false), reader.list(ALL, false)]
  await older.next()
  connection.run(table.insert({ id: serialId(1000) }))
  await younger.next()
  t.ok(isPinned(connection))
  t.equal(reader.endOldest(), true)
  // The batch that was requested before still arrives.
  await t.rejects(read(older), { code: 'ErrDb', cause: { message: /it held the log beyond its limit/ } })
  t.notOk(isPinned(connection))
  t.equal(await read(younger), 251)
  t.equal(reader.endOldest(), false)
})
