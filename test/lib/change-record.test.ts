import t from 'tap'
import { type Decision, changeRecord } from '../../lib/change-record.ts'
import { IdentityError } from '../../lib/errors.ts'
import { type Happening, toRecorded } from '../../lib/events/types.ts'
import type { Notice } from '../../lib/notice.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Document } from '../../lib/store/port.ts'
import { createTestRecorder } from '../helpers/events.ts'

interface Counted extends Document {
  revision?: number
  count: number
}

const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
t.teardown(() => store.close())
const collection = store.collection<Counted>('meta')
const parts = {
  collection, recorder: createTestRecorder(store, Date.now), what: 'the count', notFound: () => new IdentityError('ErrNotFound', 'count: none')
}
const add = ({ count }: Counted) => ({ set: { count: count + 1 } })

t.beforeEach(async () => { await collection.put({ id: 'counted', revision: 0, count: 0 }) })

t.test('many changes at once: each decides on what the one before it has written', async (t) => {
  const ends = await Promise.allSettled(Array.from({ length: 6 }, async () => await changeRecord(parts, 'counted', add)))
  t.strictSame(ends.map(({ status }) => status), Array(6).fill('fulfilled'))
  t.strictSame(await collection.get('counted'), { id: 'counted', revision: 6, count: 6 })
})

t.test('a write while the rule is checked: the rule is checked again, on the record that the change replaces', async (t) => {
  const seen: number[] = []
  const written = await changeRecord(parts, 'counted', async (record) => {
    if (seen.push(record.count) === 1) await collection.update('counted', { set: { count: 40 }, increment: { revision: 1 } })
    return add(record)
  })
  t.strictSame(seen, [0, 40])
  t.match(written, { count: 41, revision: 2 })
})

t.test('a record of an early release, without a revision: a write while the rule is checked is not lost either', async (t) => {
  await collection.put({ id: 'counted', count: 0 })
  let checks = 0
  const written = await changeRecord(parts, 'counted', async (record) => {
    if (++checks === 2) await collection.update('counted', { set: { count: 40 }, increment: { revision: 1 } })
    return add(record)
  })
  t.strictSame(written.count, 41)
})

t.test('null writes nothing, and answers the record as it is', async (t) => {
  t.strictSame(await changeRecord(parts, 'counted', () => null), { id: 'counted', revision: 0, count: 0 })
  t.strictSame((await collection.get('counted'))?.revision, 0)
})

t.test('a refused change, and one of a record that is not there: nothing is written', async (t) => {
  await t.rejects(changeRecord(parts, 'counted', () => { throw new Error('not allowed') }), { message: 'not allowed' })
  await t.rejects(changeRecord(parts, 'other', add), { code: 'ErrNotFound', message: 'count: none' })
  t.strictSame((await collection.get('counted'))?.revision, 0)
})

t.test('a record that others never stop changing: ErrBusy, which names it', async (t) => {
  const busy = async (record: Counted) => {
    await collection.update('counted', { increment: { revision: 1 } })
    return add(record)
  }
  await t.rejects(changeRecord(parts, 'counted', busy), { code: 'ErrBusy', message: 'other requests are changing the count' })
  t.strictSame((await collection.get('counted'))?.count, 0)
})

t.test('the events are written with the change', async (t) => {
  const happened: Happening[] = [{ type: 'user.updated', id: 'counted', changed: ['count'] }]
  const written = await changeRecord(parts, 'counted', (record) => ({ ...add(record), happened }))
  const events = Object.entries(written).filter(([field]) => field.startsWith('event:'))
  t.match(events.map(([, event]) => event), [{ type: 'user.updated', changed: ['count'] }])
})

t.test('the mails about a change are stored beside its first event, and there are none without an event', async (t) => {
  const notices: Notice[] = [{ kind: 'password-changed', user_id: 'counted', to: 'ann@example.com', time: '2126-11-21T00:00:00.000Z' }]
  // @ts-expect-error: it has no event
  const without: Decision = { set: { count: 1 }, notices }
  t.throws(() => toRecorded(without.happened ?? [], notices), /needs an event/)
  t.strictSame(toRecorded([]), {})
  const happened: [Happening, Happening] = [{ type: 'user.password_changed', id: 'counted' }, { type: 'user.updated', id: 'counted' }]
  let calls = 0
  const written = await changeRecord(parts, 'counted', async (record) => {
    // Another write comes between, so it decides twice.
    if (calls++ === 0) await collection.update('counted', { increment: { revision: 1 } })
    return { ...add(record), happened, notices }
  })
  const fields = Object.entries(written).filter(([field]) => /^event(_notice)?:/.test(field))
  t.equal(calls, 2)
  const [event] = fields.find(([, value]) => (value as { type?: string }).type === 'user.password_changed')!
  t.strictSame(fields.filter(([field]) => field.startsWith('event_notice:')), [[event.replace('event:', 'event_notice:'), notices]])
  t.equal(fields.length, 3)
  t.notMatch(JSON.stringify(fields.filter(([field]) => field.startsWith('event:'))), 'ann@example.com')
})
