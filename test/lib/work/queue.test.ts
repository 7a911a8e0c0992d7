import t, { type Test } from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { WorkKind } from '../../../lib/work/kind.ts'
import { createQueue } from '../../../lib/work/queue.ts'
import type { WorkRecord } from '../../../lib/work/record.ts'
import { createTestClock } from '../../../testing/clock.ts'
import { watchCalls } from '../../helpers/settled.ts'
import { advanceTo, createTimers } from '../../helpers/timers.ts'
import { waitUntil } from '../../helpers/wait.ts'
import type { StoreCall } from '../../helpers/wrap-store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

async function open (t: Test, kind: Partial<WorkKind<WorkRecord>> = {}) {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  const calls: StoreCall[] = []
  const { store, settle } = watchCalls(inner, (call, run) => {
    calls.push(call)
    return run()
  })
  const records = inner.collection<WorkRecord>('deliveries')
  const errors: unknown[] = []
  return {
    clock,
    calls,
    records,
    errors,
    turn: settle,
    make (id: string, fields: Partial<WorkRecord> = {}): WorkRecord {
      const time = clock.now()
      return {
        id,
        state: 'due',
        due_at: toTimestamp(time),
        claim: 0,
        attempts: 0,
        ends_at: toTimestamp(time + 60 * MINUTE),
        created_at: toTimestamp(time),
        expired_at: toTimestamp(time + 60 * MINUTE),
        ...fields
      }
    },
    /** A process. @param ahead milliseconds by which its clock is ahead */
    start (parts: Partial<WorkKind<WorkRecord>> = {}, ahead = 0) {
      const timers = createTimers()
      const queue = createQueue<WorkRecord>({
        collection: 'deliveries',
        name: 'piece',
        slots: 4,
        capacity: 10_000,
        lookahead: 1_000,
        retries: [MINUTE],
        perform: async () => {},
        isFinal: () => false,
        ...kind,
        ...parts
      }, { store, now: () => clock.now() + ahead, onError: (error) => { errors.push(error) }, onFailed: () => {}, timers })
      t.teardown(() => queue.close())
      return { ...queue, timers }
    }
  }
}

t.test('after a kill another process goes on within 35 seconds, and not while the holder lives', async (t) => {
  const { start, make, clock, records, turn } = await open(t)
  const hang = Promise.withResolvers<void>()
  const dead = start({ perform: () => hang.promise })
  const record = make('a')
  await dead.accept(record)
  dead.release(record)
  await waitUntil('the claim of an attempt', async () => (await records.get('a'))?.claim === 1)
  let done = 0
  const other = start({ perform: async () => { done++ } })
  // Twice as long as a lease: the holder renews it.
  for (let second = 0; second < 60; second += 10) {
    clock.advance(10 * SECOND)
    dead.timers.advance(10 * SECOND)
    await turn()
    await other.flush()
  }
  t.equal(done, 0, 'its holder lives')
  other.start()
  for (let second = 0; second < 34; second += 2) {
    clock.advance(2 * SECOND)
    other.timers.advance(2 * SECOND)
    await turn()
  }
  t.equal(done, 1, 'its holder is dead: it renews nothing')
  hang.resolve()
})

for (const ahead of [-30 * SECOND, -50, 50, 30 * SECOND]) {
  t.test(`nothing is done twice by two processes of which one has a clock that is ${ahead} ms ahead`, async (t) => {
    const { start, make, clock, records, turn } = await open(t)
    const hang = Promise.withResolvers<void>()
    const done: string[] = []
    const holder = start({ perform: async ({ id }) => { await hang.promise; done.push(id) } })
    const other = start({ perform: async ({ id }) => { done.push(id) } }, ahead)
    other.start()
    const record = make('a')
    await holder.accept(record)
    holder.release(record)
    await waitUntil('the claim of an attempt', async () => (await records.get('a'))?.claim === 1)
    for (let second = 0; second < 120; second += 2) {
      clock.advance(2 * SECOND)
      holder.timers.advance(2 * SECOND)
      other.timers.advance(2 * SECOND)
      await turn()
      t.equal((await records.get('a'))?.claim, 1)
    }
    hang.resolve()
    await waitUntil('the end of the attempt', async () => await records.get('a') === null)
    t.strictSame(done, ['a'])
  })
}

/** What a process has stored when it dies with a clock that is an hour ahead. */
const LEFT: [what: string, fields: (now: number) => Partial<WorkRecord>][] = [
  ['an attempt in flight', (now) => ({ attempts: 1, claim: 1, leased: true, due_at: toTimestamp(now + 30 * SECOND), set_at: toTimestamp(now) })],
  ['the fifth attempt in flight', (now) => ({ attempts: 5, claim: 5, leased: true, due_at: toTimestamp(now + 30 * SECOND), set_at: toTimestamp(now) })],
  ['the wait for the second attempt', (now) => ({ attempts: 1, claim: 1, due_at: toTimestamp(now + MINUTE), set_at: toTimestamp(now) })],
  ['the longest wait', (now) => ({ attempts: 5, claim: 5, due_at: toTimestamp(now + 360 * MINUTE), set_at: toTimestamp(now) })],
  ['the wait for its change', (now) => ({ due_at: toTimestamp(now + MINUTE), set_at: toTimestamp(now) })],
  ['the wait of an earlier release, which does not say when it was written', (now) => ({ attempts: 1, claim: 1, due_at: toTimestamp(now + 360 * MINUTE) })]
]

for (const [what, fields] of LEFT) {
  t.test(`a process that dies while its clock is an hour ahead leaves ${what}: it is done within 75 seconds`, async (t) => {
    const { start, make, clock, records, turn } = await open(t, { retries: [1, 5, 30, 120, 360].map((minutes) => minutes * MINUTE) })
    await records.insert(make('a', { ...fields(clock.now() + 60 * MINUTE), ends_at: toTimestamp(clock.now() + 600 * MINUTE) }))
    let done = 0
    const next = start({ perform: async () => { done++ } })
    next.start()
    for (let second = 0; second < 74; second++) {
      clock.advance(SECOND)
      next.timers.advance(SECOND)
      await turn()
    }
    t.equal(done, 1)
  })
}

t.test('a wait that is as long as its kind can have, by a clock that is 30 seconds ahead, is kept', async (t) => {
  const { start, make, clock, records } = await open(t, { retries: [MINUTE, 30 * MINUTE] })
  const ahead = clock.now() + 30 * SECOND
  await records.insert(make('a', { attempts: 2, claim: 2, due_at: toTimestamp(ahead + 30 * MINUTE), set_at: toTimestamp(ahead) }))
  await records.insert(make('b', { attempts: 2, claim: 2, due_at: toTimestamp(ahead + 30 * MINUTE) }))
  await records.insert(make('c', { attempts: 2, claim: 2, due_at: toTimestamp(clock.now() + 60 * MINUTE), set_at: toTimestamp(clock.now()) }))
  let done = 0
  const queue = start({ perform: async () => { done++ } })
  await queue.flush()
  t.equal(done, 0, 'also one that the receiver has asked for')
  clock.advance(31 * MINUTE)
  await queue.flush()
  t.equal(done, 2)
})

t.test('an operator has attempted now what waits for another attempt, and nothing else', async (t) => {
  const { start, make, clock, records } = await open(t)
  const done: string[] = []
  const queue = start({ perform: async ({ id }) => { done.push(id) } })
  const later = toTimestamp(clock.now() + MINUTE)
  await records.insert(make('failed once', { attempts: 1, claim: 1, due_at: later }))
  await records.insert(make('scheduled', { due_at: later }))
  await records.insert(make('in flight', { attempts: 1, claim: 1, due_at: later, leased: true }))
  await records.insert(make('given up', { state: 'failed', attempts: 2, claim: 2, failure: 'ETIMEDOUT' }))
  await records.insert(make('over', { attempts: 1, claim: 1, due_at: later, ends_at: toTimestamp(clock.now()) }))
  for (const id of ['failed once', 'given up']) await queue.retry(id)
  for (const id of ['scheduled', 'in flight', 'none']) await t.rejects(queue.retry(id), { code: 'ErrNotFound' })
  await t.rejects(queue.retry('over'), { code: 'ErrParam' })
  await queue.flush()
  t.strictSame(new Set(done), new Set(['failed once', 'given up']))
})

t.test('an attempt that close aborts is due at once, and does not count', async (t) => {
  for (const afterAbort of [undefined, 30 * SECOND]) {
    const { start, make, clock, records } = await open(t, { ...(afterAbort !== undefined && { afterAbort }) })
    const closing = start({
      perform: async (_record, signal) => await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
    })
    const record = make('a')
    await closing.accept(record)
    closing.release(record)
    await waitUntil('the claim of an attempt', async () => (await records.get('a'))?.claim === 1)
    await advanceTo(closing.timers, 'the close of the queue', closing.close())
    t.match(await records.get('a'), { state: 'due', attempts: 0, due_at: toTimestamp(clock.now() + (afterAbort ?? 0)) })
    let done = 0
    const other = start({ perform: async () => { done++ } })
    await other.flush()
    t.equal(done, afterAbort === undefined ? 1 : 0)
    clock.advance(afterAbort ?? 0)
    await other.flush()
    t.equal(done, 1)
  }
})

t.test('what another program queued is found within two seconds', async (t) => {
  const { start, make, records, turn } = await open(t)
  const done: string[] = []
  const queue = start({ perform: async ({ id }) => { done.push(id) } })
  queue.start()
  await turn()
  await records.insert(make('of a command'))
  queue.timers.advance(2 * SECOND)
  await waitUntil('the attempt', () => done.length > 0)
  t.strictSame(done, ['of a command'])
})

t.test('a poll reads urgent pages, so that it waits neither for a cursor of long lists nor for a search', async (t) => {
  const { start, make, records, calls } = await open(t)
  for (let number = 0; number < 250; number++) await records.insert(make(`r${String(number).padStart(3, '0')}`))
  const done: string[] = []
  await start({ perform: async ({ id }) => { done.push(id) } }).flush()
  t.equal(new Set(done).size, 250)
  t.equal(done.length, 250)
  const lists = calls.filter(({ method }) => method === 'page')
  t.ok(lists.length >= 4)
  t.ok(lists.every(({ args: [query] }) => (query as { limit: number }).limit <= 100))
  t.notOk(calls.some(({ method }) => method === 'stream'))
  for (const { args } of lists) t.match(args[0], { urgent: true })
})

t.test('half of the capacity is for urgent work', async (t) => {
  const { start, make, records } = await open(t)
  const queue = start({ capacity: 4, isUrgent: ({ id }) => id.startsWith('urgent') })
  for (const id of ['a', 'b']) await queue.accept(make(id))
  await t.rejects(queue.accept(make('c')), { code: 'ErrBusy' })
  for (const id of ['urgent1', 'urgent2']) await queue.accept(make(id))
  await t.rejects(queue.accept(make('urgent3')), { code: 'ErrBusy' })
  t.equal(await records.count(), 4)
})

t.test('what is never refused takes no more memory than what is: a poll finds the rest', async (t) => {
  const { start, make, records } = await open(t, { capacity: 3, slots: 1 })
  const hang = Promise.withResolvers<void>()
  const done: string[] = []
  const queue = start({ perform: async ({ id }) => { await hang.promise; done.push(id) } })
  for (const id of ['a', 'b', 'c', 'd', 'e']) {
    await records.insert(make(id))
    queue.release((await records.get(id))!)
  }
  hang.resolve()
  await queue.settle()
  t.strictSame(done, ['a', 'b', 'c'])
  await queue.flush()
  t.strictSame(done, ['a', 'b', 'c', 'd', 'e'])
})
