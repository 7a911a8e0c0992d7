import t from 'tap'
import { IdentityError } from '../../../../lib/errors.ts'
import { type Call, Calls, within } from '../../../../lib/store/mongo/calls.ts'

const never = () => new Promise<never>(() => {})
const settled = () => new Promise(setImmediate)

t.test('work that takes too long is not waited for', async (t) => {
  await t.rejects(within(5, never), { message: 'no answer within 5 ms' })
  t.equal(await within(60_000, async () => 'answer'), 'answer')
})

t.test('a call has the answer of its work, or the port\'s error', async (t) => {
  const calls = new Calls(60_000)
  t.equal(await calls.run(async () => 'answer'), 'answer')
  await t.rejects(calls.run(async () => { throw new Error('broken') }), { code: 'ErrDb', cause: { message: 'broken' } })
  await t.rejects(calls.run(() => { throw new Error('broken at once') }), { code: 'ErrDb', cause: { message: 'broken at once' } })
  const ours = new IdentityError('ErrBusy', 'busy')
  await t.rejects(calls.run(async () => { throw ours }), ours)
  await calls.close()
})

t.test('each call has its own time, whatever others do, and knows when it is over', async (t) => {
  const calls = new Calls(20)
  const order: string[] = []
  const states: Call[] = []
  const late = (name: string) => t.rejects(calls.run((call) => {
    states.push(call)
    return never()
  }), { code: 'ErrDb', cause: { message: 'no answer within 20 ms' } }, name).then(() => order.push(name))
  const first = late('first')
  await calls.run(async () => 'answer')
  const second = late('second')
  t.strictSame(states.map(({ over }) => over), [false, false])
  await Promise.all([first, second])
  t.strictSame(order, ['first', 'second'])
  t.strictSame(states.map(({ over }) => over), [true, true])
  await late('one after a pause, when no call runs')
  await calls.close()
})

t.test('closing refuses new calls and waits for those that run', async (t) => {
  const calls = new Calls(60_000)
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
