import { PassThrough } from 'node:stream'
import t from 'tap'
import { readBody } from '../../lib/bridge/read-body.ts'
import { Wanted } from '../../lib/client-documents/wanted.ts'
import { createFollower } from '../../lib/events/follower.ts'
import { FairQueue } from '../../lib/fair-queue.ts'
import { createQuestions } from '../../lib/lazy-migration/questions.ts'
import { createReads } from '../../lib/lists/reads.ts'
import { BoundedCalls, type Call } from '../../lib/store/mongo/bounded-calls.ts'
import { KeyedMutex } from '../../lib/store/mongo/keyed-mutex.ts'
import { BATCH_SIZE, type Store } from '../../lib/store/port.ts'
import { shareReads } from '../../lib/webhooks/shared-reads.ts'
import { Background } from '../../lib/work/background.ts'
import { Slots } from '../../lib/work/slots.ts'
import { type GivenBackRow, checkRow, watchSizes } from '../helpers/given-back.ts'
import { createTimers } from '../helpers/timers.ts'

/** A signal that lives as long as a connection or the process. */
const { signal } = new AbortController()
const signals = { 'the signal': signal }

/** A limit that nothing here waits for. */
const MINUTE = 60_000

const toOutcome = async (call: Promise<unknown>) => await call.catch(({ code, message }: Error & { code?: string }) => code ?? message)
const turn = async () => await new Promise(setImmediate)
const down = () => Promise.reject(new Error('down'))

const createJobs = () => watchSizes(() => new FairQueue({ what: 'jobs', slots: 1, places: 2, maxWait: 1_000, duration: 1, timers: createTimers() }))

/** Runs a job behind another one. */
async function runBehind (end: (job: { timers: ReturnType<typeof createTimers>, caller: AbortController }) => void, work = async () => 'done', shared?: AbortSignal) {
  const timers = createTimers()
  const { opened: queue, sizes } = await watchSizes(() => new FairQueue({ what: 'jobs', slots: 1, places: 2, maxWait: 1_000, duration: 1, timers }))
  return {
    async call () {
      const first = Promise.withResolvers<void>()
      const caller = new AbortController()
      const running = queue.run(async () => await first.promise, { key: 'a' })
      const waiting = toOutcome(queue.run(work, { key: 'b', signal: shared ?? caller.signal }))
      end({ timers, caller })
      await turn()
      first.resolve()
      await running
      return await waiting
    },
    signals,
    sizes: { ...sizes, 'waiting jobs': () => queue.waiting }
  }
}

const body = (end: (source: PassThrough) => void, bodyTimeout = MINUTE) => async () => {
  const source = new PassThrough()
  const read = readBody(source, Number.NaN, { bodyLimit: 10, bodyTimeout })
  end(source)
  return String(await read.finally(() => source.destroy()))
}

const ask = async (put: () => Promise<unknown>): Promise<Pick<GivenBackRow, 'call' | 'sizes'>> => {
  let time = 0
  const now = () => {
    time += 60_000
    return time
  }
  const { opened: questions, sizes } = await watchSizes(() => createQuestions({ put, now, onWarning: () => {} }))
  return { call: async () => await questions.ask({} as never), sizes }
}

/** Reads of one page of events that two readers share, as webhooks do, each time at another place. */
const share = async (read: (query: { after: string }) => Promise<{ events: never[], after: string }>): Promise<Pick<GivenBackRow, 'call' | 'sizes'>> => {
  const { opened: feed, sizes } = await watchSizes(() => shareReads({ read } as never))
  const readAt = async (after: string) => (await feed.read({ after })).after === after
  return { call: async (index) => await Promise.all([readAt(`g.${index}`), readAt(`g.${index}`)]), sizes }
}

/** Reads a list that is too long for one batch, each time for another user. */
const list = async (stream: () => AsyncIterable<object[]>, read: (batches: AsyncIterable<object[]>) => Promise<unknown>): Promise<Pick<GivenBackRow, 'call' | 'sizes'>> => {
  const first = Array.from({ length: BATCH_SIZE + 1 }, (_, number) => ({ id: `t${number}` }))
  const things = { async * page () { yield first }, stream } as never
  const { opened: reads, sizes } = await watchSizes(() => createReads({ engine: 'sqlite' } as Store))
  return {
    call: async (index) => await read((await reads.page(things, { limit: 0 }, (thing) => thing, { caller: { user_id: `user ${index}`, isAdmin: false } })).batches),
    // The turns of users stay up to a bound.
    sizes: Object.fromEntries(Object.entries(sizes).filter(([name]) => !name.includes('fair-queue.ts')))
  }
}
const readAll = async (batches: AsyncIterable<object[]>) => (await Array.fromAsync(batches)).length
const readOne = async (batches: AsyncIterable<object[]>) => {
  const iterator = batches[Symbol.asyncIterator]()
  const { value } = await iterator.next() as { value: object[] }
  await iterator.return?.()
  return value.length
}

/** Waits for a result that others wait for too, each time by the turn of another address. */
const want = async (take: () => Promise<string>): Promise<Pick<GivenBackRow, 'call' | 'sizes'>> => {
  const { opened: wanted, sizes } = await watchSizes(() => new Wanted<string>(() => false))
  void wanted.wait('198.51.100.1', async () => await new Promise(() => {}))
  return { call: async (index) => await wanted.wait(`192.0.2.${index}`, take), sizes }
}

const ROWS: Record<string, () => Promise<GivenBackRow>> = {
  'a job of a queue': async () => {
    const { opened: queue, sizes } = await createJobs()
    return { call: () => queue.run(async () => 'done', { key: 'a', signal }), outcome: 'done', signals, sizes }
  },
  'a job that fails': async () => {
    const { opened: queue, sizes } = await createJobs()
    return { call: () => queue.run(down, { key: 'a', signal }), outcome: 'down', signals, sizes }
  },
  'a job that waits for its turn': async () => ({ ...await runBehind(() => {}, undefined, signal), outcome: 'done' }),
  'a job that waits and fails': async () => ({ ...await runBehind(() => {}, down, signal), outcome: 'down' }),
  'a job whose caller leaves': async () => ({ ...await runBehind(({ caller }) => caller.abort()), outcome: 'ErrParam' }),
  'a job that waits too long': async () => ({ ...await runBehind(({ timers }) => timers.advance(1_000), undefined, signal), outcome: 'ErrBusy' }),
  'a task with a slot': async () => {
    const { opened: slots, sizes } = await watchSizes(() => new Slots({ size: 1 }))
    return { call: async (index) => await slots.run(async () => 'done', { lane: `lane ${index}` }), outcome: 'done', sizes }
  },
  'a task with a slot that fails': async () => {
    const { opened: slots, sizes } = await watchSizes(() => new Slots({ size: 1 }))
    return { call: async (index) => await slots.run(down, { lane: `lane ${index}` }), outcome: 'down', sizes }
  },
  'a task beside one that hangs': async () => {
    const { opened: slots, sizes } = await watchSizes(() => new Slots({ size: 2 }))
    void slots.run(() => new Promise(() => {}), { lane: 'hangs' })
    return { call: async (index) => await slots.run(async () => 'done', { lane: `lane ${index}` }), outcome: 'done', sizes }
  },
  'a task that is dropped while it waits': async () => {
    const { opened: slots, sizes } = await watchSizes(() => new Slots({ size: 1 }))
    return {
      async call (index) {
        const first = Promise.withResolvers<void>()
        const running = slots.run(() => first.promise, { lane: `first ${index}` })
        void slots.run(async () => {}, { lane: `second ${index}` })
        slots.drop()
        first.resolve()
        await running
      },
      outcome: undefined,
      sizes
    }
  },
  'a task in the background that fails': async () => {
    const { opened: background, sizes } = await watchSizes(() => new Background({ onError: () => {} }))
    return {
      async call () {
        background.run(down)
        await background.settle()
      },
      outcome: undefined,
      sizes
    }
  },
  'a write under keys': async () => {
    const { opened: mutex, sizes } = await watchSizes(() => new KeyedMutex())
    return { call: (index) => mutex.run([`key ${index}`, 'same'], { answered: false }, async () => 'done'), outcome: 'done', sizes }
  },
  'a write under keys that fails': async () => {
    const { opened: mutex, sizes } = await watchSizes(() => new KeyedMutex())
    return { call: (index) => mutex.run([`key ${index}`, 'same'], { answered: false }, down), outcome: 'down', sizes }
  },
  'a write under keys that comes too late': async () => {
    const { opened: mutex, sizes } = await watchSizes(() => new KeyedMutex())
    return { call: (index) => mutex.run([`key ${index}`], { answered: true }, async () => {}), outcome: 'the deadline passed before the write could start', sizes }
  },
  ...Object.fromEntries(Object.entries<[work: (call: Call) => Promise<unknown>, outcome: unknown, timeout: number]>({
    'that is answered': [async () => 'done', 'done', MINUTE], 'that fails': [down, 'ErrDb', MINUTE], 'without an answer': [() => new Promise(() => {}), 'ErrDb', 20]
  }).map(([name, [work, outcome, timeout]]) => [`a call to a database ${name}`, async () => {
    const { opened: calls, sizes } = await watchSizes(() => new BoundedCalls(timeout))
    return { call: async () => await calls.run(work), outcome, sizes }
  }])),
  'a body': async () => ({ call: body((source) => source.end('text')), outcome: 'text' }),
  'a body that is too long': async () => ({ call: body((source) => source.end('long enough')), outcome: 'ErrParam' }),
  'a body that does not end': async () => ({ call: body((source) => source.write('text'), 20), outcome: 'ErrParam' }),
  'a body that is cut': async () => ({ call: body((source) => source.destroy()), outcome: 'ErrParam' }),
  'a question that is answered': async () => ({ ...await ask(async () => ({ ok: false })), outcome: { ok: false } }),
  'a question that fails': async () => ({ ...await ask(down), outcome: null }),
  'a long list of a user that is read': async () => ({ ...await list(async function * () { yield * [[{}], [{}]] }, readAll), outcome: 2 }),
  'a long list of a user that is left': async () => ({ ...await list(async function * () { for (;;) yield [{}] }, readOne), outcome: 1 }),
  'a long list of a user that fails': async () => ({ ...await list(async function * () { throw new Error('down') }, readAll), outcome: 'down' }),
  'a turn for a result that others wait for': async () => ({ ...await want(async () => 'done'), outcome: 'done' }),
  'a turn for a result that others wait for, which is refused': async () => ({ ...await want(down), outcome: 'down' }),
  'a shared read at the end of the feed': async () => ({ ...await share(async ({ after }) => ({ events: [], after })), outcome: [true, true] }),
  'a shared read that fails': async () => ({ ...await share(down), outcome: 'down' }),
  'a listener that leaves': async () => {
    const { opened: follower, sizes } = await watchSizes(() => createFollower({
      feed: { last: async () => 'g.0', read: async () => ({ events: [], after: 'g.0' }), wait: turn } as never, onError: () => {}
    }))
    return {
      async call () {
        const leave = follower.on('*', () => {})
        await turn()
        leave()
      },
      outcome: undefined,
      sizes
    }
  }
}

for (const [name, open] of Object.entries(ROWS)) {
  t.test(`${name}: everything is given back`, async (t) => await checkRow(t, await open()))
}
