import t from 'tap'
import type { EventRecord } from '../../../lib/events/types.ts'
import { type Around, wrapStore } from '../../helpers/wrap-store.ts'
import { BEGIN, openEvents, toText } from './harness.ts'

const HOUR = 60 * 60_000

t.test('an event that another relay has published under a later number is left to that relay', async (t) => {
  const { recorder, store, create, connect, readAll, countPending, advance } = await openEvents(t)
  /** Made before the other event, and stored after it was read. */
  const early = { id: 'early', revision: 0, changes: 0, ...recorder.attach(null, { happened: [{ type: 'user.created', id: 'early' }] }) }
  await create('a')
  const other = connect()
  let isStopped = false
  /** The process is suspended for longer than its lease. */
  async function suspend (): Promise<void> {
    isStopped = true
    await store.collection('users').insert(early)
    // A lease that ended over a minute ago is over, whoever holds it.
    advance(70_001)
    await other.flush()
  }
  const around: Around = ({ collection, method }, run) => collection === 'events' && method === 'insertMany' && !isStopped ? suspend().then(run) : run()
  const told: EventRecord[] = []
  const suspended = connect({ store: wrapStore(store, around), onPublished: (records) => { told.push(...records) } })
  await suspended.flush()
  t.ok(isStopped)
  t.strictSame((await readAll()).map(toText), ['user.created early', 'user.created a'])
  t.strictSame(told.map(toText), [], 'this relay has published nothing')
  t.equal(await countPending(), 0)
  await suspended.close()
  await other.close()
})

for (const [back, time] of [[HOUR, BEGIN], [HOUR + 1, BEGIN - HOUR - 1]] as const) {
  t.test(`an event that comes after one of a clock that was ${back} ms ahead ${time === BEGIN ? 'gets its time' : 'keeps its own: that clock was wrong'}`, async (t) => {
    const { create, connect, readAll, advance } = await openEvents(t)
    const relay = connect()
    await create('a')
    await relay.flush()
    advance(-back)
    await create('b')
    await relay.flush()
    t.strictSame((await readAll()).map((record) => [toText(record), record.content?.time]), [
      ['user.created a', new Date(BEGIN).toISOString()], ['user.created b', new Date(time).toISOString()]
    ])
    await relay.close()
  })
}
