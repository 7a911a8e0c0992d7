import t, { type Test } from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { ACCESS } from '../../plugins/access-table.ts'
import type { MintRequest, TestKit } from '../../testing/index.ts'
import { type Build, build as buildApp, forEachStore } from '../helpers/build.ts'
import { addUser } from '../helpers/powers.ts'
import { waitUntil } from '../helpers/wait.ts'
import { createApp } from '../../testing/kit.ts'
import { type Person, callAs, createUser, signIn, unique } from '../helpers/people.ts'

t.setTimeout(240_000)

const ROLES = { support: 'helpdesk' }
const DAY = 24 * 60 * 60_000

/** What support staff may do, written out: nothing else. */
const MAY = ['getUser', 'recoverUser', 'unlockUser', 'listSessionsOfUser', 'endSessionsOfUser', 'endSessionOfUser', 'listFactorsOfUser', 'listMailsOfUser', 'explainSignIn', 'findAccount', 'find'
]

/** Every valid token passes there, or a link needs none. */
const OPEN = ['getTokenInfo', 'logout']
const LINKED = ['verifyAddress']

const ACTS = [
  ['POST', 'unlock'], ['POST', 'recovery'], ['DELETE', 'sessions'], ['DELETE', 'sessions/none'], ['GET', ''], ['GET', 'sessions'], ['GET', 'factors'], ['GET', 'mails'], ['GET', 'sign-in']
] as const

async function support (kit: TestKit, request: MintRequest = {}): Promise<Person> {
  const minted = await kit.support(request)
  return { ...minted, ...callAs(kit, minted.headers) }
}

/** A person with a proved address. */
async function addPerson (kit: TestKit, roles: string[] = []): Promise<{ user_id: string, address: string }> {
  const address = `${unique('person')}@example.com`
  const admin = await signIn(kit, { roles: ['admin'] })
  const user_id = await createUser(admin, { account: address, password: 'correct horse' })
  const held = Object.fromEntries(roles.map((role) => [role, true as const]))
  await admin.patch(`/user/${user_id}`, { data: { email_verified: true, roles: held } })
  return { user_id, address }
}

const readUser = async (kit: TestKit, user_id: string): Promise<UserRecord | null> => await kit.app.identity.store.collection<UserRecord>('users').get(user_id)

/** The mails that were sent to somebody since the last call. */
async function mailsTo (kit: TestKit, address: string): Promise<{ subject: string }[]> {
  await kit.flush()
  return (await kit.mails.all()).filter(({ to }) => to === address)
}

/** Every operation of the document that has a row of the access table, with a request that names this person. */
async function listOperations (kit: TestKit, user_id: string): Promise<{ name: string, method: 'GET', url: string }[]> {
  const { paths } = (await kit.inject('/openapi.json')).json<{ paths: Record<string, Record<string, { operationId: string }>> }>()
  return Object.entries(paths).flatMap(([path, item]) => Object.entries(item).map(([method, { operationId: name }]) => ({
    name, method: method.toUpperCase() as 'GET', url: path.slice('/api/v1'.length).replace('{userId}', user_id).replaceAll(/\{\w+\}/g, 'none')
  }))).filter(({ name }) => Object.hasOwn(ACCESS, name))
}

t.test('support staff can do their rows of the access table, and nothing else', async (t) => {
  const kit = await buildApp(t, { roles: ROLES, personalTokens: { maxDays: 30 } })
  const operations = await listOperations(kit, 'nobody')
  t.strictSame(operations.map(({ name }) => name).sort(), Object.keys(ACCESS).sort(), 'every row of the access table')
  for (const { name, method, url } of operations) {
    if (LINKED.includes(name)) continue
    const staff = await support(kit)
    const { status } = await staff.send({ method, url })
    if (name === 'findAccount' || name === 'find') t.equal(status, 400, `${name}: the name is asked for`)
    else if (MAY.includes(name)) t.equal(status, 404, `${name}: the person is looked for`)
    else if (OPEN.includes(name)) t.ok(status < 300, name)
    else t.equal(status, 403, name)
    // An operator's token with all their power acts on their own account too, as anybody's does.
    if (ACCESS[name]?.any === true || MAY.includes(name)) continue
    t.equal((await support(kit, { scopes: undefined as never }).then((one) => one.send({ method, url }))).status, 403, `${name}: unrestricted`)
  }
  t.strictSame(MAY.filter((name) => ACCESS[name]?.roles?.includes('support') !== true), [], 'each has its row')
  t.strictSame(Object.keys(ACCESS).filter((name) => ACCESS[name]?.roles?.includes('support') === true && !MAY.includes(name)), [])
})

t.test('the scopes are those of the rows', async (t) => {
  const kit = await buildApp(t, { roles: ROLES })
  const { user_id } = await addPerson(kit)
  for (const [method, path] of ACTS) {
    const url = `/user/${user_id}/${path}`.replace(/\/$/, '')
    const needed = method === 'GET' ? 'users:read' : 'users:support'
    for (const scope of ['users:read', 'users:support', 'account:write']) {
      const { status, headers } = await (await support(kit, { scopes: [scope] })).send({ method, url })
      if (scope === needed) t.not(status, 403, `${method} ${path} with ${scope}`)
      else t.match([status, headers['www-authenticate']], [403, new RegExp(`scope="${needed}"`)], `${method} ${path} with ${scope}`)
    }
    t.not((await support(kit, { scopes: ['users:write'] }).then((one) => one.send({ method, url }))).status, 403, 'users:write includes both')
  }
})

t.test('without the option a role called support means nothing', async (t) => {
  const kit = await buildApp(t)
  const { user_id } = await addPerson(kit)
  await t.rejects(kit.support(), { message: /roles.support/ })
  const host = await signIn(kit, { roles: ['support', 'helpdesk'] })
  for (const [method, path] of ACTS) t.equal((await host.send({ method, url: `/user/${user_id}/${path}`.replace(/\/$/, '') })).status, 403, `${method} ${path}`)
  const manager = await signIn(kit, { roles: ['manager'] })
  t.equal((await manager.patch(`/user/${user_id}`, { data: { roles: { support: true } } })).status, 204, 'managers grant it as any other role of the host')
  t.equal((await manager.get(`/user/${user_id}`)).status, 200, 'and its holder is anybody')
})

t.test('an override that names the role of the host lets it do what support staff do', async (t) => {
  const kit = await buildApp(t, { access: { getUser: { roles: ['admin', 'auditor'] }, unlockUser: { roles: ['auditor'] } } })
  const [{ user_id }, { user_id: boss }] = [await addPerson(kit), await addPerson(kit, ['manager'])]
  const auditor = await signIn(kit, { roles: ['auditor'] })
  t.equal((await auditor.get(`/user/${user_id}`)).status, 200)
  t.equal((await auditor.get(`/user/${boss}`)).status, 403, 'of people without a role of the staff')
  t.match(await kit.events.list({ type: 'user.viewed' }), [{ user_id, actor: { user_id: auditor.user_id } }])
  for (const expected of [200, 200, 200, 429]) t.equal((await auditor.post(`/user/${user_id}/unlock`)).status, expected)
})

t.test('the log of the start says how many hold the name already', async (t) => {
  const database = `sqlite:${t.testdir()}/identity.db`
  const before = await buildApp(t, { database })
  // More than one page of users.
  for (let count = 0; count < 130; count++) await addUser(before, count % 10 === 0 ? ['helpdesk'] : ['support'])
  await before.close()
  for (const [roles, expected] of [[ROLES, ['roles.support: users who hold the role helpdesk, and are support staff: 13']], [{}, []]] as const) {
    const lines: string[] = []
    const kit = await buildApp(t, { database, roles, app: createApp({ logger: { level: 'info', stream: { write: (line: string) => { lines.push(JSON.parse(line).msg) } } } }) })
    await kit.app.ready()
    const read = () => lines.filter((line) => line.startsWith('roles.support'))
    if (expected.length > 0) await waitUntil('the line is there', () => read().length > 0)
    await kit.close()
    t.strictSame(read(), expected)
  }
})

async function tryEscalations (t: Test, kit: TestKit): Promise<void> {
  const { user_id } = await addPerson(kit)
  await t.test('nobody with a role of the staff, and not their own account', async (t) => {
    const staff = await support(kit)
    const holders = await Promise.all(['admin', 'manager', 'service', 'helpdesk'].map(async (role) => [role, (await addPerson(kit, [role])).user_id] as const))
    for (const [role, id] of [...holders, ['own', staff.user_id]] as const) {
      for (const [method, path] of ACTS) {
        const { status } = await staff.send({ method, url: `/user/${id}/${path}`.replace(/\/$/, '') })
        t.equal(status, role === 'own' && method === 'GET' ? 200 : 403, `${method} ${path} of ${role}`)
      }
      t.equal((await readUser(kit, id))?.epoch, role === 'own' ? 0 : (await readUser(kit, id))?.epoch)
    }
    const manager = await signIn(kit, { roles: ['manager'] })
    for (const [role, id] of holders) {
      for (const [method, path] of ACTS) {
        // Managers keep the right to recover each other, without the link.
        if (path !== 'recovery') t.equal((await manager.send({ method, url: `/user/${id}/${path}`.replace(/\/$/, '') })).status, 403, `${method} ${path} of ${role}`)
      }
    }
  })

  await t.test('no roles: neither their own nor those of others, and only an administrator gives theirs', async (t) => {
    const staff = await support(kit, { scopes: ['users:read', 'users:write', 'users:support', 'account:write'] })
    for (const id of [staff.user_id, user_id]) t.equal((await staff.patch(`/user/${id}`, { data: { roles: { admin: true } } })).status, 403)
    const [manager, admin] = [await signIn(kit, { roles: ['manager'] }), await signIn(kit, { roles: ['admin'] })]
    t.equal((await manager.patch(`/user/${user_id}`, { data: { roles: { helpdesk: true } } })).status, 403, 'granting')
    t.equal((await manager.patch(`/user/${staff.user_id}`, { data: { roles: {} } })).status, 403, 'removing')
    t.equal((await admin.patch(`/user/${user_id}`, { data: { roles: { helpdesk: true } } })).status, 204)
    t.equal((await admin.patch(`/user/${user_id}`, { data: { roles: {} } })).status, 204)
  })

  await t.test('a recovery goes by mail to a proved address, and to nobody else', async (t) => {
    const staff = await support(kit)
    const { user_id: id, address } = await addPerson(kit)
    t.strictSame((await staff.post(`/user/${id}/recovery`)).body, { data: { sent: true } }, 'without the link')
    t.equal((await mailsTo(kit, address)).filter(({ subject }) => /password/.test(subject)).length, 1)
    const unproved = await createUser(await signIn(kit, { roles: ['admin'] }), { account: `${unique('new')}@example.com`, password: 'correct horse' })
    const nameless = await createUser(await signIn(kit, { roles: ['admin'] }), { account: unique('nameless'), password: 'correct horse' })
    for (const one of [unproved, nameless]) t.match(await staff.post(`/user/${one}/recovery`), { status: 403, body: { code: 'ErrPerm' } })
    // Their own account has the address too, as a mere name.
    const users = kit.app.identity.store.collection<UserRecord>('users')
    await users.update(staff.user_id, { set: { email: address }, increment: { revision: 1 } })
    t.equal((await staff.post(`/user/${id}/recovery`)).status, 403, 'their own mailbox')
  })

  await t.test('a session of somebody else is not found', async (t) => {
    const staff = await support(kit)
    const other = await signIn(kit, {})
    const { grant_id: session } = (await kit.mint({ user: other.user_id, refresh: true, client: unique('app') })) as unknown as { grant_id?: string }
    const sessions = (await staff.get<{ data: { sessions: { session_id: string }[] } }>(`/user/${other.user_id}/sessions`)).body.data.sessions
    t.equal(session, undefined)
    t.equal(sessions.length, 1)
    const [{ session_id } = { session_id: '' }] = sessions
    t.equal((await staff.delete(`/user/${user_id}/sessions/${session_id}`)).status, 404)
    t.match(await staff.get(`/user/${other.user_id}/sessions`), { body: { data: { sessions: [{ session_id }], more: 0 } } })
    t.equal((await staff.delete(`/user/${other.user_id}/sessions/${session_id}`)).status, 204)
    t.strictSame((await staff.get<{ data: { sessions: object[] } }>(`/user/${other.user_id}/sessions`)).body.data.sessions, [])
    t.equal((await other.get('/user')).status, 200, 'another token works')
    t.equal((await staff.delete(`/user/${other.user_id}/sessions`)).status, 204)
    t.equal((await other.get('/user')).status, 401)
  })
}

await forEachStore(t, async (t, build: Build) => {
  t.test('escalation attempts', async (t) => await tryEscalations(t, await build(t, { roles: ROLES })))

  t.test('support staff unlock an account three times a day, each with an event and a mail', async (t) => {
    const kit = await build(t, { roles: ROLES })
    const [staff, admin, { user_id, address }] = [await support(kit), await signIn(kit, { roles: ['admin'] }), await addPerson(kit)]
    const { users } = kit.app.identity
    for (let i = 0; i < 20; i++) await users.verify(address, 'wrong')
    const { body } = await staff.post(`/user/${user_id}/unlock`)
    t.match(body, { data: { opened: [{ part: 'password', reason: 'paused', until: String }], not_closed: [{ part: 'confirmation' }, { part: 'limit' }] } })
    t.match(await users.verify(address, 'correct horse'), { user_id }, 'the password works at once')
    for (let i = 0; i < 2; i++) t.match(await staff.post(`/user/${user_id}/unlock`), { status: 200, body: { data: { opened: [] } } })
    const other = await support(kit)
    t.match(await other.post(`/user/${user_id}/unlock`), { status: 429, headers: { 'retry-after': String } }, 'whoever of them asks')
    t.equal((await mailsTo(kit, address)).filter(({ subject }) => /was unlocked/.test(subject)).length, 3)
    t.match(await kit.events.list({ type: 'user.unlocked', user: user_id }), Array(3).fill({ user_id, actor: { user_id: staff.user_id, via: 'api' } }))
    t.equal((await admin.post(`/user/${user_id}/unlock`)).status, 200, 'an administrator has no limit')
    kit.clock.advance(DAY + 1000)
    t.equal((await (await support(kit)).post(`/user/${user_id}/unlock`)).status, 200, 'a day later')
    t.equal((await readUser(kit, user_id))?.support_unlocks?.length, 1)
  })

  t.test('what support staff read of a person is one event an hour', async (t) => {
    const kit = await build(t, { roles: ROLES })
    const { user_id } = await addPerson(kit)
    const [staff, second] = [await support(kit), await support(kit)]
    for (const path of ['', '/sessions', '/factors', '/mails']) t.equal((await staff.get(`/user/${user_id}${path}`)).status, 200)
    await second.get(`/user/${user_id}`)
    for (const role of ['admin', 'manager']) t.equal((await signIn(kit, { roles: [role] }).then((one) => one.get(`/user/${user_id}`))).status, 200)
    t.equal((await staff.get('/user/nobody')).status, 404)
    const seen = async () => (await kit.events.list({ type: 'user.viewed', user: user_id })).map(({ user_id: of, actor }) => [of, actor.user_id])
    t.strictSame(await seen(), [[user_id, staff.user_id], [user_id, second.user_id]])
    kit.clock.advance(60 * 60_000)
    await (await support(kit, { user: staff.user_id })).get(`/user/${user_id}`)
    t.strictSame((await seen()).length, 3)
  })

  t.test('mails of a person: what was sent, what waits, and what failed, without text, link and address', async (t) => {
    const answers: (Error | null)[] = [Object.assign(new Error('busy'), { responseCode: 450 }), Object.assign(new Error('no such mailbox'), { responseCode: 550 }), null]
    const kit = await build(t, {
      roles: ROLES,
      oidc: { issuer: 'https://id.example' },
      mail: {
        async send () {
          const answer = answers.shift()
          if (answer != null) throw answer
        }
      }
    })
    const { address, user_id } = await (async () => {
      const address = `${unique('person')}@example.com`
      const { users } = kit.app.identity
      const { user_id } = await users.create({ data: { account: address, password: 'correct horse' } }, { verified: true })
      return { address, user_id }
    })()
    const staff = await support(kit)
    const states: string[][] = []
    for (let i = 0; i < 3; i++) {
      t.equal((await staff.post(`/user/${user_id}/recovery`)).status, 200)
      await kit.app.identity.accounts.outbox?.settle()
      await kit.app.identity.events.flush()
      const { body } = await staff.get<{ data: { mails: { state: string }[] } }>(`/user/${user_id}/mails`)
      states.push(body.data.mails.map(({ state }) => state).sort())
      const text = JSON.stringify(body)
      t.notMatch(text, address)
      t.notMatch(text, /https?:/)
    }
    t.strictSame(states, [['waiting'], ['failed', 'waiting'], ['failed', 'sent', 'waiting']])
    const admin = await signIn(kit, { roles: ['admin'] })
    t.match(await admin.get('/jobs?kind=mail&state=failed'), { status: 200, body: { data: [{ kind: 'mail', about: 'recovery', state: 'failed', failure: '550' }] } })
    t.match(await admin.get('/jobs'), { body: { data: [{ state: 'waiting' }, { state: 'failed' }] } })
    const read = async (query: string) => (await admin.get<{ data: { state: string }[] }>(`/jobs${query}`)).body.data.map(({ state }) => state)
    t.strictSame(await read('?limit=1'), ['waiting', 'failed'], 'so many in each state')
    t.strictSame(await read('?limit=1&state=failed'), ['failed'])
    t.strictSame(await read('?limit=0'), await read(''), '0 is no limit')
    t.equal((await admin.get('/jobs?limit=-1')).status, 400)
    t.strictSame((await admin.post('/jobs/retry', { data: { kind: 'mail' } })).body, { data: { retried: 2 } })
    await kit.app.identity.accounts.outbox?.settle()
    t.strictSame((await admin.get('/jobs?kind=mail')).body, { data: [] })
    t.equal((await admin.post('/jobs/retry', { data: { kind: 'mail', job_id: 'none' } })).status, 404)
    t.match(await admin.get('/keys'), { body: { data: { keys: [{ key_id: String, state: 'seals', texts: Number }] } } })
  })
})
