import t from 'tap'
import { IdentityError } from '../../../../lib/errors.ts'
import { BoundedCalls, type Call, within } from '../../../../lib/store/mongo/bounded-calls.ts'
import { createTimers } from '../../../helpers/timers.ts'

const never = () => new Promise<never>(() => {})
const settled = () => new Promise(setImmediate)

t.test('a call does not wait for work that misses its deadline', async (t) => {
  const timers = createTimers()
  const late = t.rejects(within(5, never, timers), { message: 'no answer within 5 ms' })
  timers.advance(5)
  await late
  t.equal(await within(60_000, async () => 'answer'), 'answer')
})

t.test('a call resolves to the result of its work, or rejects with an error of the port', async (t) => {
  const calls = new BoundedCalls(60_000)
  t.equal(await calls.run(async () => 'answer'), 'answer')
  await t.rejects(calls.run(async () => { throw new Error('broken') }), { code: 'ErrDb', cause: { message: 'broken' } })
  await t.rejects(calls.run(() => { throw new Error('broken at once') }), { code: 'ErrDb', cause: { message: 'broken at once' } })
  const ours = new IdentityError('ErrBusy', 'busy')
  await t.rejects(calls.run(async () => { throw ours }), ours)
  await calls.close()
})

t.test('each call has its own deadline, and is marked once it was answered', async (t) => {
  const timers = createTimers()
  const calls = new BoundedCalls(20, { timers })
  const states: Call[] = []
  const late = (name: string) => t.rejects(calls.run((call) => {
    states.push(call)
    return never()
  }), { code: 'ErrDb', cause: { message: 'no answer within 20 ms' } }, name)
  const answered = () => states.map(({ answered }) => answered)
  const first = late('first')
  await calls.run(async () => 'answer')
  timers.advance(15)
  const second = late('second')
  t.strictSame(answered(), [false, false])
  timers.advance(5)
  await first
  t.strictSame(answered(), [true, false])
  timers.advance(15)
  await second
  t.strictSame(answered(), [true, true])
  await calls.close()
})

t.test('only an answer counts as one', async (t) => {
  let answers = 0
  const timers = createTimers()
  const calls = new BoundedCalls(20, { timers, onAnswer: () => answers++ })
  await calls.run(async () => 'answer')
  t.equal(answers, 1)
  await t.rejects(calls.run(async () => { throw new Error('broken') }))
  const late = t.rejects(calls.run(never))
  timers.advance(20)
  await late
  t.equal(answers, 1)
})

t.test('a call that is not admitted does not start, and those in flight can be failed', async (t) => {
  let isOut = false
  const calls = new BoundedCalls(60_000, { admit: () => { if (isOut) throw new Error('no server') } })
  const states: Call[] = []
  const pending = calls.run((call) => {
    states.push(call)
    return never()
  })
  isOut = true
  await t.rejects(calls.run(() => t.fail('it must not start') as never), { code: 'ErrDb', cause: { message: 'no server' } })
  calls.fail(new Error('an outage'))
  await t.rejects(pending, { code: 'ErrDb', cause: { message: 'an outage' } })
  t.strictSame(states, [{ answered: true }])
  await calls.close()
})

t.test('closing refuses new calls and waits for those in flight', async (t) => {
  const calls = new BoundedCalls(60_000)
  const work = Promise.withResolvers<string>()
  const running = calls.run(() => work.promise)
  let closed = false
  const closing = Promise.all([calls.close(), calls.close()]).then(() => { closed = true })
  await t.rejects(calls.run(async () => 'answer'), { code: 'ErrDb', cause: { message: 'the store is closed' } })
  await settled()
  t.equal(closed, false)
  work.resolve('answer')
  t.equal(await running, 'answer')
  await closing
  await calls.close()
})
