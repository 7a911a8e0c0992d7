import { readFileSync } from 'node:fs'
import Fastify, { type FastifyRequest } from 'fastify'
import t from 'tap'
import identity, { ACCESS, type Caller } from '../index.ts'
import { ADMIN_SCOPES, API_SCOPES, isForClients } from '../lib/resources/api-scopes.ts'
import { DEFAULT_ROLE_NAMES } from '../lib/roles.ts'
import { POWER } from '../lib/tokens/caller.ts'
import type { AccessRow } from '../plugins/access-table.ts'
import { createApiAdmission } from '../plugins/admission.ts'
import { OidcOptionsSchema } from '../schemas/oidc.ts'
import { parseTable } from './helpers/table.ts'

const text = readFileSync(new URL('../docs/access.md', import.meta.url), 'utf8')
const rows = parseTable(text, 'operation', 'route').map(([operation = '', route = '', who = '', scope = '', others = '', tokens = '']) => {
  const [method = '', path = ''] = route.split(' ')
  return { operation, method, path, who, scope, others, tokens }
})
const ALL = Object.keys(API_SCOPES)

interface Held { subject?: 'user' | 'client', roles?: string[], scopes?: string[], accepted?: boolean }

/** Whether a caller is admitted to an operation, and whether as an administrator; null when it is refused. */
function admit ({ operation, method }: typeof rows[number], { subject = 'user', roles = [], scopes = ALL, accepted = true }: Held, params: object = {}): boolean | null {
  const row = ACCESS[operation] as AccessRow
  const held = Object.fromEntries(roles.map((role) => [role, true as const]))
  const caller: Caller = {
    subject,
    user: { user_id: 'ann', account: 'ann', name: '', roles: {} },
    client: { clientId: 'app' },
    token: { id: '', scopes },
    isAdmin: false,
    [POWER]: { roles: held, scopes: scopes.filter((scope) => subject === 'user' || isForClients(scope)), accepted }
  }
  try {
    return createApiAdmission(DEFAULT_ROLE_NAMES, row, row.scope)(caller, { method, params } as unknown as FastifyRequest)
  } catch {
    return null
  }
}

t.test('who may do what: the rows are the access table', async (t) => {
  t.same(rows.map(({ operation }) => operation).sort(), Object.keys(ACCESS).sort())
  for (const { operation, who, scope } of rows) {
    const { any = false, owner = false, roles = [], scope: needed } = ACCESS[operation] as AccessRow
    t.equal(scope, needed ?? '', `${operation}: scope`)
    t.equal(who.startsWith('any'), any, `${operation}: any`)
    if (any) t.equal(who, needed === null ? 'any' : 'any user')
    else t.same(who.split(', ').filter((role) => role !== 'that user'), roles, `${operation}: roles`)
    t.equal(who.includes('that user'), owner, `${operation}: owner`)
  }
})

t.test('who may do what: the scopes are enough, and needed', async (t) => {
  for (const row of rows) {
    const { operation, who, scope, others } = row
    const scopes = scope === '' ? [] : [scope]
    const role = who.startsWith('any') ? [] : who.split(', ').slice(-1)
    const needed = others === '' ? scopes : [...scopes, others]
    t.not(admit(row, { roles: role, scopes: needed }), null, `${operation}: with the scope`)
    if (who.startsWith('any')) t.not(admit(row, { scopes }), null, `${operation}: a plain user with the scope`)
    for (const missing of needed) {
      const rest = ALL.filter((one) => one !== missing && one !== missing.replace(/read$/, 'write'))
      if (missing === scope) t.equal(admit(row, { roles: ['admin'], scopes: rest }), null, `${operation}: without ${missing}`)
      else t.not(admit(row, { roles: ['admin'], scopes: rest }), true, `${operation}: without ${missing} no administrator`)
    }
    // Where nothing is said of everybody's, an administrator gets no more than others, or the row's scope is the one it takes.
    if (others !== '') t.equal(admit(row, { roles: ['admin'], scopes: needed }), true, `${operation}: an administrator with ${others}`)
  }
  const own = rows.find(({ operation }) => operation === 'deleteClientsOfUser')!
  t.equal(admit(own, { scopes: ['clients:write'] }, { userId: 'ann' }), false, 'the user themselves')
  t.equal(admit(own, { scopes: ['clients:write'] }, { userId: 'bob' }), null, 'another user')
})

t.test('who may do what: the tokens that pass', async (t) => {
  for (const row of rows) {
    const { operation, tokens } = row
    const every = tokens === 'every token'
    t.not(admit(row, { roles: ['admin'] }), null, `${operation}: user`)
    t.equal(admit(row, { subject: 'client', roles: ['admin'] }) !== null, every || tokens === 'user, service account', `${operation}: service account`)
    t.equal(admit(row, { subject: 'client' }) !== null, every, `${operation}: client's own`)
    t.equal(admit(row, { roles: ['admin'], accepted: false }) !== null, every, `${operation}: other audience`)
    t.ok(['every token', 'user', 'user, service account'].includes(tokens), `${operation}: ${tokens}`)
  }
})

t.test('who may do what: the routes are those that there are', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(identity, { database: 'sqlite::memory:' })
  const { paths } = (await app.inject('/openapi.json')).json()
  const served = Object.entries<Record<string, { operationId: string }>>(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId }]) => [operationId, `${method.toUpperCase()} ${path}`]))
    .filter(([operationId = '']) => Object.hasOwn(ACCESS, operationId))
  t.same(rows.map(({ operation, method, path }) => [operation, `${method} /api/v1${path}`]).sort(), served.sort())
})

t.test('the scopes of the API are listed, with who adds them', async (t) => {
  const listed = parseTable(text, 'scope', 'what it lets an app do')
  t.same(listed.map(([scope = '', , who]) => [scope, who]), ALL.map((scope) => [scope, ADMIN_SCOPES.has(scope) ? 'an administrator' : 'any user']))
})

t.test('the options of the authorization server are its schema', async (t) => {
  const oidc = readFileSync(new URL('../docs/oidc.md', import.meta.url), 'utf8')
  const expected = Object.entries<{ default?: unknown }>(OidcOptionsSchema.properties).map(([name, schema]) => [name, String(schema.default ?? '')])
  t.same(parseTable(oidc, 'option', 'default').map(([name, fallback]) => [name, fallback]), expected)
})
