import { availableParallelism } from 'node:os'
import t from 'tap'
import { createPasswords } from '../../../lib/users/passwords.ts'

for (const [processes, part] of [[1, 120], [4, 30], [1000, 1]] as const) {
  t.test(`of ${processes} processes each lets its part of the queue wait`, async (t) => {
    const passwords = createPasswords({ cost: 4, queue: 120, processes })
    t.teardown(async () => await passwords.close())
    const results = await Promise.allSettled(Array.from({ length: 250 }, () => passwords.hash('hunter2')))
    const refused = results.flatMap((result) => result.status === 'rejected' ? [result.reason] : [])
    const taken = results.length - refused.length
    t.ok(taken >= part && taken <= part + availableParallelism(), `${taken} are taken: those that wait, and those in threads`)
    for (const error of refused) t.match(error, { code: 'ErrBusy', statusCode: 503 })
  })
}

t.test('a stored hash that begins with $ is of another scheme: no password matches it, at the cost of any other, and it is weak', async (t) => {
  const passwords = createPasswords({ cost: 4 })
  t.teardown(async () => await passwords.close())
  const own = await passwords.hash('hunter2')
  t.notMatch(own, /^\$/)
  t.equal(passwords.isWeak(own), false)
  for (const foreign of ['$2b$31$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', '$argon2id$v=19$m=7168,t=5,p=1$c2FsdA$aGFzaA', '$', `$${own.slice(1)}`]) {
    t.equal(passwords.isWeak(foreign), true, foreign.slice(0, 8))
    // With bcrypt's own cost of 31 it would take days.
    t.equal(await passwords.verify('hunter2', foreign), false)
  }
})
