import t, { type Test } from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { MintRequest, TestKit } from '../../testing/index.ts'
import { type Build, build as buildApp, forEachStore } from '../helpers/build.ts'
import { type Person, callAs, createUser, signIn, unique } from '../helpers/people.ts'
import { API_SCOPES, addUser, declareResource, issue } from '../helpers/powers.ts'
import { type Around, wrapStore } from '../helpers/wrap-store.ts'
import { eachStore, getCode } from '../oidc/harness.ts'

// What support staff, and whoever has stolen their token, try beyond what they may.

t.setTimeout(240_000)

const ROLE = 'helpdesk'
const ROLES = { support: ROLE }
const SCOPES = ['users:read', 'users:support']

/** What support staff do about one person. */
const READS = ['', '/sessions', '/factors', '/mails', '/sign-in']
const ACTS = [['POST', '/unlock'], ['POST', '/recovery'], ['DELETE', '/sessions'], ['DELETE', '/sessions/none']] as const

async function support (kit: TestKit, request: MintRequest = {}): Promise<Person> {
  const minted = await kit.support(request)
  return { ...minted, ...callAs(kit, minted.headers) }
}

/** A person with a proved address. */
async function addPerson (kit: TestKit, roles: Record<string, true> = {}): Promise<{ user_id: string, address: string }> {
  const address = `${unique('person')}@example.com`
  const admin = await signIn(kit, { roles: ['admin'] })
  const user_id = await createUser(admin, { account: address, password: 'correct horse' })
  await admin.patch(`/user/${user_id}`, { data: { email_verified: true, roles } })
  return { user_id, address }
}

/** The links for a new password that were mailed since the last call, and to whom. */
async function listLinks (kit: TestKit): Promise<{ to: string, token: string }[]> {
  await kit.flush()
  return (await kit.mails.all()).flatMap(({ to, text }) => {
    const token = /\/reset\S*token=([\w-]+)/.exec(text)?.[1]
    return token === undefined ? [] : [{ to, token }]
  })
}

const countStarted = async (kit: TestKit, user: string): Promise<number> => (await kit.events.list({ type: 'user.recovery_started', user })).length

await forEachStore(t, async (t, build: Build) => {
  t.test('who asks for a recovery finds the link nowhere', async (t) => {
    const kit = await build(t, { roles: ROLES })
    const receiver = await kit.webhooks.receive()
    const { user_id, address } = await addPerson(kit)
    const staff = await support(kit)
    const seen = [await staff.post(`/user/${user_id}/recovery`)]
    const [{ to, token } = { to: '', token: '' }] = await listLinks(kit)
    t.equal(to, address)
    t.match(token, /^[\w-]{20,}$/, 'the person has it')
    for (const path of READS) seen.push(await staff.get(`/user/${user_id}${path}`))
    seen.push(await staff.get(`/user/sign-in?account=${encodeURIComponent(address)}`))
    const admin = await signIn(kit, { roles: ['admin'] })
    for (const path of ['/jobs', '/event/list', '/event/feed?wait=0']) seen.push(await admin.get(path))
    for (const { status, body } of seen) {
      t.equal(status, 200)
      t.notOk(JSON.stringify(body).includes(token))
      t.notMatch(JSON.stringify(body), /token=/)
    }
    t.notOk(JSON.stringify(await kit.events.list()).includes(token))
    const told = await receiver.all()
    t.ok(told.some(({ type }) => type === 'mail.sent'))
    t.notOk(JSON.stringify(told).includes(token))
  })

  t.test('unlocks in parallel, by several staff and a service account, are three', async (t) => {
    const kit = await build(t, { roles: ROLES })
    const elsewhere = await declareResource(kit)
    const { user_id, address } = await addPerson(kit)
    const staff = [await support(kit), await support(kit), await issue(kit, elsewhere, { kind: 'service', scopes: SCOPES, roles: [ROLE], ownerRoles: [] })]
    const answers = await Promise.all(Array.from({ length: 15 }, async (_, index) => (await staff[index % 3]!.post(`/user/${user_id}/unlock`)).status))
    t.equal(answers.filter((status) => status === 200).length, 3, String(answers))
    t.strictSame(answers.filter((status) => ![200, 429, 503].includes(status)), [])
    t.equal((await kit.events.list({ type: 'user.unlocked', user: user_id })).length, 3)
    await kit.flush()
    t.equal((await kit.mails.all()).filter(({ to, subject }) => to === address && /was unlocked/.test(subject)).length, 3)
  })

  t.test('nobody is recovered whose demanded factor is missing: the mailbox alone would then do', async (t) => {
    const kit = await build(t, { roles: ROLES, factors: { roles: ['clerk'] } })
    const [clerk, other] = [await addPerson(kit, { clerk: true }), await addPerson(kit)]
    const [staff, admin] = [await support(kit), await signIn(kit, { roles: ['admin'] })]
    t.match(await staff.post(`/user/${clerk.user_id}/recovery`), { status: 403, body: { code: 'ErrPerm', message: /two-factor authentication is missing/ } })
    t.equal((await staff.post(`/user/${other.user_id}/recovery`)).status, 200, 'it is demanded of others')
    t.equal(await countStarted(kit, clerk.user_id), 0)
    t.strictSame((await listLinks(kit)).map(({ to }) => to), [other.address])
    await kit.totp(clerk.user_id)
    t.equal((await staff.post(`/user/${clerk.user_id}/recovery`)).status, 200, 'who has one proves it beside the link')
    await admin.post(`/user/${clerk.user_id}/factors/reset`)
    t.equal((await staff.post(`/user/${clerk.user_id}/recovery`)).status, 403, 'after a reset of factors')
    const linksOf = async () => {
      await kit.flush()
      return (await kit.mails.all()).filter(({ to, text }) => to === clerk.address && /enrol/.test(text)).length
    }
    await linksOf()
    t.equal((await admin.post(`/user/${clerk.user_id}/recovery`)).status, 200, 'an administrator may')
    t.equal(await linksOf(), 1)
  })

  t.test('a service account is support staff as people are, and its owner is not among those it helps', async (t) => {
    const kit = await build(t, { roles: ROLES })
    const elsewhere = await declareResource(kit)
    const [{ user_id }, { user_id: boss }] = [await addPerson(kit), await addPerson(kit, { manager: true })]
    const service = await issue(kit, elsewhere, { kind: 'service', scopes: SCOPES, roles: [ROLE], ownerRoles: ['admin'] })
    for (const path of READS) t.equal((await service.get(`/user/${user_id}${path}`)).status, 200, path)
    t.match(await kit.events.list({ type: 'user.viewed', user: user_id }), [{ actor: { client_id: service.client_id } }])
    const plain = await issue(kit, elsewhere, { kind: 'service', scopes: SCOPES, roles: [ROLE], ownerRoles: [] })
    for (const [method, path] of ACTS) {
      t.not((await service.send({ method, url: `/user/${user_id}${path}` })).status, 403, `${method} ${path}`)
      for (const id of [boss, service.user_id, plain.user_id]) {
        t.equal((await (id === plain.user_id ? plain : service).send({ method, url: `/user/${id}${path}` })).status, 403, `${method} ${path} of ${id}`)
      }
    }
    for (const kind of ['own', 'narrowed', 'third-party', 'API audience'] as const) {
      const ofOwner = await issue(kit, elsewhere, { kind, scopes: SCOPES, ownerRoles: kind === 'own' ? [ROLE] : [] })
      t.equal((await ofOwner.get(`/user/${user_id}`)).status, 403, `${kind}: the role of its owner is not its own`)
    }
  })
})

t.test('recovery by support staff is refused where no mail is sent, and whose the link would be', async (t) => {
  const kit = await buildApp(t, { roles: ROLES, mail: undefined as never })
  const { user_id } = await addPerson(kit)
  t.match(await (await support(kit)).post(`/user/${user_id}/recovery`), { status: 403, body: { code: 'ErrPerm', message: /no email is sent/ } })
  t.equal(await countStarted(kit, user_id), 0)
  t.match(await (await signIn(kit, { roles: ['manager'] })).post(`/user/${user_id}/recovery`), { status: 403 })
  t.match(await (await signIn(kit, { roles: ['admin'] })).post(`/user/${user_id}/recovery`), { status: 200, body: { data: { sent: false, link: /token=/ } } })
})

/** Called once, at a store call of this name with this first argument. */
let meanwhile: { call: string, target?: string, act: () => Promise<unknown> } | undefined

const around: Around = async ({ collection, method, args }, run) => {
  const { call, target = args[0], act } = meanwhile ?? {}
  const isRead = method === 'get' || method === 'getLinked'
  if (call !== `${collection}.${isRead ? 'get' : method}` || target !== args[0] || act === undefined) return run()
  meanwhile = undefined
  // What is read is from before, what is written comes after.
  const found = isRead ? await run() : undefined
  await act()
  return isRead ? found : run()
}

async function buildRaced (t: Test): Promise<TestKit> {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, (call, run) => (call.method === 'getLinked' && call.collection !== 'users') || call.method === 'page' || call.method === 'stream' ? run() : around(call, run))
  return await buildApp(t, { store, roles: ROLES, rateLimit: false })
}

t.test('who loses the role of support staff during a request gets no answer, and does nothing', async (t) => {
  const kit = await buildRaced(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const users = kit.app.identity.store.collection<UserRecord>('users')
  for (const [method, path] of [...READS.map((path) => ['GET', path] as const), ...ACTS]) {
    for (const [how, change, status] of [['the role', { data: { roles: {} } }, 403], ['everything', { disable: true }, 401]] as const) {
      const staff = await support(kit)
      const { user_id, address } = await addPerson(kit)
      await kit.flush()
      const before = await users.get(user_id)
      let isMade = false
      meanwhile = { call: 'users.get', target: user_id, act: async () => { isMade = (await admin.patch(`/user/${staff.user_id}`, change)).status === 204 } }
      t.equal((await staff.send({ method, url: `/user/${user_id}${path}` })).status, status, `${method} ${path}, who loses ${how}`)
      t.ok(isMade, 'meanwhile')
      await kit.flush()
      t.strictSame(await users.get(user_id), before, 'nothing is written')
      t.strictSame((await kit.mails.all()).filter(({ to, subject }) => to === address && !/confirmed/.test(subject)), [])
    }
  }
})

t.test('a manager who stays support staff during a request is support staff at its end', async (t) => {
  const kit = await buildRaced(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const users = kit.app.identity.store.collection<UserRecord>('users')
  for (const [method, path] of [['GET', ''], ...ACTS] as const) {
    const { user_id } = await addPerson(kit)
    const staff = await signIn(kit, { roles: ['manager', ROLE] })
    meanwhile = { call: 'users.get', target: user_id, act: async () => await admin.patch(`/user/${staff.user_id}`, { data: { roles: { [ROLE]: true } } }) }
    t.equal((await staff.send({ method, url: `/user/${user_id}${path}` })).status, 403, `${method} ${path}`)
    t.match(await users.get(user_id), { epoch: 0, support_unlocks: undefined })
    t.equal((await kit.events.list({ type: 'user.unlocked', user: user_id })).length, 0)
  }
})

t.test('who gets a role of the staff, in whatever order, is helped no more', async (t) => {
  const kit = await buildRaced(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const users = kit.app.identity.store.collection<UserRecord>('users')
  for (const role of ['admin', 'manager', 'service', ROLE]) {
    for (const [method, path] of [['POST', '/unlock'], ['DELETE', '/sessions']] as const) {
      const { user_id } = await addPerson(kit)
      const staff = await support(kit)
      // After the check of the record, and before the write of what was decided on it.
      meanwhile = { call: 'users.update', target: user_id, act: async () => await admin.patch(`/user/${user_id}`, { data: { roles: { [role]: true } } }) }
      t.equal((await staff.send({ method, url: `/user/${user_id}${path}` })).status, 403, `${method} ${path}: ${role}`)
      t.match(await users.get(user_id), { epoch: 0, support_unlocks: undefined, roles: { [role]: true } })
    }
    const { user_id } = await addPerson(kit)
    await listLinks(kit)
    meanwhile = { call: 'deliveries.update', act: async () => await admin.patch(`/user/${user_id}`, { data: { roles: { [role]: true } } }) }
    t.equal((await (await support(kit)).post(`/user/${user_id}/recovery`)).status, 200, 'asked for before')
    t.strictSame(await listLinks(kit), [], `${role}: the mail is not composed`)
  }
})

t.test('a recovery that waits is sent to no address that is not proved, and to nobody of whom a factor is demanded meanwhile', async (t) => {
  const kit = await buildRaced(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  for (const [actor, expected] of [[await support(kit), 0], [await signIn(kit, { roles: ['manager'] }), 1]] as const) {
    const [{ user_id }, fresh] = [await addPerson(kit), `${unique('fresh')}@example.com`]
    await kit.flush()
    meanwhile = { call: 'deliveries.update', act: async () => await admin.patch(`/user/${user_id}`, { data: { email: fresh } }) }
    t.equal((await actor.post(`/user/${user_id}/recovery`)).status, 200)
    t.strictSame((await listLinks(kit)).map(({ to }) => to), expected === 0 ? [] : [fresh])
  }
})

eachStore(t, 'a token of support staff from a sign-in, its refresh, and what it can be exchanged for', async (t, start) => {
  const harness = await start({ roles: ROLES })
  const { kit, user, register, post } = harness
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const client = await register()
  await kit.app.identity.clients.patch(client.client_id, { data: { scopes: [...SCOPES, 'read'] } }, { user_id: 'operator', isAdmin: true })
  await users.update(user.user_id, { set: { roles: { [ROLE]: true } }, increment: { revision: 1 } })
  const person = await addUser(kit)
  const redeem = async (fields: Record<string, string>) => (await post('token', fields, client)).body as { access_token: string, refresh_token: string, scope?: string }
  const read = async (token: string) => (await callAs(kit, { authorization: `Bearer ${token}` }).get(`/user/${person.id}`)).status
  const unlock = async (token: string) => (await callAs(kit, { authorization: `Bearer ${token}` }).post(`/user/${person.id}/unlock`)).status
  const first = await redeem(await getCode(harness, client, { scope: `openid offline_access ${SCOPES.join(' ')}` }))
  t.strictSame([await read(first.access_token), await unlock(first.access_token)], [200, 200])

  const refresh = async (refresh_token: string, scope?: string) => await redeem({ grant_type: 'refresh_token', refresh_token, ...(scope !== undefined && { scope }) })
  const narrow = await refresh(first.refresh_token, 'users:read')
  t.strictSame([await read(narrow.access_token), await unlock(narrow.access_token)], [200, 403], 'narrowed')
  const wider = await post('token', { grant_type: 'refresh_token', refresh_token: narrow.refresh_token, scope: 'users:write' }, client)
  t.match(wider, { status: 400, body: { error: 'invalid_scope' } })

  for (const grant_type of ['urn:ietf:params:oauth:grant-type:token-exchange', 'urn:ietf:params:oauth:grant-type:jwt-bearer']) {
    const subject = { subject_token: first.access_token, subject_token_type: 'urn:ietf:params:oauth:token-type:access_token', assertion: first.access_token }
    t.match(await post('token', { grant_type, ...subject, scope: 'users:write' }, client), { status: 400, body: { error: 'unsupported_grant_type' } })
  }
  const own = await post('token', { grant_type: 'client_credentials', scope: SCOPES.join(' ') }, client)
  t.equal(await read(String(own.body.access_token)), 403, 'the app has no role of its own')

  await users.update(user.user_id, { set: { roles: {} }, increment: { revision: 1 } })
  t.strictSame([await read(first.access_token), await unlock(first.access_token)], [403, 403], 'the role is gone')
  const later = await refresh(narrow.refresh_token)
  t.strictSame([await read(later.access_token), await unlock(later.access_token)], [403, 403], 'refreshed')
})

t.test('with all scopes it is not more: no client with their power, and no scope of it', async (t) => {
  const kit = await buildApp(t, { roles: ROLES })
  const staff = await support(kit, { scopes: API_SCOPES })
  const made = await staff.post<{ data: { clientId: string } }>('/client', { data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true })
  t.equal(made.status, 200)
  const { clientId } = made.body.data
  for (const data of [{ scopes: ['users:support'] }, { scopes: ['users:read'] }, { roles: { [ROLE]: true } }, { first_party: true }]) {
    t.equal((await staff.patch(`/client/${clientId}`, { data })).status, 403, Object.keys(data).join())
    t.equal((await staff.post('/client', { data: { redirectUris: [], scopes: [], name: 'n', ...data } })).status, 403, `a new one: ${Object.keys(data).join()}`)
  }
  t.equal((await staff.get(`/client/${clientId}/token-preview?user_id=${staff.user_id}`)).status, 403, 'their own app, and their own account')
})
