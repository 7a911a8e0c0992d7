import t from 'tap'
import { createProgress } from '../../../lib/webhooks/progress.ts'
import type { WebhookRecord } from '../../../lib/webhooks/record.ts'
import { Pace } from '../../../lib/work/pace.ts'
import { createWorker } from '../../../lib/webhooks/worker.ts'
import type { Event } from '../../../schemas/event.ts'
import { createTimers } from '../../helpers/timers.ts'

const BEGIN = Date.parse('2026-01-01T00:00:00Z')
const RECORD = { id: 'w', types: ['user.deleted'], claim: 1, cursor: 'g.0', parked: [], failures: 0, state: 'on' } as unknown as WebhookRecord
const showEvent = (number: number, type: string) => ({ id: `e${number}`, cursor: `g.${number}`, type }) as Event

t.test('reading past many events of other types renews the lease, stores the cursor, and stops when asked', async (t) => {
  let time = BEGIN
  let reads = 0
  const saved: { cursor: string, at: number }[] = []
  const stop = new AbortController()
  type Parts = Parameters<typeof createWorker>[1]
  await createWorker(RECORD, {
    webhooks: {
      get: async () => RECORD,
      update: async (_id: string, { set }: { set: { cursor: string } }) => {
        saved.push({ cursor: set.cursor, at: time - BEGIN })
        return RECORD
      }
    },
    feed: {
      read: async ({ after }: { after: string }) => {
        const from = Number(after.split('.')[1])
        time += 100
        if (++reads === 100) stop.abort()
        if (reads > 1000) throw new Error('it goes on reading')
        return { events: Array.from({ length: 100 }, (_, index) => showEvent(from + index + 1, 'sign_in.succeeded')), after: `g.${from + 100}` }
      }
    },
    now: () => time,
    timers: { now: () => time, set: setTimeout, clear: clearTimeout },
    records: { page: async function * () {} },
    queue: { pace: new Pace(), take: async () => [] },
    lingers: () => false,
    wait: async () => {}
  } as unknown as Parts, { stop: stop.signal, abort: new AbortController().signal }).run()
  t.equal(reads, 100)
  t.ok(saved.length >= 9, `saved ${saved.length} times in 10 s`)
  t.equal(saved.at(-1)?.cursor, 'g.10000')
})

t.test('an attempt that ends after the cursor has passed everything that was read', async (t) => {
  const progress = createProgress({ ...RECORD, failures: 10, failing_since: new Date(BEGIN).toISOString() }, { now: () => BEGIN })
  // Its end marker is done without an attempt.
  progress.add([showEvent(1, 'user.deleted')], 'g.5')
  const entry = progress.take()!
  progress.begin()
  progress.succeed(entry.event.id)
  entry.state = 'done'
  progress.end()
  t.match(progress.toChange(), { set: { cursor: 'g.5' } })
  t.equal(progress.take(), undefined)
  progress.add([showEvent(6, 'user.deleted')], 'g.6')
  t.match(progress.take(), { event: { id: 'e6' } })
})

// A pool of connections may answer the later write first.
t.test('the stored position never goes back, though a renewal is in flight when the progress is stored and the store answers in another order', async (t) => {
  const timers = createTimers()
  const stop = new AbortController()
  const stored: number[] = []
  const waiting: (() => void)[] = []
  let reads = 0
  let most = 0
  let renewals = 0
  const set: typeof timers.set = (run, delay) => timers.set(() => {
    renewals++
    run()
  }, delay)
  const answerLast = async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    waiting.pop()!()
  }
  type Parts = Parameters<typeof createWorker>[1]
  await createWorker(RECORD, {
    webhooks: {
      get: async () => RECORD,
      update: async (_id: string, { set }: { set: { cursor: string } }) => await new Promise((resolve) => {
        waiting.push(() => {
          stored.push(Number(set.cursor.split('.')[1]))
          resolve(RECORD)
        })
        most = Math.max(most, waiting.length)
        answerLast().catch((error: unknown) => { t.fail(String(error)) })
      })
    },
    feed: {
      read: async ({ after }: { after: string }) => {
        // The progress is stored after ten reads. A renewal comes in the middle of one.
        timers.advance(100)
        if (++reads === 350) stop.abort()
        const next = Number(after.split('.')[1]) + 1
        return { events: [showEvent(next, 'sign_in.succeeded')], after: `g.${next}` }
      }
    },
    now: () => BEGIN + timers.now(),
    timers: { ...timers, set },
    records: { page: async function * () {} },
    queue: { pace: new Pace(), take: async () => [] },
    lingers: () => false,
    wait: async () => {}
  } as unknown as Parts, { stop: stop.signal, abort: new AbortController().signal }).run()
  t.strictSame(stored, stored.toSorted((one, other) => one - other))
  t.equal(stored.at(-1), 350)
  t.equal(most, 1, 'one write at a time')
  t.ok(renewals > 1, `${renewals} renewals`)
})
