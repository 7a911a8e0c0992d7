import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { CredentialRecord } from '../../lib/way.ts'
import { forEachStore } from '../helpers/build.ts'
import { createClient, createUser, signIn, unique } from '../helpers/people.ts'

await forEachStore(t, async (t, build) => {
  t.test('Records: the ways of a user are in no answer, list, tokeninfo or event, and go with the user', async (t) => {
    const kit = await build(t)
    const { ways, store, events } = kit.app.identity
    const admin = await signIn(kit, { roles: ['admin'] })
    const account = unique('ann')
    const user_id = await createUser(admin, { account, password: 'p' })
    const { id } = await ways.add({ user_id, epoch: 0 }, { kind: 'passkey', key: 'the-key', uv: true, rp: 'rp.example', material: { public_key: 'the-material' } })
    const ann = await kit.mint({ user: account })
    const clientId = await createClient(admin)
    await admin.patch(`/user/${user_id}`, { data: { name: 'Ann' } })
    const asAnn = async (url: string) => await kit.inject({ url: `/api/v1${url}`, headers: ann.headers })
    const asAdmin = async (url: string, accept = '*/*') => await kit.inject({ url: `/api/v1${url}`, headers: { ...admin.headers, accept } })
    const replies = [
      await asAnn('/user'),
      await asAnn('/auth/tokeninfo'),
      await asAdmin(`/user/${user_id}?fields=expired,disabled`),
      await asAdmin('/user/list?fields=expired,disabled'),
      await asAdmin('/user/list?limit=0', 'application/x-ndjson'),
      await asAdmin(`/client/${clientId}`),
      await asAdmin('/event/list')
    ]
    for (const { statusCode, body } of replies) {
      t.equal(statusCode, 200)
      t.notMatch(body, new RegExp(`"ways"|way_keys|the-key|the-material|rp\\.example|${id}`))
    }
    await events.flush()
    t.match(await store.collection<UserRecord>('users').getBy('way_keys', 'the-key'), { id: user_id, name: 'Ann' }, 'a patch keeps them')
    t.equal((await admin.delete(`/user/${user_id}`)).status, 204)
    t.equal(await store.collection<CredentialRecord>('credentials').get(id), null)
    t.equal(await ways.find('the-key'), null)
  })
})
