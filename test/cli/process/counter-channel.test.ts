import { EventEmitter } from 'node:events'
import t from 'tap'
import { createCounter, type Counter } from '../../../lib/sign-in/counter.ts'
import { answerCounts, createDistantCounter, type Channel } from '../../../cli/process/counter-channel.ts'

const BUSY = { code: 'ErrBusy', statusCode: 503 }

class End extends EventEmitter implements Channel {
  peer: End | undefined
  failure: Error | null = null

  send (message: object, done: (error: Error | null) => void): void {
    setImmediate(() => {
      if (this.failure === null) this.peer?.emit('message', structuredClone(message))
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

t.test('several that ask count together, and each gets its own answer', async (t) => {
  const counter = createCounter(() => 0)
  const distant = Array.from({ length: 2 }, () => {
    const [here, there] = connect()
    answerCounts(there, counter)
    // What else a channel carries is nobody's answer.
    there.emit('message', 'noise')
    here.emit('message', null)
    return createDistantCounter(here)
  })
  const counts = await Promise.all(Array.from({ length: 10 }, (_none, i) => distant[i % 2]!.count('guess', i < 8 ? 'ann' : 'bob', 100)))
  t.strictSame(counts.map(({ current }) => current).sort((a, b) => a - b), [1, 1, 2, 2, 3, 4, 5, 6, 7, 8])
  t.strictSame(new Set(counts.map(({ ttl }) => ttl)), new Set([100]))
})

t.test('what cannot be counted is not allowed', async (t) => {
  await t.test('because nobody answers in time', async (t) => {
    await t.rejects(createDistantCounter(connect()[0], { patience: 5 }).count('guess', 'ann', 100), BUSY)
  })
  await t.test('because the channel is closed', async (t) => {
    const [here] = connect()
    here.failure = new Error('closed')
    await t.rejects(createDistantCounter(here).count('guess', 'ann', 100), BUSY)
  })
  await t.test('because too many wait', async (t) => {
    const [here, there] = connect()
    const counter: Counter = createDistantCounter(here)
    const waiting = Array.from({ length: 10_000 }, () => counter.count('guess', 'ann', 100))
    await t.rejects(counter.count('guess', 'ann', 100), BUSY)
    answerCounts(there, createCounter(() => 0))
    t.equal((await Promise.all(waiting)).length, 10_000)
    t.equal((await counter.count('guess', 'ann', 100)).current, 10_001)
  })
})
