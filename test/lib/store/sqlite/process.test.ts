import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { openStore } from '../../../../lib/store/index.ts'
import type { Collection, Json, StoreOptions } from '../../../../lib/store/port.ts'
import { COLLECTIONS, type Thing, each, ids } from '../conformance/suite.ts'

const options: StoreOptions = { collections: COLLECTIONS, now: Date.now }

/** The collection `things` of the same file in another process. A call is a line of its input, the answer a line of its output. */
function startProcess (t: Test, url: string): { child: ChildProcess, call: <R>(method: keyof Collection<Thing>, ...parameters: unknown[]) => Promise<R> } {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../../fixtures/store-child.ts', import.meta.url)), url], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    child,
    async call (method, ...parameters) {
      child.stdin.write(`${JSON.stringify([method, ...parameters])}\n`)
      return JSON.parse((await lines.next()).value!)
    }
  }
}

t.test('the writes of another process are visible at once, both ways', async (t) => {
  const url = `sqlite:${t.testdir()}/store.db`
  const store = await openStore(url, options)
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  const { call } = startProcess(t, url)
  for (let round = 0; round < 20; round++) {
    const id = `t${String(round).padStart(2, '0')}`
    await things.insert({ id, name: id, rank: 0 })
    t.strictSame(await call('get', id), { id, name: id, rank: 0 })
    await call('update', id, { increment: { rank: 1 } })
    t.equal((await things.get(id))?.rank, 1, 'by a look-up')
    t.equal((await things.getLinked(id, {}))?.document.rank, 1)
    t.equal((await ids(things, { filter: { equal: { rank: 1 } } })).length, round + 1, 'by a list')
    t.equal(await things.count({ equal: { rank: 1 } }), round + 1, 'by a count')
  }
  t.equal(await call('delete', 't00'), true)
  t.equal(await things.get('t00'), null)
})

t.test('two processes that write at once lose nothing, and of two racers one wins', async (t) => {
  const url = `sqlite:${t.testdir()}/store.db`
  const store = await openStore(url, options)
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  const { call } = startProcess(t, url)
  await things.insert({ id: 'counter' })
  const numbers = Array.from({ length: 60 }, (_, number) => number)
  const theirs = (async () => {
    for (const number of numbers) {
      await call('update', 'counter', { increment: { rank: 1 } })
      await call('update', `prize ${number}`, { set: { owner: 'child' } }, { equal: { owner: 'nobody' } })
    }
  })()
  await each(numbers, (number) => things.insert({ id: `prize ${number}`, owner: 'nobody' }))
  await each(numbers, async (number) => {
    await things.update('counter', { increment: { rank: 1 } })
    await things.update(`prize ${number}`, { set: { owner: 'parent' } }, { equal: { owner: 'nobody' } })
  })
  await theirs
  t.equal((await things.get('counter'))?.rank, 120)
  t.equal(await things.count({ equal: { owner: 'nobody' } }), 0)
})

t.test('the acknowledged writes of another process are visible from the next turn on, despite own writes meanwhile', async (t) => {
  const url = `sqlite:${t.testdir()}/store.db`
  const store = await openStore(url, options)
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  const { call } = startProcess(t, url)
  await things.insert({ id: 'token', owner: 'theirs' })
  await things.insert({ id: 'theirs', rank: 0 })
  await things.insert({ id: 'ours', rank: 0 })
  const state = { writing: true, acknowledged: 0 }
  const theirs = (async () => {
    while (state.acknowledged < 100) state.acknowledged = (await call<Thing>('update', 'theirs', { increment: { rank: 1 } })).rank as number
    state.writing = false
  })()
  const ours = (async () => {
    while (state.writing) {
      const written = await things.update('ours', { increment: { rank: 1 } })
      const found = await things.getLinked('ours', {})
      if (found?.document.rank !== written?.rank) t.fail('an own write is not seen')
    }
  })()
  /** Contents by stamp. */
  const contents = new Map<number, Json | undefined>()
  let looks = 0
  for (; state.writing; looks++) {
    const { acknowledged } = state
    await nextTurn()
    const { linked, stamp } = (await things.getLinked('token', { owner: 'things' }))!
    const { rank } = linked.owner as Thing
    if ((rank as number) < acknowledged) t.fail(`${rank} is seen after ${acknowledged}`)
    if (stamp === undefined) continue
    if ((contents.get(stamp) ?? rank) !== rank) t.fail('a stamp stands for two contents')
    contents.set(stamp, rank)
  }
  await Promise.all([theirs, ours])
  t.ok(looks >= 100, `${looks} look-ups`)
  t.ok(contents.size > 0, `${contents.size} contents in the cache`)
})

t.test('two stores in one process keep the locks that show another process that the file is in use', async (t) => {
  const path = `${t.testdir()}/store.db`
  const [one, two] = [await openStore(`sqlite:${path}`, options), await openStore(`sqlite:${path}`, options)]
  t.teardown(() => Promise.all([one.close(), two.close()]))
  await one.collection('things').insert({ id: 'before' })
  // The last connection to leave a file removes its log: this one is not the last.
  const script = `
    const { DatabaseSync } = require('node:sqlite')
    const database = new DatabaseSync(${JSON.stringify(path)})
    console.log(database.prepare('SELECT count(*) AS count FROM things').get().count)
    database.close()`
  const visit = async () => (await promisify(execFile)(process.execPath, ['-e', script])).stdout.trim()
  t.equal(await visit(), '1')
  t.ok(existsSync(`${path}-wal`), 'the log is still there')
  await one.collection('things').insert({ id: 'after' })
  t.equal(await visit(), '2', 'and what is written to it is seen')
})

t.test('an idle process exits, despite the threads and timers of the store', async (t) => {
  const url = `sqlite:${t.testdir()}/store.db`
  const { child, call } = startProcess(t, url)
  await call('insert', { id: 'a', name: 'n' })
  await call('count')
  child.stdin!.end()
  t.strictSame(await once(child, 'exit'), [0, null])
  const store = await openStore(url, options)
  t.equal((await store.collection<Thing>('things').get('a'))?.name, 'n')
  await store.close()
})

t.test('a process stays alive for a pending write', async (t) => {
  const url = `sqlite:${t.testdir()}/store.db`
  const { child } = startProcess(t, url)
  child.stdin!.end('["insert", {"id":"a"}]\n')
  t.strictSame(await once(child, 'exit'), [0, null])
  const store = await openStore(url, options)
  t.strictSame(await store.collection<Thing>('things').get('a'), { id: 'a' })
  await store.close()
})

t.test('a lock that another process holds too long is ErrDb, and later writes succeed once it is released', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  // The stopped timers do not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => {
    clearInterval(alive)
    mock.timers.reset()
  })
  const path = `${t.testdir()}/store.db`
  const store = await openStore(`sqlite:${path}`, { ...options, timeout: 60_000 })
  t.teardown(() => store.close())
  const things = store.collection<Thing>('things')
  await things.insert({ id: 'before' })
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const failure = t.rejects(things.insert({ id: 'during' }), { code: 'ErrDb', statusCode: 503, headers: { 'retry-after': '1' } })
  await nextTurn()
  mock.timers.tick(60_000)
  await failure
  t.strictSame(await things.get('before'), { id: 'before' }, 'reading goes on')
  t.equal(await things.count(), 1)
  other.exec('ROLLBACK')
  await things.insert({ id: 'after' })
  t.strictSame(await ids(things), ['after', 'before', 'during'], 'a write that was not answered may happen')
})
