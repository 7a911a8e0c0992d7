import { getEventListeners, once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { createFeed } from '../../lib/events/feed.ts'
import { type EventRecord, toNumberId } from '../../lib/events/types.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { answerHalfClosed, watchConnection } from '../../plugins/connections.ts'
import { type GivenBackRow, checkRow, findKept, watchSizes } from '../helpers/given-back.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

/** A signal that lives as long as a connection. */
const { signal } = new AbortController()
const signals = { 'the signal': signal }

const turn = async () => await new Promise(setImmediate)

async function openFeed (t: Test) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let isDown = false
  const store = wrapStore(inner, ({ collection }, run) => {
    if (isDown && collection === 'feed') throw new Error('down')
    return run()
  })
  const { opened: feed, sizes } = await watchSizes(() => createFeed({ store }))
  const after = await feed.last()
  const publish = async (number: number) => await inner.collection<EventRecord>('events').put({
    id: toNumberId(number), key: `key${number}`, type: 'user.created', content: { type: 'user.created', actor: {}, target: {} }, expired_at: '2100-01-01T00:00:00.000Z'
  } as unknown as EventRecord)
  return { feed, sizes, after, publish, fail: () => { isDown = true } }
}

/** Waits for events in one way each. */
const ROWS: Record<string, (t: Test) => Promise<GivenBackRow>> = {
  'until its time is over': async (t) => {
    const { feed, sizes, after } = await openFeed(t)
    return { call: () => feed.wait(after, { timeout: 1, signal }), outcome: undefined, signals, sizes }
  },
  'until an event comes': async (t) => {
    const { feed, sizes, after } = await openFeed(t)
    return {
      async call () {
        const waiting = feed.wait(after, { timeout: 100_000, signal })
        while (feed.countWaiting() === 0 || getEventListeners(signal, 'abort').length === 0) await turn()
        feed.announce()
        await waiting
      },
      outcome: undefined,
      signals,
      sizes
    }
  },
  'for an event that is there': async (t) => {
    const { feed, sizes, after, publish } = await openFeed(t)
    await publish(1)
    return { call: () => feed.wait(after, { timeout: 100_000, signal }), outcome: undefined, signals, sizes }
  },
  'until the reader leaves': async (t) => {
    const { feed, sizes, after } = await openFeed(t)
    const callers: AbortSignal[] = []
    return {
      async call () {
        const caller = new AbortController()
        callers.push(caller.signal)
        const waiting = feed.wait(after, { timeout: 100_000, signal: AbortSignal.any([caller.signal, signal]) })
        await turn()
        caller.abort()
        await waiting
      },
      outcome: undefined,
      signals,
      sizes: { ...sizes, 'listeners of readers': () => callers.reduce((sum, caller) => sum + getEventListeners(caller, 'abort').length, 0) }
    }
  },
  'after the reader has left': async (t) => {
    const { feed, sizes, after } = await openFeed(t)
    return { call: () => feed.wait(after, { timeout: 100_000, signal: AbortSignal.abort() }), outcome: undefined, signals, sizes }
  },
  'after a wrong cursor': async (t) => {
    const { feed, sizes } = await openFeed(t)
    return { call: () => feed.wait('other.1', { timeout: 100_000, signal }), outcome: 'ErrGone', signals, sizes }
  },
  'while the store is down': async (t) => {
    const { feed, sizes, after, fail } = await openFeed(t)
    fail()
    return { call: () => feed.wait(after, { timeout: 100_000, signal }), outcome: 'down', signals, sizes }
  }
}

for (const [name, open] of Object.entries(ROWS)) {
  t.test(`a wait for events ${name}: everything is given back`, async (t) => await checkRow(t, await open(t)))
}

t.test('a connection that its client has ended on one side is given back with its probes, whether the client reads the answer or leaves', async (t) => {
  const app = Fastify()
  answerHalfClosed(app)
  let arrived: (end: { answer: () => void, signal: AbortSignal }) => void = () => {}
  app.get('/', async (request) => {
    const answer = Promise.withResolvers<string>()
    arrived({ answer: () => answer.resolve('done'), signal: watchConnection(request) })
    return await answer.promise
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => app.close())
  const { port } = app.server.address() as AddressInfo

  const ask = async (isReader: boolean) => {
    const arrival = new Promise<{ answer: () => void, signal: AbortSignal }>((resolve) => { arrived = resolve })
    const ended = once(app.server, 'connection').then(async ([socket]) => await once(socket, 'end'))
    const client = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    client.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const request = await arrival
    await ended
    const left = once(request.signal, 'abort')
    if (!isReader) client.resetAndDestroy()
    else request.answer()
    const received = isReader ? await text(client) : 'done'
    client.destroy()
    await left
    request.answer()
    t.match(received, /done$/)
  }
  for (const isReader of [true, false]) t.strictSame(await findKept(async () => await ask(isReader)), [], isReader ? 'reads' : 'leaves')
})
