import t, { type Test } from 'tap'
import { createPresent } from '../../lib/client-documents/present.ts'
import { DocumentError } from '../../lib/client-documents/error.ts'
import { createDeadLetters } from '../../lib/events/dead-letters.ts'
import { createSeries } from '../../lib/events/series.ts'
import { FairQueue } from '../../lib/fair-queue.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createCounter } from '../../lib/throttling/counter.ts'
import { shareReads } from '../../lib/webhooks/shared-reads.ts'
import type { WorkKind } from '../../lib/work/kind.ts'
import { Outages } from '../../lib/work/outage.ts'
import { createQueue } from '../../lib/work/queue.ts'
import type { WorkRecord } from '../../lib/work/record.ts'
import { createRoom } from '../../lib/work/room.ts'
import { createTestClock } from '../../testing/clock.ts'
import { checkRow, findKept, watchSizes } from '../helpers/given-back.ts'
import { createTimers } from '../helpers/timers.ts'
import { BOUND } from '../helpers/upstream.ts'
import { openWebhooks } from '../helpers/webhooks.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

const MINUTE = 60_000

/** A condition that comes true within the bound. */
async function until (what: string, condition: () => boolean): Promise<void> {
  const end = performance.now() + BOUND
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`)
    await new Promise(setImmediate)
  }
}

const KIND: WorkKind<WorkRecord> = {
  collection: 'deliveries',
  name: 'piece',
  slots: 4,
  capacity: 10_000,
  lookahead: 1_000,
  retries: [MINUTE],
  perform: async () => {},
  isFinal: () => false
}

async function openQueue (t: Test, kind: Partial<WorkKind<WorkRecord>>) {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  const timers = createTimers()
  let isDown = false
  const store = wrapStore(inner, ({ method }, run) => {
    if (isDown && method === 'update') throw new Error('down')
    return run()
  })
  const { opened: queue, sizes } = await watchSizes(() => createQueue<WorkRecord>({ ...KIND, ...kind }, { store, now: clock.now, onError: () => {}, onFailed: () => {}, timers }))
  t.teardown(() => queue.close())
  const [time, later] = [clock.now(), clock.now() + 60 * MINUTE].map((time) => new Date(time).toISOString()) as [string, string]
  return {
    sizes,
    fail: () => { isDown = true },
    /** Makes one attempt at a new record. */
    async attempt (id: string): Promise<void> {
      const record: WorkRecord = { id, state: 'due', due_at: time, claim: 0, attempts: 0, ends_at: later, created_at: time, expired_at: later }
      await queue.accept(record)
      queue.release(record)
      await queue.settle()
    }
  }
}

const timeout = async () => { throw Object.assign(new Error(), { code: 'ETIMEDOUT' }) }

const ENDS: Record<string, Partial<WorkKind<WorkRecord>>> = {
  'that succeeds': {},
  'that fails': { perform: () => Promise.reject(new Error()) },
  'that fails for good': { perform: () => Promise.reject(new Error()), isFinal: () => true },
  'that times out': { perform: timeout, nameReceiver: () => 'one receiver' }
}

for (const [name, kind] of Object.entries(ENDS)) {
  for (const isDown of [false, true]) {
    t.test(`an attempt ${name}${isDown ? ', while the store is down' : ''}: everything is given back`, async (t) => {
      const { attempt, fail, sizes } = await openQueue(t, kind)
      await attempt('first')
      if (isDown) fail()
      await checkRow(t, { call: (index) => attempt(String(index)), outcome: undefined, sizes })
    })
  }
}

t.test('receivers that timed out are forgotten beyond a bound', async (t) => {
  const { attempt, sizes } = await openQueue(t, { perform: timeout, nameReceiver: ({ id }) => id, held: 5 })
  const [held, ...others] = Object.entries(sizes).filter(([name]) => name.startsWith('work/attempts.ts')).map(([, held]) => held)
  t.strictSame(others, [])
  const counts: number[] = []
  for (let index = 0; index < 12; index++) {
    await attempt(String(index))
    counts.push(held!.size)
  }
  t.strictSame(counts, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2])
})

t.test('a series of events is forgotten an hour after it began', async (t) => {
  const timers = createTimers()
  const { opened: series, sizes } = await watchSizes(() => createSeries({ recorder: { insert: async () => {}, measure: () => 1 }, onError: () => {}, singles: 1, outcome: 'failure', timers }))
  t.teardown(() => series.close())
  series.admit({ type: 'user.created', id: 'a' }, { name: 'a', summary: { type: 'user.created', id: 'a' } })
  const count = () => Math.max(...Object.values(sizes).map(({ size }) => size))
  for (let minute = 1; minute <= 60; minute++) timers.advance(MINUTE)
  t.equal(count(), 1, 'within the hour')
  timers.advance(MINUTE)
  await series.settle()
  t.equal(count(), 0, 'after it')
})

t.test('failures to publish the events of a document are forgotten a minute after the last one', async (t) => {
  const timers = createTimers()
  const { opened: { note }, sizes } = await watchSizes(() => createDeadLetters({ store: { collection: () => ({}) } as never, now: Date.now, onError: () => {}, timers }))
  const count = async () => {
    await note(new Map(), false)
    return Object.values(sizes).reduce((sum, { size }) => sum + size, 0)
  }
  for (const id of ['a', 'b', 'a']) await note(new Map([[{ name: 'users', document: { id } }, new Error()]]), false)
  timers.advance(MINUTE)
  t.equal(await count(), 2, 'within the minute')
  timers.advance(1)
  t.equal(await count(), 0, 'after it')
})

t.test('deliveries to webhooks give back every poll: those that find nothing, those that are woken, and those that fail', async (t) => {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  let looks = 0
  let isDown = false
  const store = wrapStore(inner, ({ collection, method }, run) => {
    if (collection === 'webhooks' && method === 'page') {
      looks++
      if (isDown) throw new Error('down')
    }
    return run()
  })
  const { start } = await openWebhooks(t, { time: clock.now(), store })
  const timers = createTimers()
  const { opened: webhooks, sizes } = await watchSizes(() => start({ timers }))
  await webhooks.create({ data: { name: 'A', url: 'https://hooks.example.com/a', types: ['user.*'] } })
  webhooks.start()
  const poll = async () => {
    const before = looks
    await until('the next poll', () => {
      timers.advance(500)
      return looks > before
    })
  }
  t.strictSame(await findKept(poll, { sizes }), [])
  isDown = true
  t.strictSame(await findKept(poll, { sizes }), [])
  isDown = false
  await poll()
  await webhooks.close()
  t.strictSame(Object.entries(sizes).filter(([name]) => /^webhooks\/(waits|workers)\.ts/.test(name)).map(([, { size }]) => size), [0, 0])
})

/** What keeps an entry for each name that a stranger may choose, and how many. */
const BOUNDS: [what: string, most: number, open: () => (index: number) => unknown][] = [
  ['turns of a queue', 2 * 10_000, () => {
    const queue = new FairQueue({ what: 'jobs', slots: 1, places: 2, maxWait: 1_000, duration: 1 })
    return async (index) => await queue.run(async () => {}, { key: `key ${index}` })
  }],
  ['series of events', 10_000, () => {
    const series = createSeries({ recorder: { insert: async () => {}, measure: () => 1 }, onError: () => {}, singles: 1, outcome: 'failure', timers: createTimers() })
    return (index) => series.admit({ type: 'user.created', id: 'a' }, { name: `name ${index}`, summary: { type: 'user.created', id: 'a' } })
  }],
  ['counted attempts of a kind', 10_000, () => {
    const counter = createCounter()
    return async (index) => await counter.count('kind', `key ${index}`, 60_000)
  }],
  ['counted lanes of work', 1_000, () => {
    const room = createRoom<WorkRecord>({
      kind: { ...KIND, lanes: { keys: ['id'], slots: 1, capacity: 10 } }, records: { count: async () => 0 } as never, timers: createTimers(), toLane: ({ id }) => ({ key: 'id', value: id })
    })
    return async (index) => await room.take({ id: `lane ${index}` } as WorkRecord).catch(() => {})
  }],
  ['receivers of a kind that do not answer', 100, () => {
    const outages = new Outages({ onChange: () => {} })
    return (index) => outages.of('document', `host ${index}`).fail(new Error())
  }],
  ['pages of events', 4, () => {
    const feed = shareReads({ read: async ({ after }: { after: string }) => ({ events: [], after: `${after}+` }) } as never)
    return async (index) => await feed.read({ after: `g.${index}` })
  }],
  ['documents that could not be fetched', 1_000, () => {
    const present = createPresent({
      store: { collection: () => ({ get: async () => null }) } as never,
      now: () => 0,
      fetch: { getDocument: async () => { throw new DocumentError('json', 'is no JSON') } },
      isNamed: () => true,
      limits: { first: async (_url: URL, _address: string, _wanted: object, work: () => Promise<unknown>) => await work() } as never,
      onFailed: () => {}
    })
    return async (index) => await present.read(new URL(`https://agent.example/${index}`), '192.0.2.1').catch(() => {})
  }]
]

for (const [what, most, open] of BOUNDS) {
  t.test(`${what}: at most ${most} entries are kept`, async (t) => {
    // With the first entry, because it may open more.
    const { opened: fill, sizes } = await watchSizes(async () => {
      const fill = open()
      await fill(0)
      return fill
    })
    const held = Object.values(sizes)
    let peak = 0
    for (let index = 1; index < most + 50; index++) {
      await fill(index)
      peak = Math.max(peak, held.reduce((sum, { size }) => sum + size, 0))
    }
    // Beside them there may be the entry of their kind, of a timer, or of a budget.
    t.ok(peak >= most && peak <= most + 2, `${peak} entries`)
  })
}
