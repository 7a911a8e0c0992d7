import t from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { startIdentity } from '../../testing/index.ts'
import { type Reply, createClient, signIn } from '../helpers/people.ts'
import { forEachEngine } from '../helpers/stores.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

const REFUSED = { status: 503, headers: { 'retry-after': String }, body: { code: 'ErrBusy', reason: 'events' } }
const DONE = { status: 204 }

/** Changes a record until no more of its events may wait. */
async function fill (change: (name: string) => Promise<Reply>): Promise<Reply> {
  for (let count = 0; ; count++) {
    const reply = await change(`name ${count}`)
    if (reply.status !== 204) return reply
    if (count === 64) throw new Error('there is always room')
  }
}

await forEachEngine(t, { collections: COLLECTIONS }, async (t, inner) => {
  const released = Promise.withResolvers<void>()
  let isHanging = false
  const store = wrapStore(inner, ({ collection, method }, run) => isHanging && collection === 'events' && /^insert|^put/.test(method) ? released.promise.then(run) : run())
  const kit = await startIdentity({ t, store, rateLimit: false })
  t.teardown(() => released.resolve())
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit, { roles: ['editor'] })
  const thief = await signIn(kit, { user: ann.user_id })
  const clientId = await createClient(ann, {}, { credentials: true })
  const { id } = (await ann.post<{ data: { id: string } }>(`/client/${clientId}/secret`, { data: { name: 'lost' } })).body.data
  await kit.flush()
  isHanging = true

  const refused = await Promise.all([
    fill(async (name) => await ann.patch('/user', { data: { name } })),
    fill(async (name) => await ann.patch(`/client/${clientId}`, { data: { name } }))
  ])
  t.match(refused, [REFUSED, REFUSED], 'the relay hangs, and 32 events of the user and of the client wait')

  t.match(await ann.delete('/auth/sessions'), DONE, 'the others can still be signed out')
  t.match(await thief.get('/user'), { status: 401 }, 'and are')
  t.match(await ann.get('/user'), { status: 200 })
  t.match(await ann.delete(`/client/${clientId}/secret/${id}`), DONE, 'a lost secret can be removed')
  t.match(await ann.patch(`/client/${clientId}`, { data: {}, regen_secret: true }), DONE, 'and another one replaced')
  t.match(await admin.patch(`/client/${clientId}`, { data: { disabled: true } }), DONE, 'a client can be disabled')
  t.match(await admin.patch(`/user/${ann.user_id}`, { data: { roles: {} } }), DONE, 'a role can be taken')
  t.match(await admin.patch(`/user/${ann.user_id}`, { disable: true }), DONE, 'and the user disabled')
  t.match(await ann.get('/user'), { status: 401 })
  t.match((await kit.app.identity.store.collection<{ id: string, disabled_at?: string }>('users').get(ann.user_id))?.disabled_at, String)

  released.resolve()
  const told = (await kit.events.list({ user: ann.user_id })).map(({ type }) => type)
  for (const type of ['user.sessions_ended', 'client.secret_removed', 'client.secret_changed', 'user.roles_changed', 'user.disabled']) {
    t.equal(told.filter((one) => one === type).length, 1, `${type} is told once`)
  }
})
