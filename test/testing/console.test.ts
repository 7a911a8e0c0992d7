import t from 'tap'
import { startIdentity } from '../../testing/index.ts'
import '../helpers/plain-threads.ts'

t.test('a suite signs in to the console', async (t) => {
  const kit = await startIdentity({ t, console: { path: '/admin' } })
  const boss = { account: 'boss', password: 'correct horse' }
  const { user_id } = await kit.app.identity.users.create({ data: { ...boss, name: 'Boss' } })
  await t.rejects(kit.console(boss), /403/, 'without a role it does not open')
  await kit.app.identity.users.patch(user_id, { data: { roles: { admin: true } } }, { user_id: '', isAdmin: true })
  const { open, send } = await kit.console(boss)
  t.match(await open('/people'), 'boss')
  t.match(await send('/people', { action: 'create', account: 'ann', password: 'a horse too' }), 'Created.')
  t.ok(await kit.app.identity.store.collection('users').getBy('account', 'ann'))
  await t.rejects(open('/nothing'), /404/)
})

t.test('without the option', async (t) => {
  const kit = await startIdentity({ t })
  await t.rejects(kit.console({ account: 'ann', password: 'correct horse' }), /console: the option is off/)
})
