import t from 'tap'
import { createRevocations } from '../../../lib/events/revocations.ts'
import type { Happening } from '../../../lib/events/types.ts'
import { createTimers } from '../../helpers/timers.ts'

function start () {
  const timers = createTimers()
  const events: Happening[] = []
  const revocations = createRevocations({ recorder: { insert: async (event) => { events.push(event) }, measure: () => 700 }, onError: (error) => { throw error }, timers })
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

t.test('while too many owners revoke, one event has the count of all that have none, and the owners with most', async (t) => {
  const { events, revocations, revoke } = start()
  for (let owner = 0; owner < 10_000; owner++) await revoke('first', 'app', `owner ${owner}`)
  for (let count = 0; count < 3_000; count++) await revoke('more', 'app', 'one more')
  await revocations.close()
  t.ok(events.length < 1_000, `${events.length} events`)
  t.equal(events.reduce((sum, { count = 1 }) => sum + count, 0), 13_000)
  t.match(events.filter(({ owner_id }) => owner_id === 'one more').reduce((sum, { count = 1 }) => sum + count, 0), 3_000, 'who has most has an event')
  t.match(events.at(-1), { type: 'events.counted', outcome: 'success' })
})
