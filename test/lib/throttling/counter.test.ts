import t from 'tap'
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
