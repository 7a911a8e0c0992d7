import t, { type Test } from 'tap'
import { type End, FEED_ID, type FeedRecord, createLease, isRelayed, readFeedRecord } from '../../../lib/events/lease.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createTestClock } from '../../../testing/clock.ts'
import { createTimers } from '../../helpers/timers.ts'
import { waitUntil } from '../../helpers/wait.ts'
import { type StoreCall, wrapStore } from '../../helpers/wrap-store.ts'

/** Milliseconds of a lease, and after which its holder renews it. */
const LEASE = 8_000
const RENEWAL = 3_000
/** Milliseconds after which a process that has not watched it may take it. */
const TAKEN = LEASE + 60_000

const START = Date.parse('2030-01-01T00:00:00.000Z')
const at = (milliseconds: number) => new Date(START + milliseconds).toISOString()
const NEVER = new Date(0).toISOString()

/** A store, and processes that share it. */
async function open (t: Test) {
  const { now, advance } = createTestClock(START)
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now })
  t.teardown(() => inner.close())
  const feeds = inner.collection<FeedRecord>('feed')
  /**
   * @param ahead milliseconds by which the clock of the process is ahead
   * @param onCall called before each store call
   */
  const connect = (ahead = 0, onCall: (method: string) => void = () => {}) => {
    const calls: string[] = []
    const errors: unknown[] = []
    const timers = createTimers()
    const fault: { thrown?: Error } = {}
    const around = ({ method }: StoreCall, run: () => unknown) => {
      calls.push(method)
      onCall(method)
      if (fault.thrown !== undefined) throw fault.thrown
      return run()
    }
    const feed: { end?: End } = {}
    const lease = createLease({ store: wrapStore(inner, around), now: () => now() + ahead, timers, onError: (error) => { errors.push(error) }, getEnd: () => feed.end })
    t.teardown(() => lease.release())
    return { ...lease, calls, errors, timers, fault, feed }
  }
  return { inner, feeds, now, advance, connect, read: async () => (await feeds.get(FEED_ID))! }
}

t.test('one process at a time has the lease, until it was not renewed for as long as it lasts', async (t) => {
  const { connect, advance, read } = await open(t)
  const [a, b] = [connect(), connect()]
  t.equal(await a.hold(), 'new')
  t.match(await read(), { leased_until: at(LEASE), claim: 1 })
  t.equal(await b.hold(), false)
  advance(LEASE - 1)
  b.timers.advance(LEASE - 1)
  t.equal(await b.hold(), false)
  advance(1)
  b.timers.advance(1)
  t.equal(await b.hold(), 'new')
  t.match(await read(), { leased_until: at(2 * LEASE), claim: 2 })
})

t.test('whoever comes later takes a lease that has ended a minute ago at once', async (t) => {
  const { connect, advance } = await open(t)
  await connect().hold()
  advance(LEASE + 59_999)
  t.equal(await connect().hold(), false, 'the clock of its holder may be behind')
  advance(1)
  t.equal(await connect().hold(), 'new')
})

for (const ahead of [-30_000, -500, 50, 30_000]) {
  t.test(`the lease of a living holder is not taken by a process whose clock is ${ahead} ms ahead`, async (t) => {
    const { connect, advance } = await open(t)
    const [a, b] = [connect(), connect(ahead)]
    t.equal(await a.hold(), 'new')
    for (let passed = 0; passed < 5 * LEASE; passed += 500) {
      advance(500)
      a.timers.advance(500)
      b.timers.advance(500)
      await new Promise((resolve) => { setTimeout(resolve, 1) })
      t.equal(await b.hold(), false)
    }
    await waitUntil('the lease of a dead holder', async () => {
      advance(500)
      b.timers.advance(500)
      return await b.hold() === 'new'
    })
  })
}

t.test('a lease of a process that died while its clock was an hour ahead is free as soon as any other', async (t) => {
  const { connect, advance, inner, now } = await open(t)
  const [a, b] = [connect(3_600_000), connect()]
  await a.hold()
  t.equal(await isRelayed(inner, now), false)
  t.equal(await b.hold(), false)
  advance(LEASE)
  b.timers.advance(LEASE)
  t.equal(await b.hold(), 'new')
})

t.test('of two processes that see a free lease one gets it', async (t) => {
  const { connect } = await open(t)
  const taken = await Promise.all([connect(), connect()].map((process) => process.hold()))
  t.strictSame(new Set(taken), new Set(['new', false]))
})

t.test('a holder asks the store from the end of its lease on, which renews it', async (t) => {
  const { connect, advance, read } = await open(t)
  const { hold, calls } = connect()
  await hold()
  calls.length = 0
  advance(LEASE - 1)
  t.equal(await hold(), 'held')
  t.strictSame(calls, [])
  advance(1)
  t.equal(await hold(), 'held')
  t.strictSame(calls, ['update'])
  t.equal((await read()).leased_until, at(2 * LEASE))
  calls.length = 0
  t.equal(await hold(), 'held')
  t.strictSame(calls, [], 'for another lease')
})

t.test('a renewal counts from its beginning: a holder whose write takes long does not believe in its lease for longer than it is stored', async (t) => {
  const { connect, advance, read } = await open(t)
  let isSlow = false
  const { hold, calls, timers } = connect(0, (method) => { if (isSlow && method === 'update') advance(5_000) })
  await hold()
  isSlow = true
  advance(RENEWAL)
  timers.advance(RENEWAL)
  await waitUntil('the renewal', async () => (await read()).leased_until === at(RENEWAL + LEASE))
  isSlow = false
  advance(LEASE - 5_000 - 1)
  calls.length = 0
  t.equal(await hold(), 'held')
  t.strictSame(calls, [])
  advance(1)
  t.equal(await hold(), 'held')
  t.strictSame(calls, ['update'])
})

t.test('doubt makes the next hold ask the store, and nothing of a process without the lease', async (t) => {
  const { connect } = await open(t)
  const [a, b] = [connect(), connect()]
  await a.hold()
  b.doubt()
  t.equal(await b.hold(), false)
  a.calls.length = 0
  a.doubt()
  t.equal(await a.hold(), 'held')
  t.strictSame(a.calls, ['update'])
})

t.test('a holder that was suspended while another took over has nothing, and takes nothing from the other', async (t) => {
  const { connect, advance, read } = await open(t)
  const [a, b] = [connect(), connect()]
  await a.hold()
  advance(TAKEN)
  await b.hold()
  t.equal(await a.hold(), false)
  a.calls.length = 0
  a.timers.advance(10 * RENEWAL)
  t.strictSame(a.calls, [], 'it renews no more')
  t.match(await read(), { leased_until: at(TAKEN + LEASE), claim: 2 })
  advance(TAKEN)
  t.equal(await a.hold(), 'new', 'after the end of the other')
})

t.test('a holder that does not know of its loss ends no lease of the other by its release', async (t) => {
  const { connect, advance, read } = await open(t)
  const [a, b] = [connect(), connect()]
  await a.hold()
  advance(TAKEN)
  await b.hold()
  await a.release()
  t.match(await read(), { leased_until: at(TAKEN + LEASE), claim: 2 })
})

t.test('the lease is renewed by a timer, with the end of the feed, and lost when the renewal finds another holder', async (t) => {
  const { connect, advance, feeds, read } = await open(t)
  const { hold, timers, feed, calls } = connect()
  await hold()
  const renew = async () => {
    calls.length = 0
    advance(RENEWAL)
    // The next timer is set when a renewal has ended.
    await waitUntil('the renewal', () => {
      if (calls.length === 0) timers.advance(RENEWAL)
      return calls.length === 1
    })
    await new Promise(setImmediate)
  }
  await renew()
  t.match(await read(), { leased_until: at(RENEWAL + LEASE), last: 0 })
  t.notOk('time' in await read(), 'the end is not known yet')
  feed.end = { last: 7, time: at(1) }
  await renew()
  t.match(await read(), { leased_until: at(2 * RENEWAL + LEASE), last: 7, time: at(1) })
  await feeds.update(FEED_ID, { set: { leased_until: at(60_000) }, increment: { claim: 1 } })
  await renew()
  await waitUntil('the loss to be noticed', async () => await hold() === false)
  t.equal((await read()).leased_until, at(60_000))
})

t.test('a renewal that fails is reported, and the next one is made all the same', async (t) => {
  const { connect, advance, read } = await open(t)
  const { hold, timers, errors, fault } = connect()
  await hold()
  fault.thrown = new Error('lost')
  timers.advance(RENEWAL)
  await waitUntil('the report', () => errors.length === 1)
  t.strictSame(errors, [fault.thrown])
  delete fault.thrown
  advance(RENEWAL)
  await waitUntil('a renewal', async () => {
    timers.advance(RENEWAL)
    return (await read()).leased_until === at(RENEWAL + LEASE)
  })
})

t.test('a released lease is free at once, with the end of the feed; without a lease nothing is written', async (t) => {
  const { connect, read } = await open(t)
  const [a, b] = [connect(), connect()]
  await b.release()
  t.strictSame(b.calls, [])
  await a.hold()
  a.feed.end = { last: 3, time: at(2) }
  await a.release()
  t.match(await read(), { leased_until: NEVER, last: 3, time: at(2) })
  t.equal(await b.hold(), 'new')
  await a.release()
  t.equal((await read()).leased_until, at(LEASE))
})

t.test('the feed is relayed while somebody has the lease', async (t) => {
  const { inner, now, advance, connect } = await open(t)
  t.equal(await isRelayed(inner, now), false, 'before the first event')
  await connect().hold()
  t.equal(await isRelayed(inner, now), true)
  advance(LEASE - 1)
  t.equal(await isRelayed(inner, now), true)
  advance(1)
  t.equal(await isRelayed(inner, now), false)
})

t.test('the first reader creates the document of the feed, and all get the same', async (t) => {
  const { feeds } = await open(t)
  const found = await Promise.all(Array.from({ length: 3 }, () => readFeedRecord(feeds)))
  t.match(found[0], { id: FEED_ID, generation: /^\w{8}$/, claim: 0, leased_until: NEVER, last: 0 })
  for (const record of found) t.strictSame(record, found[0])
  const fault = new Error('lost')
  const failing = { get: async () => null, insert: async () => { throw fault } } as unknown as typeof feeds
  await t.rejects(readFeedRecord(failing), fault)
})
