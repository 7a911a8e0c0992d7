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

t.test('a hash of another program is compared as that program does, and is weak', async (t) => {
  const passwords = createPasswords({ cost: 4 })
  t.teardown(async () => await passwords.close())
  // Printed by bcrypt of Python and by passlib.
  for (const foreign of [
    '$2b$05$RKF.JRc8mSr8QCoXqSbBLO3NJGR1AXDzOtJXqkokiP7PGBWdzu06.',
    '$pbkdf2-sha256$1000$IyQEoJQSgvB.T6nVei9ljA$AaXUFaFT3Hva9pubTt5GVd1L4FSVlS4ocvRPkIHsyjE'
  ]) {
    t.equal(await passwords.verify('correct horse Bätterie 7', foreign), true)
    t.equal(await passwords.verify('correct horse', foreign), false)
    t.equal(passwords.isWeak(foreign), true)
  }
})

t.test('the decoy of an account without a hash is never its password', async (t) => {
  const foreign = '$2b$05$RKF.JRc8mSr8QCoXqSbBLO3NJGR1AXDzOtJXqkokiP7PGBWdzu06.'
  const asked: string[] = []
  const passwords = createPasswords({ cost: 4, chooseDecoy: (account) => { asked.push(account); return account === 'ada' ? foreign : undefined } })
  t.teardown(async () => await passwords.close())
  for (const stored of [undefined, '']) {
    for (const account of ['ada', 'grace']) t.equal(await passwords.verify('correct horse Bätterie 7', stored, {}, account), false)
  }
  t.same(asked, ['ada', 'grace', 'ada', 'grace'])
})
