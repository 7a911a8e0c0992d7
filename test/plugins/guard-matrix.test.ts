import fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { GuardOptions } from '../../index.ts'
import remoteAuth from '../../plugins/remote.ts'
import type { TestKit } from '../../testing/index.ts'
import { type Build, forEachStore } from '../helpers/build.ts'
import { type Elsewhere, type Held, type Kind, declareResource, issue } from '../helpers/powers.ts'

// Compares the callers that an app's guard admits, with the service embedded and by remoteAuth, with tables that are written out here.

t.setTimeout(180_000)

/**
 * What the guards of the right audience and subject answer: `ok`, `admin` (ok, and the caller counts as an administrator),
 * `403`, `scope` (403 with the challenge), `roles` (403 with a challenge that names the scope `roles`).
 *
 * at: the resource that the token is for. `+` has the scope that the guard needs, and `roles`; `~` has the scope alone; `-` has
 * neither.
 * admin, manager: guard({ roles }). self, other: guard({ owner }) where the path names the token's user, or another.
 */
const TABLE = `
token                         role     at      subject  guard  admin  manager  scopes+  scopes-  self   other  admin-or-self  admin-and-scopes
unrestricted+                 plain    -       user     ok     403    403      ok       -        ok     403    ok             403
unrestricted+                 manager  -       user     ok     403    ok       ok       -        ok     403    ok             403
unrestricted+                 admin    -       user     admin  admin  403      admin    -        admin  403    admin          admin
unrestricted-                 plain    -       user     ok     403    403      -        scope    ok     403    ok             403
unrestricted-                 admin    -       user     admin  admin  403      -        scope    admin  403    admin          scope
narrowed+                     plain    -       user     ok     403    403      ok       -        ok     403    ok             403
narrowed+                     manager  -       user     ok     403    403      ok       -        ok     403    ok             403
narrowed+                     admin    -       user     ok     403    403      ok       -        ok     403    ok             403
narrowed-                     admin    -       user     ok     403    403      -        scope    ok     403    ok             403
first-party+                  plain    -       user     ok     403    403      ok       -        ok     403    ok             403
first-party+                  manager  -       user     ok     403    ok       ok       -        ok     403    ok             403
first-party+                  admin    -       user     admin  admin  403      admin    -        admin  403    admin          admin
first-party-                  manager  -       user     ok     roles  roles    -        scope    ok     403    ok             roles
first-party-                  admin    -       user     ok     roles  roles    -        scope    ok     403    ok             roles
third-party+                  plain    -       user     ok     403    403      ok       -        ok     403    ok             403
third-party+                  manager  -       user     ok     403    403      ok       -        ok     403    ok             403
third-party+                  admin    -       user     ok     403    403      ok       -        ok     403    ok             403
third-party-                  admin    -       user     ok     403    403      -        scope    ok     403    ok             403
own+                          plain    -       client   ok     403    403      ok       -        403    403    403            403
own+                          manager  -       client   ok     403    403      ok       -        403    403    403            403
own+                          admin    -       client   ok     403    403      ok       -        403    403    403            403
own-                          admin    -       client   ok     403    403      -        scope    403    403    403            403
service+                      plain    -       client   ok     403    403      ok       -        403    403    403            403
service+                      manager  -       client   ok     403    ok       ok       -        403    403    403            403
service+                      admin    -       client   admin  admin  403      admin    -        403    403    admin          admin
service-                      admin    -       client   admin  admin  403      -        scope    403    403    admin          scope
API_audience+                 plain    api     user     ok     403    403      -        scope    ok     403    ok             403
API_audience+                 admin    api     user     admin  admin  403      -        scope    admin  403    admin          scope
other_audience+               plain    orders  user     ok     403    403      ok       -        ok     403    ok             403
other_audience+               manager  orders  user     ok     403    ok       ok       -        ok     403    ok             403
other_audience+               admin    orders  user     admin  admin  403      admin    -        admin  403    admin          admin
other_audience~               plain    orders  user     ok     roles  roles    ok       -        ok     403   ok             roles
other_audience~               admin    orders  user     ok     roles  roles    ok       -        ok     403   ok             roles
other_audience-               admin    orders  user     ok     403    403      -        scope    ok     403    ok             403
operator_at_another_audience+ manager  orders  user     ok     403    ok       ok       -        ok     403    ok             403
operator_at_another_audience+ admin    orders  user     admin  admin  403      admin    -        admin  403    admin          admin
operator_at_another_audience- admin    orders  user     admin  admin  403      -        scope    admin  403    admin          scope
DPoP-bound+                   plain    none    user     401    401    401      401      -        401    401    401            401
DPoP-bound+                   admin    none    user     401    401    401      401      -        401    401    401            401
`

/** `elsewhere`: 401 that says that the token is for another resource. */
type Answer = 'ok' | 'admin' | '401' | '403' | 'scope' | 'roles' | 'elsewhere'
type At = '-' | 'api' | 'orders' | 'nowhere'

const COLUMNS = ['guard', 'admin', 'manager', 'scopes+', 'scopes-', 'self', 'other', 'admin-or-self', 'admin-and-scopes'] as const

interface Row { kind: Kind, has: '+' | '~' | '-', role: string, at: string, subject: string, expected: Record<typeof COLUMNS[number], Answer | '-'> }

const ROWS = TABLE.trim().split('\n').slice(1).map((line): Row => {
  const [token, role, at, subject, ...cells] = line.split(/\s+/) as [string, string, string, string, ...Answer[]]
  if (cells.length !== COLUMNS.length) throw new Error(`a row of ${cells.length} cells: ${line}`)
  const expected = Object.fromEntries(COLUMNS.map((name, index) => [name, cells[index]])) as Row['expected']
  return { kind: token.slice(0, -1).replaceAll('_', ' ') as Kind, has: token.slice(-1) as Row['has'], role, at, subject, expected }
})

const SUBJECTS = [undefined, 'user', 'client', 'any'] as const

interface Guarded { path: string, column: typeof COLUMNS[number], at: At, subject: typeof SUBJECTS[number] }

/** The resource of the tokens for `orders`, with the scope that it declares. */
type Orders = Elsewhere & { scope: string }

/** The scope that a guard needs. A free one is no protection but a limit on clients; a declared one is only in tokens of its audience. */
const getScope = (at: At, { scope }: Orders): string => (at === '-' ? 'read' : scope)

/** A route for each guard: rule × audience × subject. */
function addRoutes (app: FastifyInstance, orders: Orders): Guarded[] {
  const audiences: Record<At, string | undefined> = { '-': undefined, api: 'https://id.example/api/v1', orders: orders.uri, nowhere: `${orders.uri}other` }
  return (Object.keys(audiences) as At[]).flatMap((at) => SUBJECTS.flatMap((subject) => COLUMNS.map((column, index) => {
    const scopes = [getScope(at, orders)]
    const rules: Record<typeof column, GuardOptions> = {
      guard: {},
      admin: { roles: ['admin'] },
      manager: { roles: ['manager'] },
      'scopes+': { scopes },
      'scopes-': { scopes },
      self: { owner: true },
      other: { owner: true },
      'admin-or-self': { owner: true, roles: ['admin'] },
      'admin-and-scopes': { roles: ['admin'], scopes }
    }
    const audience = audiences[at]
    const path = `/${at === '-' ? 'none' : at}/${subject ?? 'default'}/${index}`
    const rule = { ...rules[column], ...(audience !== undefined && { audience }), ...(subject !== undefined && { subject }) }
    app.get(`${path}/:userId`, { onRequest: app.identity.guard(rule) }, async ({ isAdmin, caller }) => ({ isAdmin, agrees: caller?.isAdmin === isAdmin }))
    return { path, column, at, subject }
  })))
}

function expect ({ at, subject, expected }: Row, guarded: Guarded): Answer | '-' {
  const answer = expected[guarded.column]
  if (answer === '-') return '-'
  // A token that is not valid is refused before its audience is looked at.
  if (at !== guarded.at) return answer === '401' ? '401' : 'elsewhere'
  return guarded.subject !== 'any' && subject !== (guarded.subject ?? 'user') ? '403' : answer
}

async function ask (app: FastifyInstance, { path, column, at }: Guarded, { user_id, headers }: Held, orders: Orders): Promise<string> {
  const reply = await app.inject({ url: `${path}/${column === 'other' ? 'somebody' : user_id}`, headers })
  const challenge = reply.headers['www-authenticate']
  const body = reply.json<{ isAdmin?: boolean, agrees?: boolean, code?: string, message?: string }>()
  if (reply.statusCode === 200 && body.agrees === true) return body.isAdmin === true ? 'admin' : 'ok'
  if (reply.statusCode === 401 && body.code === 'ErrUnknown' && challenge === `Bearer error="invalid_token", error_description="${body.message}"`) {
    if (body.message === 'the access token is unknown, expired or revoked') return '401'
    if (body.message === 'the access token was not requested for this resource') return 'elsewhere'
  }
  if (reply.statusCode !== 403 || body.code !== 'ErrPerm') return `${reply.statusCode} ${reply.body}`
  if (/^Bearer error="insufficient_scope", scope="([^" ]+ )?roles"$/.test(String(challenge))) return 'roles'
  return challenge === undefined ? '403' : challenge === `Bearer error="insufficient_scope", scope="${getScope(at, orders)}"` ? 'scope' : String(challenge)
}

async function walk (t: Test, kit: TestKit, app: FastifyInstance, orders: Orders): Promise<void> {
  const routes = addRoutes(app, orders)
  await app.ready()
  for (const row of ROWS) {
    const { kind, has, role } = row
    const needed = kind === 'API audience' ? 'account:read' : kind.includes('audience') ? orders.scope : 'read'
    const granted = { '+': [needed, 'roles'], '~': [needed], '-': [] }[has]
    // The scopes of a token for a resource are those of the resource.
    const isUnderGrant = kind === 'API audience' || kind === 'other audience'
    const scopes = isUnderGrant ? granted.filter((scope) => scope !== 'roles') : granted
    const declared = { [orders.scope]: orders.resourceId }
    const client = { scopes: has === '-' ? [] : ['read', 'account:read', orders.scope], declared }
    const caller = await issue(kit, orders, { kind, scopes, roles: role === 'plain' ? [] : [role], client, ...(isUnderGrant && { granted }) })
    const deviations: string[] = []
    await Promise.all(routes.map(async (guarded) => {
      const expected = expect(row, guarded)
      if (expected === '-') return
      const answer = await ask(app, guarded, caller, orders)
      if (answer !== expected) deviations.push(`${guarded.column}, audience ${guarded.at}, subject ${guarded.subject}: ${answer} instead of ${expected}`)
    }))
    t.strictSame(deviations, [], `${kind}${has} as ${role}`)
  }
}

async function declareOrders (kit: TestKit, scope: string): Promise<Orders> {
  return { ...await declareResource(kit, { [scope]: 'read orders' }), scope }
}

await forEachStore(t, async (t, build: Build) => {
  t.test('the guard beside the service', async (t) => {
    const kit = await build(t)
    await walk(t, kit, kit.app, await declareOrders(kit, 'orders:read'))
  })

  t.test('the guard of remoteAuth', async (t) => {
    const kit = await build(t)
    const { url } = await kit.listen()
    const host = fastify()
    t.teardown(() => host.close())
    await host.register(remoteAuth, { upstream: url, cacheTtl: 60_000 })
    await walk(t, kit, host, await declareOrders(kit, 'shop:read'))
  })
})
