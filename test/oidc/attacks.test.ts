import fastify, { type FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import t from 'tap'
import type { GuardOptions } from '../../plugins/admission.ts'
import type { Identity } from '../../plugins/auth.ts'
import remoteAuth from '../../plugins/remote.ts'
import type { CreateClient } from '../../schemas/client.ts'
import { type Api, callAs, signIn as mintFor } from '../helpers/people.ts'
import { declareResource } from '../helpers/powers.ts'
import { type App, type Harness, askCode, eachStore, getCode, signIn } from './harness.ts'

// Attacks by people and apps that may use the sign-in, over real requests. Each was possible before tokens were narrowed to
// their grants.

t.setTimeout(300_000)

const OPERATOR = { user_id: 'operator', isAdmin: true }
const REDIRECT = 'https://evil.example/cb'
/** All scopes that users may give to their own apps. */
const SELF_SERVICE = ['account:read', 'account:write', 'clients:read', 'clients:write']

interface Victim { user_id: string, account: string, password: string }

async function addPerson ({ kit }: Harness, account: string, roles: Record<string, true> = {}): Promise<Victim> {
  const { users } = kit.app.identity
  const { user_id } = await users.create({ data: { account, password: 'correct horse' } })
  await users.patch(user_id, { data: { roles } }, OPERATOR)
  return { user_id, account, password: 'correct horse' }
}

/** The same service, with another user in the browser. */
const as = (harness: Harness, user: Victim): Harness => ({ ...harness, user })

/** A token with all the power of a user, such as the command line makes. */
const mintAs = async ({ kit }: Harness, { user_id }: Victim) => await mintFor(kit, { user: user_id })

/** Registers an app over HTTP, with a secret unless it is public. */
async function registerAs (api: Api, data: Partial<CreateClient['data']> = {}, credentials = true): Promise<App> {
  const created = await api.post<{ data: { clientId: string } }>('/client', { data: { redirectUris: [REDIRECT], scopes: [], name: 'Company HR portal', ...data }, ...(credentials && { credentials }) })
  if (created.status !== 200) throw new Error(`POST /client answered ${created.status}: ${JSON.stringify(created.body)}`)
  const { clientId } = created.body.data
  const { body } = await api.get<{ data: { clientSecret?: string } }>(`/client/${clientId}`)
  return { client_id: clientId, client_secret: body.data.clientSecret ?? '', redirect_uri: data.redirectUris?.[0] ?? REDIRECT }
}

/** Signs the victim in to the app; resolves to the app's tokens. */
async function signInTo (harness: Harness, app: App, params: Record<string, string>) {
  const { status, body } = await harness.post('token', await getCode(harness, app, params), app)
  if (status !== 200) throw new Error(`the token endpoint answered ${status}: ${JSON.stringify(body)}`)
  const access_token = String(body.access_token)
  const headers = { authorization: `Bearer ${access_token}` }
  return { ...callAs(harness.kit, headers), headers, scope: body.scope, refresh_token: String(body.refresh_token) }
}

/** Where an authorization request ends: its error, or the title of the page that is shown. */
async function requestCode (harness: Harness, app: App, params: Record<string, string | undefined>, browser = harness.browser()): Promise<string | undefined> {
  let page = await browser.open(askCode(app, params).url)
  if (page.title === 'Sign in') page = await page.submit({ account: harness.user.account, password: harness.user.password })
  return page.error ?? (page.left?.searchParams.has('code') === true ? 'a code' : page.title)
}

/** Another app, with a route for each rule. It uses this guard unless it has its own from remoteAuth. */
async function startHost (t: Test, rules: Record<string, GuardOptions>, { guard }: Pick<Identity, 'guard'>, host: FastifyInstance = fastify()) {
  t.teardown(() => host.close())
  for (const [path, rule] of Object.entries(rules)) host.get(path, { onRequest: guard(rule) }, async ({ isAdmin }) => ({ isAdmin }))
  await host.ready()
  return async (url: string, headers: { authorization: string }) => {
    const reply = await host.inject({ url, headers })
    return { status: reply.statusCode, body: reply.json<{ isAdmin?: boolean }>() }
  }
}

eachStore(t, 'H1: an app that an administrator signs in to', async (t, start) => {
  const harness = await start()
  const { kit } = harness
  const orders = await declareResource(kit, { 'orders:read': 'read orders' }, 'https://orders.example/')
  const rules: Record<string, GuardOptions> = {
    '/user': {},
    '/admin': { roles: ['admin'] },
    '/owner/:userId': { owner: true },
    '/orders': { audience: orders.uri },
    '/orders/admin': { audience: orders.uri, roles: ['admin'] }
  }
  const askBeside = await startHost(t, rules, kit.app.identity)
  const host = fastify()
  await host.register(remoteAuth, { upstream: harness.url })
  const askRemote = await startHost(t, rules, host.identity, host)

  const admin = await addPerson(harness, 'root@example.com', { admin: true })
  const mallory = await addPerson(harness, 'mallory@example.com')
  const malloryApi = await mintAs(harness, mallory)
  const others = await registerAs(await mintAs(harness, await addPerson(harness, 'bob@example.com')))

  async function isHarmless (t: Test, app: App, params: Record<string, string>, mayManageAccount: boolean): Promise<void> {
    const token = await signInTo(as(harness, admin), app, params)
    for (const [name, reply] of Object.entries({
      'the user list': await token.get('/user/list'),
      'the count of users': await token.get('/user/count'),
      'another user': await token.get(`/user/${mallory.user_id}`),
      'to make its author an administrator': await token.patch(`/user/${mallory.user_id}`, { data: { roles: { admin: true } } }),
      'to set a password': await token.patch(`/user/${mallory.user_id}`, { data: { password: 'new' } }),
      'to create a user': await token.post('/user', { data: { account: 'planted', password: 'p' } }),
      'to delete a user': await token.delete(`/user/${mallory.user_id}`),
      'to declare a resource': await token.post('/resource', { data: { id: 'https://new.example/', name: 'n', scopes: {} } }),
      'the sessions of another': await token.get(`/auth/sessions?user=${mallory.user_id}`),
      'to make its client first-party': await token.patch(`/client/${app.client_id}`, { data: { first_party: true } }),
      'to delete the clients of another': await token.delete(`/client/user/${mallory.user_id}`)
    })) t.match(reply.status, /^40[34]$/, name)
    t.match((await token.get(`/client/${others.client_id}`)).status, /^40[34]$/, "another's client")
    t.match((await token.patch('/user', { data: { password: 'new' } })).status, mayManageAccount ? 400 : 403, 'to set the password')
    t.match(await token.get('/user'), { status: mayManageAccount ? 200 : 403 }, 'the profile')
    const list = await token.get<{ data: object[] }>('/client/list')
    t.equal(mayManageAccount ? list.body.data.length : list.status, mayManageAccount ? 0 : 403, 'clients')
    t.match((await token.get('/auth/tokeninfo')).body, { data: { user_id: admin.user_id, roles: {} } }, 'roles are power')
    for (const [path, status] of [['/user', 200], ['/admin', 403], [`/owner/${admin.user_id}`, 200], ['/orders', 401], ['/orders/admin', 401]] as const) {
      for (const ask of [askBeside, askRemote]) {
        const { status: found, body } = await ask(path, token.headers)
        t.strictSame([found, body.isAdmin], [status, status === 200 ? false : undefined], path)
      }
    }
  }

  await t.test('with openid', async (t) => await isHarmless(t, await registerAs(malloryApi), { scope: 'openid' }, false))
  await t.test('with every scope that it can give itself', async (t) => {
    const app = await registerAs(malloryApi, { scopes: SELF_SERVICE })
    await isHarmless(t, app, { scope: `openid profile email roles offline_access ${SELF_SERVICE.join(' ')}` }, true)
  })

  await t.test('it cannot get the scopes that would do more', async (t) => {
    for (const scope of ['users:read', 'users:write', 'account:security', 'orders:read']) {
      t.match(await malloryApi.post('/client', { data: { redirectUris: [REDIRECT], scopes: [scope], name: 'n' } }), { status: 403 }, scope)
      t.equal(await requestCode(as(harness, admin), await registerAs(malloryApi), { scope: `openid ${scope}` }), 'invalid_scope', scope)
    }
  })

  await t.test('it cannot be an administrator at a resource that it has no scope of', async (t) => {
    const app = await registerAs(malloryApi, { scopes: ['read'] })
    for (const scope of ['openid', 'openid read', 'read', 'openid roles']) {
      const outcome = await requestCode(as(harness, admin), app, { scope, resource: orders.uri })
      if (outcome === 'invalid_target' || outcome === 'invalid_scope') continue
      const token = await signInTo(as(harness, admin), app, { scope, resource: orders.uri }).catch(() => undefined)
      if (token === undefined) continue
      for (const path of ['/orders', '/orders/admin']) t.match(await askBeside(path, token.headers), { status: 401 }, `${scope}: ${path}`)
    }
  })
})

eachStore(t, 'H2: a planted confidential client', async (t, start) => {
  const harness = await start()
  const { kit, post } = harness
  const ask = await startHost(t, { '/user': {}, '/owner/:userId': { owner: true, subject: 'any' } }, kit.app.identity)
  const alice = await addPerson(harness, 'alice@example.com')
  const stolen = await mintAs(harness, alice)
  const planted = await registerAs(stolen, { redirectUris: [], scopes: SELF_SERVICE })
  const grant = async () => await post('token', { grant_type: 'client_credentials', scope: SELF_SERVICE.filter((scope) => scope.startsWith('clients:')).join(' ') }, planted)

  async function cannotActAsOwner (t: Test, message: string): Promise<void> {
    const { status, body } = await grant()
    t.equal(status, 200, message)
    const headers = { authorization: `Bearer ${String(body.access_token)}` }
    const token = callAs(kit, headers)
    for (const [name, reply] of Object.entries({
      'the profile': await token.get('/user'),
      'to set the password': await token.patch('/user', { data: { password: 'attacked' } }),
      'to set the password, with the known one': await token.patch('/user', { data: { password: 'attacked', current_password: alice.password } }),
      'the clients': await token.get('/client/list'),
      'another planted client': await token.post('/client', { data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }),
      'its own secret': await token.get(`/client/${planted.client_id}`),
      sessions: await token.get('/auth/sessions'),
      'to end sessions': await token.delete('/auth/sessions'),
      'the user list': await token.get('/user/list'),
      'an app of users': await ask('/user', headers),
      'an app of the owner': await ask(`/owner/${alice.user_id}`, headers)
    })) t.equal(reply.status, 403, `${message}: ${name}`)
    t.match((await token.get('/auth/tokeninfo')).body, { data: { subject: 'client', client_id: planted.client_id, roles: {} } }, message)
  }

  await cannotActAsOwner(t, 'at once')
  t.match(await post('token', { grant_type: 'client_credentials', scope: 'account:write' }, planted), { status: 400, body: { error: 'invalid_scope' } }, 'a client has no account')

  const own = await mintAs(harness, alice)
  t.match(await own.patch('/user', { data: { password: 'second' } }), { status: 204 })
  await cannotActAsOwner(t, 'after a new password')
  const { users } = kit.app.identity
  // The last administrator cannot lose the role.
  await addPerson(harness, 'root@example.com', { admin: true })
  await users.patch(alice.user_id, { data: { roles: { admin: true } } }, OPERATOR)
  await cannotActAsOwner(t, 'after the owner became an administrator')
  await users.patch(alice.user_id, { data: { roles: {} } }, OPERATOR)

  for (const [name, end] of Object.entries({
    'a new password that replaces the secrets': async (api: Api) => await api.patch('/user', { data: { password: 'third' }, regen_secrets: true }),
    'the end of all sessions that replaces the secrets': async (api: Api) => await api.delete('/auth/sessions?all=true&regen_secrets=true')
  })) {
    const again = await mintAs(harness, alice)
    const client = await registerAs(again, { redirectUris: [], scopes: ['clients:read'] })
    const before = await post('token', { grant_type: 'client_credentials', scope: 'clients:read' }, client)
    t.match((await again.get('/client/list')).body, { data: [{ clientSecret: String }, { clientSecret: String }] }, 'the list says which clients have a secret')
    t.equal((await end(again)).status, 204, name)
    t.match(await post('token', { grant_type: 'client_credentials' }, client), { status: 401, body: { error: 'invalid_client' } }, name)
    t.match(await post('token', { grant_type: 'client_credentials' }, planted), { status: 401 }, name)
    t.match(await harness.get('tokeninfo', String(before.body.access_token)), { status: 401 }, `${name}: its token`)
    await kit.app.identity.clients.remove(client.client_id, OPERATOR)
  }
})

eachStore(t, 'H3: a scope that somebody gave themselves', async (t, start) => {
  const harness = await start()
  const { kit, post, get } = harness
  const mallory = await addPerson(harness, 'mallory@example.com')
  const api = await mintAs(harness, mallory)
  const early = await registerAs(api, { scopes: ['payments:execute', 'free'], grants: ['client', 'code', 'refresh'] })
  const grant = async (app: App, params: Record<string, string>) => (await post('token', { grant_type: 'client_credentials', ...params }, app)).body
  const before = await grant(early, { scope: 'payments:execute free' })
  t.match((await get('tokeninfo', String(before.access_token))).body, { data: { scopes: ['free', 'payments:execute'] } }, 'a free scope is a text')
  const signedIn = await signInTo(as(harness, mallory), early, { scope: 'openid offline_access payments:execute free' })
  const started = await getCode(as(harness, mallory), early, { scope: 'openid payments:execute free' })

  const created = await (await mintFor(kit, { roles: ['admin'] })).post('/resource', {
    data: { id: 'https://pay.example/', name: 'Payments', scopes: { 'payments:execute': 'pay', 'payments:read': 'see payments' }, selfService: ['payments:read'] }
  })
  t.match(created, { status: 200, body: { data: { strippedClients: 1 } } })
  const ask = await startHost(t, { '/pay': { audience: 'https://pay.example/', scopes: ['payments:execute'] } }, kit.app.identity)
  const pay = async (access_token: unknown) => (await ask('/pay', { authorization: `Bearer ${String(access_token)}` })).status
  const readScopes = async (access_token: unknown) => (await get('tokeninfo', String(access_token))).body

  await t.test('ends when the name is declared', async (t) => {
    t.match((await api.get(`/client/${early.client_id}`)).body, { data: { scopes: ['free'] } })
    t.match(await readScopes(before.access_token), { data: { scopes: ['free'] } }, 'tokens from before')
    t.match((await signedIn.get('/auth/tokeninfo')).body, { data: { scopes: ['free'] } })
    t.equal(await pay(before.access_token), 401)
    t.match(await grant(early, { scope: 'payments:execute' }), { error: 'invalid_scope' })
    const refreshed = await post('token', { grant_type: 'refresh_token', refresh_token: signedIn.refresh_token }, early)
    t.equal(refreshed.status, 200)
    t.match(await readScopes(refreshed.body.access_token), { data: { scopes: ['free'], aud: undefined } }, 'a refresh')
    t.equal(await pay(refreshed.body.access_token), 401)
    const late = await post('token', started, early)
    t.equal(late.status, 200)
    t.match(await readScopes(late.body.access_token), { data: { scopes: ['free'] } }, 'a code from before')
    t.equal(await pay(late.body.access_token), 401)
    t.equal(await requestCode(as(harness, mallory), early, { scope: 'openid payments:execute' }), 'invalid_scope')
  })

  await t.test('a declared one is the administrator\'s to give', async (t) => {
    for (const scopes of [['payments:execute'], ['payments:read', 'payments:execute'], ['free', 'payments:execute']]) {
      t.match(await api.post('/client', { data: { redirectUris: [], scopes, name: 'n' } }), { status: 403 })
      t.match(await api.patch(`/client/${early.client_id}`, { data: { scopes } }), { status: 403 })
    }
    for (const scope of ['openid', 'profile', 'email', 'roles', 'offline_access']) {
      t.match(await api.post('/client', { data: { redirectUris: [], scopes: [scope], name: 'n' } }), { status: 400 }, scope)
    }
  })

  await t.test('a free one is never in a token of a resource', async (t) => {
    t.match(await api.patch(`/client/${early.client_id}`, { data: { scopes: ['free', 'payments:read', 'clients:read'] } }), { status: 204 })
    for (const params of [{ scope: 'payments:read free' }, { scope: 'payments:read free', resource: 'https://pay.example/' }, { scope: 'free', resource: 'https://pay.example/' }] as Record<string, string>[]) {
      const { access_token } = await grant(early, params)
      if (access_token === undefined) continue
      const { body } = await get('tokeninfo', String(access_token))
      const { scopes, aud } = body.data as { scopes: string[], aud?: string }
      t.ok(aud === undefined ? !scopes.includes('payments:read') : !scopes.includes('free'), JSON.stringify(params))
      t.match(await pay(access_token), /^40[13]$/)
    }
    const token = await signInTo(as(harness, mallory), early, { scope: 'openid free payments:read' })
    t.match((await token.get('/auth/tokeninfo')).body, { data: { scopes: ['payments:read'], aud: 'https://pay.example/' } })
    t.equal((await ask('/pay', token.headers)).status, 403)
  })

  await t.test('the name of a deleted resource stays reserved', async (t) => {
    const admin = await mintFor(kit, { roles: ['admin'] })
    const token = await signInTo(as(harness, mallory), early, { scope: 'openid offline_access payments:read' })
    t.match(await token.get('/auth/tokeninfo'), { status: 200 })
    t.match(await admin.delete(`/resource/${(created.body.data as { resourceId: string }).resourceId}`), { status: 204 })
    t.match(await token.get('/auth/tokeninfo'), { status: 401 })
    t.match(await post('token', { grant_type: 'refresh_token', refresh_token: token.refresh_token }, early), { status: 400 }, 'and its session')
    for (const scope of ['payments:read', 'payments:execute']) t.match(await api.post('/client', { data: { redirectUris: [], scopes: [scope], name: 'n' } }), { status: 400 }, scope)
  })
})

eachStore(t, 'H4: a client that the operator vouches for', async (t, start) => {
  const harness = await start()
  const { kit, post } = harness
  const { clients } = kit.app.identity
  const alice = await addPerson(harness, 'alice@example.com')
  const owner = await mintAs(harness, alice)
  const admin = await mintFor(kit, { roles: ['admin'] })
  await declareResource(kit, { 'orders:write': 'change orders', 'orders:read': 'read orders' }, 'https://orders.example/', { selfService: ['orders:read'] })

  for (const [name, fields] of Object.entries({
    'a first-party client': { first_party: true },
    'a service account': { roles: { admin: true as const }, scopes: ['users:read'], redirectUris: [] },
    'a client with a scope of the API that only an administrator adds': { scopes: ['users:read'] },
    'a client with a declared scope that only an administrator adds': { scopes: ['orders:write'] }
  })) {
    await t.test(`${name} is not its owner's to manage`, async (t) => {
      const { clientId } = await clients.create({ data: { redirectUris: ['https://app.example/cb'], scopes: [], name: 'Ours', userId: alice.user_id, ...fields }, credentials: true }, OPERATOR)
      const before = await clients.require(clientId, OPERATOR)
      const thief = await signInTo(as(harness, alice), await registerAs(owner, { scopes: SELF_SERVICE }), { scope: SELF_SERVICE.join(' ') })
      for (const [who, api] of Object.entries({ owner, thief })) {
        for (const reply of [
          await api.get(`/client/${clientId}`),
          await api.patch(`/client/${clientId}`, { data: { redirectUris: [REDIRECT] } }),
          await api.patch(`/client/${clientId}`, { data: { scopes: [] } }),
          await api.patch(`/client/${clientId}`, { data: { name: 'Mine' } }),
          await api.patch(`/client/${clientId}`, { regen_secret: true }),
          await api.delete(`/client/${clientId}`),
          await api.delete(`/client/user/${alice.user_id}`)
        ]) t.equal(reply.status, 403, who)
        const { body } = await api.get<{ data: { clientId: string }[] }>('/client/list?limit=100')
        t.match(body.data.find((client) => client.clientId === clientId), { clientSecret: undefined, confidential: true }, `${who}: the list`)
      }
      t.match(await owner.delete('/auth/sessions?regen_secrets=true'), { status: 204 })
      t.strictSame(await clients.require(clientId, OPERATOR), before, 'nothing changed')
      await clients.remove(clientId, OPERATOR)
    })

    await t.test(`what becomes ${name} gets a secret that its owner does not know`, async (t) => {
      const client = await registerAs(owner, { redirectUris: [REDIRECT], scopes: ['read'], grants: ['client', 'code'] })
      const ask = async () => await post('token', { grant_type: 'client_credentials', scope: 'read' }, client)
      const first = await ask()
      t.equal(first.status, 200)
      t.match(await admin.patch(`/client/${client.client_id}`, { data: { ...fields, scopes: ['read', ...(('scopes' in fields && fields.scopes) || [])] } }), { status: 204 })
      t.match(await ask(), { status: 401, body: { error: 'invalid_client' } })
      t.match(await harness.get('tokeninfo', String(first.body.access_token)), { status: 401 }, 'tokens of the old secret')
      await clients.remove(client.client_id, OPERATOR)
    })
  }

  await t.test('a first-party client on the user\'s own device asks for consent', async (t) => {
    for (const redirect_uri of ['http://127.0.0.1/cb', 'com.example.app:/cb']) {
      const { clientId } = await clients.create({ data: { redirectUris: [redirect_uri], scopes: [], name: 'Ours', first_party: true } }, OPERATOR)
      const app = { client_id: clientId, client_secret: '', redirect_uri }
      const browser = harness.browser()
      for (const turn of ['first', 'next']) t.match(await requestCode(harness, app, { scope: 'openid' }, browser), /^Continue to/, turn)
      t.equal(await requestCode(harness, app, { scope: 'openid', prompt: 'none' }, browser), 'interaction_required')
    }
  })
})

eachStore(t, 'M2: a code of the device flow', async (t, start) => {
  const harness = await start()
  const { kit, post, user } = harness
  const { clients } = kit.app.identity
  const make = async (fields: object): Promise<App> => {
    const { clientId } = await clients.create({ data: { redirectUris: ['https://app.example/cb'], scopes: [], name: 'Ours', userId: harness.user.user_id, ...fields } }, OPERATOR)
    return { client_id: clientId, client_secret: '', redirect_uri: 'https://app.example/cb' }
  }
  for (const fields of [{}, { first_party: true }, { grants: ['code', 'refresh'] }]) {
    t.match(await post('device_authorization', { scope: 'openid' }, await make(fields)), { status: 400, body: { error: /^(unauthorized_client|invalid_request)$/ } }, JSON.stringify(fields))
  }
  const app = await make({ first_party: true, grants: ['device', 'code'], scopes: ['users:write'] })
  const browser = harness.browser()
  await signIn(harness, askCode(app, { scope: 'openid' }).url, browser)
  const begun = (await post('device_authorization', { scope: 'openid users:write' }, app)).body as Record<string, string>
  const poll = async () => await post('token', { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: begun.device_code! }, app)
  let page = await browser.open(begun.verification_uri!)
  page = await page.submit({ user_code: begun.user_code! })
  for (let step = 0; step < 3 && !page.title.startsWith('Continue to'); step++) {
    t.match((await poll()).body, { error: /^(authorization_pending|slow_down)$/ }, page.title)
    page = page.title === 'Sign in' ? await page.submit({ account: user.account, password: user.password }) : await page.submit()
  }
  t.match(page.title, 'Continue to', 'a first-party client asks for consent')
  t.match(page.text, 'Change and delete users', 'and says for what')
  kit.clock.advance(10_000)
  t.match((await poll()).body, { error: 'authorization_pending' }, 'nothing is given before')
  await page.submit({ decision: 'deny' })
  kit.clock.advance(10_000)
  t.match((await poll()).body, { error: 'access_denied' })
})

eachStore(t, 'resources', async (t, start) => {
  const harness = await start()
  const { kit, post, user, url, get } = harness
  const orders = await declareResource(kit, { 'orders:read': 'read orders', 'orders:write': 'change orders' }, 'https://orders.example/')
  const shop = await declareResource(kit, { 'shop:read': 'see the shop' }, 'https://shop.example/')
  const { clients } = kit.app.identity
  const scopes = ['free', 'account:read', 'clients:read', 'orders:read', 'orders:write', 'shop:read']
  const { clientId } = await clients.create({ data: { redirectUris: [REDIRECT], scopes, name: 'The App', grants: ['code', 'refresh', 'client'], userId: user.user_id }, credentials: true }, OPERATOR)
  const app = { client_id: clientId, client_secret: (await clients.require(clientId, OPERATOR)).clientSecret ?? '', redirect_uri: REDIRECT }
  const readInfo = async (access_token: unknown) => (await get('tokeninfo', String(access_token))).body.data as { scopes: string[], aud?: string } | undefined
  const apiUri = `${url}/api/v1`

  await t.test('left out at the token endpoint after consenting with it', async (t) => {
    for (const params of [{ scope: 'openid offline_access orders:read free', resource: orders.uri }, { scope: 'openid offline_access orders:read free' }]) {
      const first = await post('token', await getCode(harness, app, params), app)
      const { scopes, aud } = (await readInfo(first.body.access_token))!
      t.strictSame({ scopes, aud }, { scopes: ['orders:read'], aud: orders.uri })
      const again = await post('token', { grant_type: 'refresh_token', refresh_token: String(first.body.refresh_token) }, app)
      t.match(await readInfo(again.body.access_token), { scopes: ['orders:read'], aud: orders.uri })
      t.match((await callAs(kit, { authorization: `Bearer ${String(again.body.access_token)}` }).get('/user')), { status: 401 }, 'the API accepts it nowhere')
      for (const resource of [shop.uri, apiUri, 'https://unknown.example/']) {
        const { body } = await post('token', await getCode(harness, app, params), app)
        const moved = await post('token', { grant_type: 'refresh_token', refresh_token: String(body.refresh_token), resource }, app)
        t.match(moved, { status: 400, body: { error: 'invalid_target' } }, resource)
      }
    }
  })

  await t.test('named only at the token endpoint', async (t) => {
    for (const resource of [orders.uri, shop.uri, apiUri]) {
      const { body } = await post('token', { ...await getCode(harness, app, { scope: 'openid free account:read' }), resource }, app)
      t.match(body, { error: 'invalid_target', access_token: undefined }, resource)
    }
    const moved = await post('token', { ...await getCode(harness, app, { scope: 'orders:read' }), resource: shop.uri }, app)
    t.match(moved.body, { error: 'invalid_target', access_token: undefined })
  })

  await t.test('with a scheme and a host in upper case, wherever it is named', async (t) => {
    const spelled = 'HTTPS://Orders.EXAMPLE/'
    const scope = 'openid offline_access orders:read'
    const first = await post('token', { ...await getCode(harness, app, { scope, resource: spelled }), resource: spelled }, app)
    t.match(await readInfo(first.body.access_token), { scopes: ['orders:read'], aud: orders.uri })
    const other = await post('token', { ...await getCode(harness, app, { scope, resource: spelled }), resource: orders.uri }, app)
    t.match(await readInfo(other.body.access_token), { aud: orders.uri }, 'then as it is declared')
    const turned = await post('token', { ...await getCode(harness, app, { scope, resource: orders.uri }), resource: spelled }, app)
    t.match(await readInfo(turned.body.access_token), { aud: orders.uri }, 'the other way round')
    const again = await post('token', { grant_type: 'refresh_token', refresh_token: String(first.body.refresh_token), resource: spelled }, app)
    t.match(await readInfo(again.body.access_token), { aud: orders.uri }, 'at a refresh')
    const own = await post('token', { grant_type: 'client_credentials', scope: 'orders:read', resource: spelled }, app)
    t.match(await readInfo(own.body.access_token), { aud: orders.uri }, 'by a client for itself')
    const asked = askCode(app, { scope, resource: spelled })
    const pushed = await post('par', Object.fromEntries(new URL(asked.url, url).searchParams), app)
    const page = await signIn(harness, `/api/v1/auth/authorize?${new URLSearchParams({ client_id: clientId, request_uri: String(pushed.body.request_uri) })}`)
    const code = String(page.left?.searchParams.get('code'))
    const { body } = await post('token', { grant_type: 'authorization_code', code, code_verifier: asked.verifier, redirect_uri: REDIRECT }, app)
    t.match(await readInfo(body.access_token), { aud: orders.uri }, 'pushed')
    const tab = harness.browser()
    await signIn(harness, askCode(app, { scope, resource: orders.uri }).url, tab)
    t.ok((await tab.open(askCode(app, { scope, resource: spelled, prompt: 'none' }).url)).left?.searchParams.has('code'), 'one consent')
    const minted = await kit.app.identity.tokens.mint({ user_id: user.user_id, client_id: clientId, resource: spelled })
    t.match(await readInfo(minted.access_token), { aud: orders.uri }, 'minted')
    for (const resource of ['https://orders.example/X', 'HTTPS://orders.example/x', 'HTTPS://orders.example.evil/', 'https://ORDERS.example', 'HTTP://orders.example/', 'HTTPS://u@orders.example/']) {
      t.equal(await requestCode(harness, app, { scope: 'openid orders:read', resource }), 'invalid_target', resource)
    }
    t.equal(await requestCode(harness, app, { scope: 'openid account:read', resource: apiUri.toUpperCase() }), 'invalid_target', 'the path has a case')
    const api = await post('token', await getCode(harness, app, { scope: 'openid account:read', resource: apiUri.replace('http', 'HTTP') }), app)
    t.match(await readInfo(api.body.access_token), { aud: apiUri })
    const loud = await declareResource(kit, { 'loud:read': 'read' }, 'https://LOUD.example/')
    await clients.patch(clientId, { data: { scopes: [...scopes, 'loud:read'] } }, OPERATOR)
    for (const resource of [loud.uri, 'https://loud.example/', undefined]) {
      const { body: { access_token } } = await post('token', await getCode(harness, app, { scope: 'openid loud:read', resource }), app)
      t.match(await readInfo(access_token), { scopes: ['loud:read'], aud: loud.uri }, `declared in upper case, named ${resource}`)
    }
    await t.rejects(kit.app.identity.resources.create({ data: { id: 'https://loud.EXAMPLE/', name: 'Again', scopes: { 'again:read': 'read' } } }), { code: 'RESOURCE_EXIST' })
  })

  await t.test('scopes of two resources, an unknown one, two at once', async (t) => {
    for (const params of [
      { scope: 'orders:read shop:read' },
      { scope: 'orders:read account:read' },
      { scope: 'orders:read shop:read', resource: orders.uri },
      { scope: 'orders:read', resource: shop.uri },
      { scope: 'account:read', resource: orders.uri },
      { scope: 'orders:read', resource: apiUri },
      { scope: 'openid', resource: 'https://unknown.example/' },
      { scope: 'openid', resource: `${orders.uri}#x` },
      { scope: 'openid', resource: orders.uri.slice(0, -1) },
      { scope: 'openid', resource: 'no uri' }
    ] as Record<string, string>[]) {
      t.equal(await requestCode(harness, app, params), 'invalid_target', JSON.stringify(params))
      t.match(await post('token', { grant_type: 'client_credentials', ...params, scope: params.scope!.replace('openid', 'free') }, app), { status: 400, body: { error: /^invalid_(target|scope)$/ } }, JSON.stringify(params))
      t.match(await post('par', { client_id: clientId, redirect_uri: REDIRECT, response_type: 'code', code_challenge: 'x'.repeat(43), code_challenge_method: 'S256', ...params }, app), { status: 400, body: { error: 'invalid_target' } }, JSON.stringify(params))
    }
    const twice = `${askCode(app, { scope: 'orders:read', resource: orders.uri }).url}&resource=${encodeURIComponent(shop.uri)}`
    const page = await signIn(harness, twice)
    t.equal(page.left?.searchParams.get('error'), 'invalid_target')
  })

  await t.test('a resource and no scope: the person is asked for what the client may request there, and a first-party app gets nothing', async (t) => {
    const asked = askCode(app, { scope: undefined, resource: orders.uri })
    const one = harness.browser()
    const page = await (await one.open(asked.url)).submit({ account: user.account, password: user.password })
    t.match(page, { left: undefined, title: /^Continue to/, text: /read orders[^]*change orders/ })
    const code = (await page.submit({ decision: 'allow' })).left?.searchParams.get('code')
    const { body } = await post('token', { grant_type: 'authorization_code', code: String(code), code_verifier: asked.verifier, redirect_uri: REDIRECT }, app)
    t.match(body, { scope: 'orders:read orders:write', refresh_token: undefined })
    t.match(await readInfo(body.access_token), { scopes: ['orders:read', 'orders:write'], aud: orders.uri, roles: {} })
    const pushed = await post('par', { client_id: clientId, redirect_uri: REDIRECT, response_type: 'code', code_challenge: 'x'.repeat(43), code_challenge_method: 'S256', resource: orders.uri }, app)
    t.match((await one.open(`/api/v1/auth/authorize?${new URLSearchParams({ client_id: clientId, request_uri: String(pushed.body.request_uri) })}`)).left?.search, /[?&]code=/, 'a pushed request too; this browser has the consent')
    t.equal(await requestCode(harness, app, { scope: undefined, resource: apiUri }), 'invalid_target', 'power over this service is named')
    await harness.mark(app, { first_party: true })
    t.not(await requestCode(harness, app, { scope: undefined, resource: orders.uri }), 'a code', 'nobody is asked')
    await harness.mark(app, { first_party: false })
  })

  await t.test('a resource without one of its scopes', async (t) => {
    for (const scope of ['openid', 'openid free', 'openid roles']) t.equal(await requestCode(harness, app, { scope, resource: orders.uri }), 'invalid_target', scope)
    for (const params of [{ scope: 'free', resource: orders.uri }, { resource: orders.uri }] as Record<string, string>[]) {
      t.match(await post('token', { grant_type: 'client_credentials', ...params }, app), { status: 400, body: { error: 'invalid_target' } })
    }
    const first = await post('token', await getCode(harness, app, { scope: 'openid offline_access orders:read' }), app)
    const narrowed = await post('token', { grant_type: 'refresh_token', refresh_token: String(first.body.refresh_token), scope: 'openid' }, app)
    t.match(narrowed, { status: 400, body: { error: 'invalid_target' } })
  })

  await t.test('a role that a resource takes, at every use', async (t) => {
    const { users } = kit.app.identity
    await declareResource(kit, { 'vault:open': 'open the vault' }, 'https://vault.example/', { roles: ['clerk'] })
    await clients.patch(clientId, { data: { scopes: [...scopes, 'vault:open'] } }, OPERATOR)
    await users.patch(user.user_id, { data: { roles: { clerk: true } } }, OPERATOR)
    const { access_token, refresh_token } = (await post('token', await getCode(harness, app, { scope: 'openid offline_access vault:open' }), app)).body
    t.match(await readInfo(access_token), { scopes: ['vault:open'] })
    await users.patch(user.user_id, { data: { roles: {} } }, OPERATOR)
    t.equal(await readInfo(access_token), undefined)
    const refreshed = await post('token', { grant_type: 'refresh_token', refresh_token: String(refresh_token) }, app)
    t.equal(await readInfo(refreshed.body.access_token), undefined)
  })
})

eachStore(t, 'a client is not made with more than its maker has', async (t, start) => {
  const harness = await start()
  const { kit } = harness
  await declareResource(kit, { 'orders:read': 'read orders', 'orders:write': 'change orders' }, 'https://orders.example/', { selfService: ['orders:read'] })
  const everything = [...SELF_SERVICE, 'account:security', 'users:read', 'users:write']
  for (const [roles, granted, scopes, status] of [
    [[], ['clients:write'], ['clients:write'], 204],
    [[], ['clients:write'], ['clients:read'], 204],
    [[], ['clients:write'], ['account:read'], 403],
    [[], ['clients:write'], ['free', 'account:write'], 403],
    [[], ['clients:write'], ['orders:read'], 403],
    [[], ['clients:write', 'account:write'], ['account:read'], 204],
    [[], everything, ['users:read'], 403],
    [[], everything, ['account:security'], 403],
    [[], undefined, ['users:write'], 403],
    [[], undefined, ['account:security'], 403],
    [[], undefined, ['orders:read'], 204],
    [[], undefined, ['orders:write'], 403],
    [['manager'], undefined, ['users:write'], 403],
    [['admin'], ['clients:write'], ['users:read'], 403],
    [['admin'], ['clients:write', 'users:read'], ['users:read'], 403],
    [['admin'], ['clients:write', 'users:write'], ['users:write'], 204],
    [['admin'], ['clients:write', 'users:write'], ['account:write'], 403],
    [['admin'], ['clients:write', 'users:write'], ['account:security'], 403],
    [['admin'], undefined, [...everything, 'orders:write'], 204]
  ] as [string[], string[] | undefined, string[], number][]) {
    const maker = await mintFor(kit, { roles, ...(granted !== undefined && { scopes: granted }) })
    const message = `${roles.join()} with ${granted?.join(' ') ?? 'all'} gives ${scopes.join(' ')}`
    const full = await mintFor(kit, { user: maker.user_id })
    const { body } = await full.post<{ data: { clientId: string } }>('/client', { data: { redirectUris: [], scopes: [], name: 'n' } })
    t.match(await maker.patch(`/client/${body.data.clientId}`, { data: { scopes } }), { status }, message)
    t.match(await maker.post('/client', { data: { redirectUris: [], scopes, name: 'n' } }), { status: status === 204 ? 200 : 403 }, `${message} to a new one`)
  }

  await t.test('an app that was signed in to', async (t) => {
    const mallory = await addPerson(harness, 'mallory@example.com')
    const app = await registerAs(await mintAs(harness, mallory), { scopes: ['clients:write'] })
    const token = await signInTo(harness, app, { scope: 'clients:write' })
    for (const scope of ['account:read', 'account:write', 'orders:read', 'users:read']) {
      t.match(await token.post('/client', { data: { redirectUris: [REDIRECT], scopes: [scope], name: 'n' }, credentials: true }), { status: 403 }, scope)
    }
  })
})

eachStore(t, 'a refresh', async (t, start) => {
  const harness = await start()
  const { kit, post, get, user } = harness
  const { clients, tokens } = kit.app.identity
  const orders = await declareResource(kit, { 'orders:read': 'read orders', 'orders:write': 'change orders' }, 'https://orders.example/')
  const make = async (scopes: string[]): Promise<App> => {
    const { clientId } = await clients.create({ data: { redirectUris: [REDIRECT], scopes, name: 'The App', grants: ['code', 'refresh'], userId: user.user_id }, credentials: true }, OPERATOR)
    return { client_id: clientId, client_secret: (await clients.require(clientId, OPERATOR)).clientSecret ?? '', redirect_uri: REDIRECT }
  }
  const refresh = async (app: App, refresh_token: unknown, params: Record<string, string> = {}) => await post('token', { grant_type: 'refresh_token', refresh_token: String(refresh_token), ...params }, app)
  const readScopes = async ({ body }: { body: Record<string, unknown> }) => ((await get('tokeninfo', String(body.access_token))).body.data as { scopes: string[] } | undefined)?.scopes
  const callWith = ({ body }: { body: Record<string, unknown> }) => callAs(kit, { authorization: `Bearer ${String(body.access_token)}` })

  await t.test('does not widen what was consented to', async (t) => {
    const app = await make(['account:read', 'account:write', 'free'])
    const first = await post('token', await getCode(harness, app, { scope: 'openid offline_access account:read' }), app)
    for (const scope of ['account:write', 'free', 'openid account:read account:write', 'users:read', 'profile']) {
      t.match(await refresh(app, first.body.refresh_token, { scope }), { status: 400, body: { error: 'invalid_scope' } }, scope)
    }
    await clients.patch(app.client_id, { data: { scopes: ['account:read', 'account:write', 'free', 'more'] } }, OPERATOR)
    const second = await refresh(app, first.body.refresh_token)
    t.strictSame(await readScopes(second), ['account:read'], 'what the client got later is not the user\'s consent')
    const narrowed = await refresh(app, second.body.refresh_token, { scope: 'openid' })
    t.strictSame(await readScopes(narrowed), [])
    t.match(await callWith(narrowed).get('/user'), { status: 403 })
    await clients.patch(app.client_id, { data: { scopes: ['free'] } }, OPERATOR)
    const third = await refresh(app, narrowed.body.refresh_token)
    t.strictSame(await readScopes(third), [], 'what the client lost is gone')
    t.match(await callWith(third).get('/user'), { status: 403 })
    t.match(await callWith(second).get('/user'), { status: 403 })
  })

  await t.test('of a token that the operator minted keeps its power', async (t) => {
    await kit.app.identity.users.patch(user.user_id, { data: { roles: { admin: true } } }, OPERATOR)
    const app = await make(['free', 'other'])
    const mint = async (rest: object) => (await tokens.mint({ user_id: user.user_id, client_id: app.client_id, refresh: true, ...rest })).refresh_token

    for (let turn = 0, refresh_token: unknown = await mint({}); turn < 3; turn++) {
      const next = await refresh(app, refresh_token)
      t.match(await callWith(next).get('/user/count'), { status: 200 }, 'unrestricted')
      t.match((await get('tokeninfo', String(next.body.access_token))).body, { data: { roles: { admin: true }, scopes: ['free', 'other'] } })
      refresh_token = next.body.refresh_token
    }

    const unrestricted = await refresh(app, await mint({}), { scope: 'free' })
    t.strictSame(await readScopes(unrestricted), ['free'])
    t.match(await callWith(unrestricted).get('/user/count'), { status: 403 }, 'narrowed')
    t.match((await get('tokeninfo', String(unrestricted.body.access_token))).body, { data: { roles: {} } })

    for (let turn = 0, refresh_token: unknown = await mint({ scopes: ['account:read', 'free'] }); turn < 3; turn++) {
      const next = await refresh(app, refresh_token)
      t.strictSame((await readScopes(next))?.toSorted(), ['account:read', 'free'])
      t.match(await callWith(next).get('/user'), { status: 200 })
      t.match(await callWith(next).get('/user/count'), { status: 403 })
      t.match(await callWith(next).patch('/user', { data: { name: 'n' } }), { status: 403 })
      refresh_token = next.body.refresh_token
    }
    const narrowed = await mint({ scopes: ['account:read', 'free'] })
    for (const scope of ['other', 'users:read', 'account:write', 'free other']) t.match(await refresh(app, narrowed, { scope }), { status: 400, body: { error: 'invalid_scope' } }, scope)
    t.strictSame(await readScopes(await refresh(app, narrowed, { scope: 'account:read' })), ['account:read'])
  })

  await t.test('of a token that the operator minted for a resource stays with it', async (t) => {
    const app = await make(['free', 'orders:read', 'orders:write'])
    for (const scopes of [undefined, ['orders:read']]) {
      const minted = await tokens.mint({ user_id: user.user_id, client_id: app.client_id, refresh: true, resource: orders.uri, ...(scopes && { scopes }) })
      t.match((await callAs(kit, { authorization: `Bearer ${(await tokens.mint({ user_id: user.user_id, client_id: app.client_id })).access_token}` }).get('/auth/sessions')).body, { data: [{}] })
      const next = await refresh(app, minted.refresh_token)
      t.match((await get('tokeninfo', String(next.body.access_token))).body, { data: { aud: orders.uri, scopes: scopes ?? ['orders:read', 'orders:write'] } })
      t.match(await callWith(next).get('/user'), { status: 401 })
      const narrowed = await refresh(app, next.body.refresh_token, { scope: 'orders:read' })
      t.match((await get('tokeninfo', String(narrowed.body.access_token))).body, { data: { aud: orders.uri, scopes: ['orders:read'] } })
    }
  })
})

eachStore(t, 'consent', async (t, start) => {
  const harness = await start()
  const { kit } = harness
  const { clients, resources } = kit.app.identity
  const orders = await declareResource(kit, { 'orders:read': 'read orders' }, 'https://orders.example/')
  const { clientId } = await clients.create({ data: { redirectUris: [REDIRECT], scopes: ['free', 'account:read', 'orders:read'], name: 'The App', userId: harness.user.user_id }, credentials: true }, OPERATOR)
  const app = { client_id: clientId, client_secret: (await clients.require(clientId, OPERATOR)).clientSecret ?? '', redirect_uri: REDIRECT }
  const browser = harness.browser()
  const ask = async (params: Record<string, string>) => await requestCode(harness, app, params, browser)
  const isAsked = async (t: Test, params: Record<string, string>, message: string) => {
    t.equal(await ask({ ...params, prompt: 'none' }), 'consent_required', `${message}: no page`)
    t.match(await ask(params), /^Continue to/, message)
    await signIn(harness, askCode(app, params).url, browser)
    t.equal(await ask(params), 'a code', `${message}: it is remembered`)
  }
  await signIn(harness, askCode(app, { scope: 'openid' }).url, browser)
  t.equal(await ask({ scope: 'openid' }), 'a code')
  await isAsked(t, { scope: 'openid account:read' }, 'a scope of the API')
  await isAsked(t, { scope: 'openid orders:read' }, 'a scope of a resource')
  await isAsked(t, { scope: 'account:read', resource: `${harness.url}/api/v1` }, 'the same scope at the resource')
  await clients.patch(clientId, { data: { name: 'The Other App' } }, OPERATOR)
  await isAsked(t, { scope: 'openid' }, 'another name')
  await isAsked(t, { scope: 'openid orders:read' }, 'another name')
  await clients.patch(clientId, { data: { redirectUris: [REDIRECT, 'https://elsewhere.example/cb'] } }, OPERATOR)
  await isAsked(t, { scope: 'openid' }, 'another redirect URI')
  await isAsked(t, { scope: 'openid orders:read' }, 'another redirect URI')
  await resources.patch(orders.resourceId, { data: { scopes: { 'orders:read': 'read and cancel orders' } } })
  await isAsked(t, { scope: 'openid orders:read' }, 'another meaning')
  t.equal(await ask({ scope: 'openid' }), 'a code', 'of another scope')
  await declareResource(kit, { paid: 'pay' }, 'https://pay.example/')
  await clients.patch(clientId, { data: { scopes: ['free', 'account:read', 'orders:read', 'paid'] } }, OPERATOR)
  t.equal(await ask({ scope: 'openid orders:read' }), 'a code', 'other scopes of the client do not matter')
  await resources.remove(orders.resourceId)
  await declareResource(kit, { 'orders:read': 'read and cancel orders' }, 'https://orders.example/')
  await clients.patch(clientId, { data: { scopes: ['free', 'account:read', 'orders:read'] } }, OPERATOR)
  await isAsked(t, { scope: 'openid orders:read' }, 'another resource with the URI and the meaning of before')
})
