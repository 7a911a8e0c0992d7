import t from 'tap'
import { createUses } from '../../../lib/tokens/uses.ts'
import { createClientRecord } from '../../../lib/records/client.ts'
import { createUserRecord } from '../../../lib/records/user.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { forEachEngine } from '../../helpers/stores.ts'

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  await t.test('one write a minute for any number of uses; an end writes the rest', async (t) => {
    let time = Date.UTC(2026, 10, 23)
    const timers: { run: () => void, delay: number }[] = []
    const errors: unknown[] = []
    const open = () => createUses({
      store,
      now: () => time,
      addresses: 'full',
      report: () => (error) => { errors.push(error) },
      timers: { now: () => 0, set: (run, delay) => { timers.push({ run, delay }); return { unref () {} } as never }, clear: () => {} }
    })
    const uses = open()
    for (const id of ['c1', 'c2']) await store.collection('clients').insert(createClientRecord(time, { id, name: id, redirectUris: [], scopes: [], userId: 'u1', revision: 0 }))
    for (let count = 0; count < 100; count++) {
      uses.note('c1', 's1')
      uses.note('c2', 'first')
      time += 10
    }
    uses.note('c1', 'first')
    uses.note('gone', 's1')
    const read = async (id: string) => await store.collection('client_uses').get(id)
    t.equal(await read('c1'), null)
    await uses.flush()
    t.strictSame(await read('c1'), { id: 'c1', 'use:s1': '2026-11-23T00:00:00.990Z', 'use:first': '2026-11-23T00:00:01.000Z' })
    t.strictSame(await read('c2'), { id: 'c2', 'use:first': '2026-11-23T00:00:00.990Z' })
    t.equal(await read('gone'), null, 'a client that was deleted leaves nothing')
    t.strictSame(timers.map(({ delay }) => delay), [60_000], 'one timer')
    const other = open()
    time += 1_000
    other.note('c1', 's1')
    await other.close()
    t.match(await uses.read('c1'), { s1: { time: '2026-11-23T00:00:02.000Z' }, first: { time: '2026-11-23T00:00:01.000Z' } }, 'uses of another process')
    await uses.forget('c1', 's1')
    t.strictSame(Object.keys(await uses.read('c1')), ['first'])
    uses.note('c1', 't1', '203.0.113.9')
    await uses.flush()
    t.match(await read('c1'), { 'use:t1': '2026-11-23T00:00:02.000Z 203.0.113.9' })
    t.strictSame((await other.read('c1')).t1, { time: '2026-11-23T00:00:02.000Z', from: '203.0.113.9' })
    uses.note('c1', 't1')
    await uses.flush()
    t.strictSame((await other.read('c1')).t1, { time: '2026-11-23T00:00:02.000Z', from: undefined }, 'the address is that of the last use')
    await uses.forget('c2')
    t.strictSame(await uses.read('c2'), {})
    t.strictSame(errors, [])
  })

  await t.test('the last use of a user who is deleted while it is written leaves nothing', async (t) => {
    const [users, records] = [store.collection('users'), store.collection('client_uses')]
    await users.insert(createUserRecord(0, { id: 'u9', account: 'u9', name: 'u9', password: '', roles: {}, info: {} }))
    // They are deleted, with what they have used, between the look for them and the write.
    const raced: typeof store = Object.assign(Object.create(store) as typeof store, {
      collection (name: string) {
        if (name !== 'client_uses') return store.collection(name)
        return Object.assign(Object.create(records) as typeof records, {
          update: records.update.bind(records),
          delete: records.delete.bind(records),
          async insert (document: { id: string }) {
            await users.delete('u9')
            await records.delete('user:u9')
            await records.insert(document)
          }
        })
      }
    })
    const uses = createUses({ store: raced, now: () => 0, report: () => (error) => { throw error }, timers: { now: () => 0, set: () => ({ unref () {} }) as never, clear: () => {} } })
    uses.note('user:u9', 't1')
    await uses.flush()
    t.equal(await records.get('user:u9'), null)
  })
})
