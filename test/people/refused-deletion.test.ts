import t from 'tap'
import { paramError } from '../../lib/errors.ts'
import { checkRoom } from '../../lib/events/pending.ts'
import { eachStore } from '../oidc/harness.ts'

eachStore(t, 'a deletion of an account that is refused at its last check leaves account and clients', async (t, start) => {
  const { kit, user } = await start({ selfDelete: true })
  const { accounts, clients, users } = kit.app.identity
  const actor = { user_id: user.user_id, isAdmin: false }
  const { clientId } = await clients.create({ data: { name: 'Mine', redirectUris: [], scopes: [] }, credentials: true }, actor)
  let isRefused = true
  const confirmed = {
    confirm: async () => {},
    checkRecord: () => { if (isRefused) throw paramError('current_password', 'is wrong') }
  } as unknown as Parameters<typeof accounts.deleteOwn>[1]
  await t.rejects(accounts.deleteOwn(user.user_id, confirmed), { code: 'ErrParam' })
  t.ok(await users.get(user.user_id))
  t.ok(await clients.require(clientId, actor))
  isRefused = false
  await accounts.deleteOwn(user.user_id, confirmed)
  t.equal(await users.get(user.user_id), null)
  await t.rejects(clients.require(clientId, { user_id: 'operator', isAdmin: true }), { code: 'ErrNotFound' })
})

t.test('a document with 32 waiting events has room for ends of access, and for nothing else', async (t) => {
  const carry = (count: number) => ({ id: 'ann', ...Object.fromEntries(Array.from({ length: count }, (_, index) => [`event:${String(index).padStart(26, '0')}`, { type: 'user.updated' }])) })
  t.doesNotThrow(() => checkRoom(carry(31)))
  t.throws(() => checkRoom(carry(32)), { code: 'ErrBusy' })
  t.doesNotThrow(() => checkRoom(carry(32), true))
  t.throws(() => checkRoom(carry(64), true), { code: 'ErrBusy' })
})
