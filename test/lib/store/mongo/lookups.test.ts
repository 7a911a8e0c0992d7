import t from 'tap'
import { BoundedCalls, type Call } from '../../../../lib/store/mongo/bounded-calls.ts'
import { Lookups } from '../../../../lib/store/mongo/lookups.ts'
import { createTimers } from '../../../helpers/timers.ts'
import { ServerStandIn, settled } from './server-stand-in.ts'

// A stand-in for the driver delays the answers until the test sends them.

const TIMEOUT = 1_000

const waiting = (): Call => ({ answered: false })

function setUp () {
  const server = new ServerStandIn()
  const timers = createTimers()
  for (let number = 0; number < 400; number++) server.collection('tokens').set(`t${number}`, { _id: `t${number}`, user: `u${number % 10}` })
  for (let number = 0; number < 10; number++) server.collection('users').set(`u${number}`, { _id: `u${number}`, epoch: 0 })
  let native = server.native('tokens')
  const links = [{ field: 'user', spec: { name: 'users', keys: {} } }]
  const lookups = new Lookups({ native: () => native, links, calls: new BoundedCalls(TIMEOUT, { timers }) })
  return { server, timers, lookups, replace: (next: ServerStandIn) => { native = next.native('tokens') } }
}

const expected = (number: number, epoch = 0) => ({ document: { id: `t${number}`, user: `u${number % 10}` }, linked: { user: { id: `u${number % 10}`, epoch } } })

t.test('look-ups of one turn share a statement, and each gets its own answer', async (t) => {
  const { server, lookups } = setUp()
  const answers = ['t1', 't2', 'nobody', 't1', 't11'].map((id) => lookups.find(id, waiting()))
  await settled()
  t.strictSame(server.ids(), [['t1', 't2', 'nobody', 't11']])
  server.answer()
  t.strictSame(await Promise.all(answers), [expected(1), expected(2), null, expected(1), expected(11)])
})

t.test('a look-up is never answered by a statement that was sent before it was asked for', async (t) => {
  const { server, lookups } = setUp()
  const before = lookups.find('t1', waiting())
  await settled()
  server.run()
  server.collection('users').set('u1', { _id: 'u1', epoch: 1 })
  const after = lookups.find('t1', waiting())
  await settled()
  server.answer()
  t.strictSame(await before, expected(1))
  t.strictSame(await after, expected(1, 1))
})

t.test('a statement has at most 32 ids, and 8 are in flight: further look-ups share the next', async (t) => {
  const { server, lookups } = setUp()
  const answers = Array.from({ length: 300 }, (_, number) => lookups.find(`t${number}`, waiting()))
  await settled()
  t.strictSame(server.ids().map((ids) => ids.length), Array(8).fill(32))
  answers.push(lookups.find('t300', waiting()))
  await settled()
  t.equal(server.ids().length, 8, 'it waits')
  server.answer(1)
  await settled()
  t.strictSame(server.ids().map((ids) => ids.length), [...Array(8).fill(32), 32])
  server.answer()
  await settled()
  server.answer()
  t.strictSame(await Promise.all(answers), Array.from({ length: 301 }, (_, number) => expected(number)))
  t.equal(server.ids().flat().length, 301)
})

t.test('a look-up whose caller was answered is not sent', async (t) => {
  const { server, lookups } = setUp()
  const calls = [waiting(), waiting()]
  const [sent] = calls.map((call, number) => lookups.find(`t${number}`, call))
  calls[1]!.answered = true
  await settled()
  t.strictSame(server.ids(), [['t0']])
  server.answer()
  t.strictSame(await sent, expected(0))
  void lookups.find('t2', { answered: true })
  await settled()
  t.equal(server.ids().length, 1)
})

for (const way of ['fails', 'misses its deadline']) {
  t.test(`a statement that ${way} fails its look-ups and frees its slot`, async (t) => {
    const { server, timers, lookups } = setUp()
    const outcomes = Array.from({ length: 8 * 32 }, (_, number) => lookups.find(`t${number}`, waiting()).then(() => 'found', ({ message }: Error) => message))
    await settled()
    if (way === 'fails') server.fail(new Error('broken'))
    else timers.advance(TIMEOUT)
    t.strictSame(new Set(await Promise.all(outcomes)), new Set([way === 'fails' ? 'broken' : 'no answer within 1000 ms']))
    const next = lookups.find('t1', waiting())
    await settled()
    server.answer()
    t.strictSame(await next, expected(1))
  })
}

t.test('after the client was replaced, statements go to the new one', async (t) => {
  const { server, lookups, replace } = setUp()
  const other = setUp().server
  replace(other)
  const found = lookups.find('t1', waiting())
  await settled()
  t.strictSame([server.ids(), other.ids()], [[], [['t1']]])
  other.answer()
  t.strictSame(await found, expected(1))
})
