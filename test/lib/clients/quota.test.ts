import t from 'tap'
import { createClientQuota } from '../../../lib/clients/quota.ts'
import { createClientRecord } from '../../../lib/records/client.ts'
import { openRules } from '../../helpers/services.ts'

const ANN = { isAdmin: false }
const ADMIN = { isAdmin: true }

t.test('the quota counts the clients that a user owns', async (t) => {
  const { records: { clients } } = await openRules(t)
  const add = (userId: string) => clients.insert(createClientRecord(Date.now(), { redirectUris: [], scopes: [], name: 'n', userId }))
  const check = createClientQuota(clients, 2)
  await add('ann')
  await add('bob')
  await check('ann', ANN)
  await add('ann')
  await t.rejects(check('ann', ANN), { code: 'ErrLimit', statusCode: 429, headers: {}, message: 'clients: a user may have at most 2' })
  await check('bob', ANN)
  await check('ann', ADMIN)
  await createClientQuota(clients, false)('ann', ANN)
  await t.rejects(createClientQuota(clients, 0)('nobody', ANN), { code: 'ErrLimit' })
})
