import { DatabaseSync } from 'node:sqlite'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { DocumentCache } from '../../../../lib/store/sqlite/cache.ts'
import { prepareFile } from '../../../../lib/store/sqlite/connection.ts'
import { identifyFile } from '../../../../lib/store/sqlite/database-file.ts'
import type { Operation } from '../../../../lib/store/sqlite/operations.ts'
import { Table } from '../../../../lib/store/sqlite/sql.ts'
import { Writer, type WriterOptions } from '../../../../lib/store/sqlite/writer.ts'

const collections = [{ name: 'things', keys: { name: 'string' as const }, unique: ['name'] }]
const table = new Table(collections[0]!)

const insert = (id: string, fields = {}): Operation => ({ kind: 'run', ...table.insert({ id, ...fields }) })

const fixture = (name: string) => new URL(`../../../fixtures/${name}-writer-thread.ts`, import.meta.url)

/** A writer on a file, new unless it is given. The timeout is longer than any test. */
function createWriter (t: Test, options: Partial<WriterOptions> = {}, path = `${t.testdir()}/store.db`): Writer {
  prepareFile(path)
  const { timeout = 60_000 } = options
  const writer = new Writer({ file: identifyFile(path), collections, busy: timeout }, { timeout, ...options })
  t.teardown(() => writer.close())
  return writer
}

/** A started writer on a new file, and another connection to that file. */
async function startWriter (t: Test, options: Partial<WriterOptions> = {}): Promise<{ writer: Writer, other: DatabaseSync, ids: () => unknown[] }> {
  const writer = createWriter(t, options)
  await writer.start()
  const other = new DatabaseSync(`${t.testdirName}/store.db`)
  t.teardown(() => other.close())
  return { writer, other, ids: () => other.prepare('SELECT id FROM things ORDER BY id').all().map(({ id }) => id) }
}

/** Replaces the writer's timers and clock with ones that the test advances. */
function stopTime (t: Test) {
  mock.timers.enable({ apis: ['setTimeout'] })
  // The stopped timers do not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => {
    clearInterval(alive)
    mock.timers.reset()
  })
  let time = 0
  return {
    now: () => time,
    pass (milliseconds: number) {
      time += milliseconds
      mock.timers.tick(milliseconds)
    }
  }
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

t.test('a refused write does not affect the other writes of its batch', async (t) => {
  const { writer, ids } = await startWriter(t)
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
  t.equal(ids().length, 2)
})

t.test('a transaction that cannot begin fails all of its writes, and the next is a new one', async (t) => {
  const time = stopTime(t)
  const { writer, other, ids } = await startWriter(t, { now: time.now })
  other.exec('BEGIN IMMEDIATE')
  const writes = ['a', 'b', 'c'].map((id) => writer.write(insert(id)))
  // Nearly out of time: the thread does not wait for the lock.
  time.pass(50_000)
  for (const write of writes) await t.rejects(write, { code: 'ErrDb', cause: { message: /locked/ } })
  other.exec('ROLLBACK')
  await writer.write(insert('d'))
  t.strictSame(ids(), ['d'])
})

t.test('a write that times out in the queue is never made; one that was sent may be', async (t) => {
  const time = stopTime(t)
  const { writer, other, ids } = await startWriter(t, { now: time.now })
  other.exec('BEGIN IMMEDIATE')
  const sent = writer.write(insert('sent'))
  await nextTurn()
  const waiting = writer.write(insert('waiting'))
  const failures = Promise.all([sent, waiting].map((write) => t.rejects(write, { code: 'ErrDb', cause: { message: /more than 60000 ms/ } })))
  time.pass(60_000)
  await failures
  const after = writer.write(insert('after'))
  other.exec('ROLLBACK')
  await after
  t.strictSame(ids(), ['after', 'sent'])
})

t.test('writes that time out in the queue give back their places and their room', async (t) => {
  const time = stopTime(t)
  const { writer, other, ids } = await startWriter(t, { now: time.now })
  for (const [what, count, length] of [['places', 10_000, 0], ['room', 3, 22_000_000]] as const) {
    other.exec('BEGIN IMMEDIATE')
    const sent = writer.write(insert(`sent ${what}`))
    await nextTurn()
    const waiting = Array.from({ length: count }, (_, number) => writer.write(insert(`${what} ${number}`, { text: 'x'.repeat(length) })))
    const outcomes = Promise.allSettled([sent, ...waiting])
    await t.rejects(writer.write(insert('one more')), { code: 'ErrBusy' }, `no ${what} left`)
    time.pass(60_000)
    t.equal((await outcomes).every(({ status }) => status === 'rejected'), true)
    const after = writer.write(insert(`after ${what}`))
    other.exec('ROLLBACK')
    await after
  }
  t.strictSame(ids(), ['after places', 'after room', 'sent places', 'sent room'])
})

t.test('a document is cached again when the write that it waited for has timed out in the queue', async (t) => {
  const time = stopTime(t)
  const cache = new DocumentCache(() => null)
  const { writer, other } = await startWriter(t, { now: time.now, cache })
  const things = cache.collection('things')
  const cached = () => ['sent', 'waiting'].filter((id) => things.add(id, JSON.stringify({ id })) !== undefined)
  other.exec('BEGIN IMMEDIATE')
  const sent = writer.write(insert('sent'), { collection: 'things', id: 'sent' })
  await nextTurn()
  const waiting = writer.write(insert('waiting'), { collection: 'things', id: 'waiting' })
  t.strictSame(cached(), [], 'while a write is pending')
  const failures = Promise.all([sent, waiting].map((write) => t.rejects(write, { code: 'ErrDb' })))
  time.pass(60_000)
  await failures
  t.strictSame(cached(), ['waiting'], 'the one that was sent may still take effect')
  other.exec('ROLLBACK')
  await writer.write(insert('next'))
  t.strictSame(cached(), ['sent', 'waiting'], 'answered')
})

t.test('each write has its own timeout, regardless of earlier writes', async (t) => {
  const time = stopTime(t)
  const { writer, ids } = await startWriter(t, { now: time.now, file: fixture('hanging') })
  const outcomes: string[] = []
  const write = (name: string, operation = insert(name)) =>
    writer.write(operation).then(() => { outcomes.push(name) }, ({ cause }: Error) => { outcomes.push(`${name}: ${(cause as Error).message}`) })
  const first = write('first')
  await nextTurn()
  time.pass(10)
  const hanging = write('hanging', { kind: 'run', sql: 'HANG', values: [] })
  await first
  time.pass(10)
  const waiting = write('waiting')
  time.pass(59_989)
  await nextTurn()
  t.strictSame(outcomes, ['first'])
  time.pass(1)
  await hanging
  t.strictSame(outcomes.slice(1), ['hanging: a write took more than 60000 ms'])
  time.pass(10)
  await waiting
  t.strictSame(outcomes.slice(2), ['waiting: a write took more than 60000 ms'])
  t.strictSame(ids(), ['first'])
  const closed = writer.close()
  await nextTurn()
  time.pass(60_000)
  await closed
})

t.test('a batch waits for the lock until a fifth of its oldest write\'s timeout is left', async (t) => {
  const time = stopTime(t)
  const writer = createWriter(t, { timeout: 1_000, now: time.now, file: fixture('echoing') })
  const wait = async (write: Promise<unknown>) => (JSON.parse(String(await write)) as { wait: number }).wait
  const first = writer.write(insert('first'))
  await nextTurn()
  const second = writer.write(insert('second'))
  time.pass(500)
  const third = writer.write(insert('third'))
  t.equal(await wait(first), 800)
  t.equal(await wait(second), 300)
  t.equal(await wait(third), 300, 'of the same batch')
  const late = writer.write(insert('late'))
  time.pass(900)
  t.equal(await wait(late), 0)
})

t.test('a batch is bounded in operations and in characters', async (t) => {
  const writer = createWriter(t, { file: fixture('echoing') })
  const sizes = async (operations: Operation[]) =>
    (await Promise.all(operations.map((operation) => writer.write(operation)))).map((value) => (JSON.parse(String(value)) as { size: number }).size)
  const text = (length: number) => insert('a', { text: 'x'.repeat(length) })
  t.strictSame(await sizes(Array.from({ length: 501 }, () => insert('a'))), [...Array(500).fill(500), 1])
  t.strictSame(await sizes([text(600_000), text(600_000), text(200_000), text(100)]), [1, 3, 3, 3])
  t.strictSame(await sizes([text(2_000_000), text(100)]), [1, 1], 'a longer one goes by itself')
  const update = (length: number): Operation => ({ kind: 'update', collection: 'things', ...table.find('a'), change: 'x'.repeat(length) })
  t.strictSame(await sizes([update(600_000), update(600_000)]), [1, 1])
})

t.test('a batch is acknowledged only if the opened file is still in place', async (t) => {
  let error: Error | null = null
  const { writer, ids } = await startWriter(t, { verify: () => { if (error !== null) throw error } })
  await writer.write(insert('a'))
  error = new Error('replaced')
  await t.rejects(Promise.all([writer.write(insert('b')), writer.write(insert('c'))]), error)
  error = null
  await writer.write(insert('d'))
  t.strictSame(ids(), ['a', 'b', 'c', 'd'], 'whatever was written')
})

t.test('two writers on one file never fail each other', async (t) => {
  const { writer, other } = await startWriter(t)
  const second = createWriter(t, {}, other.location()!)
  await writer.write(insert('counter'))
  await Promise.all([writer, second].map(async (writer) => {
    for (let number = 0; number < 50; number++) {
      await writer.write({ kind: 'update', collection: 'things', ...table.find('counter'), change: '{"increment":{"rank":1}}' })
    }
  }))
  t.match(other.prepare("SELECT doc FROM things WHERE id = 'counter'").get(), { doc: /"rank":100/ })
})

t.test('writes that wait are bounded in number and in length', async (t) => {
  const writer = createWriter(t, { file: fixture('echoing') })
  const busy = { code: 'ErrBusy', statusCode: 503, headers: { 'retry-after': '1' } }
  const many = Array.from({ length: 10_001 }, (_, number) => writer.write(insert(`n${number}`)))
  await t.rejects(many.pop()!, busy)
  await Promise.all(many)
  const text = 'x'.repeat(8_000_000)
  const long = Array.from({ length: 8 }, (_, number) => writer.write(insert(`l${number}`, { text })))
  await t.rejects(writer.write(insert('one more')), busy)
  await Promise.all(long)
  await writer.write(insert('one more'))
})

t.test('a thread that dies fails its writes, and a new thread takes over', async (t) => {
  const { writer, ids } = await startWriter(t, { file: fixture('dying') })
  await writer.write(insert('before'))
  const outcomes = await Promise.allSettled([writer.write(insert('with it')), writer.write({ kind: 'run', sql: 'DIE', values: [] })])
  for (const outcome of outcomes) t.match(outcome, { status: 'rejected', reason: { code: 'ErrDb', cause: { message: /thread/ } } })
  await writer.write(insert('after'))
  t.equal(ids().length, 2)
})

t.test('a thread that dies does not affect the queued writes', async (t) => {
  const { writer, ids } = await startWriter(t, { file: fixture('dying') })
  const dying = writer.write({ kind: 'run', sql: 'DIE', values: [] })
  await new Promise(setImmediate)
  const waiting = ['a', 'b'].map((id) => writer.write(insert(id)))
  await t.rejects(dying, { code: 'ErrDb' })
  await Promise.all(waiting)
  t.equal(ids().length, 2)
})

t.test('a thread that cannot start fails the writes, not the process', async (t) => {
  const file = { path: `${t.testdir()}/no/such/directory.db`, dev: 0n, ino: 0n }
  const writer = new Writer({ file, collections, busy: 100 }, { timeout: 60_000 })
  await t.rejects(writer.start(), { code: 'ErrDb', cause: { message: /was removed/ } })
  await t.rejects(writer.write(insert('a')), { code: 'ErrDb', cause: { message: /was removed/ } })
  await writer.close()
})

t.test('a closed writer finishes what it accepted, and accepts no more', async (t) => {
  const { writer, ids } = await startWriter(t)
  const accepted = Array.from({ length: 1_200 }, (_, number) => writer.write(insert(`t${number}`)))
  const closed = writer.close()
  await t.rejects(writer.write(insert('late')), { code: 'ErrDb' })
  await closed
  t.equal(ids().length, 1_200)
  t.strictSame(await Promise.all(accepted), accepted.map(() => 1))
})

t.test('the exit of an idle thread loses no write, and mixes none up', async (t) => {
  const { writer } = await startWriter(t, { file: fixture('dying') })
  await writer.write(insert('before'))
  const ask = (id: string) => writer.write({ kind: 'update', collection: 'things', ...table.find(id), change: '{}' })
  const { emit } = Worker.prototype
  // An idle thread does not keep the process alive, and nothing else here does.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => {
    clearInterval(alive)
    Worker.prototype.emit = emit
  })
  // One write just before the exit event of the thread, and one just after it, in the same turn.
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
  t.strictSame(await (await asked), ['{"id":"before"}', null])
})
