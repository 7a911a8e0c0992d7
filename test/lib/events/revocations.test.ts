import t from 'tap'
import { createRevocations } from '../../../lib/events/revocations.ts'
import type { Happening } from '../../../lib/events/types.ts'
import { createTimers } from '../../helpers/timers.ts'

function start () {
  const timers = createTimers()
  const events: Happening[] = []
  const revocations = createRevocations({ recorder: { insert: async (event) => { events.push(event) } }, onError: (error) => { throw error }, timers })
  const revoke = async (id: string, client_id = 'app', user_id = 'ann') => await revocations.record({ id, client_id, user_id })
  return { timers, events, revocations, revoke }
}

t.test('the tokens that an owner revokes in a loop are at most 61 events an hour, and none is lost', async (t) => {
  const { timers, events, revocations, revoke } = start()
  for (let second = 0; second < 3600; second++) {
    await revoke(`token ${second}`, `app ${second % 100}`)
    timers.advance(1000)
    await revocations.settle()
  }
  t.ok(events.length <= 61, `${events.length} events`)
  await revocations.close()
  t.equal(events.reduce((sum, { count = 1 }) => sum + count, 0), 3600)
})

t.test('the first is an event of its own, which is durable with the answer; further ones are one a minute', async (t) => {
  const { timers, events, revocations, revoke } = start()
  await revoke('one')
  await revoke('two')
  await revoke('other', 'their app', 'bob')
  t.strictSame(events, [
    { type: 'token.revoked', id: 'one', owner_id: 'ann', client_id: 'app' },
    { type: 'token.revoked', id: 'other', owner_id: 'bob', client_id: 'their app' }
  ])
  await revoke('three')
  timers.advance(60_000)
  await revocations.settle()
  t.strictSame(events[2], { type: 'token.revoked', id: '', owner_id: 'ann', client_id: 'app', count: 2 })
  await revoke('four')
  await revoke('five', 'another app')
  await revocations.flush()
  t.strictSame(events[3], { type: 'token.revoked', id: '', owner_id: 'ann', client_id: undefined, count: 2 }, 'no client, where there are several')
  await revocations.close()
  t.equal(events.length, 4)
})

t.test('while there are too many owners to count, each revocation is an event', async (t) => {
  const { events, revocations, revoke } = start()
  for (let owner = 0; owner < 10_000; owner++) await revoke('first', 'app', `owner ${owner}`)
  for (let count = 0; count < 3; count++) await revoke('more', 'app', 'one more')
  t.equal(events.length, 10_003)
  await revocations.close()
})
