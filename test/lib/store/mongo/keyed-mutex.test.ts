import t from 'tap'
import { KeyedMutex } from '../../../../lib/store/mongo/keyed-mutex.ts'

/** A write that ends when the test says so, and logs its start. */
function createWrite (log: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  return { write: () => { log.push(name); return promise }, end: () => resolve(name), fail: (message: string) => reject(new Error(message)) }
}

const settled = () => new Promise(setImmediate)

t.test('writes with a common key run one after another, in order; others run beside them', async (t) => {
  const mutex = new KeyedMutex()
  const log: string[] = []
  const writes = ['a', 'b', 'c', 'other'].map((name) => createWrite(log, name))
  const [a, b, c, other] = writes
  const call = { answered: false }
  const results = [
    mutex.run(['x'], call, a!.write),
    mutex.run(['x', 'y'], call, b!.write),
    mutex.run(['y'], call, c!.write),
    mutex.run(['z'], call, other!.write)
  ]
  await settled()
  t.strictSame(log, ['a', 'other'])
  a!.fail('it clashed')
  await t.rejects(results[0]!, { message: 'it clashed' })
  await settled()
  t.strictSame(log, ['a', 'other', 'b'], 'a failed write frees its keys too')
  for (const write of writes) write.end()
  t.strictSame(await Promise.all(results.slice(1)), ['b', 'c', 'other'])
})

t.test('a write without a key waits for no other', async (t) => {
  const log: string[] = []
  const mutex = new KeyedMutex()
  const slow = createWrite(log, 'slow')
  const first = mutex.run([], { answered: false }, slow.write)
  t.equal(await mutex.run([], { answered: false }, async () => 'done'), 'done')
  slow.end()
  t.equal(await first, 'slow')
})

t.test('a write whose caller was answered does not start', async (t) => {
  const mutex = new KeyedMutex()
  const log: string[] = []
  const first = createWrite(log, 'first')
  const late = { answered: false }
  const results = [
    mutex.run(['x'], { answered: false }, first.write),
    mutex.run(['x'], late, createWrite(log, 'late').write),
    mutex.run(['x'], { answered: false }, async () => { log.push('last'); return 'last' })
  ]
  late.answered = true
  first.end()
  await t.rejects(results[1]!, /deadline passed/)
  await Promise.all([results[0], results[2]])
  t.strictSame(log, ['first', 'last'])
})

t.test('a write that the server undid to resolve a deadlock is retried until its deadline', async (t) => {
  const call = { answered: false }
  let attempts = 0
  const write = async () => {
    if (++attempts < 3) throw new Error('deadlock detected')
    return attempts
  }
  t.equal(await new KeyedMutex().run([], call, write), 3)
  attempts = 0
  const failed = new KeyedMutex().run([], call, async (): Promise<number> => {
    call.answered = ++attempts === 2
    throw new Error('deadlock detected')
  })
  await t.rejects(failed, /deadline passed/)
  t.equal(attempts, 2)
})
