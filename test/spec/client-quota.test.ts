import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { createClient, signIn } from '../helpers/people.ts'

const CLIENT = { data: { redirectUris: [], scopes: [], name: 'n' } }

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { clientsPerUser: 3 })
  const admin = await signIn(kit, { roles: ['admin'] })

  t.test('a user has as many clients as the quota allows', async (t) => {
    const ann = await signIn(kit)
    const ids = [await createClient(ann), await createClient(ann), await createClient(ann)]
    const reply = await ann.post('/client', CLIENT)
    t.match(reply, { status: 429, body: { statusCode: 429, code: 'ErrLimit', error: 'Too Many Requests', message: 'clients: a user may have at most 3' } })
    t.notOk('retry-after' in reply.headers, 'waiting does not help')
    t.match(await ann.patch(`/client/${ids[0]}`, { data: { name: 'changed' } }), { status: 204 }, 'the others are not affected')
    t.match(await ann.delete(`/client/${ids[0]}`), { status: 204 })
    t.match(await ann.post('/client', CLIENT), { status: 200 }, 'a deleted one makes room')
    t.match(await (await signIn(kit)).post('/client', CLIENT), { status: 200 }, 'another user is not affected')
    t.match(await admin.post('/client', { data: { ...CLIENT.data, userId: ann.user_id } }), { status: 200 }, 'an admin registers more for them')
    t.match(await ann.get('/client/count'), { body: { data: { count: 4 } } })
  })

  t.test('concurrent calls may exceed the quota, later ones may not', async (t) => {
    const bob = await signIn(kit)
    const replies = await Promise.all(Array.from({ length: 10 }, () => bob.post('/client', CLIENT)))
    t.ok(replies.filter(({ status }) => status === 200).length >= 3)
    t.match(await bob.post('/client', CLIENT), { status: 429 })
  })

  t.test('an admin has no quota', async (t) => {
    for (let i = 0; i < 5; i++) t.match(await admin.post('/client', CLIENT), { status: 200 })
  })
})
