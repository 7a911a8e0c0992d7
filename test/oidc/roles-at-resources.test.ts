import fastify, { type FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import t from 'tap'
import type { Identity } from '../../plugins/auth.ts'
import remoteAuth from '../../plugins/remote.ts'
import { signIn as mintFor } from '../helpers/people.ts'
import { declareResource } from '../helpers/powers.ts'
import type { Browser, Page } from './browser.ts'
import { type App, type Harness, askCode, eachStore } from './harness.ts'

// An app of a plain user, with a scope of an API that any user may give, and an administrator who signs in to it. Their roles
// at the API are another matter than that scope.

const OPERATOR = { user_id: 'operator', isAdmin: true }
const REDIRECT = 'https://tracker.example/cb'
const ORDERS = 'https://orders.example/'

interface Stage {
  harness: Harness
  app: App
  /** GETs a route of the API: the service embedded, and by remoteAuth. */
  ask: (path: string, token: string) => Promise<[embedded: Seen, remote: Seen]>
}

interface Seen { status: number, challenge: string | undefined, isAdmin?: boolean }

async function addRoutes (t: Test, host: FastifyInstance, { guard }: Pick<Identity, 'guard'>): Promise<FastifyInstance> {
  t.teardown(() => host.close())
  const audience = ORDERS
  host.get('/read', { onRequest: guard({ audience, scopes: ['orders:read'] }) }, async ({ isAdmin }) => ({ isAdmin }))
  host.get('/roles', { onRequest: guard({ audience, roles: ['admin'] }) }, async ({ isAdmin }) => ({ isAdmin }))
  host.get('/both', { onRequest: guard({ audience, roles: ['admin'], scopes: ['orders:read'] }) }, async ({ isAdmin }) => ({ isAdmin }))
  host.get('/nobody', { onRequest: guard({ audience, roles: ['nobody'] }) }, async ({ isAdmin }) => ({ isAdmin }))
  await host.ready()
  return host
}

async function setUp (t: Test, harness: Harness): Promise<Stage> {
  const { kit, user } = harness
  await declareResource(kit, { 'orders:read': 'see your orders' }, ORDERS, { selfService: ['orders:read'] })
  await kit.app.identity.users.patch(user.user_id, { data: { roles: { admin: true } } }, OPERATOR)
  const mallory = await mintFor(kit, {})
  const { status, body } = await kit.inject({
    method: 'POST', url: '/api/v1/client', headers: mallory.headers, body: { data: { redirectUris: [REDIRECT], scopes: ['orders:read'], name: 'Order tracker' } }
  }).then((reply) => ({ status: reply.statusCode, body: reply.json<{ data: { clientId: string } }>() }))
  t.equal(status, 200)
  const remote = fastify()
  await remote.register(remoteAuth, { upstream: harness.url })
  const hosts = [await addRoutes(t, fastify(), kit.app.identity), await addRoutes(t, remote, remote.identity)]
  return {
    harness,
    app: { client_id: body.data.clientId, client_secret: '', redirect_uri: REDIRECT },
    ask: async (path, token) => await Promise.all(hosts.map(async (host): Promise<Seen> => {
      const reply = await host.inject({ url: path, headers: { authorization: `Bearer ${token}` } })
      const { isAdmin } = reply.json<{ isAdmin?: boolean }>()
      return { status: reply.statusCode, challenge: reply.headers['www-authenticate']?.toString(), ...(isAdmin !== undefined && { isAdmin }) }
    })) as [Seen, Seen]
  }
}

/** Signs in and allows what is asked. Resolves to the consent page, if one was shown, and the tokens. */
async function connect ({ harness: { user, browser, post } }: Stage, app: App, params: Record<string, string>, with_: Browser = browser()): Promise<{ page?: Page, tokens: Record<string, unknown> }> {
  const { url, verifier } = askCode(app, params)
  let next = await with_.open(url)
  if (next.title === 'Sign in') next = await next.submit({ account: user.account, password: user.password })
  const page = next.left === undefined ? next : undefined
  if (page !== undefined) next = await page.submit({ decision: 'allow' })
  const fields = { grant_type: 'authorization_code', code: String(next.left?.searchParams.get('code')), code_verifier: verifier, redirect_uri: app.redirect_uri }
  const { body } = await post('token', fields, app)
  return { ...(page !== undefined && { page }), tokens: body }
}

const CHALLENGE = 'Bearer error="insufficient_scope", scope="orders:read roles"'

eachStore(t, 'an app that nobody vouches for', async (t, start) => {
  const stage = await setUp(t, await start())
  const { harness, app, ask } = stage
  const { get, post } = harness

  await t.test("has none of the person's roles at a resource by a scope of the resource", async (t) => {
    const { page, tokens } = await connect(stage, app, { scope: 'openid orders:read' })
    t.notMatch(page?.text, 'roles')
    const token = String(tokens.access_token)
    t.match((await get('tokeninfo', token)).body, { data: { roles: {}, scopes: ['orders:read'], roles_withheld: true } })
    for (const seen of await ask('/read', token)) t.match(seen, { status: 200, isAdmin: false })
    for (const path of ['/roles', '/both', '/nobody']) {
      // The same for a role that the person does not have: otherwise the answer would tell the app their roles.
      for (const seen of await ask(path, token)) t.strictSame(seen, { status: 403, challenge: CHALLENGE }, path)
    }
  })

  await t.test('has them when the person grants them there, in words that name the API', async (t) => {
    const { page, tokens } = await connect(stage, app, { scope: 'openid offline_access orders:read roles' })
    t.match(page?.text, 'Act at <bdi>Elsewhere</bdi> with all your permissions')
    const refreshed = (await post('token', { grant_type: 'refresh_token', refresh_token: String(tokens.refresh_token) }, app)).body
    for (const token of [String(tokens.access_token), String(refreshed.access_token)]) {
      const { data } = (await get('tokeninfo', token)).body as { data: Record<string, unknown> }
      t.strictSame([data.roles, data.scopes, 'roles_withheld' in data], [{ admin: true }, ['orders:read'], false])
      for (const path of ['/roles', '/both']) for (const seen of await ask(path, token)) t.match(seen, { status: 200, isAdmin: true }, path)
      for (const seen of await ask('/nobody', token)) t.strictSame(seen, { status: 403, challenge: undefined }, 'asking again would not help')
    }
  })

  await t.test('cannot turn the consent to read the roles into one to use them', async (t) => {
    const browser = harness.browser()
    const first = await connect(stage, app, { scope: 'openid roles' }, browser)
    t.match(first.page?.text, 'See your roles')
    const second = await connect(stage, app, { scope: 'openid orders:read' }, browser)
    t.notMatch(second.page?.text, 'with all your permissions')
    const third = await connect(stage, app, { scope: 'openid orders:read roles' }, browser)
    t.match(third.page?.text, 'Act at <bdi>Elsewhere</bdi> with all your permissions', 'it is asked about')
    const again = await connect(stage, app, { scope: 'openid orders:read roles' }, browser)
    t.equal(again.page, undefined, 'and remembered')
    t.match((await get('tokeninfo', String(again.tokens.access_token))).body, { data: { roles: { admin: true } } })
  })

  await t.test('a refusal of the roles leaves nothing', async (t) => {
    const browser = harness.browser()
    await connect(stage, app, { scope: 'openid orders:read' }, browser)
    const asked = await browser.open(askCode(app, { scope: 'openid orders:read roles' }).url)
    t.equal((await asked.submit({ decision: 'deny' })).left?.searchParams.get('error'), 'access_denied')
    const { tokens } = await connect(stage, app, { scope: 'openid orders:read' }, browser)
    t.match((await get('tokeninfo', String(tokens.access_token))).body, { data: { roles: {} } })
  })

  await t.test('the account pages say at which API it has the roles', async (t) => {
    const browser = harness.browser()
    await connect(stage, app, { scope: 'openid offline_access orders:read roles' }, browser)
    t.match((await browser.open('/account/apps')).text, 'Act at <bdi>Elsewhere</bdi> with all your permissions')
  })

  await t.test("the service's own API is such a resource too", async (t) => {
    const apiUri = `${harness.url}/api/v1`
    const own = await harness.register({ first_party: false, scopes: ['account:read'] })
    const without = await connect(stage, own, { scope: 'account:read', resource: apiUri })
    t.match((await get('tokeninfo', String(without.tokens.access_token))).body, { data: { roles: {}, roles_withheld: true } })
    const { page, tokens } = await connect(stage, own, { scope: 'account:read roles', resource: apiUri })
    t.match(page?.text, `Act at <bdi>${apiUri}</bdi> with all your permissions`)
    t.match((await get('tokeninfo', String(tokens.access_token))).body, { data: { roles: { admin: true } } })
  })
})

eachStore(t, 'an app that the operator vouches for', async (t, start) => {
  const stage = await setUp(t, await start())
  const { harness, ask } = stage
  for (const [name, app] of [
    ['first-party', await harness.register({ scopes: ['orders:read'] })],
    ['with a scope that an administrator gave', await harness.register({ first_party: false, scopes: ['orders:read', 'users:read'] })]
  ] as const) {
    const { tokens } = await connect(stage, app, { scope: 'openid orders:read' })
    for (const path of ['/roles', '/both']) for (const seen of await ask(path, String(tokens.access_token))) t.match(seen, { status: 200, isAdmin: true }, `${name}: ${path}`)
  }
})
