import t from 'tap'
import { LogLimit } from '../../../../lib/store/sqlite/log-limit.ts'

const MIB = 2 ** 20

t.test('while the log grows beyond the limit, a list is ended; a reader elsewhere is reported once', async (t) => {
  const warnings: string[] = []
  let lists = 2
  const limit = new LogLimit({ path: '/data/id.db', limit: 64, endOldest: () => lists-- > 0, onWarning: (message) => warnings.push(message) })
  t.teardown(() => limit.close())
  for (const size of [10, 64]) limit.check(size * MIB)
  t.strictSame(warnings, [])
  for (const size of [65, 65, 66]) limit.check(size * MIB)
  const ended = (size: number) => `the write-ahead log of /data/id.db has ${size} MiB, more than walLimit: the oldest list was ended`
  t.strictSame(warnings.splice(0), [ended(65), ended(66)], 'none while it does not grow')
  for (const size of [67, 68, 1, 69]) limit.check(size * MIB)
  t.match(warnings, [/67 MiB.*another process holds a snapshot/, /69 MiB.*another process/])
  t.equal(warnings.length, 2)
})

t.test('a database without a log is within the limit', async (t) => {
  const limit = new LogLimit({ path: `${t.testdir()}/none.db`, limit: 64, endOldest: () => t.fail('nothing to end'), onWarning: () => t.fail('no warning') })
  limit.check()
  limit.close()
})
