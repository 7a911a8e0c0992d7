import t from 'tap'
import { examine } from '../../../lib/maintenance/doctor.ts'
import type { UserRecord } from '../../../lib/records/user.ts'
import { openStore } from '../../../lib/store/index.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { createOrphans, sweepOrphans } from '../../../lib/ways/orphans.ts'
import { forEachStore } from '../../helpers/build.ts'
import { importLines } from '../../helpers/import.ts'
import { unique } from '../../helpers/people.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { startIdentity } from '../../../testing/index.ts'

const TIME = '2126-11-23T00:00:00.000Z'
const toMaterial = (id: string, user_id: string): CredentialRecord => ({ id, user_id, way: { kind: 'totp' }, material: {}, created_at: TIME, revision: 0 })

await forEachStore(t, async (t, build) => {
  t.test('material without a user is removed, unless it is written again or its user comes', async (t) => {
    const { store, users } = (await build(t)).app.identity
    const credentials = store.collection<CredentialRecord>('credentials')
    const { user_id } = await users.create({ data: { account: unique('ann'), password: 'a password' } })
    const [gone, again, late, begun] = ['gone', 'again', 'late', 'begun'].map((name) => unique(name)) as [string, string, string, string]
    for (const id of [gone, again, late]) await credentials.insert(toMaterial(id, `user-${id}`))
    await credentials.insert(toMaterial(begun, user_id))
    const { find, remove } = createOrphans(store)
    const found = await find()
    t.strictSame(found.map(({ id }) => id).sort(), [again, gone, late].sort())
    await credentials.put({ ...toMaterial(again, `user-${again}`), revision: 1 })
    await store.collection<UserRecord>('users').insert({ ...(await store.collection<UserRecord>('users').get(user_id))!, id: `user-${late}`, account: late })
    await remove(found)
    const kept = (await Array.fromAsync(credentials.stream())).flat().map(({ id }) => id).sort()
    t.strictSame(kept, [again, begun, late].sort(), 'that of a user who has only begun to enrol stays as well')
  })
})

t.test('a run that is killed between the material and the user leaves nothing for ever', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  const broken = { isDead: true }
  const store = wrapStore(inner, ({ collection, method }, run) => {
    if (broken.isDead && collection === 'users' && method === 'insert') throw new Error('killed')
    return run()
  })
  const kit = await startIdentity({ t, store })
  const line = { account: unique('ann'), totp: [{ secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }], identities: [{ issuer: 'https://login.example', subject: 'ann' }] }
  await t.rejects(importLines(kit.app.identity, [line]), /killed/)
  broken.isDead = false
  t.match((await importLines(kit.app.identity, [line])).verdicts, [{ result: 'created' }])
  t.equal(await inner.collection('credentials').count(), 4)
  t.match(await Array.fromAsync(examine(inner, { now: Date.now })), [{ check: 'remains', message: /^credentials of users whose import or deletion was interrupted, .*: 2$/ }])

  const waits: number[] = []
  const ending = new AbortController()
  const wait = async (time: number) => {
    waits.push(time)
    if (waits.length === 4) ending.abort()
  }
  await sweepOrphans({ store: inner, signal: ending.signal, wait, onError: (error) => { throw error } })
  const hour = 60 * 60_000
  t.strictSame(waits, [hour, hour, 24 * hour, 24 * hour], 'an hour between the two looks of a day')
  t.equal(await inner.collection('credentials').count(), 2)
  t.strictSame(await Array.fromAsync(examine(inner, { now: Date.now })), [])
})

t.test('a failure of the store is reported, and the next look is a day later', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  await inner.collection('credentials').insert(toMaterial('way', 'nobody'))
  let calls = 0
  const store = wrapStore(inner, (_call, run) => {
    if (calls++ === 0) throw new Error('unreachable')
    return run()
  })
  const ending = new AbortController()
  const errors: unknown[] = []
  let waits = 0
  await sweepOrphans({ store, signal: ending.signal, wait: async () => { if (++waits === 4) ending.abort() }, onError: (error) => errors.push(error) })
  t.match(errors, [{ message: 'unreachable' }])
  t.equal(await inner.collection('credentials').count(), 0)
})
