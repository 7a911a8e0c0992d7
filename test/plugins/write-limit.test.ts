import t from 'tap'
import { build } from '../helpers/build.ts'
import { createClient, createUser, signIn, unique } from '../helpers/people.ts'

const LIMITED = { status: 429, headers: { 'retry-after': /^([1-9]|[1-5]\d|60)$/ }, body: { statusCode: 429, code: 'ErrLimit', error: 'Too Many Requests' } }
const CLIENT = { data: { redirectUris: [], scopes: [], name: 'n' } }

t.test('the changes of a user are limited, over all operations and all their tokens', async (t) => {
  const kit = await build(t, { writeLimit: 4 })
  const ann = await signIn(kit)
  const clientId = await createClient(ann)
  t.match([
    await ann.patch(`/client/${clientId}`, { data: { name: 'm' } }),
    await ann.patch('/user', { data: { name: 'Ann' } }),
    await ann.delete(`/client/${clientId}`)
  ], [{ status: 204 }, { status: 204 }, { status: 204 }])
  const again = await signIn(kit, { user: ann.account })
  for (const caller of [ann, again]) {
    t.match([
      await caller.post('/client', CLIENT),
      await caller.patch(`/client/${clientId}`, { data: { name: 'm' } }),
      await caller.delete(`/client/${clientId}`),
      await caller.delete(`/client/user/${ann.user_id}`),
      await caller.patch('/user', { data: { name: 'Bob' } }),
      await caller.patch('/user', { data: { password: 'new' } }),
      await caller.delete('/auth/sessions'),
      await caller.delete('/auth/sessions?regen_secrets=true')
    ], Array(8).fill(LIMITED))
  }
  t.match([await ann.get('/user'), await ann.get('/client/list'), await ann.send({ method: 'HEAD', url: '/client/count' })], [{ body: { data: { name: 'Ann' } } }, { status: 200 }, { status: 200 }])
  t.match(await (await signIn(kit)).post('/client', CLIENT), { status: 200 }, 'another user is not limited')
})

t.test('only requests that could write are counted', async (t) => {
  const kit = await build(t, { writeLimit: 1 })
  const ann = await signIn(kit)
  for (let i = 0; i < 3; i++) {
    t.match(await ann.get('/client/list'), { status: 200 })
    t.match(await ann.post('/client', { data: {} }), { status: 400 })
    t.match(await ann.post('/user', { data: { account: unique('u'), password: 'p' } }), { status: 403 })
    t.match(await ann.patch(`/user/${ann.user_id}`, { data: { roles: { admin: true } } }), { status: 403 })
  }
  t.match(await ann.post('/client', CLIENT), { status: 200 })
  t.match(await ann.post('/client', CLIENT), LIMITED)
})

t.test('a manager is limited, and an admin is not', async (t) => {
  const kit = await build(t, { writeLimit: 2, clientsPerUser: 1 })
  const [admin, manager] = [await signIn(kit, { roles: ['admin'] }), await signIn(kit, { roles: ['manager'] })]
  const user_id = await createUser(admin)
  const disable = () => manager.patch(`/user/${user_id}`, { disable: true })
  t.match([await disable(), await disable(), await disable()], [{ status: 204 }, { status: 204 }, LIMITED])
  for (let i = 0; i < 5; i++) {
    t.match(await admin.post('/client', CLIENT), { status: 200 })
    t.match(await admin.patch(`/user/${user_id}`, { disable: false }), { status: 204 })
    t.match(await admin.patch('/user', { data: { name: `${i}` } }), { status: 204 })
  }
})

t.test('the limit counts in one-minute windows; Retry-After is in whole seconds', async (t) => {
  let ttl = 0
  const counted: unknown[] = []
  const kit = await build(t, { writeLimit: 2, counter: { count: async (...args) => ({ current: counted.push(args), ttl }) } })
  const ann = await signIn(kit)
  const change = { data: { name: 'Ann' } }
  t.match([await ann.patch('/user', change), await ann.patch('/user', change)], [{ status: 204 }, { status: 204 }])
  for (const [milliseconds, seconds] of [[60_000, '60'], [1_001, '2'], [1_000, '1'], [0, '1']] as const) {
    ttl = milliseconds
    t.match(await ann.patch('/user', change), {
      status: 429, headers: { 'retry-after': seconds }, body: { code: 'ErrLimit', message: `too many changes, try again in ${seconds} s` }
    })
  }
  t.strictSame(counted[0], ['write', ann.user_id, 60_000])
})

t.test('rateLimit: false switches it off, and the kit does unless it is asked', async (t) => {
  for (const options of [{ rateLimit: false, writeLimit: 1, clientsPerUser: 1 }, {}] as const) {
    const kit = await build(t, options)
    const ann = await signIn(kit)
    for (let i = 0; i < 125; i++) {
      const { status } = await ann.post('/client', CLIENT)
      if (status !== 200) t.fail(`client ${i}: ${status}`)
    }
    t.match(await ann.get('/client/count'), { body: { data: { count: 125 } } })
  }
})
