import { createSecretKey } from 'node:crypto'
import t, { type Test } from 'tap'
import { createFailures } from '../../../lib/events/failures.ts'
import { findOrigin, runFor } from '../../../lib/events/origin.ts'
import type { Happening } from '../../../lib/events/types.ts'
import { createTimers } from '../../helpers/timers.ts'

const MINUTE = 60_000

/** The failures of a service, and the summaries that they leave, with the last address. */
function open (t: Test) {
  const timers = createTimers()
  const written: (Happening & { address?: string | undefined })[] = []
  const insert = async (happening: Happening) => { written.push({ ...happening, address: findOrigin()?.address }) }
  const failures = createFailures({ recorder: { insert, measure: () => 1 }, getKey: () => createSecretKey(Buffer.alloc(32)), onError: (error) => { throw error }, timers })
  t.teardown(() => failures.close())
  const tried = (address: string | undefined, reason: 'wrong_password' | 'paused' = 'wrong_password') => (
    runFor({ via: 'page', ...(address !== undefined && { address }) }, () => failures.recordSignIn('ann', 'ann', { reason })))
  return {
    tried,
    /** The ten events of a series before its summaries. */
    begin (): void { for (let count = 0; count < 10; count++) tried('198.51.100.1') },
    async summaries () {
      timers.advance(MINUTE)
      await failures.settle()
      return written.splice(0).filter(({ count }) => count !== undefined).map(({ reason, count, addresses, address }) => ({ reason, count, addresses, address }))
    }
  }
}

t.test('a summary counts network addresses to 20, and then says more', async (t) => {
  const { tried, begin, summaries } = open(t)
  begin()
  for (const [networks, addresses] of [[1, 1], [19, 19], [20, 20], [21, 'more'], [500, 'more'], [2, 2]] as const) {
    for (let round = 0; round < 2; round++) for (let index = 0; index < networks; index++) tried(`192.0.${index >> 8}.${index & 255}`)
    const last = networks - 1
    t.strictSame(await summaries(), [{ reason: 'wrong_password', count: 2 * networks, addresses, address: `192.0.${last >> 8}.${last & 255}` }], `${networks} addresses`)
  }
  t.strictSame(await summaries(), [], 'nothing more was counted')
})

t.test('a summary counts what a network shares as one address, and none where none is known', async (t) => {
  const { tried, begin, summaries } = open(t)
  begin()
  for (let index = 0; index < 50; index++) tried(`2001:db8:1:2::${index.toString(16)}`)
  t.match(await summaries(), [{ count: 50, addresses: 1, address: '2001:db8:1:2::31' }])
  tried(undefined)
  t.strictSame(await summaries(), [{ reason: 'wrong_password', count: 1, addresses: undefined, address: undefined }])
})

t.test('each reason has its own summary, with its own addresses', async (t) => {
  const { tried, begin, summaries } = open(t)
  begin()
  for (let count = 0; count < 10; count++) tried('198.51.100.1', 'paused')
  for (let index = 0; index < 30; index++) tried(`192.0.2.${index}`)
  tried('203.0.113.7', 'paused')
  const found = await summaries()
  t.strictSame(found.sort((one, other) => one.count! - other.count!), [
    { reason: 'paused', count: 1, addresses: 1, address: '203.0.113.7' },
    { reason: 'wrong_password', count: 30, addresses: 'more', address: '192.0.2.29' }
  ])
})
