import * as openid from 'openid-client'
import t, { type Test } from 'tap'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { createApp } from '../../testing/kit.ts'
import type { TestKit } from '../../testing/index.ts'
import { type Build, build as buildApp, forEachStore } from '../helpers/build.ts'
import { IS_ELSEWHERE } from '../helpers/mongodb.ts'
import { type Reply, unique } from '../helpers/people.ts'
import { API_SCOPES, type Elsewhere, type Held, KINDS, type Kind, SECRET, addClient, addUser, declareResource, describeKind, issue } from '../helpers/powers.ts'
import { type App, eachStore, getCode, signIn } from '../oidc/harness.ts'

// Compares the power of every kind of token with a table. The table is written out here, and takes nothing from the code under test.

// Seven thousand cells take long on a slow machine.
t.setTimeout(480_000)

/**
 * The answers to the callers: `ok`, `403` when the roles do not suffice, `scope` when the token lacks a scope (403 with the
 * challenge), `404`. Each caller has a token with `all` scopes, with `only` the scope of the row, or with all scopes `without`
 * that one.
 *
 * p m a: a user without a role, a manager, an administrator.
 * A manager sees no link to another's account, and the users here have no address, so /recovery is for administrators.
 * 400: the token suffices, but the password is wrong or the account has no address, so the account does not change; or the owner of the client is
 * nobody, so it gets no service token.
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
POST    /client/:ownClient/secret          clients:write   200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
POST    /client/:otherClient/secret        clients:write   200  404 404 ok     404 404 404       scope scope scope      403  403 ok      403 scope    403 scope
POST    /client/:vouchedClient/secret      clients:write   200  403 403 ok     403 403 403       scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/:ownClient/secret          clients:write   200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/:otherClient/secret        clients:write   200  404 404 ok     404 404 404       scope scope scope      403  403 ok      403 scope    403 scope
GET     /client/:vouchedClient/secret      clients:write   200  403 403 ok     403 403 403       scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/:ownClient/secret/s1       clients:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/:otherClient/secret/s1     clients:write   204  404 404 ok     404 404 404       scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/:vouchedClient/secret/s1   clients:write   204  403 403 ok     403 403 403       scope scope scope      403  403 ok      403 scope    403 scope
POST    /client/:ownClient/token   clients:write   200  403 403 ok     403 403 scope     403   403   scope      403  403 403     403 scope    403 scope
POST    /client/:otherClient/token clients:write   400  403 403 ok     403 403 scope     403   403   scope      403  403 403     403 scope    403 scope
POST    /client/:vouchedClient/token clients:write   200  403 403 ok     403 403 scope     403   403   scope      403  403 403     403 scope    403 scope
GET     /client/:ownClient/token   clients:write   200  403 403 ok     403 403 scope     403   403   scope      403  403 ok      403 scope    403 scope
GET     /client/:otherClient/token clients:write   200  403 403 ok     403 403 scope     403   403   scope      403  403 ok      403 scope    403 scope
DELETE  /client/:ownClient/token/t1 clients:write   404  403 403 ok     403 403 scope     403   403   scope      403  403 ok      403 scope    403 scope
DELETE  /client/:otherClient/token/t1 clients:write   404  403 403 ok     403 403 scope     403   403   scope      403  403 ok      403 scope    403 scope
DELETE  /client/user/:self         clients:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 ok      403 scope    403 scope
DELETE  /client/user/:other        clients:write   204  403 403 ok     403 403 scope     403   403   scope      403  403 ok      403 scope    403 scope
GET     /client/document/list      users:read      404  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /client/document/block     users:write     404  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /client/document/refresh   users:write     404  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /auth/tokeninfo            -               200  ok  ok  ok     ok  ok  ok        ok    ok    ok         ok   ok  ok      ok  ok       ok  ok
POST    /auth/logout               -               204  ok  ok  ok     ok  ok  ok        ok    ok    ok         ok   ok  ok      ok  ok       ok  ok
GET     /auth/sessions             account:read    200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
GET     /auth/sessions?user=:other account:read    200  403 403 ok     403 403 403       scope scope scope      403  403 scope   403 scope    403 scope
DELETE  /auth/sessions             account:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
DELETE  /auth/sessions?user=:other account:write   204  403 403 ok     403 403 403       scope scope scope      403  403 scope   403 scope    403 scope
GET     /user                      account:read    200  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
PATCH   /user                      account:write   204  ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
GET     /user/export               account:security 200 ok  ok  ok     scope scope scope  scope scope scope      403  403 scope   403 scope    403 scope
DELETE  /user                      account:security 400 ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
POST    /user/email                account:security 400 ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
POST    /auth/verify/send          account:security 400 ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
GET     /user/factors              account:security 200 ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
DELETE  /user/factors/:factor      account:security 404 ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
POST    /user/:other/factors/reset users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/identities           account:security 200 ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
DELETE  /user/identities/:identity account:security 404 ok  ok  ok     ok  ok  ok        scope scope scope      403  403 scope   403 scope    403 scope
GET     /user/:other/identities    users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/:other/identities/none users:read    404  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
DELETE  /user/:other/identities/none users:write   404  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /user/:other/identities/replace users:write 400 403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /user/:other/email/release users:write     400  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /user/import?source=old    users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /resource                  users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /resource/count            users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /resource/list             users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /resource/:resource        users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /event/list                events:read     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /event/feed                events:read     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /webhook                   webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /webhook/count             webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /webhook/list              webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /webhook/:webhook          webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
PATCH   /webhook/:webhook          webhooks:write  204  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
DELETE  /webhook/:webhook          webhooks:write  204  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /webhook/:webhook/attempts webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /webhook/:webhook/replay   webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /webhook/:webhook/test     webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /webhook/:webhook/secret   webhooks:write  200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
PATCH   /resource/:resource        users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
DELETE  /resource/:resource        users:write     204  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /user                      users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/count                users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/list                 users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/:other               users:read      200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
POST    /user/:other/unlock        users:support   200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
GET     /user/:other/sessions      users:read      200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
DELETE  /user/:other/sessions      users:support   204  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
DELETE  /user/:other/sessions/none users:support   404  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
GET     /user/:other/factors       users:read      200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
GET     /user/:other/sign-in       users:read      200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
GET     /user/sign-in?account=none users:read      200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
GET     /find?q=none               users:read      200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
GET     /client/:ownClient/token-preview users:read 200 403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /user/:other/mails         users:read      200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
GET     /jobs                      users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /jobs/retry                users:write     200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /keys                      users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /status                    users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
GET     /settings                  users:read      200  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
POST    /mail/test                 users:write     400  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
PATCH   /user/:other               users:write     204  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
POST    /user/invite               users:write     200  403 ok  ok     403 ok  ok        403   scope scope      403  ok  ok      ok  ok       scope scope
POST    /user/:other/recovery      users:support   200  403 403 ok     403 403 403       403   scope scope      403  403 ok      403 403      scope scope
DELETE  /user/:other               users:write     204  403 403 ok     403 403 ok        403   403   scope      403  403 ok      403 ok       403 scope
`

const HELD = ['all', 'only', 'without'] as const
type HeldScopes = typeof HELD[number]
const ROLES = ['plain', 'manager', 'admin'] as const
type Role = typeof ROLES[number]
type Expected = 'ok' | 'proof' | '403' | '404' | 'scope' | 'invalid' | 'elsewhere'

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

/** Write includes read and support, so a token without one of these has no write scope either. */
const includes = (scope: string): string[] => [scope, scope.replace(/(read|support)$/, 'write')]

function listScopes ({ scope }: Row, held: HeldScopes): string[] {
  if (held === 'all') return API_SCOPES
  if (scope === undefined) return held === 'only' ? [] : API_SCOPES
  return held === 'only' ? [scope] : API_SCOPES.filter((one) => !includes(scope).includes(one))
}

/** The token kinds whose power is that of the user's roles, narrowed to the scopes. */
const OF_USERS: readonly Kind[] = ['narrowed', 'first-party', 'third-party', 'secret-bound', 'API audience']

function expect (row: Row, kind: Kind, held: HeldScopes, role: Role): Expected {
  if (kind === 'DPoP-bound' || kind === 'bound to a removed secret') return 'invalid'
  if (kind === 'other audience' || kind === 'operator at another audience') return row.scope === undefined ? 'ok' : 'elsewhere'
  if (kind === 'unrestricted') return row.users.all[role]
  // These tokens come from no sign-in.
  if (row.path === '/user/export' && held === 'all' && OF_USERS.includes(kind)) return 'proof'
  if (OF_USERS.includes(kind)) return row.users[held][role]
  return row.clients[held][kind === 'own' ? 'plain' : role]
}

/** A confidential client with a named secret. */
const SECRETS = { tokenAuth: 'secret' as const, secrets: [SECRET] }

/** No server listens there. */
const NEW_WEBHOOK = { name: 'n', url: 'http://127.0.0.1:9/', types: ['user.deleted'] }

/** A valid body, for the operations that take one. */
function bodyOf ({ method, path }: Row): object | undefined {
  if (method === 'POST' && path.endsWith('Client/secret')) return { data: { name: 'new' } }
  if (method === 'POST' && path.endsWith('Client/token')) return { data: { name: 'new', scopes: [] } }
  if (method === 'PATCH') return path === '/user/:other' ? { data: { roles: {} } } : { data: { name: 'new' } }
  // The token suffices, but the password is wrong: the account stays.
  if (path === '/user' && method === 'DELETE') return { data: { current_password: 'wrong' } }
  if (path.endsWith('/identities/replace')) return { data: { upstream: 'none', subject: 'x'.repeat(22) } }
  if (path === '/user/email') return { data: { email: 'new@example.com', current_password: 'wrong' } }
  if (path.startsWith('/user/import')) return
  if (path === '/user/invite') return { data: { account: unique('new') } }
  if (method !== 'POST' || ['/auth/logout', '/auth/verify/send', '/user/:other/recovery', '/user/:other/unlock', '/user/:other/factors/reset', '/mail/test'].includes(path) || /^\/webhook\/.*(test|secret)$/.test(path)) return
  // The token suffices, but documents are off.
  if (path.startsWith('/client/document/')) return { data: { url: 'https://agent.example/client.json' } }
  if (path === '/webhook') return { data: NEW_WEBHOOK }
  if (path === '/jobs/retry') return { data: { kind: 'mail' } }
  if (path.endsWith('/replay')) return { from: 'now' }
  if (path === '/user') return { data: { account: unique('new'), password: 'p' } }
  if (path === '/resource') return { data: { id: `https://${unique('new')}.example/`, name: 'n', scopes: {} } }
  return { data: { redirectUris: [], scopes: [], name: 'n' } }
}

/** Fills in the path. Each cell has its own records, so that no cell affects another. */
async function fillIn (kit: TestKit, { method, path }: Row, caller: Held, elsewhere: Elsewhere): Promise<string> {
  const makers: Record<string, () => Promise<string>> = {
    ':ownClient': async () => (await addClient(kit, caller.user_id, SECRETS)).id,
    ':otherClient': async () => (await addClient(kit, 'somebody else', SECRETS)).id,
    ':vouchedClient': async () => (await addClient(kit, caller.user_id, { ...SECRETS, scopes: ['users:read'], admin_scopes: ['users:read'] })).id,
    // The resource of the tokens may be read and renamed by all of them.
    ':resource': async () => method === 'DELETE' ? (await declareResource(kit)).resourceId : elsewhere.resourceId,
    ':webhook': async () => (await kit.app.identity.webhooks.create({ data: NEW_WEBHOOK })).webhookId,
    ':other': async () => (await addUser(kit)).id,
    // They have none.
    ':factor': async () => 'none',
    ':identity': async () => 'none',
    ':self': async () => caller.user_id
  }
  const [name = ''] = /:\w+/.exec(path) ?? []
  return name === '' ? path : path.replace(name, await makers[name]!())
}

const INVALID = 'Bearer error="invalid_token", error_description="the access token is unknown, expired or revoked"'
const ELSEWHERE = 'Bearer error="invalid_token", error_description="the access token was not requested for this resource"'

function check (t: Test, row: Row, expected: Expected, reply: Reply, message: string): void {
  const challenge = reply.headers['www-authenticate']
  if (expected === 'ok') t.match([reply.status, challenge], [row.success, undefined], message)
  else if (expected === 'invalid') t.match([reply.status, challenge, reply.body?.code], [401, INVALID, 'ErrUnknown'], message)
  else if (expected === 'elsewhere') t.match([reply.status, challenge, reply.body?.code], [401, ELSEWHERE, 'ErrUnknown'], message)
  else if (expected === 'proof') t.match([reply.status, challenge], [401, /^Bearer error="insufficient_user_authentication"/], message)
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

/** A store has room for twenty webhooks. */
async function removeWebhooks ({ app }: TestKit): Promise<void> {
  for await (const batch of app.identity.webhooks.list()) for (const { webhookId } of batch) await app.identity.webhooks.remove(webhookId)
}

await forEachStore(t, async (t, build: Build, store) => {
  // What a token may do depends on no engine: on MongoDB each operation is called once with each kind of token.
  const [held, roles] = store === 'SQLite' ? [HELD, ROLES] : [['all'], ['admin']] as const
  t.test('every operation with every kind of token', async (t) => {
    const kit = await build(t)
    const elsewhere = await declareResource(kit)
    for (const row of ROWS) {
      await t.test(`${row.method} ${row.path}`, async (t) => {
        const isOfResources = row.path.startsWith('/resource')
        const cells = KINDS.flatMap((kind) => held.flatMap((held) => roles.map((role) => ({ kind, held, role }))))
        const walk = async ({ kind, held, role }: typeof cells[number]) => {
          const caller = await issue(kit, elsewhere, { kind, roles: role === 'plain' ? [] : [role], scopes: listScopes(row, held) })
          const payload = bodyOf(row)
          const url = await fillIn(kit, row, caller, elsewhere)
          const expected = expect(row, kind, held, role)
          const message = `${kind}, ${held}, ${role}`
          check(t, row, expected, await caller.send({ method: row.method, url, ...(payload && { payload }) }), message)
          if (row.method !== 'GET') return
          const head = await kit.inject({ method: 'HEAD', url: `/api/v1${url}`, headers: caller.headers })
          t.equal(head.statusCode, { ok: row.success, proof: 401, invalid: 401, elsewhere: 401, scope: 403, 403: 403, 404: 404 }[expected], `HEAD: ${message}`)
        }
        // No cell depends on another, but all resources are one document, whose writes are serialized, and a process runs one import.
        if (row.path.startsWith('/webhook')) {
          for (const cell of cells) {
            await walk(cell)
            await removeWebhooks(kit)
          }
        } else if ((isOfResources && row.method !== 'GET') || row.path.startsWith('/user/import')) for (const cell of cells) await walk(cell)
        else await Promise.all(cells.map(walk))
        if (isOfResources) await removeResources(kit, elsewhere)
      })
    }
  })
})

/**
 * The rows that admit support staff: they have there what a manager has, and elsewhere what a user without a role has. A manager sees no link
 * either, so the recovery of a user without an address is refused to both.
 */
const OF_SUPPORT = `
GET /user/:other, GET /user/:other/sessions, GET /user/:other/factors, GET /user/:other/mails, GET /user/:other/sign-in, GET /user/sign-in?account=none, GET /find?q=none
POST /user/:other/unlock, POST /user/:other/recovery, DELETE /user/:other/sessions, DELETE /user/:other/sessions/none
`.trim().split(/, |\n/)

// What a role allows depends on no engine.
t.test('support staff at every operation, with every kind of token', { skip: IS_ELSEWHERE && 'another run has these' }, async (t) => {
  const kit = await buildApp(t, { roles: { support: 'helpdesk' } })
  const elsewhere = await declareResource(kit)
  t.strictSame(OF_SUPPORT.filter((name) => !ROWS.some(({ method, path }) => name === `${method} ${path}`)), [])
  for (const row of ROWS) {
    const role = OF_SUPPORT.includes(`${row.method} ${row.path}`) ? 'manager' : 'plain'
    for (const kind of KINDS) {
      for (const held of HELD) {
        const caller = await issue(kit, elsewhere, { kind, roles: ['helpdesk'], scopes: listScopes(row, held) })
        const payload = bodyOf(row)
        const url = await fillIn(kit, row, caller, elsewhere)
        const reply = await caller.send({ method: row.method, url, ...(payload && { payload }) })
        check(t, row, expect(row, kind, held, role), reply, `${row.method} ${row.path}: ${kind}, ${held}`)
        if (row.path.startsWith('/webhook')) await removeWebhooks(kit)
      }
    }
    if (row.path.startsWith('/resource')) await removeResources(kit, elsewhere)
  }
})

/** Routes that need no token: endpoints and pages of the authorization server, and the routes that request or use a mailed link. */
const OUTSIDE = `
GET /auth/authorize, POST /auth/authorize, GET /auth/authorize/:uid, GET /auth/interaction/:uid, POST /auth/interaction/:uid, POST /auth/par
GET /auth/device, POST /auth/device, GET /auth/device/:uid, POST /auth/device_authorization
POST /auth/token, POST /auth/introspect, POST /auth/revoke, GET /auth/jwks, GET /auth/userinfo, POST /auth/userinfo
GET /auth/session/end, POST /auth/session/end, POST /auth/session/end/confirm, GET /auth/session/end/success
GET /auth/interaction/:uid/forgot, GET /auth/interaction/:uid/reset, GET /auth/interaction/:uid/sign-up
POST /auth/interaction/:uid/forgot, POST /auth/interaction/:uid/reset, POST /auth/interaction/:uid/sign-up
POST /auth/forgot, POST /auth/reset, POST /auth/sign-up, POST /auth/verify, POST /auth/undo
`.trim().split(/, |\n/)

t.test('every route has a row in TABLE', async (t) => {
  const routes = new Set<string>()
  const outside = new Set<string>()
  const app = createApp()
  app.addHook('onRoute', ({ method, url, config }) => {
    // A preflight has no token, and its answer reveals no data.
    if (!url.startsWith('/api/v1/') || method === 'OPTIONS') return
    const { access } = (config ?? {}) as { access?: string }
    // A link decides whether this one needs a token: test/people/address-owner.test.ts.
    const isOfTable = access !== undefined && access !== 'verifyAddress'
    for (const name of [method].flat().filter((name) => name !== 'HEAD' && name !== 'OPTIONS')) (isOfTable ? routes : outside).add(`${name} ${url.slice('/api/v1'.length)}`)
  })
  await buildApp(t, { app })
  const toRoute = ({ method, path }: Row) => `${method} ${path.replace(/\?.*/, '').replace(/:\w*Client/, ':clientId').replace(/secret\/s1$/, 'secret/:secretId').replace(/token\/t1$/, 'token/:tokenId').replace(/:(self|other)/, ':userId').replace(/identities\/none$/, 'identities/:identityId').replace(/sessions\/none$/, 'sessions/:sessionId').replace(/:(resource|webhook|factor|identity)\b/, ':$1Id')}`
  t.strictSame([...routes].sort(), [...new Set(ROWS.map(toRoute))].sort())
  t.strictSame([...outside].sort(), OUTSIDE.sort())
})

const CLIENT_SECRET = /^[0-9A-Za-z]{16}$/

await forEachStore(t, async (t, build: Build) => {
  t.test('whose secrets are shown', async (t) => {
    const kit = await build(t)
    const elsewhere = await declareResource(kit)
    const { clients } = kit.app.identity
    // Each kind has its own callers and clients.
    await Promise.all((['unrestricted', ...OF_USERS, 'service'] as const).map(async (kind) => {
      for (const [scopes, own, other, vouched] of [
        [API_SCOPES, true, true, true],
        [['clients:write', 'users:write'], true, true, true],
        [['clients:read', 'users:write'], false, false, false],
        // Secrets of others need the scope for changes.
        [['clients:write', 'users:read'], true, false, false],
        [['clients:read', 'users:read'], false, false, false]
      ] as const) {
        if (kind === 'unrestricted' && scopes !== API_SCOPES) continue
        const caller = await issue(kit, elsewhere, { kind, scopes: [...scopes], roles: ['admin'] })
        const somebody = await addUser(kit)
        const make = async (userId: string, roles = {}) =>
          (await clients.create({ data: { userId, redirectUris: [], scopes: [], name: 'n', roles }, credentials: true }, { user_id: 'operator', isAdmin: true })).clientId
        for (const [whose, clientId, userId, isShown] of [
          // A client that acts for itself owns nothing, not even its owner's clients.
          ['own', await make(caller.user_id), caller.user_id, kind === 'service' ? other : own],
          ['other', await make(somebody.id), somebody.id, other],
          ['vouched', await make(caller.user_id, { clerk: true }), caller.user_id, vouched]
        ] as const) {
          const message = `${whose}: ${kind} with ${scopes.join(' ')}`
          const expected = isShown ? { clientSecret: CLIENT_SECRET, confidential: undefined } : { clientSecret: undefined, confidential: true }
          t.match(await caller.get(`/client/${clientId}`), { status: 200, body: { data: expected } }, message)
          for (const query of [`user=${userId}`, `user=${userId}&sort=created:desc`, `user=${userId}&format=array&limit=1000`]) {
            const { body } = await caller.get<{ data: { clientId: string }[] } | { clientId: string }[]>(`/client/list?${query}`)
            t.match(('data' in body ? body.data : body).find((client) => client.clientId === clientId), expected, `${message}: ${query}`)
          }
        }
      }
    }))
    const plain = await issue(kit, elsewhere, { kind: 'third-party', scopes: ['clients:read', 'clients:write'] })
    const vouched = await clients.create({ data: { userId: plain.user_id, redirectUris: [], scopes: [], name: 'n', first_party: true }, credentials: true }, { user_id: 'operator', isAdmin: true })
    t.match((await plain.get('/client/list')).body, { data: [{ clientId: vouched.clientId, clientSecret: undefined, confidential: true }] }, 'the owner of a client that the operator vouches for')
    t.match(await plain.get(`/client/${vouched.clientId}`), { status: 403 })
    t.match(await plain.patch(`/client/${vouched.clientId}`, { regen_secret: true }), { status: 403 })
  })

  t.test('who sees whose clients, and who owns a new one', async (t) => {
    const kit = await build(t)
    const elsewhere = await declareResource(kit)
    const other = await addUser(kit)
    await addClient(kit, other.id)
    for (const [scopes, isAdmin] of [[['clients:write', 'users:write'], true], [['clients:write'], false], [['clients:write', 'users:read'], false]] as const) {
      for (const kind of OF_USERS) {
        const caller = await issue(kit, elsewhere, { kind, scopes: [...scopes], roles: ['admin'] })
        const message = `${kind} with ${scopes.join(' ')}`
        const sees = isAdmin || scopes.includes('users:read' as never)
        t.equal((await caller.get<{ data: { count: number } }>(`/client/count?user=${other.id}`)).body.data.count, sees ? 1 : 0, message)
        t.equal((await caller.get<{ data: object[] }>(`/client/list?user=${other.id}`)).body.data.length, sees ? 1 : 0, message)
        const { body } = await caller.post<{ data: { clientId: string } }>('/client', { data: { userId: other.id, redirectUris: [], scopes: [], name: 'n' } })
        const made = await kit.app.identity.store.collection<ClientRecord>('clients').get(body.data.clientId)
        t.equal(made?.userId, isAdmin ? other.id : caller.user_id, message)
        await kit.app.identity.store.collection('clients').delete(body.data.clientId)
        for (const fields of [{ first_party: true }, { roles: { admin: true } }, { pkce: 'required' }, { disabled: true }]) {
          t.match(await caller.post('/client', { data: { redirectUris: [], scopes: [], name: 'n', ...fields } }), { status: isAdmin ? 200 : 403 }, `${message}: ${Object.keys(fields)[0]}`)
        }
      }
    }
  })

  t.test('a new password needs the current one, and new secrets need their scope', async (t) => {
    const kit = await build(t)
    const elsewhere = await declareResource(kit)
    const { users, clients } = kit.app.identity
    const withPassword = async (kind: Kind, scopes: string[]) => {
      const { user_id } = await users.create({ data: { account: unique('user'), password: 'first' } })
      const user = await kit.app.identity.store.collection<UserRecord>('users').get(user_id)
      return await issue(kit, elsewhere, { kind, scopes, user: user! })
    }
    for (const kind of ['unrestricted', ...OF_USERS] as const) {
      const isFree = kind === 'unrestricted'
      t.match(await (await withPassword(kind, API_SCOPES)).patch('/user', { data: { password: 'new' } }), { status: isFree ? 204 : 400 }, `${kind}, none`)
      t.match(await (await withPassword(kind, API_SCOPES)).patch('/user', { data: { password: 'new', current_password: 'wrong' } }), { status: 400, body: { message: /current_password/ } }, `${kind}, wrong`)
      t.match(await (await withPassword(kind, ['account:write'])).patch('/user', { data: { password: 'new', current_password: 'first' } }), { status: 204 }, `${kind}, right`)
      for (const [scopes, status] of [[['account:write', 'clients:write'], 204], [['account:write', 'clients:read'], isFree ? 204 : 403]] as const) {
        const caller = await withPassword(kind, [...scopes])
        const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, { user_id: caller.user_id, isAdmin: false })
        const readSecret = async () => (await clients.require(clientId, { user_id: 'operator', isAdmin: true })).clientSecret
        const secret = await readSecret()
        const message = `${kind} with ${scopes.join(' ')}`
        t.match(await caller.delete('/auth/sessions?regen_secrets=true'), { status }, message)
        t.equal(await readSecret() === secret, status === 403, message)
        const next = await readSecret()
        const reply = await caller.patch('/user', { data: { name: 'n' }, regen_secrets: true })
        t.match(reply, { status }, message)
        if (status === 403) t.match(reply.headers['www-authenticate'], /insufficient_scope.*clients:write/)
        t.equal(await readSecret() === next, status === 403, message)
      }
    }
  })

  t.test('a client from a document has no power at any operation, whatever stands in its records', async (t) => {
    const kit = await build(t)
    const elsewhere = await declareResource(kit, { 'stock:read': 'read the stock' })
    const document = { id: 'x', hash: 'x', print: 'x', method: 'none' as const, used_at: new Date(kit.clock.now()).toISOString() }
    const client = { document, first_party: true, scopes: [...API_SCOPES, 'stock:read'], admin_scopes: [...API_SCOPES], declared: { 'stock:read': elsewhere.resourceId } }
    for (const [kind, refusal] of [['third-party', 403], ['first-party', 403], ['API audience', 403], ['other audience', 401], ['DPoP-bound', 401]] as const) {
      const make = async () => await issue(kit, elsewhere, { kind, scopes: [...API_SCOPES, 'roles', 'stock:read'], roles: ['admin'], client, granted: [...API_SCOPES, 'roles', 'stock:read'] })
      for (const row of ROWS) {
        const caller = await make()
        const payload = bodyOf(row)
        const { status } = await caller.send({ method: row.method, url: await fillIn(kit, row, caller, elsewhere), ...(payload && { payload }) })
        if (row.path.startsWith('/webhook')) await removeWebhooks(kit)
        // Any token will do for these.
        if (row.scope !== undefined) t.equal(status, refusal, `${kind}: ${row.method} ${row.path}`)
      }
      const { body } = await (await make()).get<{ data?: Record<string, unknown> }>('/auth/tokeninfo')
      if (kind !== 'DPoP-bound') t.match(body.data, { roles: {}, scopes: [] }, kind)
    }
  })

  t.test('tokeninfo: roles are power too', async (t) => {
    const kit = await build(t)
    const elsewhere = await declareResource(kit, { 'orders:read': 'read orders' })
    const roles = { admin: true }
    for (const [kind, scopes, expected, granted] of [
      ['unrestricted', [], roles],
      ['narrowed', API_SCOPES, {}],
      ['narrowed', [...API_SCOPES, 'roles'], {}],
      ['first-party', API_SCOPES, {}],
      ['first-party', ['roles'], roles],
      ['third-party', API_SCOPES, {}],
      ['third-party', ['roles', ...API_SCOPES], {}],
      ['API audience', API_SCOPES, {}],
      ['API audience', API_SCOPES, roles, [...API_SCOPES, 'roles']],
      ['other audience', ['orders:read'], {}],
      ['other audience', ['orders:read'], {}, ['orders:read']],
      ['other audience', ['orders:read'], roles, ['orders:read', 'roles']],
      // Its client has lost the scopes meanwhile.
      ['other audience', [], {}, ['roles']],
      ['API audience', [], {}, ['roles']],
      ['operator at another audience', [], roles],
      ['own', API_SCOPES, {}],
      ['service', [], roles]
    ] as [Kind, string[], object, string[]?][]) {
      // A service account's roles are its own. Its owner's roles count only for the owner.
      const caller = await issue(kit, elsewhere, { kind, scopes, roles: ['admin'], ownerRoles: kind === 'service' ? ['manager'] : ['admin'], client: { declared: { 'orders:read': elsewhere.resourceId } }, ...(granted !== undefined && { granted }) })
      const { body } = await caller.get<{ data: Record<string, unknown> }>('/auth/tokeninfo')
      t.strictSame(body.data.roles, expected, `${kind} with ${scopes.join(' ')}`)
      t.equal(body.data.subject, ['own', 'service'].includes(kind) ? 'client' : undefined, kind)
      t.equal(body.data.aud, { 'API audience': 'https://id.example/api/v1', 'other audience': elsewhere.uri, 'operator at another audience': elsewhere.uri }[kind as string], kind)
    }
  })

  t.test('an override of a row changes the admitted callers, never the scope', async (t) => {
    const kit = await build(t, { access: { countUsers: { any: true }, getProfile: { roles: ['admin'] } } })
    const elsewhere = await declareResource(kit)
    for (const kind of OF_USERS) {
      const plain = await issue(kit, elsewhere, { kind, scopes: API_SCOPES.filter((scope) => !scope.startsWith('users:')) })
      t.match(await plain.get('/user/count'), { status: 403, headers: { 'www-authenticate': /insufficient_scope.*users:read/ } }, kind)
      t.match(await (await issue(kit, elsewhere, { kind, scopes: ['users:read'] })).get('/user/count'), { status: 200 }, kind)
      t.match(await (await issue(kit, elsewhere, { kind, scopes: ['users:read'], roles: ['admin'] })).get('/user'), { status: 403, headers: { 'www-authenticate': /account:read/ } }, kind)
      t.match(await (await issue(kit, elsewhere, { kind, scopes: API_SCOPES, roles: ['admin'] })).get('/user'), { status: 200 }, kind)
      t.match(await (await issue(kit, elsewhere, { kind, scopes: API_SCOPES })).get('/user'), { status: 403 }, kind)
    }
    t.match(await (await issue(kit, elsewhere, { kind: 'own', scopes: API_SCOPES, ownerRoles: ['admin'] })).get('/user/count'), { status: 403 }, 'any is any user')
  })
})

// The tests above write their tokens to the store. Tokens of real flows have the same records.
eachStore(t, 'real tokens', async (t, start) => {
  const harness = await start()
  const { kit, post, url, user } = harness
  const scopes = ['clients:read', 'clients:write', 'users:read']
  const elsewhere = await declareResource(kit, { 'orders:read': 'read orders' })
  const { clients, tokens, store } = kit.app.identity
  const operator = { user_id: user.user_id, isAdmin: true }
  const register = async (data: object = {}): Promise<App> => {
    const app = { redirectUris: ['https://app.example/cb'], scopes: [...scopes, 'orders:read'], name: 'The App', grants: ['client' as const, 'code' as const], ...data }
    const { clientId } = await clients.create({ data: app, credentials: true }, operator)
    return { client_id: clientId, client_secret: (await clients.require(clientId, operator)).clientSecret ?? '', redirect_uri: 'https://app.example/cb' }
  }
  const redeem = async (app: App, params: Record<string, string>) => String((await post('token', await getCode(harness, app, params), app)).body.access_token)
  const redeemByNamed = async () => {
    const app = await register()
    const { id, secret } = await clients.addSecret(app.client_id, { data: { name: 'n' } }, operator)
    return { id, client_id: app.client_id, access_token: await redeem({ ...app, client_secret: secret }, { scope: `openid ${scope}` }) }
  }
  const ask = async (app: App, params: Record<string, string>) => String((await post('token', { grant_type: 'client_credentials', ...params }, app)).body.access_token)
  const bind = async (app: App) => {
    const config = await openid.discovery(new URL(url), app.client_id, app.client_secret, undefined, { execute: [openid.allowInsecureRequests] })
    const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'))
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const page = await signIn(harness, openid.buildAuthorizationUrl(config, {
      redirect_uri: app.redirect_uri, scope: scopes.join(' '), code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256'
    }).href)
    return (await openid.authorizationCodeGrant(config, page.left as URL, { pkceCodeVerifier }, undefined, { DPoP })).access_token
  }
  const mint = async (rest: object) => (await tokens.mint({ user_id: user.user_id, client_id: (await register()).client_id, ...rest })).access_token
  const scope = scopes.join(' ')
  const apiUri = `${url}/api/v1`
  const flows: Record<Kind, () => Promise<string>> = {
    unrestricted: () => mint({}),
    narrowed: () => mint({ scopes }),
    'first-party': async () => await redeem(await register({ first_party: true }), { scope: `openid ${scope}` }),
    'third-party': async () => await redeem(await register(), { scope: `openid ${scope}` }),
    'API audience': async () => await redeem(await register(), { scope, resource: apiUri }),
    own: async () => await ask(await register(), { scope }),
    service: async () => await ask(await register({ roles: { clerk: true } }), { scope }),
    'other audience': async () => await redeem(await register(), { scope: 'orders:read' }),
    'operator at another audience': () => mint({ resource: elsewhere.uri }),
    'DPoP-bound': async () => await bind(await register()),
    'secret-bound': async () => (await redeemByNamed()).access_token,
    async 'bound to a removed secret' () {
      const { access_token, client_id, id } = await redeemByNamed()
      await clients.removeSecret(client_id, id, operator)
      return access_token
    }
  }
  for (const [kind, get] of Object.entries(flows) as [Kind, () => Promise<string>][]) {
    const access_token = await get()
    const record = await store.collection<TokenRecord>('access_tokens').get(hashToken(access_token))
    const { client, token } = describeKind(kind, kind === 'other audience' ? ['orders:read'] : scopes, ['clerk'], elsewhere)
    const show = ({ operator, scopes, resource, resource_id, kind = 'AccessToken' }: Partial<TokenRecord>) => ({ operator, scopes: scopes?.toSorted(), resource, resource_id, kind })
    t.strictSame(show(record!), { ...show(token), ...(kind === 'API audience' && { resource: apiUri }) }, kind)
    t.equal(record?.jkt !== undefined, kind === 'DPoP-bound', kind)
    const stored = await store.collection<ClientRecord>('clients').get(record!.client_id)
    t.match(stored, { first_party: client.first_party, roles: client.roles }, kind)
    t.equal(record?.auth_id !== undefined, record?.operator === undefined, `${kind}: from the token endpoint`)
    const status = { 'DPoP-bound': 401, 'bound to a removed secret': 401, 'other audience': 401, 'operator at another audience': 401, own: 403, service: 403 }[kind as string] ?? 200
    t.equal((await kit.inject({ url: '/api/v1/client/count', headers: { authorization: `Bearer ${access_token}` } })).statusCode, status, kind)
    t.equal((await harness.get('tokeninfo', access_token)).status, kind === 'DPoP-bound' || kind === 'bound to a removed secret' ? 401 : 200, kind)
  }

  await t.test('userinfo needs the scope openid', async (t) => {
    const app = await register()
    t.match(await harness.get('userinfo', await redeem(app, { scope: 'openid' })), { status: 200, body: { sub: user.user_id } })
    const refused = await harness.get('userinfo', await redeem(app, { scope }))
    t.match(refused, { status: 403, body: { error: 'insufficient_scope' } })
  })

  await t.test('scopes that give power are never a default', async (t) => {
    const app = await register({ scopes: ['read', ...scopes, 'orders:read'] })
    const { scope: granted, access_token } = (await post('token', await getCode(harness, app, { scope: undefined }), app)).body
    t.equal(granted, 'read')
    t.match((await harness.get('tokeninfo', String(access_token))).body, { data: { scopes: ['read'], roles: {} } })
    t.equal((await post('token', { grant_type: 'client_credentials' }, app)).body.scope, 'read')
  })
})
