import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { CHANGES, type Outcome, type Task } from '../fixtures/scope-races-thread.ts'

// After a change of a client's scopes is acknowledged, no token shows a lost scope or grants its access, whatever was read, issued
// or refreshed meanwhile.

/** Minimum number of different interleavings. */
const LEAST = 2_500
/** For each change: whether every order with one racer is tried, and the number of random orders with many. */
const ORDERS = { tries: true, random: 80 }
/** On a file, where documents are cached. */
const ORDERS_ON_FILE = { tries: false, random: 8 }

/** What becomes of each racer in all these orders. The owner changes their client whatever happens, and a code was issued before. */
const BOTH = ['done', 'refused']
const OUTCOMES: Outcome['seen'] = {
  issue: ['done'],
  'issue for the resource': ['done'],
  'issue to the client itself': ['done'],
  refresh: BOTH,
  'refresh for the resource': BOTH,
  mint: BOTH,
  'mint for the resource': BOTH,
  'the owner changes the client': ['done']
}

t.setTimeout(480_000)

async function run<T> (task?: Task): Promise<T> {
  const worker = new Worker(new URL('../fixtures/scope-races-thread.ts', import.meta.url), { workerData: task, execArgv: [] })
  const [answer] = await once(worker, 'message') as [T]
  return answer
}

t.test('nothing changes: every token works and shows its scopes', async (t) => {
  t.strictSame(await run(), { tokens: 9, clients: 1, pay: 5, 'orders:read': 4 })
})

t.test('no order of store calls leaves a token with more than it may have', async (t) => {
  let orders = 0
  const seen: Outcome['seen'] = {}
  async function playTask (task: Task): Promise<void> {
    const outcome = await run<Outcome>(task)
    t.strictSame(outcome.wrong.slice(0, 3), [], `${task.change}: ${outcome.orders} orders, ${task.tries ? 'in memory' : 'on a file'}`)
    orders += outcome.orders
    for (const [racer, outcomes] of Object.entries(outcome.seen)) seen[racer] = [...new Set([...seen[racer] ?? [], ...outcomes])].sort()
  }
  const directory = t.testdir()
  // Two threads, each of which takes the next task.
  const tasks = Object.keys(CHANGES).flatMap((change, index): Task[] => [
    { change, database: 'sqlite::memory:', ...ORDERS }, { change, database: `sqlite:${directory}/${index}.db`, ...ORDERS_ON_FILE }
  ]).values()
  await Promise.all([1, 2].map(async () => { for (const task of tasks) await playTask(task) }))
  t.ok(orders >= LEAST, `${orders} orders, and at least ${LEAST} expected`)
  t.strictSame(seen, OUTCOMES)
})
