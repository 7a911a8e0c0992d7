import t, { type Test } from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createQueue } from '../../../lib/work/queue.ts'
import type { WorkRecord } from '../../../lib/work/record.ts'
import { watchWork } from '../../../lib/work/watch.ts'
import { createTestClock } from '../../../testing/clock.ts'
import { watchCalls } from '../../helpers/settled.ts'
import { advanceTo, createTimers } from '../../helpers/timers.ts'
import { openWebhooks } from '../../helpers/webhooks.ts'

const SECOND = 1_000

async function open (t: Test) {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  let fails = false
  const { store, settle: turn } = watchCalls(inner, (_call, run) => {
    if (fails) throw new Error('the store fails')
    return run()
  })
  const timers = createTimers()
  const warnings: string[] = []
  let perform = async (_signal: AbortSignal): Promise<void> => {}
  const start = () => {
    const queue = createQueue<WorkRecord>({
      collection: 'deliveries', name: 'piece', slots: 2, capacity: 10, lookahead: 10, retries: [SECOND], isFinal: () => false, perform: (_record, signal) => perform(signal)
    }, { store, now: clock.now, onError: () => {}, onFailed: () => {}, timers })
    t.teardown(async () => await advanceTo(timers, 'the close of the queue', queue.close()))
    return queue
  }
  const queue = start()
  const watch = watchWork({ mail: queue }, (message) => { warnings.push(message) })
  t.teardown(watch.close)
  return {
    queue,
    turn,
    watch,
    warnings,
    setPerform (to: typeof perform) { perform = to },
    setFailing (to: boolean) { fails = to },
    async accept (id: string) {
      const [time, later] = [toTimestamp(clock.now()), toTimestamp(clock.now() + 3_600 * SECOND)]
      await inner.collection<WorkRecord>('deliveries').insert({
        id, state: 'due', due_at: time, claim: 0, attempts: 0, ends_at: later, created_at: time, expired_at: later
      })
    },
    async pass (seconds: number) {
      for (let second = 0; second < seconds; second += 2) {
        clock.advance(2 * SECOND)
        timers.advance(2 * SECOND)
        await turn()
      }
      watch.look()
    }
  }
}

t.test('work that no attempt is made at stands still, which is said once, and so is its end', async (t) => {
  const { queue, watch, warnings, accept, pass, setFailing } = await open(t)
  t.strictSame(watch.read(), {}, 'a process that does not do this work says nothing')
  queue.start()
  await pass(300)
  t.strictSame(watch.read(), { mail: 0 }, 'nothing is due')
  await accept('one')
  setFailing(true)
  await pass(60)
  t.strictSame(watch.read(), { mail: 0 })
  await pass(200)
  t.strictSame(watch.read(), { mail: 1 })
  watch.look()
  t.strictSame(warnings, ['work stands still: mail: it is due, and this process has not attempted any for 90 seconds'])
  setFailing(false)
  t.match(await queue.findStall(), /^20\d\d-/, 'which a command sees too')
  await pass(10)
  t.strictSame(watch.read(), { mail: 0 })
  t.strictSame(warnings.slice(1), ['work goes on: mail'])
  t.equal(await queue.findStall(), undefined)
})

t.test('attempts that fail or take long are no standstill', async (t) => {
  const { queue, turn, warnings, accept, pass, setPerform } = await open(t)
  const ends: (() => void)[] = []
  setPerform(async (signal) => {
    await new Promise((_resolve, reject) => {
      ends.push(() => reject(new Error('slow')))
      signal.addEventListener('abort', () => reject(new Error('aborted')))
    })
  })
  for (const id of ['one', 'two', 'three', 'four']) await accept(id)
  queue.start()
  for (let round = 0; round < 5; round++) {
    await pass(60)
    t.equal(await queue.findStall(), undefined)
    for (const end of ends.splice(0)) end()
    await turn()
  }
  t.strictSame(warnings, [])
})

t.test('a webhook that nobody serves stands still; one that is paused, disabled or served does not', async (t) => {
  const { start, happen, setReply, clock } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: 'https://hooks.example.com/a', types: ['user.created'] } })
  const { findStall } = webhooks.work
  t.equal(await findStall(), undefined)
  await happen('user.created')
  t.equal(await findStall(), undefined, 'an event of just now')
  clock.advance(100 * SECOND)
  t.match(await findStall(), /^20\d\d-/)
  setReply(() => ({ status: 503, retryAfter: 3_600 * SECOND }))
  await webhooks.flush()
  clock.advance(1_000 * SECOND)
  t.equal(await findStall(), undefined, 'paused')
  clock.advance(3_600 * SECOND)
  t.match(await findStall(), /^20\d\d-/)
  await webhooks.patch(webhookId, { data: { disabled: true } })
  t.equal(await findStall(), undefined, 'disabled')
})
