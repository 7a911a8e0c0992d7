import t from 'tap'
import { FairQueue, type FairQueueOptions } from '../../lib/fair-queue.ts'
import { createTimers } from '../helpers/timers.ts'

/** A queue whose work ends on request of the test. Each piece takes a second of the test's clock. */
function createQueue (options: Partial<FairQueueOptions> = {}) {
  const timers = createTimers()
  const queue = new FairQueue({ what: 'pieces', slots: 1, places: 1000, maxWait: 10_000, duration: 1000, timers, ...options })
  /** The pieces that run now, and the names of all that have started, in order. */
  const running: { name: string, end: () => void }[] = []
  const begun: string[] = []
  const settle = async () => { for (let i = 0; i < 20; i++) await null }
  return {
    queue,
    timers,
    begun,
    async ask (key: string, name = key, signal?: AbortSignal, group?: string) {
      const result = queue.run(async () => {
        begun.push(name)
        await new Promise<void>((resolve) => running.push({ name, end: resolve }))
        return name
      }, { key, group, signal })
      result.catch(() => {})
      await settle()
      return { result }
    },
    /** One piece of work ends; the next begins. */
    async step (duration = 1000) {
      timers.advance(duration)
      running.shift()?.end()
      await settle()
    }
  }
}

t.test('keys take turns: a new key is next, however much the others have queued', async (t) => {
  const { ask, step, begun } = createQueue()
  for (let round = 0; round < 3; round++) for (const key of ['a', 'b', 'c']) await ask(key, `${key}${round}`)
  for (let i = 0; i < 4; i++) await step()
  t.same(begun, ['a0', 'b0', 'c0', 'a1', 'b1'])
  await ask('stranger')
  for (let i = 0; i < 6; i++) await step()
  t.same(begun.slice(5), ['stranger', 'c1', 'a2', 'b2', 'c2'])
})

t.test('the keys of a group share its turns: however many it has, a new key is next', async (t) => {
  const { ask, step, begun } = createQueue({ maxWait: 100_000 })
  for (let i = 0; i < 50; i++) await ask(`net ${i}`, `net ${i}`, undefined, 'net')
  for (let i = 0; i < 3; i++) await step()
  await ask('stranger', 'stranger 1')
  await ask('stranger', 'stranger 2')
  await ask('other')
  for (let i = 0; i < 6; i++) await step()
  t.same(begun, ['net 0', 'net 1', 'net 2', 'net 3', 'stranger 1', 'other', 'net 4', 'stranger 2', 'net 5', 'net 6'], 'and the keys take turns within it')
})

t.test('a group that is full refuses its own keys only', async (t) => {
  const { ask } = createQueue()
  const asked = []
  for (let i = 0; i < 12; i++) asked.push(await ask(`net ${i}`, undefined, undefined, 'net'))
  t.match(await Promise.allSettled(asked.slice(11).map(({ result }) => result)), [
    { status: 'rejected', reason: { code: 'ErrBusy', headers: { 'retry-after': '11' } } }
  ])
  const { result } = await ask('stranger')
  t.equal(await Promise.race([result.catch(() => 'refused'), new Promise((resolve) => setImmediate(resolve, 'waits'))]), 'waits')
})

t.test('the expected wait of a key decides, not the number of all that wait', async (t) => {
  const { ask, step, begun } = createQueue()
  const asked = []
  for (let i = 0; i < 12; i++) asked.push(await ask('greedy'))
  const refused = asked.slice(11)
  t.match(await Promise.allSettled(refused.map(({ result }) => result)), [
    { status: 'rejected', reason: { code: 'ErrBusy', statusCode: 503, headers: { 'retry-after': '11' } } }
  ])
  await ask('modest')
  await step()
  t.same(begun, ['greedy', 'modest'], 'another key is served although the first one is full')
})

t.test('work that would wait too long is refused, with the expected wait', async (t) => {
  const { ask, step } = createQueue()
  await ask('a')
  const { result } = await ask('a', 'late')
  await ask('b')
  await step(11_000)
  await t.rejects(result, { code: 'ErrBusy', headers: { 'retry-after': '3' } })
})

t.test('work that waits too long is refused, though no other work ends', async (t) => {
  const { ask, timers, queue } = createQueue({ maxWait: 10_000 })
  await ask('a')
  const { result } = await ask('b')
  timers.advance(9_999)
  t.equal(queue.waiting, 1)
  timers.advance(1)
  await t.rejects(result, { code: 'ErrBusy' })
  t.equal(queue.waiting, 0)
})

t.test('a duration far above the mean counts as twice the mean, and a slow service takes less at once', async (t) => {
  const { ask, step } = createQueue({ duration: 100 })
  await ask('a')
  await step(60_000)
  const count = async () => {
    const asked = await Promise.all(Array.from({ length: 150 }, () => ask('a')))
    const first = await Promise.all(asked.map(({ result }) => Promise.race([result.then(() => 0, () => 1), new Promise<number>((resolve) => setImmediate(resolve, 0))])))
    return asked.length - first.reduce((sum, one) => sum + one, 0)
  }
  t.equal(await count(), 89, '10 s at 112.5 ms, and the one that runs')
})

t.test('work whose caller has disconnected is dropped, and takes no place', async (t) => {
  const { queue, ask, step, begun } = createQueue({ places: 1 })
  await ask('a', 'first')
  const caller = new AbortController()
  const { result } = await ask('a', 'left', caller.signal)
  await t.rejects((await ask('b')).result, { code: 'ErrBusy' }, 'no place is free')
  caller.abort()
  await t.rejects(result, { code: 'ErrParam', message: /connection was closed/ })
  await ask('b')
  await step()
  t.same(begun, ['first', 'b'])
  await t.rejects((await ask('c', 'c', caller.signal)).result, { code: 'ErrParam', message: /connection was closed/ }, 'nor does it begin later')
  let idle = false
  const waited = queue.idle().then(() => { idle = true })
  await null
  t.notOk(idle)
  await step()
  await waited
  await queue.idle()
})

t.test('work that fails frees its slot', async (t) => {
  const { queue } = createQueue()
  await t.rejects(queue.run(async () => { throw new Error('broken') }), { message: 'broken' })
  t.equal(await queue.run(async () => 'fine'), 'fine')
})

t.test('a slow job counts as several turns: others have theirs before its key is next', async (t) => {
  const timers = createTimers()
  const queue = new FairQueue({ what: 'pieces', slots: 1, places: 100, maxWait: 60_000, duration: 1_000, timers })
  const begun: string[] = []
  const ends: (() => void)[] = []
  const ask = (key: string, cost: number) => queue.run(async () => {
    begun.push(key)
    await new Promise<void>((resolve) => ends.push(resolve))
  }, { key }, cost)
  const jobs = [ask('slow', 3), ask('slow', 3), ...Array.from({ length: 5 }, () => ask('quick', 1))]
  for (let step = 0; step < jobs.length; step++) {
    timers.advance(begun.at(-1) === 'slow' ? 3_000 : 1_000)
    ends.shift()?.()
    for (let turn = 0; turn < 20; turn++) await null
  }
  await Promise.all(jobs)
  t.same(begun, ['slow', 'quick', 'quick', 'slow', 'quick', 'quick', 'quick'])
})

t.test('the expected wait counts the turns of the jobs before, and not the own ones of a slow job', async (t) => {
  const { queue, ask } = createQueue({ maxWait: 10_000 })
  await ask('first')
  const run = async (key: string, cost: number) => await queue.run(async () => {}, { key }, cost)
  run('slow', 20).catch(() => {})
  t.equal(queue.waiting, 1, 'it begins after the first job, however long it takes itself')
  await t.rejects(run('slow', 1), { code: 'ErrBusy' })
  run('quick', 1).catch(() => {})
  t.equal(queue.waiting, 2)
})

t.test('no group fills the places for the others: the one with most jobs gives up its last one', async (t) => {
  const { queue, ask, step, begun } = createQueue({ places: 4, maxWait: 100_000 })
  const asked = []
  for (let i = 0; i < 5; i++) asked.push(await ask(i < 4 ? 'net a' : 'net b', `net ${i}`, undefined, 'net'))
  await t.rejects((await ask('net c', 'net 5', undefined, 'net')).result, { code: 'ErrBusy' }, 'its own jobs give it none')
  const { result: stranger } = await ask('stranger')
  await t.rejects(asked[3]!.result, { code: 'ErrBusy' }, 'of its keys, the one with most')
  const { result: other } = await ask('other')
  t.equal(queue.waiting, 4)
  await t.rejects((await ask('stranger', 'stranger 2')).result, { code: 'ErrBusy' }, 'a group that has one more keeps its places')
  const { result: third } = await ask('third')
  await t.rejects((await ask('late')).result, { code: 'ErrBusy' }, 'and so does everybody when each has one')
  for (let i = 0; i < 5; i++) await step()
  t.same(await Promise.all([stranger, other, third]), ['stranger', 'other', 'third'])
  t.same(begun, ['net 0', 'stranger', 'other', 'third', 'net 4'])
  t.equal(queue.waiting, 0)
})
