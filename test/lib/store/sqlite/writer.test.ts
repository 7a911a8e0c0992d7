import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { prepareFile } from '../../../../lib/store/sqlite/connection.ts'
import type { Operation } from '../../../../lib/store/sqlite/operations.ts'
import { Table } from '../../../../lib/store/sqlite/sql.ts'
import { Writer, type WriterOptions } from '../../../../lib/store/sqlite/writer.ts'

const SPEC = { name: 'things', keys: { name: 'string' }, unique: ['name'] } as const
const collections = [{ ...SPEC, unique: ['name'] }]
const table = new Table(collections[0]!)

const insert = (id: string, fields = {}): Operation => ({ kind: 'run', ...table.insert({ id, ...fields }) })

/** A writer on a file of its own, and another connection to that file. */
async function startWriter (t: Test, options: Partial<WriterOptions> = {}): Promise<{ writer: Writer, other: DatabaseSync, count: () => number }> {
  const path = `${t.testdir()}/store.db`
  prepareFile(path)
  const { timeout = 10_000 } = options
  const writer = new Writer({ path, collections, busy: timeout }, { timeout, ...options })
  await writer.start()
  const other = new DatabaseSync(path)
  t.teardown(async () => {
    await writer.close()
    other.close()
  })
  return { writer, other, count: () => Number(other.prepare('SELECT count(*) AS count FROM things').get()!.count) }
}

t.test('writes that wait together are one transaction', async (t) => {
  const { writer, other } = await startWriter(t)
  const version = () => Number(other.prepare('PRAGMA data_version').get()!.data_version)
  await writer.write(insert('first'))
  const before = version()
  let seen = 0
  await Promise.all(Array.from({ length: 400 }, async (_, number) => {
    await writer.write(insert(`t${number}`))
    seen ||= Number(other.prepare('SELECT count(*) AS count FROM things').get()!.count)
  }))
  t.equal(seen, 401, 'when the first is acknowledged all of them are there')
  t.not(version(), before)
})

t.test('a write that is refused leaves its neighbours alone', async (t) => {
  const { writer, count } = await startWriter(t)
  const outcomes = await Promise.allSettled([
    writer.write(insert('a', { name: 'n' })),
    writer.write(insert('b', { name: 'n' })),
    writer.write({ kind: 'run', sql: 'NO SQL', values: [] }),
    writer.write({ kind: 'update', collection: 'things', ...table.find('a'), change: '{"increment":{"name":1}}' }),
    writer.write(insert('a')),
    writer.write(insert('c'))
  ])
  t.match(outcomes, [
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: { name: 'DuplicateKeyError', field: 'name' } },
    { status: 'rejected', reason: { code: 'ErrDb' } },
    { status: 'rejected', reason: { name: 'TypeError' } },
    { status: 'rejected', reason: { name: 'DuplicateKeyError', field: 'id' } },
    { status: 'fulfilled', value: 1 }
  ])
  t.equal(count(), 2)
})

t.test('a transaction that cannot be had fails all of its writes, and the next is a new one', async (t) => {
  const { writer, other, count } = await startWriter(t, { timeout: 1_000 })
  other.exec('BEGIN IMMEDIATE')
  const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((id) => writer.write(insert(id))))
  for (const outcome of outcomes) t.match(outcome, { status: 'rejected', reason: { code: 'ErrDb', cause: { message: /locked/ } } })
  other.exec('ROLLBACK')
  await writer.write(insert('d'))
  t.equal(count(), 1)
})

t.test('a write that ran out of time while it waited is not done later', async (t) => {
  const { writer, other } = await startWriter(t, { timeout: 60 })
  const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT count(*) AS doc FROM n'
  const first = writer.write({ kind: 'read', sql: endless, values: [] })
  await new Promise(setImmediate)
  const second = writer.write(insert('waiting'))
  await t.rejects(first, { code: 'ErrDb', cause: { message: /more than 60 ms/ } })
  await t.rejects(second, { code: 'ErrDb' })
  const after = new Writer({ path: other.location()!, collections, busy: 10_000 }, { timeout: 10_000 })
  await after.write(insert('after'))
  await writer.close()
  t.notOk(other.prepare("SELECT 1 FROM things WHERE id = 'waiting'").get())
  t.ok(other.prepare("SELECT 1 FROM things WHERE id = 'after'").get())
  await after.close()
})

t.test('each write has its own time, whatever became of those before it', async (t) => {
  const { writer, count } = await startWriter(t, { timeout: 150, file: new URL('../../../fixtures/hanging-writer-thread.ts', import.meta.url) })
  const later = () => { for (const until = performance.now() + 10; performance.now() < until;); }
  const first = writer.write(insert('first'))
  await new Promise(setImmediate)
  later()
  const hanging = writer.write({ kind: 'run', sql: 'HANG', values: [] })
  await first
  later()
  const waiting = writer.write(insert('waiting'))
  const over: string[] = []
  await Promise.all(Object.entries({ hanging, waiting }).map(async ([name, write]) => {
    await t.rejects(write, { code: 'ErrDb', cause: { message: /more than 150 ms/ } })
    over.push(name)
  }))
  t.strictSame(over, ['hanging', 'waiting'])
  t.equal(count(), 1)
})

t.test('a write that waited long for its turn waits the less for the lock', async (t) => {
  const { writer, other } = await startWriter(t, { timeout: 1_000 })
  other.exec('BEGIN IMMEDIATE')
  const first = writer.write(insert('first'))
  await new Promise(setImmediate)
  const second = writer.write(insert('second'))
  for (const write of [first, second]) await t.rejects(write, { code: 'ErrDb', cause: { message: /locked/ } }, 'it did not happen, and is known not to have')
  other.exec('ROLLBACK')
  await writer.write(insert('after'))
  t.strictSame(other.prepare('SELECT id FROM things').all().map(({ id }) => id), ['after'])
})

t.test('two writers on one file never fail each other', async (t) => {
  const { writer, other } = await startWriter(t)
  const second = new Writer({ path: other.location()!, collections, busy: 10_000 }, { timeout: 10_000 })
  await writer.write(insert('counter'))
  await Promise.all([writer, second].map(async (writer) => {
    for (let number = 0; number < 150; number++) {
      await writer.write({ kind: 'update', collection: 'things', ...table.find('counter'), change: '{"increment":{"rank":1}}' })
    }
  }))
  t.match(other.prepare("SELECT doc FROM things WHERE id = 'counter'").get(), { doc: /"rank":300/ })
  await second.close()
})

t.test('writes that wait are bounded in number and in length', async (t) => {
  const { writer, other, count } = await startWriter(t)
  other.exec('BEGIN IMMEDIATE')
  const many = Array.from({ length: 10_001 }, (_, number) => writer.write(insert(`n${number}`)))
  await t.rejects(many.pop()!, { code: 'ErrBusy', statusCode: 503, headers: { 'retry-after': '1' } })
  other.exec('ROLLBACK')
  await Promise.all(many)
  t.equal(count(), 10_000)
  other.exec('BEGIN IMMEDIATE')
  const text = 'x'.repeat(8_000_000)
  const long = Array.from({ length: 8 }, (_, number) => writer.write(insert(`l${number}`, { text })))
  await t.rejects(writer.write(insert('one more')), { code: 'ErrBusy' })
  other.exec('ROLLBACK')
  await Promise.all(long)
  t.equal(count(), 10_008)
  await writer.write(insert('one more'))
})

t.test('a thread that dies fails what it had, and another takes over', async (t) => {
  const { writer, count } = await startWriter(t, { file: new URL('../../../fixtures/dying-writer-thread.ts', import.meta.url) })
  await writer.write(insert('before'))
  const outcomes = await Promise.allSettled([writer.write(insert('with it')), writer.write({ kind: 'run', sql: 'DIE', values: [] })])
  for (const outcome of outcomes) t.match(outcome, { status: 'rejected', reason: { code: 'ErrDb', cause: { message: /thread/ } } })
  await writer.write(insert('after'))
  t.equal(count(), 2)
})

t.test('a thread that dies takes nothing from those that still wait', async (t) => {
  const { writer, count } = await startWriter(t, { file: new URL('../../../fixtures/dying-writer-thread.ts', import.meta.url) })
  const dying = writer.write({ kind: 'run', sql: 'DIE', values: [] })
  await new Promise(setImmediate)
  const waiting = ['a', 'b'].map((id) => writer.write(insert(id)))
  await t.rejects(dying, { code: 'ErrDb' })
  await Promise.all(waiting)
  t.equal(count(), 2)
})

t.test('a thread that cannot start fails the writes, not the process', async (t) => {
  const writer = new Writer({ path: `${t.testdir()}/no/such/directory.db`, collections, busy: 100 }, { timeout: 10_000 })
  await t.rejects(writer.start(), { code: 'ErrDb', cause: { message: /unable to open/ } })
  await t.rejects(writer.write(insert('a')), { code: 'ErrDb', cause: { message: /unable to open/ } })
  await writer.close()
})

t.test('a closed writer finishes what it accepted, and accepts no more', async (t) => {
  const { writer, count } = await startWriter(t)
  const accepted = Array.from({ length: 1_200 }, (_, number) => writer.write(insert(`t${number}`)))
  const closed = writer.close()
  await t.rejects(writer.write(insert('late')), { code: 'ErrDb' })
  await closed
  t.equal(count(), 1_200)
  t.strictSame(await Promise.all(accepted), accepted.map(() => 1))
})

t.test('a thread that ends while nothing is asked of it takes no write with it, and mixes none up', async (t) => {
  const { writer } = await startWriter(t, { file: new URL('../../../fixtures/dying-writer-thread.ts', import.meta.url) })
  const ask = (text: string) => writer.write({ kind: 'read', sql: `SELECT '${text}' AS "doc"`, values: [] })
  const { emit } = Worker.prototype
  // An idle thread keeps no process, and here nothing else does.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => {
    clearInterval(alive)
    Worker.prototype.emit = emit
  })
  // One write just before the thread's end is told of, and one just after it, in the same turn.
  const asked = new Promise<Promise<unknown[]>>((resolve) => {
    Worker.prototype.emit = function (this: Worker, event: string, ...rest: unknown[]) {
      if (event !== 'exit') return emit.call(this, event, ...rest)
      Worker.prototype.emit = emit
      const before = ask('before')
      const told = emit.call(this, event, ...rest)
      resolve(Promise.all([before, ask('after')]))
      return told
    } as typeof emit
  })
  await t.rejects(writer.write({ kind: 'run', sql: 'DIE LATER', values: [] }), { code: 'ErrDb' })
  t.strictSame(await (await asked), ['before', 'after'])
})
