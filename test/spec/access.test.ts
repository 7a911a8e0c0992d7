import type { InjectOptions } from 'fastify'
import t, { type Test } from 'tap'
import type { IdentityOptions } from '../../index.ts'
import { ACCESS } from '../../plugins/access-table.ts'
import type { TestKit } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { build } from '../helpers/build.ts'
import { type Person, callAs, createClient, createUser, signIn } from '../helpers/people.ts'

t.setTimeout(150_000)

const COLUMNS = ['none', 'bad', 'plain', 'owner', 'manager', 'service', 'admin'] as const
type Who = typeof COLUMNS[number]

const PERSONAL = { maxDays: 30 }

/**
 * The expected status for each caller. `none` has no token, and that of `bad` is invalid; `plain` holds no role; `owner` owns
 * the client and is the user in the path.
 */
const TABLE = `
operation                                 none  bad   plain owner manager service admin
POST   /client                            401   401   200   200   200     200     200
GET    /client/count                      401   401   200   200   200     200     200
GET    /client/list                       401   401   200   200   200     200     200
GET    /client/:clientId                  401   401   404   200   404     404     200
PATCH  /client/:clientId                  401   401   404   204   404     404     204
DELETE /client/:clientId                  401   401   404   204   404     404     204
POST   /client/:clientId/secret           401   401   404   400   404     404     400
GET    /client/:clientId/secret           401   401   404   200   404     404     200
DELETE /client/:clientId/secret/:secretId 401   401   404   404   404     404     404
POST   /client/:clientId/token            401   401   403   403   403     403     400
GET    /client/:clientId/token            401   401   403   403   403     403     200
DELETE /client/:clientId/token/:tokenId   401   401   403   403   403     403     404
DELETE /client/user/:userId               401   401   403   204   403     403     204
GET    /client/document/list              401   401   403   403   403     403     404
POST   /client/document/block             401   401   403   403   403     403     404
POST   /client/document/refresh           401   401   403   403   403     403     404
GET    /auth/tokeninfo                    401   401   200   200   200     200     200
POST   /auth/logout                       401   401   204   204   204     204     204
GET    /auth/sessions                     401   401   200   200   200     200     200
DELETE /auth/sessions                     401   401   204   204   204     204     204
GET    /user                              401   401   200   200   200     200     200
GET    /user/export                       401   401   200   200   200     200     200
PATCH  /user                              401   401   204   204   204     204     204
POST   /resource                          401   401   403   403   403     403     200
GET    /resource/count                    401   401   403   403   403     403     200
GET    /resource/list                     401   401   403   403   403     403     200
GET    /event/list                        401   401   403   403   403     403     200
GET    /event/feed                        401   401   403   403   403     403     200
POST   /webhook                           401   401   403   403   403     403     200
GET    /webhook/count                     401   401   403   403   403     403     200
GET    /webhook/list                      401   401   403   403   403     403     200
GET    /webhook/:webhookId                401   401   403   403   403     403     404
PATCH  /webhook/:webhookId                401   401   403   403   403     403     404
DELETE /webhook/:webhookId                401   401   403   403   403     403     404
GET    /webhook/:webhookId/attempts       401   401   403   403   403     403     404
POST   /webhook/:webhookId/replay         401   401   403   403   403     403     404
POST   /webhook/:webhookId/test           401   401   403   403   403     403     404
POST   /webhook/:webhookId/secret         401   401   403   403   403     403     404
GET    /resource/:resourceId              401   401   403   403   403     403     404
PATCH  /resource/:resourceId              401   401   403   403   403     403     404
DELETE /resource/:resourceId              401   401   403   403   403     403     404
POST   /user                              401   401   403   403   403     403     200
GET    /user/count                        401   401   403   403   403     403     200
GET    /user/list                         401   401   403   403   403     403     200
GET    /user/:userId                      401   401   403   403   200     403     200
POST   /user/:userId/unlock               401   401   403   403   200     403     200
GET    /user/:userId/sessions             401   401   403   403   200     403     200
DELETE /user/:userId/sessions             401   401   403   403   204     403     204
DELETE /user/:userId/sessions/:sessionId  401   401   403   403   404     403     404
GET    /user/:userId/factors              401   401   403   403   200     403     200
GET    /user/:userId/sign-in              401   401   403   403   200     403     200
GET    /user/sign-in                      401   401   403   403   400     403     400
GET    /find                              401   401   403   403   400     403     400
GET    /client/:clientId/token-preview    401   401   403   403   403     403     200
GET    /user/:userId/mails                401   401   403   403   200     403     200
GET    /jobs                              401   401   403   403   403     403     200
POST   /jobs/retry                        401   401   403   403   403     403     200
GET    /keys                              401   401   403   403   403     403     200
GET    /status                            401   401   403   403   403     403     200
GET    /settings                          401   401   403   403   403     403     200
POST   /mail/test                         401   401   403   403   403     403     400
PATCH  /user/:userId                      401   401   403   403   204     204     204
DELETE /user/:userId                      401   401   403   403   403     403     204
POST   /auth/verify/send                  401   401   400   400   400     400     400
POST   /user/token                        401   401   200   200   200     200     200
GET    /user/token                        401   401   200   200   200     200     200
DELETE /user/token/:tokenId               401   401   404   404   404     404     404
GET    /user/:userId/token                401   401   403   403   403     403     200
DELETE /user/:userId/token/:tokenId       401   401   403   403   403     403     404
POST   /user/email                        401   401   204   204   204     204     204
DELETE /user                              401   401   404   404   404     404     404
GET    /user/factors                      401   401   200   200   200     200     200
DELETE /user/factors/:factorId            401   401   404   404   404     404     404
POST   /user/:userId/factors/reset        401   401   403   403   403     403     200
GET    /user/identities                   401   401   200   200   200     200     200
DELETE /user/identities/:identityId       401   401   404   404   404     404     404
GET    /user/:userId/identities           401   401   403   403   403     403     200
GET    /user/:userId/identities/:identityId 401 401   403   403   403     403     404
DELETE /user/:userId/identities/:identityId 401 401   403   403   403     403     404
POST   /user/:userId/identities/replace   401   401   403   403   403     403     400
POST   /user/:userId/email/release        401   401   403   403   403     403     400
POST   /user/import                       401   401   403   403   403     403     200
POST   /user/invite                       401   401   403   403   200     403     200
POST   /user/:userId/recovery             401   401   403   403   403     403     200
`

interface Row { method: InjectOptions['method'] & string, path: string, expected: Record<Who, number> }

const ROWS: Row[] = TABLE.trim().split('\n').slice(1).map((line) => {
  const [method, path, ...statuses] = line.split(/\s+/)
  return { method: method as 'GET', path: path!, expected: Object.fromEntries(COLUMNS.map((who, index) => [who, Number(statuses[index])])) as Row['expected'] }
})

/** A valid body, for the routes that accept one. */
function bodyOf ({ method, path }: Row): object | undefined {
  if (method === 'PATCH') return path === '/user/:userId' ? { data: { roles: {} } } : { data: { name: 'new' } }
  if (path === '/user/token' && method === 'POST') return { data: { name: 'n', scopes: [], expiresAt: new Date(Date.now() + 3_600_000).toISOString() } }
  if (path === '/user/email') return { data: { email: `new${Math.random()}@example.com` } }
  if (method === 'DELETE' && path === '/user') return { data: {} }
  if (path === '/user/import') return
  if (path === '/user/invite') return { data: { account: `new${Math.random()}@example.com` } }
  // The clients here are public, and get no secret and no token.
  if (path === '/client/:clientId/secret') return { data: { name: 'n' } }
  if (path === '/client/:clientId/token' && method === 'POST') return { data: { name: 'n', scopes: [] } }
  // Documents are off here.
  if (path.startsWith('/client/document/')) return path.endsWith('list') ? undefined : { data: { url: 'https://agent.example/client.json' } }
  if (path === '/webhook') return { data: { name: 'n', url: 'https://hooks.example.com/', types: ['*'] } }
  if (path.endsWith('/identities/replace')) return { data: { upstream: 'none', subject: 'x'.repeat(22) } }
  if (path.endsWith('/replay')) return { from: 'now' }
  if (/\/(send|recovery|unlock|reset|release|test|secret)$/.test(path)) return
  if (method !== 'POST' || path === '/auth/logout') return
  if (path === '/jobs/retry') return { data: { kind: 'mail' } }
  if (path === '/resource') return { data: { id: `urn:example:${Math.random()}`, name: 'n', scopes: {} } }
  return path === '/user' ? { data: { account: `new${Math.random()}`.replace('.', ''), password: 'p' } } : { data: { redirectUris: [], scopes: [], name: 'n' } }
}

/** Calls every route as every caller and compares with the table; `names` are the configured role names. */
async function walk (t: Test, kit: TestKit, names = { admin: 'admin', manager: 'manager', service: 'service' }): Promise<void> {
  const admin = await signIn(kit, { roles: [names.admin] })
  for (const row of ROWS) {
    // Each call has its own user and client, so that no call affects another.
    await Promise.all(COLUMNS.map(async (who) => {
      const user = await createUser(admin)
      const clientId = await createClient(admin, { userId: user })
      const headers = {
        none: () => undefined,
        bad: () => ({ authorization: 'Bearer dead' }),
        owner: async () => (await kit.mint({ user })).headers,
        plain: async () => (await kit.mint()).headers,
        manager: async () => (await kit.mint({ roles: [names.manager] })).headers,
        service: async () => (await kit.mint({ roles: [names.service] })).headers,
        admin: async () => (await kit.mint({ roles: [names.admin] })).headers
      }
      const payload = bodyOf(row)
      const reply = await callAs(kit, await headers[who]()).send({
        method: row.method, url: row.path.replace(/import$/, 'import?source=old').replace(':clientId', clientId).replace(':userId', user), ...(payload && { payload })
      })
      t.equal(reply.status, row.expected[who], `${row.method} ${row.path} as ${who}`)
      t.equal(reply.status === 401, reply.headers['www-authenticate'] !== undefined)
    }))
  }
}

t.test('decisions, Who may call what: every route as every caller', async (t) => {
  await walk(t, await build(t, { personalTokens: PERSONAL }))
})

t.test('decisions, Names: roles under other names', async (t) => {
  const names = { admin: 'root', manager: 'chief', service: 'robot' }
  const kit = await build(t, { roles: names, personalTokens: PERSONAL })
  await walk(t, kit, names)
  for (const roles of [['admin'], ['manager'], ['service'], ['Root'], ['constructor']]) {
    const caller = await signIn(kit, { roles })
    t.match(await caller.get('/user/count'), { status: 403 }, `${roles} is no role here`)
    t.match(await caller.patch('/user/x', { disable: true }), { status: 403 })
  }
  const root = await signIn(kit, { roles: ['root'] })
  const chief = await signIn(kit, { roles: ['chief'] })
  const target = await createUser(root)
  for (const [roles, status] of [[{ root: true }, 403], [{ robot: true }, 403], [{ admin: true, service: true }, 204]] as const) {
    t.match(await chief.patch(`/user/${target}`, { data: { roles } }), { status }, `a manager grants ${Object.keys(roles)}`)
  }
  t.match(await chief.patch(`/user/${root.user_id}`, { disable: true }), { status: 403 })
})

t.test('decisions, Names: one role under another name', async (t) => {
  await walk(t, await build(t, { roles: { manager: 'chief' }, personalTokens: PERSONAL }), { admin: 'admin', manager: 'chief', service: 'service' })
})

t.test('a role change takes effect at the next request, in existing sessions too', async (t) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)
  for (const [roles, status] of [[{}, 403], [{ admin: {} }, 200], [{}, 403], [{ admin: true, other: true }, 200]] as const) {
    await admin.patch(`/user/${ann.user_id}`, { data: { roles } })
    t.match(await ann.get('/user/count'), { status })
  }
})

t.test('every route of the API has a row in TABLE, and every row of the access table has a route', async (t) => {
  const routes: string[] = []
  const rows: (string | undefined)[] = []
  const app = createApp()
  app.addHook('onRoute', ({ method, url, config }) => {
    // A preflight has no token, and its answer reveals no data.
    if (!url.startsWith('/api/v1/') || method === 'OPTIONS') return
    for (const name of [method].flat().filter((name) => name !== 'HEAD')) routes.push(`${name} ${url.slice('/api/v1'.length)}`)
    rows.push(config?.access)
  })
  // The authorization server's endpoints are not governed by the access table.
  await build(t, { app, oidc: false, personalTokens: PERSONAL })
  // These need no token: they use a link, or nothing at all. Only the last one has a row, for links that need a token too.
  const open = ['POST /auth/forgot', 'POST /auth/reset', 'POST /auth/sign-up', 'POST /auth/undo', 'POST /auth/verify']
  t.strictSame(routes.filter((route) => !open.includes(route)).sort(), ROWS.map(({ method, path }) => `${method} ${path}`).sort())
  t.strictSame([...new Set(rows)].filter((row) => row !== undefined).sort(), Object.keys(ACCESS).sort())
  t.equal(rows.filter((row) => row === undefined).length, open.length - 1)
})

t.test('a HEAD request has the access rules of its GET', async (t) => {
  const kit = await build(t)
  const ann = await signIn(kit)
  for (const [url, headers, status] of [
    ['/user/count', {}, 401], ['/user/count', ann.headers, 403], ['/client/count', {}, 401], ['/client/count', ann.headers, 200],
    ['/user/list', {}, 401], ['/user/list', ann.headers, 403], ['/client/list', {}, 401], ['/client/list', ann.headers, 200]
  ] as const) t.equal((await kit.inject({ method: 'HEAD', url: `/api/v1${url}`, headers })).statusCode, status)
})

t.test('the option access overrides a row', async (t) => {
  const allows = async (t: Test, access: IdentityOptions['access'], call: (person: Person, target: Person) => Promise<{ status: number }>, expected: Partial<Record<Who, number>>) => {
    const kit = await build(t, { access: access!, roles: { manager: 'chief' } })
    const target = await signIn(kit)
    for (const [who, status] of Object.entries(expected)) {
      const person = who === 'owner' ? target : await signIn(kit, { roles: who === 'plain' ? [] : [who === 'manager' ? 'chief' : who] })
      t.equal((await call(person, target)).status, status, who)
    }
  }
  for (const [name, access, call, expected] of [
    ['roles by their key', { countUsers: { roles: ['manager'] } }, (person) => person.get('/user/count'), { plain: 403, manager: 200, admin: 403 }],
    ['roles of the operator\'s own', { countUsers: { roles: ['clerk', 'admin'] } }, (person) => person.get('/user/count'), { plain: 403, clerk: 200, admin: 200 }],
    ['any', { getUser: { any: true } }, (person, target) => person.get(`/user/${target.user_id}`), { plain: 200, admin: 200 }],
    ['owner', { getUser: { owner: true } }, (person, target) => person.get(`/user/${target.user_id}`), { plain: 403, owner: 200, admin: 403 }],
    ['owner or a role', { getUser: { owner: true, roles: ['admin'] } }, (person, target) => person.get(`/user/${target.user_id}`), { plain: 403, owner: 200, admin: 200 }],
    ['a narrower row', { createClient: { roles: ['admin'] } }, (person) => person.post('/client', { data: { redirectUris: [], scopes: [], name: 'n' } }), { plain: 403, manager: 403, admin: 200 }],
    ['other rows stay', { getUser: { any: true } }, (person) => person.get('/user/count'), { plain: 403, admin: 200 }]
  ] as [string, IdentityOptions['access'], (person: Person, target: Person) => Promise<{ status: number }>, Partial<Record<Who, number>>][]) {
    await t.test(name, (t) => allows(t, access, call, expected))
  }
})

t.test('an override of an unknown row, or an invalid one, fails at boot', async (t) => {
  for (const [access, message] of [
    [{ nothing: { any: true } }, /access\.nothing/],
    [{ constructor: { any: true } }, /access\.constructor/],
    [{ getUser: {} }, /access\.getUser/],
    [{ getUser: { any: false } }, /access\.getUser/],
    [{ getUser: { roles: [] } }, /access\.getUser/],
    [{ getUser: { role: 'admin' } }, /access\.getUser/]
  ] as const) {
    const app = createApp()
    await t.rejects(build(t, { app, access: access as never }), { message }, JSON.stringify(access))
  }
})
