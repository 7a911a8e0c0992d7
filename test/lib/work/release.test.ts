import t, { type Test } from 'tap'
import { createLease, FEED_ID, type FeedRecord } from '../../../lib/events/lease.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createQueue } from '../../../lib/work/queue.ts'
import type { WorkRecord } from '../../../lib/work/record.ts'
import { createTestClock } from '../../../testing/clock.ts'
import { createTimers } from '../../helpers/timers.ts'
import { within } from '../../helpers/upstream.ts'
import { openWebhooks } from '../../helpers/webhooks.ts'
import { type StoreCall, wrapStore } from '../../helpers/wrap-store.ts'

// Each holder of a lease ends its work while a renewal is in flight: the write that ends the lease follows the renewal.

const NEVER = '1970-01-01T00:00:00.000Z'
const HOOK = 'https://hooks.example.com/a'

const turns = async () => { for (let count = 0; count < 50; count++) await new Promise(setImmediate) }

/** Holds back the next write of a collection, and counts the writes that begin meanwhile. */
function createGate (collection: string) {
  const held = Promise.withResolvers<void>()
  let isArmed = false
  let arrive: () => void = () => {}
  let go: (error?: Error) => void = () => {}
  let later = 0
  return {
    async around ({ collection: name, method }: StoreCall, run: () => unknown): Promise<unknown> {
      if (name !== collection || !/^(update|put|delete|insert)$/.test(method)) return await run()
      if (!isArmed) {
        later++
        return await run()
      }
      isArmed = false
      later = 0
      arrive()
      await new Promise<void>((resolve, reject) => { go = (error) => error === undefined ? resolve() : reject(error) })
      return await run()
    },
    arm (): Promise<void> {
      isArmed = true
      arrive = held.resolve
      return held.promise
    },
    /** Writes of the collection since the one that is held back. */
    countLater: () => later,
    letGo: (error?: Error) => go(error)
  }
}

type Gate = ReturnType<typeof createGate>

/** A holder of a lease, in the middle of its work. */
interface Holder {
  /** Makes the next renewal due. */
  renew: () => void
  /** Ends the work. */
  end: () => unknown
  /** Resolves when the lease was given back. */
  ended: Promise<unknown>
  close: () => Promise<unknown>
  /** The end of the lease in the store: NEVER, or null where the record is gone. */
  readEnd: () => Promise<string | null>
}

const around = (gate: Gate) => (call: StoreCall, run: () => unknown) => /^(page|stream|next|return|getLinked)$/.test(call.method) ? run() : gate.around(call, run)

async function holdFeed (t: Test, gate: Gate): Promise<Holder> {
  const { now } = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now })
  t.teardown(() => inner.close())
  const timers = createTimers()
  const lease = createLease({ store: wrapStore(inner, around(gate)), now, timers, onError: () => {}, getEnd: () => undefined })
  t.equal(await lease.hold(), 'new')
  const ended = Promise.withResolvers<void>()
  const release = () => ended.resolve(lease.release())
  return {
    renew: () => timers.advance(3_000),
    end: release,
    ended: ended.promise,
    close: () => lease.release(),
    readEnd: async () => (await inner.collection<FeedRecord>('feed').get(FEED_ID))!.leased_until
  }
}

async function holdWork (t: Test, gate: Gate): Promise<Holder> {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  const timers = createTimers()
  const begun = Promise.withResolvers<void>()
  const attempt = Promise.withResolvers<void>()
  const queue = createQueue<WorkRecord>({
    collection: 'deliveries',
    name: 'piece',
    slots: 1,
    capacity: 10,
    lookahead: 10,
    retries: [60_000],
    isFinal: () => false,
    async perform () {
      begun.resolve()
      await attempt.promise
    }
  }, { store: wrapStore(inner, around(gate)), now: clock.now, onError: () => {}, onFailed: () => {}, timers })
  const time = new Date(clock.now()).toISOString()
  const later = new Date(clock.now() + 3_600_000).toISOString()
  const record: WorkRecord = { id: 'a', state: 'due', due_at: time, claim: 0, attempts: 0, ends_at: later, created_at: time, expired_at: later }
  await queue.accept(record)
  queue.release(record)
  await begun.promise
  return {
    renew: () => timers.advance(10_000),
    end: attempt.resolve,
    ended: attempt.promise.then(() => queue.settle()),
    close: () => queue.close(),
    readEnd: async () => (await inner.collection<WorkRecord>('deliveries').get('a'))?.due_at ?? null
  }
}

async function holdWebhook (t: Test, gate: Gate): Promise<Holder> {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  const { start, happen, setReply, records } = await openWebhooks(t, { time: clock.now(), store: wrapStore(inner, around(gate)) })
  const timers = createTimers()
  const begun = Promise.withResolvers<void>()
  const attempt = Promise.withResolvers<number>()
  setReply(() => {
    begun.resolve()
    return attempt.promise
  })
  const webhooks = start({ timers })
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: HOOK, types: ['user.*'] } })
  await happen('user.disabled')
  const ended = webhooks.flush()
  await begun.promise
  return {
    renew: () => timers.advance(4_000),
    end: () => attempt.resolve(204),
    ended,
    close: () => webhooks.close(),
    readEnd: async () => {
      const { leased_until } = (await records.get(webhookId))!
      return leased_until > new Date(clock.now() + 1_000).toISOString() ? leased_until : NEVER
    }
  }
}

const HOLDERS: [name: string, collection: string, open: (t: Test, gate: Gate) => Promise<Holder>, end: string | null][] = [
  ['the publication of events', 'feed', holdFeed, NEVER],
  ['an attempt at queued work', 'deliveries', holdWork, null],
  ['deliveries to a webhook', 'webhooks', holdWebhook, NEVER]
]

for (const [name, collection, open, end] of HOLDERS) {
  for (const error of [undefined, new Error('the store is down')]) {
    for (const isClosing of [false, true]) {
      const what = `${name}${isClosing ? ', which closes' : ''}: its end waits for the renewal in flight, which ${error === undefined ? 'succeeds' : 'fails'}`
      t.test(what, async (t) => {
        const gate = createGate(collection)
        const holder = await open(t, gate)
        const arrival = gate.arm()
        holder.renew()
        await within('the renewal', arrival)
        const closing = isClosing ? holder.close() : undefined
        holder.end()
        await turns()
        t.equal(gate.countLater(), 0, 'nothing is written meanwhile')
        gate.letGo(error)
        await within('the end', Promise.all([closing, holder.ended.catch(() => {})]))
        t.equal(await holder.readEnd(), end)
        await holder.close()
      })
    }
  }
}

t.test('while a release waits for its renewal, a further one waits too, and whoever takes the lease has it afterwards', async (t) => {
  const gate = createGate('feed')
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  const timers = createTimers()
  const lease = createLease({ store: wrapStore(inner, around(gate)), now: clock.now, timers, onError: () => {}, getEnd: () => undefined })
  t.equal(await lease.hold(), 'new')
  const arrival = gate.arm()
  timers.advance(3_000)
  await within('the renewal', arrival)
  const order: string[] = []
  const all = [
    lease.release().then(() => order.push('released')),
    lease.release().then(() => order.push('released')),
    lease.hold().then((right) => order.push(String(right)))
  ]
  await turns()
  t.strictSame(order, [])
  gate.letGo()
  await Promise.all(all)
  t.strictSame(order, ['released', 'released', 'new'])
  await lease.release()
})
