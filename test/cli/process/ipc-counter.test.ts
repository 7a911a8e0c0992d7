import { EventEmitter } from 'node:events'
import t from 'tap'
import { createCounter } from '../../../lib/throttling/counter.ts'
import { answerCounts, createIpcCounter, type Channel } from '../../../cli/process/ipc-counter.ts'

const BUSY = { code: 'ErrBusy', statusCode: 503 }

class End extends EventEmitter implements Channel {
  peer: End | undefined
  failure: Error | null = null

  send (message: object, done: (error: Error | null) => void): void {
    setImmediate(() => {
      // As the channel of a process: JSON.
      if (this.failure === null) this.peer?.emit('message', JSON.parse(JSON.stringify(message)))
      done(this.failure)
    })
  }
}

function connect (): [End, End] {
  const [one, other] = [new End(), new End()]
  one.peer = other
  other.peer = one
  return [one, other]
}

t.test('several processes count together, and each gets its own answer', async (t) => {
  const counter = createCounter(() => 0)
  const counters = Array.from({ length: 2 }, () => {
    const [here, there] = connect()
    answerCounts(there, counter)
    // Other messages on the channel are ignored.
    there.emit('message', 'noise')
    here.emit('message', null)
    return createIpcCounter(here)
  })
  const counts = await Promise.all(Array.from({ length: 10 }, (_none, i) => counters[i % 2]!.count('guess', i < 8 ? 'ann' : 'bob', 100, undefined)))
  t.strictSame(counts.map(({ current }) => current).sort((a, b) => a - b), [1, 1, 2, 2, 3, 4, 5, 6, 7, 8])
  t.strictSame(new Set(counts.map(({ ttl }) => ttl)), new Set([100]))
})

t.test('what one process has counted, another one reads and ends', async (t) => {
  const counter = createCounter(() => 0)
  const [one, other] = Array.from({ length: 2 }, () => {
    const [here, there] = connect()
    answerCounts(there, counter)
    return createIpcCounter(here)
  })
  await one!.count('guess', 'here ann', 100, { account: 'ann', most: 1 })
  t.strictSame(await other!.read(['ann', 'bob']), [{ kind: 'guess', ttl: 100 }])
  t.strictSame(await other!.open(['ann']), [{ kind: 'guess', ttl: 100 }])
  t.strictSame(await one!.read(['ann']), [])
  t.strictSame(await one!.count('guess', 'here ann', 100, { account: 'ann', most: 1 }), { current: 1, ttl: 100 })
})

t.test('an attempt that cannot be counted is refused', async (t) => {
  await t.test('without an answer in time', async (t) => {
    await t.rejects(createIpcCounter(connect()[0], { timeout: 5 }).count('guess', 'ann', 100), BUSY)
  })
  await t.test('on a closed channel', async (t) => {
    const [here] = connect()
    here.failure = new Error('closed')
    await t.rejects(createIpcCounter(here).count('guess', 'ann', 100), BUSY)
  })
})
