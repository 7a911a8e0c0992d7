import { createSecretKey } from 'node:crypto'
import t from 'tap'
import { createFailures } from '../../../lib/events/failures.ts'
import { findOrigin, runFor } from '../../../lib/events/origin.ts'
import type { Timers } from '../../../lib/timers.ts'

t.test('a summary has no data of the first failed request', async (t) => {
  const { promise, resolve } = Promise.withResolvers<ReturnType<typeof findOrigin>>()
  // A real timer, because it keeps the async context in which it was set.
  const timers: Timers = { now: () => 0, set: (run) => setTimeout(run), clear: (timer) => clearTimeout(timer) }
  const failures = createFailures({
    recorder: { insert: async ({ count }) => { if (count !== undefined) resolve(findOrigin()) }, measure: () => 1 },
    getKey: () => createSecretKey(Buffer.alloc(32)),
    onError: (error) => { throw error },
    timers
  })
  const ann = { via: 'page' as const, address: '192.0.2.1', request_id: 'a', readCaller: () => ({ user_id: 'ann' }) }
  runFor(ann, () => failures.recordSignIn('ann', 'ann@example.com', { reason: 'wrong_password' }))
  for (let count = 0; count < 11; count++) runFor({ via: 'api', address: '192.0.2.2', request_id: 'b' }, () => failures.recordSignIn('bob', 'bob@example.com', { reason: 'wrong_password' }))
  // The timer of the failures does not keep the process alive.
  const running = setInterval(() => {}, 1_000)
  const origin = await promise
  clearInterval(running)
  t.strictSame({ ...origin, readCaller: origin?.readCaller?.() }, { via: 'api', address: '192.0.2.2', readCaller: undefined }, 'but the last address of its series')
  await failures.close()
})
