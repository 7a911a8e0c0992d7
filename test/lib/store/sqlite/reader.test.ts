import { DatabaseSync } from 'node:sqlite'
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
  await reader.page(ONE)
}

t.test('a list is a snapshot until its reader stops, reads to the end, or it fails', async (t) => {
  const { reader, connection } = startReader(t)
  let number = 1_000
  const isPinnedAfterWrite = () => {
    connection.run(table.insert({ id: serialId(number++) }))
    return isPinned(connection)
  }
  const list = reader.stream(ALL)
  await list.next()
  t.equal(isPinnedAfterWrite(), true, 'open')
  await list.return()
  await settle(reader)
  t.equal(isPinnedAfterWrite(), false, 'left')

  t.equal(await read(reader.stream(ALL)), 352)
  t.equal(isPinnedAfterWrite(), false, 'read to its end')

  await t.rejects(reader.stream({ sql: 'SELECT doc FROM nowhere', values: [] }).next(), { code: 'ErrDb' })
  t.equal(isPinnedAfterWrite(), false, 'failed')
})

t.test('a batch is read ahead, and no more than one', async (t) => {
  const { reader, connection } = startReader(t)
  const list = reader.stream(ALL)
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

t.test('an urgent read waits for nothing else', async (t) => {
  const { open, ...gate } = createGate()
  const { reader } = startReader(t, gate)
  t.teardown(open)
  let ended = 0
  const end = () => { ended++ }
  const slow = [reader.count({ sql: 'BLOCK', values: [] }), reader.page(ONE), reader.stream(ALL).next(), reader.render(ALL, renderThings()).next()]
  for (const one of slow) one.then(end, end)
  t.equal((await reader.page(ONE, { urgent: true })).docs.length, 1, 'a page')
  t.equal(await reader.count(table.count(), { urgent: true }), 350, 'a count')
  t.equal(ended, 0)
  open()
  await Promise.allSettled(slow)
  t.equal(await reader.count(table.count()), 350)
})

t.test('a page comes in one answer, or in part if its documents are large, and holds no snapshot', async (t) => {
  const { reader, connection } = startReader(t)
  for (let number = 0; number < 8; number++) connection.run(table.insert({ id: `z${number}`, ...{ text: 'x'.repeat(200_000) } }))
  const all = await reader.page(table.list({ limit: 101 }, 'doc'))
  t.strictSame([all.docs.length, all.done], [101, true])
  const part = await reader.page(table.list({ sort: [{ key: 'id', direction: 'desc' }], limit: 8 }, 'doc'))
  t.strictSame([part.docs.length, part.done], [3, false])
  connection.run(table.insert({ id: 'last' }))
  t.equal(isPinned(connection), false)
})

t.test('calls that wait are bounded', async (t) => {
  const { reader } = startReader(t)
  const counts = Array.from({ length: 10_001 }, () => reader.count(table.count()))
  await t.rejects(counts.pop()!, { code: 'ErrBusy' })
  t.ok((await Promise.all(counts)).every((count) => count === 350))
})

t.test('a list that goes unread for too long loses its cursor, and then fails', async (t) => {
  const timers = createTimers()
  const { reader, connection } = startReader(t, { idle: 1_000, timers })
  const one = reader.stream(ALL)
  await one.next()
  await settle(reader)
  timers.advance(1_000)
  await settle(reader)
  connection.run(table.insert({ id: 'z' }))
  t.equal(isPinned(connection), false)
  t.equal((await one.next()).value?.length, 100, 'what was read ahead')
  await t.rejects(one.next(), { code: 'ErrDb', cause: { message: /unread/ } })
})

t.test('a list that is read again and again within that time lives, however long it takes', async (t) => {
  const timers = createTimers()
  const { reader } = startReader(t, { idle: 1_000, timers })
  let rows = 0
  for await (const docs of reader.stream(ALL)) {
    rows += docs.length
    await settle(reader)
    timers.advance(900)
    await settle(reader)
  }
  t.equal(rows, 350)
  t.equal(timers.now(), 3_600)
})

t.test('a thread that dies fails its calls, and a new thread takes over', async (t) => {
  const { reader } = startReader(t, { file: new URL('../../../fixtures/dying-reader-thread.ts', import.meta.url) })
  const list = reader.stream(ALL)
  await list.next()
  await t.rejects(reader.stream({ sql: 'DIE', values: [] }).next(), { code: 'ErrDb', cause: { message: /thread/ } })
  t.equal(await reader.count(table.count()), 350)
  await list.next()
  await t.rejects(list.next(), { code: 'ErrDb' }, 'its cursors are gone with it')
  t.equal(await read(reader.stream(ALL)), 350)
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

t.test('a closed reader fails all its lists', async (t) => {
  const { reader, connection } = startReader(t)
  const open = reader.stream(ALL)
  await open.next()
  await reader.close()
  await t.rejects(reader.stream(ALL).next(), { code: 'ErrDb' })
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
  const [older, younger] = [reader.stream(ALL), reader.stream(ALL)]
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
