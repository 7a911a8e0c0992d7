import { generateKeySync } from 'node:crypto'
import t, { type Test } from 'tap'
import { goneError } from '../../../lib/errors.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { type AttemptsRecord, type Target, createAttempts, toPause } from '../../../lib/throttling/attempts.ts'
import { Scheduler, exhaust } from '../../helpers/scheduler.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const DAY = 24 * 60 * 60_000
const key = generateKeySync('hmac', { length: 256 })
const ANN: Target = { kind: 'account', name: 'ann', holder: { id: 'u', epoch: 1 } }
const BROWSER: Target = { ...ANN, kind: 'browser', name: 'b' }

async function open (t: Test) {
  let time = Date.UTC(2126, 10, 21)
  const now = () => time
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now })
  t.teardown(() => inner.close())
  const scheduler = new Scheduler()
  const attempts = createAttempts({ store: wrapStore(inner, scheduler.around), now, key })
  const records = inner.collection<AttemptsRecord>('attempts')
  const fail = async (times: number, target = ANN) => {
    for (let done = 0; done < times; done++) {
      await attempts.run(target, async () => null)
      time += toPause(done + 1)
    }
  }
  return {
    attempts,
    /** Other processes. */
    others: [1, 2].map(() => createAttempts({ store: inner, now, key })),
    records,
    scheduler,
    fail,
    advance: (milliseconds: number) => { time += milliseconds },
    read: async () => (await Array.fromAsync(records.stream())).flat()
  }
}

t.test('the pause grows from 1 s after 20 failures to 15 min', async (t) => {
  t.strictSame([0, 19, 20, 21, 29, 30, 99].map(toPause), [0, 0, 1000, 2000, 512_000, 900_000, 900_000])
})

t.test('nothing is compared in a pause, nor counted', async (t) => {
  const { attempts, fail, advance, read } = await open(t)
  await fail(20)
  advance(-1)
  await t.rejects(attempts.run(ANN, () => { throw new Error('compared') }), { code: 'ErrLimit', reason: 'paused', headers: { 'retry-after': '1' } })
  advance(-DAY)
  await t.rejects(attempts.run(ANN, () => { throw new Error('compared') }), { code: 'ErrLimit', headers: { 'retry-after': '1' } }, 'a clock that was set back makes no longer pause')
  t.match(await read(), [{ failures: 20 }])
  advance(DAY + 1)
  t.equal(await attempts.run(ANN, async () => 'right'), 'right')
  t.strictSame(await read(), [], 'a success ends the count')
})

t.test('a success that is not the last step takes only itself back', async (t) => {
  const { attempts, fail, read } = await open(t)
  const isLast = () => false
  t.equal(await attempts.run(ANN, async () => 'right', undefined, { isLast }), 'right')
  t.strictSame(await read(), [], 'nothing is left of it')
  await fail(3)
  for (let count = 0; count < 50; count++) await attempts.run(ANN, async () => 'right', undefined, { isLast })
  t.match(await read(), [{ failures: 3 }])
  t.equal(await attempts.clear(ANN), false)
  t.strictSame(await read(), [])
  t.equal(await attempts.clear(ANN), false, 'without a count')
})

t.test('the failure that closes says so, once', async (t) => {
  const { attempts, advance } = await open(t)
  let closed = 0
  const factor: Target = { kind: 'factor', name: 'f' }
  for (let count = 0; count < 120; count++) {
    await attempts.run(factor, async () => null, undefined, { onClosed: async () => { closed++ } }).catch(() => {})
    advance(DAY / 24)
    t.equal(closed, count < 99 ? 0 : 1)
  }
  await t.rejects(attempts.run(factor, async () => 'right'), { code: 'ErrLimit', reason: 'code_closed' })
  t.equal(await attempts.clear(factor), true)
  t.equal(await attempts.run(factor, async () => 'right'), 'right')
})

t.test('a password takes 100 failures, also from callers at once', async (t) => {
  const { attempts, fail, advance } = await open(t)
  await fail(99)
  let compared = 0
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => attempts.run(ANN, async () => { compared++; return null })))
  t.equal(compared, 1)
  t.equal(results.filter(({ status }) => status === 'rejected').length, 4)
  advance(3000 * DAY)
  await t.rejects(attempts.run(ANN, async () => 'right'), { code: 'ErrLimit', reason: 'closed', headers: {} })
  t.equal(await attempts.run({ ...ANN, holder: { id: 'u', epoch: 2 } }, async () => 'right'), 'right', 'a new password begins a new count')
  t.equal(await attempts.run({ kind: 'account', name: 'ann' }, async () => null), null, 'as does a new holder')
  await attempts.clear(ANN)
  t.equal(await attempts.run(ANN, async () => 'right'), 'right')
})

t.test('40 right attempts at once all succeed', async (t) => {
  const { attempts, read } = await open(t)
  const results = await Promise.all(Array.from({ length: 40 }, () => attempts.run(ANN, async () => 'right')))
  t.same(new Set(results), new Set(['right']))
  t.strictSame(await read(), [])
})

t.test('attempts of several processes at once exceed no limit', async (t) => {
  const { attempts, others, fail, read } = await open(t)
  await fail(19)
  let compared = 0
  const compare = async () => { compared++; return null }
  await Promise.allSettled([attempts, ...others].flatMap((one) => Array.from({ length: 4 }, () => one.run(ANN, compare))))
  t.equal(compared, 1)
  t.match(await read(), [{ failures: 20 }])
})

t.test('a browser has 10 failures and no pause', async (t) => {
  const { attempts, records, fail } = await open(t)
  await fail(10, BROWSER)
  await t.rejects(attempts.run(BROWSER, async () => 'right'), { code: 'ErrLimit', reason: 'closed' })
  t.equal(await records.count(), 1)
  t.equal(await attempts.run(ANN, async () => 'right'), 'right')
})

t.test('a count ends a day for each failure after the last one', async (t) => {
  const { fail, advance, read } = await open(t)
  await fail(3)
  advance(3 * DAY - 1)
  await fail(1)
  t.match(await read(), [{ failures: 4 }])
  advance(4 * DAY)
  await fail(1)
  t.match(await read(), [{ failures: 1 }])
})

t.test('the hashes distinguish names, holders and kinds, and depend on the key', async (t) => {
  const { attempts, read } = await open(t)
  const targets: Target[] = [ANN, BROWSER, { kind: 'account', name: 'ann' }, { ...ANN, name: 'bob' }, { ...ANN, holder: { id: 'v', epoch: 1 } }, { ...ANN, holder: { id: 'u', epoch: 2 } }]
  for (const target of targets) await attempts.run(target, async () => null)
  const found = await read()
  t.equal(found.length, targets.length)
  t.notMatch(JSON.stringify(found), /ann|bob/)
})

t.test('an attempt that could not be compared is taken back', async (t) => {
  const { attempts, fail, read } = await open(t)
  await fail(2)
  await t.rejects(attempts.run(ANN, async () => { throw new Error('busy') }), /busy/)
  t.match(await read(), [{ failures: 2 }])
})

const fails = async () => null
const succeeds = async () => 'right'
const breaks = async () => { throw new Error('busy') }

for (const [name, before, actors, least, expected] of [
  ['two failures, the first ones', 0, [fails, fails], 3, ['2']],
  ['two failures', 5, [fails, fails], 3, ['7']],
  ['three failures', 1, [fails, fails, fails], 57, ['4']],
  // The success ends the count with or without the failure.
  ['a failure and a success', 5, [fails, succeeds], 6, ['0', '1']],
  ['a failure and an attempt that is taken back', 5, [fails, breaks], 6, ['6']],
  ['a failure, a success and an attempt that is taken back', 5, [fails, succeeds, breaks], 1600, ['0', '1']]
] as const) {
  t.test(`no count is lost in any order: ${name}`, async (t) => {
    const { attempts, records, scheduler, fail, read } = await open(t)
    await fail(before)
    const start = await read()
    await exhaust({ least, outcomes: expected }, async (choose) => {
      await records.deleteMany({ before: { expired_at: '9999' } })
      for (const record of start) await records.insert(record)
      await scheduler.run(Object.fromEntries(actors.map((compare, index) => [String(index), async () => await attempts.run<string>(ANN, compare)])), choose)
      const [record] = await read()
      return String(record?.failures ?? 0)
    })
  })
}

t.test('an attempt that waits behind others is not made once its caller has left', async (t) => {
  const { attempts, read } = await open(t)
  const { promise: answer, resolve } = Promise.withResolvers<null>()
  const running = Array.from({ length: 4 }, () => attempts.run(ANN, async () => await answer))
  const caller = new AbortController()
  const left = attempts.run(ANN, () => { throw new Error('compared') }, caller.signal)
  const stays = attempts.run(ANN, async () => null, new AbortController().signal)
  caller.abort()
  resolve(null)
  await t.rejects(left, { code: goneError().code })
  await Promise.all([...running, stays])
  t.match(await read(), [{ failures: 5, revision: 4 }], 'neither counted nor taken back')
})
