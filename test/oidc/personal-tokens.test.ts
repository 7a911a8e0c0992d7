import t from 'tap'
import { createNamedTokens } from '../../lib/clients/named-tokens.ts'
import { toChecksum } from '../../lib/crypto/prefixed-secret.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { type TokenRecord, toUserHolder } from '../../lib/records/token.ts'
import { createUses } from '../../lib/tokens/uses.ts'
import { ACCESS } from '../../plugins/access-table.ts'
import { createApp } from '../../testing/kit.ts'
import type { StartOptions } from '../../testing/index.ts'
import { createBase } from '../helpers/base.ts'
import { callAs, unique } from '../helpers/people.ts'
import { createFile, eachStore } from './harness.ts'

interface Listed { id: string, name: string, last4: string, scopes: string[], resource?: string, createdAt: string, expiresAt: string, lastUsedAt?: string, lastUsedFrom?: string }
interface Made { id: string, token: string, expiresAt: string }
interface Info { data: Record<string, unknown> }

const DAY = 24 * 60 * 60_000
const ROOT = { user_id: '', isAdmin: true }
const PASSWORD = 'correct horse'

t.setTimeout(300_000)

eachStore(t, 'personal access tokens', async (t, start) => {
  const harness = await start({ personalTokens: { maxDays: 90 }, roles: { support: 'helpdesk' } })
  const { kit, post } = harness
  const { identity } = kit.app
  const { store, users, clients, resources, personalTokens } = identity
  const records = store.collection<TokenRecord>('access_tokens')
  const boss = callAs(kit, (await kit.mint({ user: 'boss@example.com', roles: ['admin'], ttl: 365 * 86_400 })).headers)
  const at = (days: number) => new Date(kit.clock.now() + days * DAY).toISOString()
  const app = await harness.register({ scopes: ['account:security', 'account:read', 'clients:write'] })

  async function create (roles: string[] = []) {
    const account = `${unique('person')}@example.com`
    const { user_id } = await users.create({ data: { account, password: PASSWORD, name: account } })
    if (roles.length > 0) await users.patch(user_id, { data: { roles: Object.fromEntries(roles.map((role) => [role, true as const])) } }, ROOT)
    const own = callAs(kit, (await kit.mint({ user: user_id, client: app.client_id, scopes: ['account:security'], ttl: 365 * 86_400 })).headers)
    const add = async (data: object = {}) => await own.post<{ data: Made, message: string, code: string }>('/user/token', {
      data: { name: 'nightly', scopes: ['account:read'], expiresAt: at(30), current_password: PASSWORD, ...data }
    })
    return { user_id, account, own, add, make: async (scopes: string[], data: object = {}) => (await add({ scopes, ...data })).body.data }
  }
  const as = (token: string) => callAs(kit, { authorization: `Bearer ${token}` })
  const info = async (token: string) => await as(token).get<Info>('/auth/tokeninfo')
  const works = async (token: string) => (await info(token)).status === 200

  await t.test('it is shown once, and its hash is stored', async (t) => {
    const { user_id, account, add, own } = await create()
    const { status, body: { data: made } } = await add({ name: 'nightly report' })
    t.equal(status, 200)
    t.match(made.token, /^fi_pat_[0-9A-Za-z]{49}$/)
    t.equal(made.token.slice(-6), toChecksum(made.token.slice(7, -6)))
    t.equal(made.id, hashToken(made.token))
    const record = (await records.get(made.id))!
    t.match(record, { kind: 'Personal', client_id: 'personal', user_id, holder: `user:${user_id}`, name: 'nightly report', scopes: ['account:read'] })
    t.equal(record.user_epoch, (await store.collection<{ id: string, epoch: number }>('users').get(user_id))?.epoch)
    t.notOk(JSON.stringify(record).includes(made.token.slice(7, 30)))
    const listed = { id: made.id, name: 'nightly report', last4: made.token.slice(-4), scopes: ['account:read'], createdAt: at(0), expiresAt: at(30) }
    t.strictSame((await own.get<{ data: Listed[] }>('/user/token')).body.data, [listed])
    t.strictSame((await boss.get<{ data: Listed[] }>(`/user/${user_id}/token`)).body.data, [listed], 'an administrator sees no more')
    t.strictSame((await info(made.token)).body.data, {
      user_id, account, name: account, roles: {}, client_id: 'personal', scopes: ['account:read'], roles_withheld: true, token_id: made.id, token_name: 'nightly report'
    })
    const asker = await harness.register()
    const { body } = await post('introspect', { token: made.token }, asker)
    t.match(body, { active: true, sub: user_id, client_id: 'personal', scope: 'account:read', token_id: made.id, token_name: 'nightly report', token_type: 'Bearer' })
    t.strictSame([body.acr, body.amr, body.auth_time], [undefined, undefined, undefined])
  })

  await t.test('it takes a fresh proof', async (t) => {
    const { user_id, add } = await create()
    t.match(await add({ current_password: undefined }), { status: 400, body: { message: /^current_password: is required/ } })
    t.match(await add({ current_password: 'wrong' }), { status: 400, body: { message: 'current_password: is wrong' } })
    const ask = async (request: object) => (await callAs(kit, (await kit.mint({ user: user_id, client: app.client_id, ...request })).headers)
      .post('/user/token', { data: { name: 'n', scopes: [], expiresAt: at(1) } })).status
    t.equal(await ask({ scopes: ['account:security'], acr: '1' }), 200, 'a fresh sign-in of an app with account:security')
    t.equal(await ask({ scopes: ['account:read'], acr: '1' }), 403, 'without the scope')
    const stale = await kit.mint({ user: user_id, client: app.client_id, scopes: ['account:security'], acr: '1', ttl: 86_400 })
    kit.clock.advance(11 * 60_000)
    t.match(await callAs(kit, stale.headers).post('/user/token', { data: { name: 'n', scopes: [], expiresAt: at(1) } }), { status: 400 }, 'an old sign-in')
  })

  await t.test('bad input is refused, and leaves nothing', async (t) => {
    const { own, add } = await create()
    const ends = await store.collection('secret_ends').count({})
    for (const [data, message] of [
      [{ name: ' ' }, 'name: must not be empty'],
      [{ name: 'a\u202eb' }, /^name: must not contain/],
      [{ expiresAt: at(-1) }, 'expiresAt: must be in the future'],
      [{ expiresAt: at(91) }, 'expiresAt: must be at most 90 days ahead'],
      [{ expiresAt: 'tomorrow' }, /^expiresAt: must be an RFC 3339/],
      [{ scopes: ['account:security'] }, 'scopes: a personal access token may not have the scope account:security'],
      [{ scopes: ['openid'] }, 'scopes: a personal access token may not have the scope openid'],
      [{ scopes: ['offline_access'] }, 'scopes: a personal access token may not have the scope offline_access'],
      [{ scopes: ['read'] }, 'scopes: a personal access token may not have the scope read'],
      [{ resource: 'https://nothing.example' }, 'resource: no such resource']
    ] as const) t.match(await add(data), { status: 400, body: { message } }, JSON.stringify(data))
    t.strictSame((await own.get<{ data: Listed[] }>('/user/token')).body.data, [])
    t.equal(await store.collection('secret_ends').count({}), ends)
  })

  await t.test('its power is that of the person at each use, narrowed to its scopes', async (t) => {
    const { user_id, make } = await create(['admin', 'editor'])
    const [narrow, wide, roled] = [await make(['account:read']), await make(['users:write']), await make(['users:read', 'roles'])]
    t.equal((await as(narrow.token).get('/user')).status, 200)
    t.equal((await as(narrow.token).get('/user/list')).status, 403)
    t.equal((await as(wide.token).get('/user/list')).status, 200)
    t.equal((await as(wide.token).get('/client/list')).status, 403, 'no scope of clients')
    t.match((await info(wide.token)).body.data, { roles: {}, roles_withheld: true })
    t.match((await info(roled.token)).body.data, { roles: { admin: true, editor: true }, roles_withheld: undefined })
    await users.patch(user_id, { data: { roles: { editor: true } } }, ROOT)
    t.equal((await as(wide.token).get('/user/list')).status, 403, 'a role that is lost')
    t.strictSame((await info(roled.token)).body.data.roles, { editor: true })
    t.equal((await harness.get('userinfo', roled.token)).status, 401, 'userinfo')
    t.strictSame((await post('revoke', { token: roled.token }, await harness.register())).status, 200)
    t.ok(await works(roled.token), 'no client revokes it')
  })

  await t.test('a resource: its scopes, its roles, and no other place', async (t) => {
    const uri = `https://${unique('orders')}.example`
    const [read, write] = [unique('read'), unique('write')]
    await resources.create({ data: { id: uri, name: 'Orders', scopes: { [read]: 'See orders', [write]: 'Change orders' }, selfService: [read], tokenFormat: 'jwt' } })
    const { add, make } = await create(['editor'])
    t.match(await add({ resource: uri, scopes: [write] }), { status: 400, body: { message: `scopes: a personal access token may not have the scope ${write} of this resource` } })
    const made = await make([read, 'roles'], { resource: uri })
    t.match(made.token, /^fi_pat_/, 'it is opaque')
    t.match((await info(made.token)).body.data, { aud: uri, scopes: [read], roles: { editor: true }, client_id: 'personal' })
    t.equal((await as(made.token).get('/user')).status, 401, 'the API of the service is another place')
    const bare = await make(['roles'], { resource: uri })
    t.strictSame((await info(bare.token)).body.data.roles, {}, 'no roles without a scope of the resource')
  })

  await t.test('a guard that asks for a strength refuses it, and one for a role takes it with the scope', async (t) => {
    const { make } = await create(['editor'])
    const [plain, roled] = [await make(['account:read']), await make(['roles'])]
    const check = async (token: string, rule: object): Promise<number> => {
      try {
        await identity.check({ headers: { authorization: `Bearer ${token}` }, params: {}, hasCaller: false } as never, rule)
        return 200
      } catch (error) {
        return (error as { statusCode: number }).statusCode
      }
    }
    t.equal(await check(plain.token, {}), 200)
    t.equal(await check(plain.token, { acr: '1' }), 401)
    t.equal(await check(plain.token, { maxAge: 3600 }), 401)
    t.equal(await check(plain.token, { roles: ['editor'] }), 403)
    t.equal(await check(roled.token, { roles: ['editor'] }), 200)
    t.equal(await check(roled.token, { subject: 'client' }), 403)
  })

  await t.test('every row: what a personal access token may call', async (t) => {
    const { user_id, make } = await create(['admin'])
    const { token } = await make(['account:read', 'account:write', 'clients:write', 'users:write', 'events:read', 'webhooks:write'])
    const api = as(token)
    const { paths } = (await kit.inject('/openapi.json')).json<{ paths: Record<string, Record<string, { operationId: string }>> }>()
    const operations = Object.entries(paths).flatMap(([path, item]) => Object.entries(item).map(([method, { operationId }]) =>
      ({ name: operationId, method: method.toUpperCase() as 'GET', url: path.slice('/api/v1'.length).replaceAll(/\{\w+\}/g, 'none') })))
      .filter(({ name }) => Object.hasOwn(ACCESS, name))
    t.strictSame(operations.map(({ name }) => name).sort(), Object.keys(ACCESS).sort())
    for (const { name, method, url } of operations) {
      if (name === 'logout' || name === 'verifyAddress') continue
      const { status, body } = await api.send<{ message?: string } | null>({ method, url })
      if (ACCESS[name]!.personal === 'no') t.match({ status, body }, { status: 403, body: { message: 'a personal access token may not do this' } }, name)
      else t.notMatch([401, 403], status, `${name}: ${status}`)
    }
    const fields: Record<string, unknown> = {
      credentials: true,
      regen_secret: true,
      take_over: true,
      regen_secrets: true,
      disable: false,
      'data.jwks': { keys: [] },
      'data.tokenAuth': 'none',
      'data.roles': {},
      'data.former': { until: at(1) },
      'data.password': 'x',
      'data.first_party': false,
      'data.url': 'https://hooks.example/b',
      'data.email': 'x@example.com',
      'data.email_verified': true
    }
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'own', userId: user_id }, credentials: true }, ROOT)
    for (const { name, method, url } of operations) {
      const { personal } = ACCESS[name]!
      for (const field of typeof personal === 'object' ? personal.plain : []) {
        const [first, second] = field.split('.') as [string, string?]
        const base = name === 'createClient' ? { redirectUris: [], scopes: [], name: 'n' } : { name: 'n' }
        const payload = second === undefined ? { data: base, [first]: fields[field] } : { data: { ...base, [second]: fields[field] } }
        const { status, body } = await api.send<{ message: string }>({ method, url: url.replace('/client/none', `/client/${clientId}`).replace('/user/none', `/user/${user_id}`), payload })
        t.match({ status, body }, { status: 403, body: { message: `${field}: a personal access token may not send it` } }, `${name} with ${field}`)
      }
    }
    t.match((await boss.get(`/client/${clientId}`)).body, { data: { clientSecret: /./ } }, 'an administrator sees the secret by another token')
    for (const url of [`/client/${clientId}`, '/client/list', '/client/list?fields=clientSecret,name']) {
      const { status, body } = await api.get(url)
      t.equal(status, 200, url)
      t.notMatch(JSON.stringify(body), /clientSecret":"/, url)
    }
    t.equal((await api.patch(`/client/${clientId}`, { data: { name: 'another' } })).status, 204, 'and the rest it may')
  })

  await t.test('no change of a client or webhook with it gets a credential that outlives it', async (t) => {
    const { make } = await create(['admin'])
    const { token } = await make(['account:read', 'clients:write', 'users:write', 'webhooks:write'])
    const api = as(token)
    const bob = await create()
    const owned = async (data: object = {}) => (await clients.create({
      data: { redirectUris: ['https://app.example/cb'], scopes: [], name: 'app', userId: bob.user_id, ...data }, credentials: true
    }, ROOT)).clientId
    const readSecret = async (clientId: string) => (await boss.get<{ data: { clientSecret: string, redirectUris: string[] } }>(`/client/${clientId}`)).body.data
    const [plain, trusted] = [await owned(), await owned({ first_party: true })]
    const before = [await readSecret(plain), await readSecret(trusted)]
    const redirectUris = ['https://elsewhere.example/cb']
    for (const [clientId, data, field] of [
      [plain, { first_party: true }, 'data.first_party'],
      [plain, { scopes: ['users:read'] }, 'scopes'],
      [trusted, { redirectUris }, 'redirectUris']
    ] as const) t.match(await api.patch(`/client/${clientId}`, { data }), { status: 403, body: { message: new RegExp(`^${field}: a personal access token may not`) } }, field)
    t.strictSame([await readSecret(plain), await readSecret(trusted)], before)
    t.equal((await api.patch(`/client/${plain}`, { data: { redirectUris } })).status, 204, 'people are asked for their consent again')
    t.equal((await boss.patch(`/client/${trusted}`, { data: { redirectUris } })).status, 204, 'another token may')
    const { body: { data: { webhookId } } } = await boss.post<{ data: { webhookId: string } }>('/webhook', { data: { name: 'h', url: 'https://hooks.example/a', types: ['*'] } })
    t.equal((await api.patch(`/webhook/${webhookId}`, { data: { url: 'https://elsewhere.example/a' } })).status, 403)
    t.equal((await api.patch(`/webhook/${webhookId}`, { data: { types: ['user.*'], disabled: true } })).status, 204)
    t.match((await boss.get(`/webhook/${webhookId}`)).body, { data: { url: 'https://hooks.example/a', types: ['user.*'] } })
  })

  await t.test('50 a person, also at once', async (t) => {
    const { user_id, add } = await create()
    for (let index = 0; index < 49; index++) await kit.personalToken(user_id)
    const statuses = await Promise.all(Array.from({ length: 3 }, async () => (await add()).status))
    t.ok(statuses.filter((status) => status === 200).length <= 1, statuses.join())
    t.ok(statuses.filter((status) => status === 429).length >= 2, statuses.join())
    t.ok((await personalTokens!.list(user_id)).length <= 50)
  })

  await t.test('who may remove which', async (t) => {
    const [ann, bob] = [await create(), await create()]
    const made = await ann.make(['account:read'])
    t.equal((await bob.own.delete(`/user/token/${made.id}`)).status, 404)
    t.equal((await bob.own.delete(`/user/${ann.user_id}/token/${made.id}`)).status, 403)
    const helper = callAs(kit, (await kit.support()).headers)
    t.equal((await helper.get(`/user/${ann.user_id}/token`)).status, 403, 'support staff do not see them')
    t.equal((await boss.delete(`/user/${bob.user_id}/token/${made.id}`)).status, 404)
    t.ok(await works(made.token))
    t.equal((await boss.delete(`/user/${ann.user_id}/token/${made.id}`)).status, 204)
    t.notOk(await works(made.token))
    const other = await ann.make([])
    t.equal((await ann.own.delete(`/user/token/${other.id}`)).status, 204)
    t.notOk(await works(other.token))
    const last = await ann.make([])
    t.equal((await as(last.token).post('/auth/logout')).status, 204, 'it ends itself')
    t.notOk(await works(last.token))
    const leaked = await ann.make([])
    t.match(await identity.leaks.end(leaked.token, ROOT), { id: leaked.id, client_id: 'personal', user_id: ann.user_id, name: 'nightly' })
    t.notOk(await works(leaked.token))
    await kit.flush()
    const events = (await kit.events.list({ user: ann.user_id })).filter(({ type }) => type.startsWith('token.'))
    t.strictSame(events.map(({ type }) => type), ['created', 'removed', 'created', 'removed', 'created', 'removed', 'created', 'removed'].map((what) => `token.personal_${what}`))
    t.match(events[0], { target: { kind: 'token', id: made.id }, user_id: ann.user_id, client_id: 'personal' })
  })

  await t.test('the emails, and those that say how many tokens end', async (t) => {
    const { user_id, account, make } = await create()
    const made = await make([], { expiresAt: at(20) })
    await make([], { expiresAt: at(60) })
    const text = async () => (await kit.mails.all()).filter(({ to }) => to === account).map(({ text }) => text)
    const [first = ''] = await text()
    t.match(first, new RegExp(`The token ends with ${made.token.slice(-4)}`))
    t.match(first, /\/account\/tokens/)
    for (const [days, left] of [[7, 'in 14 days'], [11, 'in 3 days']] as const) {
      kit.clock.advance(days * DAY)
      await identity.secretEnds.flush()
      t.ok((await text()).some((one) => one.includes('expires soon') && one.includes(made.token.slice(-4))), left)
    }
    await users.patch(user_id, { data: { password: 'another horse' } }, ROOT)
    const after = await text()
    t.equal(after.length, 1)
    t.match(after[0], 'Personal access tokens that stopped working: 2.')
    t.notOk(await works(made.token))
    await users.patch(user_id, { data: { password: 'yet another' } }, ROOT)
    t.notMatch((await text())[0], 'Personal access tokens', 'none is left')
  })

  await t.test('a mailbox that is no longer the person\'s does not get to know how many tokens end', async (t) => {
    const { user_id, account, make } = await create()
    await users.patch(user_id, { data: { email_verified: true } }, ROOT)
    await make([])
    await kit.flush()
    const address = `${unique('new')}@example.com`
    await users.patch(user_id, { data: { email: address, password: 'another horse' } }, ROOT)
    const mails = (await kit.mails.all()).filter(({ to, text }) => [account, address].includes(to) && !text.includes('The token ends with'))
    t.ok(mails.some(({ to, text }) => to === account && !/password was/i.test(text)), 'the former mailbox is told of the address')
    t.strictSame(mails.filter(({ text }) => text.includes('Personal access tokens')).map(({ text }) => /password/i.test(text)), [true], 'and only the mail about the password has the count')
  })

  await t.test('a token that was refused for a while gets the notices that still lie ahead', async (t) => {
    const { user_id, account, make } = await create()
    const made = await make([], { expiresAt: at(20) })
    const told = async () => (await kit.mails.all()).filter(({ to, text }) => to === account && text.includes('expires soon')).length
    await store.collection('users').update(user_id, { set: { expired_at: at(5) } })
    kit.clock.advance(7 * DAY)
    await identity.secretEnds.flush()
    t.notOk(await works(made.token))
    t.equal(await told(), 0, 'nobody is told of a token that is refused')
    await users.patch(user_id, { data: { verified_at: at(0) } }, ROOT)
    t.ok(await works(made.token))
    kit.clock.advance(10.5 * DAY)
    await identity.secretEnds.flush()
    t.equal(await told(), 1, 'they are extended')
    kit.clock.advance(3 * DAY)
    await identity.secretEnds.flush()
    t.equal(await store.collection('secret_ends').get(made.id), null)
  })

  await t.test('all tokens of a person end, whoever else ends some of them meanwhile', async (t) => {
    const { user_id, make } = await create()
    const made = [await make([]), await make([]), await make([])]
    const { now } = kit.clock
    const ends = { forget: async (ids: readonly string[]) => { for (const id of ids) await store.collection('secret_ends').delete(id) } }
    const named = createNamedTokens({ store, now, tokens: identity.tokens, uses: createUses(createBase({ store, now })), ends })
    await Promise.all([named.endAll(toUserHolder(user_id)), ...made.map(async ({ id }) => { await personalTokens!.remove(user_id, id).catch(() => {}) })])
    for (const { token } of made) t.notOk(await works(token))
    await kit.flush()
    t.equal((await kit.events.list({ user: user_id })).filter(({ type }) => type === 'token.personal_removed').length, 3, 'with one event each')
  })

  await t.test('its last use, and what own data say of it', async (t) => {
    const { user_id, own, make } = await create()
    const made = await make(['account:read'])
    kit.clock.advance(5_000)
    t.equal((await fetch(`${harness.url}/api/v1/user`, { headers: { authorization: `Bearer ${made.token}` } })).status, 200)
    t.match((await own.get<{ data: Listed[] }>('/user/token')).body.data, [{ lastUsedAt: at(0), lastUsedFrom: '127.0.0.1' }])
    let text = ''
    for await (const piece of await identity.ownData.read(user_id, { isLimited: false })) text += piece
    const { tokens } = JSON.parse(text) as { tokens: { personal?: true }[] }
    t.match(tokens.filter(({ personal }) => personal === true), [{ client_id: 'personal', name: 'nightly', scopes: ['account:read'], last_used_at: at(0), last_used_from: '127.0.0.1' }])
    t.notMatch(text, made.token)
    await users.remove(user_id, { ...ROOT, user_id: 'boss' })
    await identity.tokens.settle()
    await kit.flush()
    t.equal(await store.collection('client_uses').get(`user:${user_id}`), null, 'it is forgotten with the person')
    t.equal(await records.get(made.id), null)
  })

  await t.test('a change of the person that is concurrent with the making of a token', async (t) => {
    for (const act of ['password', 'disable', 'sessions'] as const) {
      for (let round = 0; round < 5; round++) {
        const { user_id, add } = await create()
        const end = {
          password: async () => { await users.patch(user_id, { data: { password: 'another horse' } }, ROOT) },
          disable: async () => { await users.patch(user_id, { disable: true }, ROOT) },
          sessions: async () => { await identity.tokenSessions.end(user_id) }
        }[act]
        const [{ status, body }] = await Promise.all([add(), end()])
        if (status === 200) t.notOk(await works(body.data.token), `${act}: no survivor`)
        t.equal((await personalTokens!.list(user_id).catch(() => [])).length, 0)
      }
    }
  })
})

eachStore(t, 'a personal access token in place of a password', async (t, start) => {
  const { kit } = await start({ personalTokens: { maxDays: 90 }, forwardAuth: true })
  await kit.mint({ user: 'bob' })
  const made = await kit.personalToken('bob', { scopes: ['account:read'] })
  const ask = async (password: string) => (await kit.inject({
    url: '/api/v1/auth/forward?subject=user', headers: { authorization: `Basic ${Buffer.from(`git:${password}`).toString('base64')}` }
  })).statusCode
  t.equal(await ask(made.token), 200)
  t.equal(await ask(`${made.token}x`), 401)
  t.equal(await ask('correct horse'), 401)
})

t.test('the settings: off and on again, narrower and wider', async (t) => {
  const database = createFile(t)
  const start = async (options: StartOptions) => {
    const app = createApp()
    const { startIdentity } = await import('../../testing/index.ts')
    return await startIdentity({ database, app, ...options })
  }
  const first = await start({ personalTokens: { maxDays: 90 } })
  const { headers } = await first.mint({ user: 'ann', ttl: 365 * 86_400 })
  await first.mint({ user: 'boss', roles: ['admin'] })
  const made = await first.personalToken('ann', { scopes: ['account:read', 'clients:read'], expires_in: 80 * 86_400 })
  await first.close()
  const works = async (kit: Awaited<ReturnType<typeof start>>) => (await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: made.headers })).statusCode === 200

  for (const [name, options, expected, listed, days = 0] of [
    ['off', {}, false, undefined],
    ['on again', { personalTokens: { maxDays: 90 } }, true, 1],
    ['without one of its scopes', { personalTokens: { maxDays: 90, scopes: ['account:read'] } }, false, 0],
    ['with more scopes', { personalTokens: { maxDays: 90, scopes: ['account:read', 'clients:read', 'roles'] } }, true, 1],
    ['for some resources', { personalTokens: { maxDays: 90, resources: ['https://orders.example'] } }, true, 1],
    ['for some roles', { personalTokens: { maxDays: 90, roles: ['editor'] } }, true, 1],
    ['with fewer days, before they have passed', { personalTokens: { maxDays: 10 } }, true, 1, 9],
    ['with fewer days, after they have passed', { personalTokens: { maxDays: 10 } }, false, 0, 11],
    ['with the days of before', { personalTokens: { maxDays: 90 } }, true, 1, 11]
  ] as [string, StartOptions, boolean, number | undefined, number?][]) {
    await t.test(name, async (t) => {
      const kit = await start(options)
      kit.clock.advance(days * DAY)
      t.equal(await works(kit), expected)
      const { statusCode, body } = await kit.inject({ url: '/api/v1/user/token', headers })
      t.equal(statusCode, listed === undefined ? 403 : 200, 'without the route, `token` is the id of a user')
      if (listed !== undefined) t.equal((JSON.parse(body) as { data: Listed[] }).data.length, listed)
      if (name === 'with fewer days, before they have passed') t.match(body, new Date(kit.clock.now() + DAY).toISOString().slice(0, 10), 'the end that it has now')
      t.equal('/api/v1/user/token' in (await kit.inject('/openapi.json')).json<{ paths: object }>().paths, listed !== undefined, 'the document')
      if (name === 'for some roles') await t.rejects(kit.personalToken('ann'), { code: 'ErrPerm' }, 'who has none of the roles makes no other')
      await kit.close()
    })
  }

  await t.test('a scope that no such token may have', async (t) => {
    for (const scope of ['account:security', 'openid', 'offline_access']) {
      await t.rejects(start({ personalTokens: { maxDays: 1, scopes: [scope] } }), { message: `option personalTokens.scopes: no personal access token may have ${scope}` })
    }
  })
})
