import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createFeed } from '../../../lib/events/feed.ts'
import { createFollower } from '../../../lib/events/follower.ts'
import { FEED_ID } from '../../../lib/events/lease.ts'
import { type EventRecord, toNumberId } from '../../../lib/events/types.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { BOUND, waitUntil, within } from '../../helpers/wait.ts'
import { type Around, wrapStore } from '../../helpers/wrap-store.ts'

async function open (t: Test, around: Around = (_call, run) => run(), options: { pollInterval?: number } = {}) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  const records = inner.collection<EventRecord>('events')
  const feed = createFeed({ store: wrapStore(inner, around), ...options })
  const begin = await feed.last()
  return {
    feed,
    begin,
    at: (number: number) => begin.replace(/\.0$/, `.${number}`),
    async publish (...numbers: number[]) {
      for (const number of numbers) {
        await records.insert({ id: toNumberId(number), key: `key${number}`, type: 'user.created', content: { type: 'user.created', actor: {}, target: {} }, expired_at: '2100-01-01T00:00:00.000Z' } as unknown as EventRecord)
      }
    },
    clear: () => records.deleteMany({ before: { id: '~' } }),
    setLast: (last: number) => inner.collection('feed').update(FEED_ID, { set: { last } })
  }
}

t.test('events that expired before older ones are passed over, once their numbers are known to be used', async (t) => {
  const { feed, at, publish, setLast } = await open(t)
  await publish(1, 2, 3, 7, 8)
  await setLast(3)
  t.match(await feed.read({ after: at(0) }), { events: [{}, {}, {}], after: at(3) })
  t.strictSame(await feed.read({ after: at(3) }), { events: [], after: at(3) }, 'events may still be published there')
  await setLast(8)
  for (const number of [3, 5]) {
    const read = await feed.read({ after: at(number) })
    t.strictSame([read.events.map(({ cursor }) => cursor), read.after], [[at(7), at(8)], at(8)], `after ${number}`)
  }
})

t.test('a reader whose next events were removed with all older ones begins again', async (t) => {
  const { feed, at, publish, setLast } = await open(t)
  await publish(7, 8)
  await setLast(8)
  for (const number of [0, 3, 5]) await t.rejects(feed.read({ after: at(number) }), { code: 'ErrGone' })
  t.equal((await feed.read({ after: at(6) })).events.length, 2)
})

t.test('a reader who has read all goes on when the last event is removed, and one who has not begins again', async (t) => {
  const { feed, at, publish, setLast, clear } = await open(t)
  await publish(1, 2)
  await setLast(2)
  await clear()
  t.strictSame(await feed.read({ after: at(2) }), { events: [], after: at(2) })
  t.strictSame([await feed.first(), await feed.last()], [at(2), at(2)])
  for (const number of [0, 1, 3]) await t.rejects(feed.read({ after: at(number) }), { code: 'ErrGone' })
  await publish(3)
  await setLast(3)
  t.strictSame((await feed.read({ after: at(2) })).events.map(({ cursor }) => cursor), [at(3)])
})

t.test('after a time without readers, the next one hears of what another process publishes', async (t) => {
  const { feed, begin, publish } = await open(t, undefined, { pollInterval: 1 })
  for (let number = 1; number <= 5; number++) {
    await feed.wait(begin, { timeout: 1 })
    // Longer than the interval: the poll has found no reader, and has ended.
    await sleep(5)
  }
  const heard = feed.wait(begin, { timeout: BOUND * 2 })
  await waitUntil('the reader waits', () => feed.countWaiting() === 1)
  await publish(1)
  await within('the event of another process', heard)
  t.match(await feed.read({ after: begin }), { events: [{ id: 'key1' }] })
})

t.test('a wait that fails leaves no reader behind', async (t) => {
  let isDown = false
  const { feed, begin } = await open(t, ({ collection }, run) => {
    if (isDown && collection === 'feed') throw new Error('down')
    return run()
  })
  await feed.getGeneration()
  isDown = true
  await t.rejects(feed.wait(begin, { timeout: 1 }), /down/)
  t.equal(feed.countWaiting(), 0)
})

t.test('an event that is published while a reader begins to wait wakes it', async (t) => {
  let reads = -1
  const { feed, begin, publish } = await open(t, ({ collection, method }, run) => {
    // The second read would be that of the poll, if it did not begin with the number that the reader has seen.
    if (collection === 'events' && method === 'page' && reads >= 0 && ++reads === 2) return publish(1).then(run)
    return run()
  })
  await feed.getGeneration()
  reads = 0
  const begun = performance.now()
  await feed.wait(begin, { timeout: 20_000 })
  t.ok(performance.now() - begun < 10_000, 'long before its time is over')
})

t.test('a listener that is added while the store is down gets events after it has recovered', async (t) => {
  let isDown = false
  const { feed, publish } = await open(t, ({ collection }, run) => {
    if (isDown && collection === 'feed') throw new Error('down')
    return run()
  })
  isDown = true
  const errors: unknown[] = []
  const heard = Promise.withResolvers<void>()
  const follower = createFollower({
    feed,
    onError: (error) => {
      errors.push(error)
      isDown = false
    }
  })
  t.teardown(() => follower.close())
  follower.on('*', () => heard.resolve())
  await waitUntil('the follower fails to read', () => errors.length > 0)
  // The follower pauses for a second after a failure, and then begins at the last event.
  let number = 0
  const timer = setInterval(() => { void publish(++number).then(() => feed.announce()) }, 100)
  await heard.promise
  clearInterval(timer)
  t.equal(errors.length, 1)
})
