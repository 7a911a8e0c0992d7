import t from 'tap'
import { createTickets } from '../../lib/tickets/tickets.ts'
import { forEachStore } from '../helpers/build.ts'
import { createCli } from '../helpers/cli.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'

/** Names that would reorder, break or hide text, each with the character that the error names. */
const REFUSED: [name: string, character: string][] = [
  ['Ann\u202Enimda', 'bidirectional control U+202E'],
  ['Ann\r\nAdministrator', 'control character U+000D'],
  ['Ann\0', 'control character U+0000'],
  ['An\u200Bn', 'invisible character U+200B'],
  ['Ann\u2028', 'line separator U+2028']
]

const NAMES = ['Ann Ångström', '王小明', 'محمد', 'क्‍ष', '👩‍💻 Ann', '']

t.test('new names of users have no control, bidirectional or invisible characters, by whatever road', async (t) => {
  await forEachStore(t, async (t, build) => {
    const kit = await build(t, { signUp: true })
    const admin = await signIn(kit, { roles: ['admin'] })
    const user_id = await createUser(admin)
    const ann = await signIn(kit, { user: user_id })
    const anybody = callAs(kit)
    const tickets = createTickets({ store: kit.app.identity.store, now: kit.clock.now })
    const address = `${unique('new')}@example.com`
    let link = await tickets.issue({ purpose: 'sign-up', address, mailed: true })
    const roads: Record<string, (name: string) => Promise<{ status: number, body: unknown }>> = {
      'POST /user': async (name) => await admin.post('/user', { data: { account: unique('u'), password: 'p', name } }),
      'PATCH /user/{userId}': async (name) => await admin.patch(`/user/${user_id}`, { data: { name } }),
      'PATCH /user': async (name) => await ann.patch('/user', { data: { name } }),
      'POST /user/invite': async (name) => await admin.post('/user/invite', { data: { account: unique('u'), name } }),
      'POST /auth/reset': async (name) => await anybody.post('/auth/reset', { data: { token: link, password: 'the first password', name } })
    }
    for (const [road, send] of Object.entries(roads)) {
      for (const [name, character] of REFUSED) {
        t.match(await send(name), { status: 400, body: { code: 'ErrParam', message: `name: must not contain the ${character}` } }, `${road}: ${character}`)
      }
      for (const name of NAMES) {
        if (road === 'POST /auth/reset') link = await tickets.issue({ purpose: 'sign-up', address: `${unique('new')}@example.com`, mailed: true })
        t.match((await send(name)).status, /^20[04]$/, `${road}: ${JSON.stringify(name)}`)
      }
    }
  })
})

t.test('a refused name of a sign-up leaves the link', async (t) => {
  await forEachStore(t, async (t, build) => {
    const kit = await build(t, { signUp: true })
    const token = await createTickets({ store: kit.app.identity.store, now: kit.clock.now }).issue({ purpose: 'sign-up', address: 'new@example.com', mailed: true })
    const send = async (name: string) => (await callAs(kit).post('/auth/reset', { data: { token, password: 'the first password', name } })).status
    t.equal(await send('Ann\u202E'), 400)
    t.equal(await send('Ann'), 204)
  })
})

t.test('a stored name stays: no change of another field fails, and neither does sending the name back', async (t) => {
  await forEachStore(t, async (t, build) => {
    const kit = await build(t)
    const admin = await signIn(kit, { roles: ['admin'] })
    const user_id = await createUser(admin, { account: unique('u'), password: 'the first password' })
    const ann = await signIn(kit, { user: user_id })
    const name = 'Ann\u202E\n'
    await kit.app.identity.store.collection('users').update(user_id, { set: { name } })
    t.equal((await admin.patch(`/user/${user_id}`, { data: { info: { a: 1 } } })).status, 204)
    t.equal((await ann.patch('/user', { data: { info: { a: 2 } } })).status, 204)
    t.equal((await admin.patch(`/user/${user_id}`, { data: { name, info: { a: 3 } } })).status, 204)
    t.equal((await ann.patch('/user', { data: { name, info: { a: 4 } } })).status, 204)
    t.match((await admin.get(`/user/${user_id}`)).body, { data: { name, info: { a: 4 } } })
    t.equal((await ann.patch('/user', { data: { name: `${name}!` } })).status, 400, 'another one is refused')
  })
})

t.test('the command line refuses them too', async (t) => {
  const run = createCli(t.testdir(), { IDENTITY_OIDC: 'on' })
  for (const [name, character] of REFUSED.filter(([name]) => !name.includes('\0'))) {
    const { code, stderr } = await run(['user', 'create', '--account', 'ann', '--name', name, '--password-stdin'], { stdin: 'the first password' })
    t.not(code, 0)
    t.match(stderr, character)
  }
})
