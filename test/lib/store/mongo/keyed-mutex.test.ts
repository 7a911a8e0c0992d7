import t from 'tap'
import { Turns } from '../../../../lib/store/mongo/turns.ts'

/** A write that goes on until it is told to end, and notes when it began. */
function createWrite (log: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  return { write: () => { log.push(name); return promise }, end: () => resolve(name), fail: (message: string) => reject(new Error(message)) }
}

const settled = () => new Promise(setImmediate)

t.test('writers of one value go one after the other, in order, and others beside them', async (t) => {
  const turns = new Turns()
  const log: string[] = []
  const writes = ['a', 'b', 'c', 'other'].map((name) => createWrite(log, name))
  const [a, b, c, other] = writes
  const call = { over: false }
  const results = [
    turns.take([['users', 'account', 'x']], call, a!.write),
    turns.take([['users', 'account', 'x'], ['users', 'bootstrap', 'y']], call, b!.write),
    turns.take([['users', 'bootstrap', 'y']], call, c!.write),
    turns.take([['users', 'account', 'z'], ['clients', 'account', 'x'], ['users', 'name', 'x']], call, other!.write)
  ]
  await settled()
  t.strictSame(log, ['a', 'other'])
  a!.fail('it clashed')
  await t.rejects(results[0]!, { message: 'it clashed' })
  await settled()
  t.strictSame(log, ['a', 'other', 'b'], 'a failure ends a turn too')
  for (const write of writes) write.end()
  t.strictSame(await Promise.all(results.slice(1)), ['b', 'c', 'other'])
})

t.test('a write without a unique value waits for nobody', async (t) => {
  const log: string[] = []
  const turns = new Turns()
  const slow = createWrite(log, 'slow')
  const first = turns.take([], { over: false }, slow.write)
  t.equal(await turns.take([], { over: false }, async () => 'done'), 'done')
  slow.end()
  t.equal(await first, 'slow')
})

t.test('a write whose caller was told that it failed does not begin', async (t) => {
  const turns = new Turns()
  const log: string[] = []
  const first = createWrite(log, 'first')
  const late = { over: false }
  const results = [
    turns.take([['users', 'account', 'x']], { over: false }, first.write),
    turns.take([['users', 'account', 'x']], late, createWrite(log, 'late').write),
    turns.take([['users', 'account', 'x']], { over: false }, async () => { log.push('last'); return 'last' })
  ]
  late.over = true
  first.end()
  await t.rejects(results[1]!, /time was up/)
  await Promise.all([results[0], results[2]])
  t.strictSame(log, ['first', 'last'])
})

t.test('a write that the server undid to end a deadlock is tried again until its time is up', async (t) => {
  const call = { over: false }
  let attempts = 0
  const write = async () => {
    if (++attempts < 3) throw new Error('deadlock detected')
    return attempts
  }
  t.equal(await new Turns().take([], call, write), 3)
  attempts = 0
  const given = new Turns().take([], call, async (): Promise<number> => {
    call.over = ++attempts === 2
    throw new Error('deadlock detected')
  })
  await t.rejects(given, /time was up/)
  t.equal(attempts, 2)
})
