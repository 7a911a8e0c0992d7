import { spawn } from 'node:child_process'
import { closeSync, openSync, statSync, truncateSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openStore } from '../../../../lib/store/index.ts'
import { type Collection, type Store, StoreLostError } from '../../../../lib/store/port.ts'
import { COLLECTIONS, type Thing, fill, ids } from '../conformance/suite.ts'

interface Opened {
  store: Store
  things: Collection<Thing>
  errors: unknown[]
  /** Resolves with the first error that the store reports. */
  lost: Promise<unknown>
}

async function open (t: Test, path: string): Promise<Opened> {
  const errors: unknown[] = []
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const onError = (error: unknown) => {
    errors.push(error)
    resolve(error)
  }
  const store = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now: Date.now, onError })
  t.teardown(() => store.close())
  return { store, things: store.collection<Thing>('things'), errors, lost: promise }
}

/** A second worker. Its output is read line by line. */
async function startChild (t: Test, path: string, doing: string) {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../../fixtures/damaged-child.ts', import.meta.url)), `sqlite:${path}`, doing], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const find = async (start: string): Promise<string> => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done === true) throw new Error('the child ended')
      if (value.startsWith(start)) return value
    }
  }
  await find('ready')
  return {
    find,
    async write (): Promise<string> {
      child.stdin.write('\n')
      return (await lines.next()).value!
    }
  }
}

/** What another program does to the file, with the reason that is reported. */
const DAMAGES: Record<string, { damage: (path: string) => void, reason: RegExp }> = {
  'is emptied': { damage: (path) => truncateSync(path, 0), reason: /it was truncated|is malformed|is not a database/ },
  'is truncated to half': { damage: (path) => truncateSync(path, Math.floor(statSync(path).size / 2)), reason: /it was truncated|is malformed|is not a database/ },
  'loses a table': {
    damage (path) {
      const other = new DatabaseSync(path, { timeout: 10_000 })
      other.exec('DROP TABLE "things"')
      other.close()
    },
    reason: /no such table: things/
  }
}

/** A store with some content, all of it in the file and none in the log. */
async function prepare (t: Test): Promise<string> {
  const path = `${t.testdir()}/store.db`
  const { things, store } = await open(t, path)
  await fill(things, 500, (number) => ({ name: `name ${number} ${'x'.repeat(200)}` }))
  await store.close()
  return path
}

for (const [name, { damage, reason }] of Object.entries(DAMAGES)) {
  for (const doing of ['idle', 'writing']) {
    t.test(`a file that ${name} under ${doing} workers is lost for both, without a call, and nothing more is acknowledged`, async (t) => {
      const path = await prepare(t)
      const { store, things, errors, lost } = await open(t, path)
      const child = await startChild(t, path, doing)
      await things.getLinked('t000001', {})
      let damaged = false
      let late = 0
      const write = async (writer: number) => {
        for (let number = 0; ; number++) {
          const began = damaged
          await things.insert({ id: `${writer} ${number}` })
          if (began) late++
        }
      }
      const writers = doing === 'idle' ? [] : Array.from({ length: 6 }, (_, writer) => write(writer))
      const ended = Promise.allSettled(writers)
      if (doing === 'writing') {
        await child.find('acknowledged')
        await things.insert({ id: 'before' })
      }
      damage(path)
      damaged = true
      const error = await lost
      t.ok(error instanceof StoreLostError)
      t.match((error as Error).message, reason)
      t.match((error as Error).message, /store\.db is damaged.*stop the service, replace the file with a backup/)
      t.match(await child.find('lost'), reason)
      await ended
      t.equal(late, 0, 'a write that began after the damage is not acknowledged')
      await t.rejects(things.insert({ id: 'after' }), { code: 'ErrDb', cause: { name: 'StoreLostError' } })
      await t.rejects(store.ping(), { code: 'ErrDb', cause: { name: 'StoreLostError' } })
      await t.rejects(ids(things), { code: 'ErrDb', cause: { name: 'StoreLostError' } })
      t.throws(() => store.verify?.(), { code: 'ErrDb' })
      t.equal(await child.write(), 'refused StoreLostError')
      t.equal(errors.length, 1, 'it is reported once')
    })
  }
}

t.test('a write that waits while the file loses its tables is refused', async (t) => {
  const path = await prepare(t)
  const { things } = await open(t, path)
  await things.insert({ id: 'a' })
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec('BEGIN IMMEDIATE; DROP TABLE "owners"')
  const writing = things.insert({ id: 'b' })
  await new Promise((resolve) => setImmediate(resolve))
  other.exec('COMMIT')
  await t.rejects(writing, { code: 'ErrDb', cause: { name: 'StoreLostError', message: /no such table: owners/ } })
  t.equal(other.prepare('SELECT count(*) AS count FROM "things" WHERE "id" = \'b\'').get()?.count, 0, 'nor is it in the file')
})

t.test('a page that is overwritten is noticed by the first call that reads it', async (t) => {
  for (const kind of ['list', 'count', 'get', 'update']) {
    const path = await prepare(t)
    const { things, lost } = await open(t, path)
    const file = openSync(path, 'r+')
    for (let page = 2; page < statSync(path).size / 4096; page++) writeSync(file, Buffer.alloc(4096, 0xaa), 0, 4096, page * 4096)
    const calls: Record<string, () => Promise<unknown>> = {
      list: () => ids(things), count: () => things.count({ equal: { name: 'x' } }), get: () => things.get('t000001'), update: () => things.update('t000001', { set: { rank: 1 } })
    }
    await t.rejects(calls[kind]!(), { code: 'ErrDb' }, kind)
    t.match(await lost, { name: 'StoreLostError', message: /malformed/ }, kind)
    await t.rejects(things.insert({ id: 'after' }), { code: 'ErrDb', cause: { name: 'StoreLostError' } })
    closeSync(file)
  }
})

t.test('a file that another program compacts is not lost', async (t) => {
  const path = await prepare(t)
  const { store, things, errors } = await open(t, path)
  await things.deleteMany({ contains: { name: 'x' } })
  const before = statSync(path).size
  const other = new DatabaseSync(path)
  other.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  other.close()
  t.ok(statSync(path).size < before)
  await things.insert({ id: 'after' })
  await store.ping()
  t.strictSame(errors, [])
})

t.test('a writer thread that starts on a file emptied since makes no new database', async (t) => {
  const path = await prepare(t)
  const { things } = await open(t, path)
  truncateSync(path, 0)
  await t.rejects(things.insert({ id: 'a' }), { code: 'ErrDb', cause: { name: 'StoreLostError' } })
  t.equal(statSync(path).size, 0)
})
