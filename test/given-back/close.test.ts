import t, { type Test } from 'tap'
import { createUses } from '../../lib/tokens/uses.ts'
import { createFeed } from '../../lib/events/feed.ts'
import { createFollower } from '../../lib/events/follower.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store } from '../../lib/store/port.ts'
import { createTokens } from '../../lib/tokens/tokens.ts'
import { sweepOrphans } from '../../lib/ways/orphans.ts'
import { createQueue } from '../../lib/work/queue.ts'
import type { WorkRecord } from '../../lib/work/record.ts'
import { createTestClock } from '../../testing/clock.ts'
import { openPlainServices } from '../helpers/plain-services.ts'
import { createTimers } from '../helpers/timers.ts'
import { within } from '../helpers/upstream.ts'
import { openWebhooks } from '../helpers/webhooks.ts'
import { type Around, type StoreCall, wrapStore } from '../helpers/wrap-store.ts'
import { openEvents } from '../lib/events/harness.ts'
import { createBase } from '../helpers/base.ts'

// Something closes while one of its store calls is in flight, whichever it is: `close` waits for it, and no call follows.

/** Turns in which a close would resolve that does not wait, and in which a late call would come. */
const TURNS = 20

/** Calls of one row that are tried at most. */
const MOST = 14

const turns = async () => { for (let count = 0; count < TURNS; count++) await new Promise(setImmediate) }
const toText = ({ collection, method }: StoreCall) => `${collection}.${method}`

/** A list answers no promise, and neither may a look-up: what they read is held back. */
const isPromise = ({ method }: StoreCall) => !/^(page|stream|getLinked)$/.test(method)

/** Holds back the call with a number, and notes all calls. */
function createHold (number: number) {
  const arrival = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const begun: string[] = []
  let isOn = false
  const around: Around = async (call, run) => {
    if (!isOn) return await run()
    begun.push(toText(call))
    if (begun.length - 1 === number) {
      arrival.resolve()
      await held.promise
    }
    return await run()
  }
  return {
    begun,
    around: ((call, run) => isPromise(call) ? around(call, run) : run()) as Around,
    begin: () => { isOn = true },
    has: () => begun.length > number,
    letGo: () => held.resolve()
  }
}

/** Something at work in the background. */
interface Working {
  begin: () => unknown
  /** Lets some time pass. */
  pass: () => void
  close: () => Promise<unknown>
}

async function openInner (t: Test): Promise<Store> {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: createTestClock().now, onError: () => {} })
  t.teardown(() => inner.close())
  return inner
}

async function openQueue (t: Test, around: Around, perform: () => Promise<void>): Promise<Working> {
  const { now } = createTestClock()
  const timers = createTimers()
  const inner = await openInner(t)
  const time = new Date(now()).toISOString()
  const ends = new Date(now() + 3_600_000).toISOString()
  for (const id of ['a', 'b']) {
    await inner.collection<WorkRecord>('deliveries').insert({ id, state: 'due', due_at: time, claim: 0, attempts: 0, ends_at: ends, created_at: time, expired_at: ends })
  }
  const queue = createQueue<WorkRecord>({
    collection: 'deliveries', name: 'piece', slots: 2, capacity: 10, lookahead: 10, retries: [60_000], perform, isFinal: () => false
  }, { store: wrapStore(inner, around), now, onError: () => {}, onFailed: () => {}, timers })
  return { begin: queue.start, pass: () => timers.advance(2_000), close: queue.close }
}

const ROWS: Record<string, (t: Test, around: Around) => Promise<Working>> = {
  'a queue whose attempts succeed': async (t, around) => await openQueue(t, around, async () => {}),
  'a queue whose attempts fail': async (t, around) => await openQueue(t, around, () => Promise.reject(new Error())),
  async 'deliveries to webhooks' (t, around) {
    const inner = await openInner(t)
    const timers = createTimers()
    const { start, happen } = await openWebhooks(t, { store: wrapStore(inner, around) })
    const webhooks = start({ timers })
    await webhooks.create({ data: { name: 'A', url: 'https://hooks.example.com/a', types: ['user.*'] } })
    await happen('user.disabled')
    return { begin: webhooks.start, pass: () => timers.advance(500), close: webhooks.close }
  },
  async 'the publication of events' (t, around) {
    const timers = createTimers()
    const { connect, create } = await openEvents(t, { around })
    const relay = connect({ timers })
    await create('a')
    return { begin: relay.start, pass: () => timers.advance(1_000), close: relay.close }
  },
  async 'all services, in a round of the publication' (t, around) {
    const services = await openPlainServices({ store: wrapStore(await openInner(t), around) })
    await services.webhooks.create({ data: { name: 'A', url: 'https://hooks.example.com/a', types: ['user.*'] } })
    return { begin: () => { void services.events.flush() }, pass: () => {}, close: services.close }
  },
  async 'a listener for events' (t, around) {
    const { store, connect, create } = await openEvents(t, { around })
    const follower = createFollower({ feed: createFeed({ store }), onError: () => {} })
    await create('a')
    await connect().flush()
    return { begin: () => follower.on('*', () => {}), pass: () => {}, close: async () => await follower.close() }
  },
  async 'the last uses of secrets' (t, around) {
    const timers = createTimers()
    const uses = createUses({ ...createBase({ store: wrapStore(await openInner(t), around), onError: () => {} }), timers })
    uses.note('client', 'secret')
    return { begin: () => {}, pass: () => timers.advance(60_000), close: uses.close }
  },
  async 'the sessions of a user who was deleted' (t, around) {
    const store = wrapStore(await openInner(t), around)
    const logouts = { enqueueForSession: async () => {}, enqueueForUser: async (id: string) => { await store.collection('users').get(id) } }
    const tokens = createTokens({ store, now: Date.now, roles: DEFAULT_ROLE_NAMES, recorder: { end: async () => {} }, report: () => () => {}, logouts })
    return { begin: () => tokens.deleteOfUser('ann'), pass: () => {}, close: tokens.close }
  },
  async 'the sweep of material' (t, around) {
    const inner = await openInner(t)
    const ending = new AbortController()
    let sweeping: Promise<void>
    return {
      begin: () => {
        sweeping = sweepOrphans({ store: wrapStore(inner, around), signal: ending.signal, onError: () => {}, wait: async () => await new Promise(setImmediate) })
      },
      pass: () => {},
      async close () {
        ending.abort()
        await sweeping
      }
    }
  }
}

/** Lets time pass until the call is there. @returns false when nothing is done any more */
async function findCall ({ has }: ReturnType<typeof createHold>, pass: () => void): Promise<boolean> {
  for (let round = 0; round < 8 && !has(); round++) {
    pass()
    for (let count = 0; count < TURNS && !has(); count++) await new Promise(setImmediate)
  }
  return has()
}

for (const [what, open] of Object.entries(ROWS)) {
  t.test(`${what}: close waits for the call in flight, whichever it is, and none follows`, async (t) => {
    const problems: string[] = []
    const calls: string[] = []
    for (let number = 0; number < MOST; number++) {
      const hold = createHold(number)
      const { begin, pass, close } = await open(t, hold.around)
      hold.begin()
      begin()
      const isThere = await findCall(hold, pass)
      let isClosed = false
      const closing = close().then(() => { isClosed = true })
      const call = hold.begun[number] ?? 'nothing'
      if (isThere) {
        calls.push(call)
        await turns()
        if (isClosed) problems.push(`${number}: it did not wait for ${call}`)
      }
      hold.letGo()
      await within(`close after ${call}`, closing)
      const before = hold.begun.length
      pass()
      await turns()
      if (hold.begun.length > before) problems.push(`${number}: after ${call} came ${hold.begun.slice(before).join(', ')}`)
      if (!isThere) break
    }
    t.comment(calls.join(' '))
    t.ok(calls.length > 0, 'it has called the store')
    t.strictSame(problems, [])
  })
}
