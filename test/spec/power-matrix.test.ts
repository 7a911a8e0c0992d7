import t, { type Test } from 'tap'
import { createApp } from '../../testing/kit.ts'
import type { TestKit } from '../../testing/index.ts'
import { type Build, build as buildApp, forEachStore } from '../helpers/build.ts'
import { type Reply, unique } from '../helpers/people.ts'
import { API_SCOPES, type Elsewhere, type Held, KINDS, type Kind, addClient, addUser, declareResource, issue } from '../helpers/powers.ts'

// What every kind of token may do, compared with a table that is written out here: nothing in it comes from the product.

t.setTimeout(180_000)

/**
 * What callers are answered: `ok`, `403` when the roles do not suffice, `scope` when the token lacks a scope (403 with the
 * challenge), `404`. Each caller has a token with `all` scopes, with the `only` scope of the row, or `without` that scope,
 * but with all others.
 *
 * p m a: a user without a role, a manager, an administrator.
 * own: a client that acts for itself, with any scopes and whatever its owner's roles; M A: such a client with the role manager or admin.
 */
const TABLE = `
method  path                       scope           ok   all: p m a     only: p m a       without: p m a         own  all: M A    only: M A    without: M A
POST    /client                    clients:write   200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/count              clients:read    200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/list               clients:read    200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/:ownClient         clients:read    200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/:otherClient       clients:read    200  404 404 ok     404 404 404       scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/:vouchedClient     clients:read    200  403 403 ok     403 403 403       scope scope scope      403  403 ok      403 scope    403 scope
PATCH   /client/:ownClient         clients:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
PATCH   /client/:otherClient       clients:write   204  404 404 ok     404 404 404       scope scope scope      403  403 ok      403 scope    403 scope
PATCH   /client/:vouchedClient     clients:write   204  403 403 ok     403 403 403       scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/:ownClient         clients:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/:otherClient       clients:write   204  404 404 ok     404 404 404       scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/:vouchedClient     clients:write   204  403 403 ok     403 403 403       scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/user/:self         clients:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/user/:other        clients:write   204  403 403 ok     403 403 scope     403   403   scope      403  403 ok      403 scope    403 scope
GET     /auth/tokeninfo            -               200  ok  ok  ok     ok  ok  ok        ok    ok    ok         ok   ok  ok      ok  ok       ok  ok
POST    /auth/logout               -               204  ok  ok  ok     ok  ok  ok        ok    ok    ok         ok   ok  ok      ok  ok       ok  ok
GET     /auth/sessions             account:read    200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
GET     /auth/sessions?user=:other account:read    200  403 403 ok     403 403 403       scope scope scope      403  403 scope   403 scope    403 scope
DELETE  /auth/sessions             account:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
DELETE  /auth/sessions?user=:other account:write   204  403 403 ok     403 403 403       scope scope scope      403  403 scope   403 scope    403 scope
GET     /user                      account:read    200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
PATCH   /user                      account:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
POST    /resource                  users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /resource/count            users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /resource/list             users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /resource/:resource        users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
PATCH   /resource/:resource        users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
DELETE  /resource/:resource        users:write     204  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /user                      users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/count                users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/list                 users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/:other               users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
PATCH   /user/:other               users:write     204  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
DELETE  /user/:other               users:write     204  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
`

const HELD = ['all', 'only', 'without'] as const
type HeldScopes = typeof HELD[number]
const ROLES = ['plain', 'manager', 'admin'] as const
type Role = typeof ROLES[number]
type Expected = 'ok' | '403' | '404' | 'scope' | 'invalid'

interface Row {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  scope: string | undefined
  success: number
  users: Record<HeldScopes, Record<Role, Expected>>
  /** A client that acts for itself: `plain` has no roles of its own. */
  clients: Record<HeldScopes, Record<Role, Expected>>
}

const ROWS = TABLE.trim().split('\n').slice(1).map((line): Row => {
  const [method, path, scope, success, ...cells] = line.split(/\s+/) as [Row['method'], string, string, string, ...Expected[]]
  const take = (from: number): Record<Role, Expected> => ({ plain: cells[from]!, manager: cells[from + 1]!, admin: cells[from + 2]! })
  const takeOwn = (from: number): Record<Role, Expected> => ({ plain: cells[9]!, manager: cells[from]!, admin: cells[from + 1]! })
  if (cells.length !== 16) throw new Error(`a row of ${cells.length} cells: ${line}`)
  return {
    method,
    path,
    scope: scope === '-' ? undefined : scope,
    success: Number(success),
    users: { all: take(0), only: take(3), without: take(6) },
    clients: { all: takeOwn(10), only: takeOwn(12), without: takeOwn(14) }
  }
})

/** Write includes read, so a token without the scope to read has not that to write either. */
const includes = (scope: string): string[] => (scope.endsWith(':read') ? [scope, scope.replace(/read$/, 'write')] : [scope])

function listScopes ({ scope }: Row, held: HeldScopes): string[] {
  if (held === 'all') return API_SCOPES
  if (scope === undefined) return held === 'only' ? [] : API_SCOPES
  return held === 'only' ? [scope] : API_SCOPES.filter((one) => !includes(scope).includes(one))
}

/** The token kinds whose power is that of the user's roles, narrowed to the scopes. */
const OF_USERS: readonly Kind[] = ['narrowed', 'first-party', 'third-party', 'API audience']

function expect (row: Row, kind: Kind, held: HeldScopes, role: Role): Expected {
  if (kind === 'DPoP-bound') return 'invalid'
  if (kind === 'other audience' || kind === 'operator at another audience') return row.scope === undefined ? 'ok' : 'invalid'
  if (kind === 'unrestricted') return row.users.all[role]
  if (OF_USERS.includes(kind)) return row.users[held][role]
  return row.clients[held][kind === 'own' ? 'plain' : role]
}

/** A valid body, for the operations that take one. */
function bodyOf ({ method, path }: Row): object | undefined {
  if (method === 'PATCH') return path === '/user/:other' ? { data: { roles: {} } } : { data: { name: 'new' } }
  if (method !== 'POST' || path === '/auth/logout') return
  if (path === '/user') return { data: { account: unique('new'), password: 'p' } }
  if (path === '/resource') return { data: { id: `https://${unique('new')}.example/`, name: 'n', scopes: {} } }
  return { data: { redirectUris: [], scopes: [], name: 'n' } }
}

/** What the path names: each cell has its own, so that no cell affects another. */
async function fillIn (kit: TestKit, path: string, caller: Held): Promise<string> {
  const makers: Record<string, () => Promise<string>> = {
    ':ownClient': async () => (await addClient(kit, caller.user_id)).id,
    ':otherClient': async () => (await addClient(kit, 'somebody else')).id,
    ':vouchedClient': async () => (await addClient(kit, caller.user_id, { scopes: ['users:read'] })).id,
    ':resource': async () => (await declareResource(kit)).resourceId,
    ':other': async () => (await addUser(kit)).id,
    ':self': async () => caller.user_id
  }
  const [name = ''] = /:\w+/.exec(path) ?? []
  return name === '' ? path : path.replace(name, await makers[name]!())
}

const INVALID = 'Bearer error="invalid_token", error_description="the access token is unknown, expired or revoked"'

function check (t: Test, row: Row, expected: Expected, reply: Reply, message: string): void {
  const challenge = reply.headers['www-authenticate']
  if (expected === 'ok') t.match([reply.status, challenge], [row.success, undefined], message)
  else if (expected === 'invalid') t.match([reply.status, challenge, reply.body?.code], [401, INVALID, 'ErrUnknown'], message)
  else if (expected === 'scope') {
    t.match([reply.status, reply.body?.code], [403, 'ErrPerm'], message)
    const named = /^Bearer error="insufficient_scope", scope="([^"]*)"$/.exec(String(challenge))?.[1]?.split(' ')
    t.ok(named?.includes(row.scope!), `${message}: ${challenge}`)
  } else t.strictSame([reply.status, challenge], [Number(expected), undefined], message)
}

/** A store has room for a hundred resources. */
async function removeResources ({ app }: TestKit, { resourceId: kept }: Elsewhere): Promise<void> {
  for await (const batch of app.identity.resources.list()) {
    for (const { resourceId } of batch) if (resourceId !== kept) await app.identity.resources.remove(resourceId)
  }
}

await forEachStore(t, async (t, build: Build) => {
  t.test('every operation with every kind of token', async (t) => {
    const kit = await build(t)
    const elsewhere = await declareResource(kit)
    for (const row of ROWS) {
      await t.test(`${row.method} ${row.path}`, async (t) => {
        const isOfResources = row.path.startsWith('/resource')
        const cells = KINDS.flatMap((kind) => HELD.flatMap((held) => ROLES.map((role) => ({ kind, held, role }))))
        const walk = async ({ kind, held, role }: typeof cells[number]) => {
          const caller = await issue(kit, elsewhere, { kind, roles: role === 'plain' ? [] : [role], scopes: listScopes(row, held) })
          const payload = bodyOf(row)
          const url = await fillIn(kit, row.path, caller)
          const expected = expect(row, kind, held, role)
          const message = `${kind}, ${held}, ${role}`
          check(t, row, expected, await caller.send({ method: row.method, url, ...(payload && { payload }) }), message)
          if (row.method !== 'GET') return
          const head = await kit.inject({ method: 'HEAD', url: `/api/v1${url}`, headers: caller.headers })
          t.equal(head.statusCode, { ok: 200, invalid: 401, scope: 403, 403: 403, 404: 404 }[expected], `HEAD: ${message}`)
        }
        // No cell depends on another, but all resources are one document, which is written by one at a time.
        if (isOfResources) for (const cell of cells) await walk(cell)
        else await Promise.all(cells.map(walk))
        if (isOfResources) await removeResources(kit, elsewhere)
      })
    }
  })
})

/** Endpoints outside the access table: those of the authorization server and its pages, which take no token of the API, or decide themselves. */
const OUTSIDE = [
  'GET /auth/authorize', 'POST /auth/authorize', 'GET /auth/authorize/:uid'
]

t.test('every route has a row in TABLE', async (t) => {
  const routes = new Set<string>()
  const outside = new Set<string>()
  const app = createApp()
  app.addHook('onRoute', ({ method, url, config }) => {
    // A preflight has no token, and its answer reveals no data.
    if (!url.startsWith('/api/v1/') || method === 'OPTIONS') return
    const isOfTable = (config as { access?: string } | undefined)?.access !== undefined
    for (const name of [method].flat().filter((name) => name !== 'HEAD' && name !== 'OPTIONS')) (isOfTable ? routes : outside).add(`${name} ${url.slice('/api/v1'.length)}`)
  })
  await buildApp(t, { app })
  const toRoute = ({ method, path }: Row) => `${method} ${path.replace(/\?.*/, '').replace(/:\w*Client/, ':clientId').replace(/:(self|other)/, ':userId').replace(':resource', ':resourceId')}`
  t.strictSame([...routes].sort(), [...new Set(ROWS.map(toRoute))].sort())
  t.strictSame([...outside].sort(), OUTSIDE.sort())
})
