import t from 'tap'
import { Calls } from '../../../../lib/store/mongo/calls.ts'
import { Lookups } from '../../../../lib/store/mongo/lookups.ts'
import { ServerStandIn, settled } from './stand-in.ts'

// When a statement is sent and answered is up to the test: a stand-in for the driver holds the answers back.

const waiting = () => ({ over: false })

function setUp ({ timeout = 60_000 } = {}) {
  const server = new ServerStandIn()
  for (let number = 0; number < 400; number++) server.collection('tokens').set(`t${number}`, { _id: `t${number}`, user: `u${number % 10}` })
  for (let number = 0; number < 10; number++) server.collection('users').set(`u${number}`, { _id: `u${number}`, epoch: 0 })
  const links = [{ field: 'user', spec: { name: 'users', keys: {} } }]
  const lookups = new Lookups({ native: server.native('tokens'), links, calls: new Calls(timeout) })
  return { server, lookups }
}

const expected = (number: number, epoch = 0) => ({ document: { id: `t${number}`, user: `u${number % 10}` }, linked: { user: { id: `u${number % 10}`, epoch } } })

t.test('look-ups of one turn share a statement, and each has its own answer', async (t) => {
  const { server, lookups } = setUp()
  const answers = ['t1', 't2', 'nobody', 't1', 't11'].map((id) => lookups.find(id, waiting()))
  await settled()
  t.strictSame(server.ids(), [['t1', 't2', 'nobody', 't11']])
  server.answer('look-up')
  t.strictSame(await Promise.all(answers), [expected(1), expected(2), null, expected(1), expected(11)])
})

t.test('a look-up is never answered by a statement that was sent before it was asked for', async (t) => {
  const { server, lookups } = setUp()
  const before = lookups.find('t1', waiting())
  await settled()
  server.run('look-up')
  server.collection('users').set('u1', { _id: 'u1', epoch: 1 })
  const after = lookups.find('t1', waiting())
  await settled()
  server.answer('look-up')
  t.strictSame(await before, expected(1))
  t.strictSame(await after, expected(1, 1))
})

t.test('a statement has at most 32 ids, and 8 are under way: what comes then goes together', async (t) => {
  const { server, lookups } = setUp()
  const answers = Array.from({ length: 300 }, (_, number) => lookups.find(`t${number}`, waiting()))
  await settled()
  t.strictSame(server.ids().map((ids) => ids.length), Array(8).fill(32))
  answers.push(lookups.find('t300', waiting()))
  await settled()
  t.equal(server.ids().length, 8, 'it waits')
  server.answer('look-up', 1)
  await settled()
  t.strictSame(server.ids().map((ids) => ids.length), [...Array(8).fill(32), 32])
  server.answer('look-up')
  await settled()
  server.answer('look-up')
  t.strictSame(await Promise.all(answers), Array.from({ length: 301 }, (_, number) => expected(number)))
  t.equal(server.ids().flat().length, 301)
})

t.test('what its caller no longer waits for is not sent', async (t) => {
  const { server, lookups } = setUp()
  const calls = [waiting(), waiting()]
  const [kept] = calls.map((call, number) => lookups.find(`t${number}`, call))
  calls[1]!.over = true
  await settled()
  t.strictSame(server.ids(), [['t0']])
  server.answer('look-up')
  t.strictSame(await kept, expected(0))
  lookups.find('t2', { over: true })
  await settled()
  t.equal(server.ids().length, 1)
})

t.test('a statement that fails, or is not answered in time, fails its look-ups and gives its place free', async (t) => {
  const { server, lookups } = setUp({ timeout: 20 })
  for (const way of ['fails', 'is not answered']) {
    const outcomes = Array.from({ length: 8 * 32 }, (_, number) => lookups.find(`t${number}`, waiting()).then(() => 'found', ({ cause }: Error) => (cause as Error).message))
    await settled()
    if (way === 'fails') server.fail('look-up', new Error('broken'))
    const message = way === 'fails' ? 'broken' : 'no answer within 20 ms'
    t.strictSame(new Set(await Promise.all(outcomes)), new Set([message]))
    const next = lookups.find('t1', waiting())
    await settled()
    server.answer('look-up')
    t.strictSame(await next, expected(1), `after one that ${way}`)
  }
})
