import t from 'tap'
import { watchSizes } from '../../helpers/given-back.ts'
import { createCounter } from '../../../lib/throttling/counter.ts'

t.test('a window begins with its first attempt, and counts anew when it has ended', async (t) => {
  let time = 5
  const counter = createCounter(() => time)
  t.strictSame(await counter.count('guess', 'ann', 100), { current: 1, ttl: 100 })
  time += 60
  t.strictSame(await counter.count('guess', 'ann', 100), { current: 2, ttl: 40 })
  t.strictSame(await counter.count('guess', 'bob', 100), { current: 1, ttl: 100 }, 'of another key')
  t.strictSame(await counter.count('change', 'ann', 100), { current: 1, ttl: 100 }, 'of another kind')
  time += 40
  t.strictSame(await counter.count('guess', 'ann', 100), { current: 1, ttl: 100 })
})

t.test('the keys of each kind are bounded: the least recently counted is evicted', async (t) => {
  const counter = createCounter(() => 0)
  await counter.count('guess', 'first', 100)
  await counter.count('guess', 'kept', 100)
  await counter.count('change', 'first', 100)
  for (let i = 0; i < 9999; i++) {
    await counter.count('guess', `another ${i}`, 100)
    if (i === 5000) await counter.count('guess', 'kept', 100)
  }
  t.equal((await counter.count('guess', 'kept', 100)).current, 3)
  t.equal((await counter.count('guess', 'first', 100)).current, 1)
  t.equal((await counter.count('change', 'first', 100)).current, 2)
})

t.test('the counts of an account are read and ended, from whatever key they are', async (t) => {
  let time = 0
  const counter = createCounter(() => time)
  const ann = { account: 'ann', most: 2 }
  await counter.count('guess', 'here ann', 100, ann)
  t.strictSame(await counter.read(['ann']), [], 'below the limit')
  await counter.count('guess', 'here ann', 100, ann)
  time += 10
  for (let i = 0; i < 3; i++) await counter.count('guess', 'there ann', 100, ann)
  await counter.count('known', 'user', 100, { account: 'ann by id', most: 1 })
  await counter.count('guess', 'here bob', 100, { account: 'bob', most: 1 })
  await counter.count('write', 'ann', 100)

  const refusing = [{ kind: 'guess', ttl: 100 }, { kind: 'known', ttl: 100 }]
  t.strictSame(await counter.read(['ann', 'ann by id', 'ann', 'nobody']), refusing, 'of each kind the one that ends last')
  t.strictSame(await counter.read(['ann', 'ann by id']), refusing, 'reading counts nothing')
  t.strictSame(await counter.open(['ann', 'ann by id']), refusing)
  t.strictSame(await counter.read(['ann', 'ann by id']), [])
  t.strictSame(await counter.open(['ann', 'ann by id']), [])
  t.equal((await counter.count('guess', 'here ann', 100, ann)).current, 1)
  t.strictSame(await counter.read(['bob']), [{ kind: 'guess', ttl: 100 }], 'another account is not opened')
  t.equal((await counter.count('write', 'ann', 100)).current, 2, 'nor what is of no account')
  time += 100
  t.strictSame(await counter.read(['bob']), [], 'a window has ended')
})

t.test('the index of accounts holds what is counted, and nothing else', async (t) => {
  let time = 0
  const { opened: counter, sizes } = await watchSizes(async () => createCounter(() => time))
  for (let i = 0; i < 12_000; i++) await counter.count('guess', `here ${i}`, 100, { account: String(i), most: 1 })
  t.strictSame(await counter.read(['0']), [], 'evicted')
  t.strictSame(await counter.read(['11999']), [{ kind: 'guess', ttl: 100 }])
  const held = Math.max(...Object.values(sizes).map(({ size }) => size))
  t.equal(held, 10_000, 'of evicted counts nothing is left')
  time += 100
  for (let i = 0; i < 20; i++) await counter.count('guess', 'here 11999', 100, { account: '11999', most: 1 })
  t.strictSame(await counter.open(['11999']), [{ kind: 'guess', ttl: 100 }], 'a count that began anew is there once')
  t.equal((await counter.count('guess', 'here 11999', 100, { account: '11999', most: 1 })).current, 1)
})
