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
