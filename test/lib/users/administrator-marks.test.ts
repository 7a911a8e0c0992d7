import t from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { migrateDocuments } from '../../../lib/store/migrator.ts'
import { LAYOUT } from '../../../lib/store/state.ts'
import { createMarking } from '../../../lib/user-changes/administrators.ts'
import { createUserRecord } from '../../../lib/records/user.ts'
import { forEachEngine } from '../../helpers/stores.ts'

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  const users = store.collection<UserRecord>('users')
  const insert = async (id: string, fields: Partial<UserRecord>) => {
    await users.insert({ ...createUserRecord(0, { id, account: id, roles: {}, password: 'p', name: '', info: {} }), ...fields })
  }
  const find = async () => {
    const found: string[] = []
    for await (const batch of users.stream({ filter: { equal: { administers: true } } })) found.push(...batch.map(({ id }) => id))
    return found.sort()
  }
  const mark = async (role: string) => await migrateDocuments(store, { layout: LAYOUT, now: Date.now, marking: createMarking(role) })

  await insert('admin', { roles: { admin: true } })
  await insert('attributes', { roles: { admin: { region: 'all' }, root: true }, expired_at: '2020-01-01T00:00:00.000Z' })
  await insert('disabled', { roles: { admin: true }, disabled_at: '2020-01-01T00:00:00.000Z' })
  await insert('inherited', { roles: { toString: true } as UserRecord['roles'] })
  await insert('stale', { administers: true })
  const early = createUserRecord(0, { id: 'early', account: 'early', roles: { admin: true }, password: 'p', name: '', info: {} })
  await users.insert(Object.fromEntries(Object.entries(early).filter(([field]) => field !== 'revision')) as UserRecord)
  for (let number = 0; number < 120; number++) await insert(`plain-${number}`, {})

  await mark('admin')
  t.strictSame(await find(), ['admin', 'attributes', 'early'], 'existing administrators are marked, and nobody else')
  t.equal((await store.state.read()).state.admin_role, 'admin')
  t.equal((await users.get('admin'))?.revision, 0)

  await users.update('admin', { unset: ['administers'] })
  await mark('admin')
  t.strictSame(await find(), ['attributes', 'early'], 'once: a later start reads no users')

  await mark('root')
  t.strictSame(await find(), ['attributes'], 'again for a role of another name')
  await mark('toString')
  t.strictSame(await find(), ['inherited'])
})
