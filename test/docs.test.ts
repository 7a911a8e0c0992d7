import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Fastify, { type FastifyRequest } from 'fastify'
import t from 'tap'
import { COMMON, type Flag, parseFlags } from '../cli/args.ts'
import { COMMANDS } from '../cli/main.ts'
import identity, { ACCESS, COLLECTIONS, ERRORS, type Caller } from '../index.ts'
import { EVENT_TYPES } from '../lib/events/types.ts'
import { ADMIN_SCOPES, API_SCOPES, isForClients } from '../lib/api-scopes.ts'
import { DEFAULT_ROLE_NAMES } from '../lib/roles.ts'
import { isServiceLink } from '../lib/service-link.ts'
import { POWER } from '../lib/tokens/caller.ts'
import type { AccessRow } from '../plugins/access-table.ts'
import { createApiAdmission } from '../plugins/admission.ts'
import { BridgeOptionsSchema } from '../schemas/bridge.ts'
import { LIMITS } from '../schemas/common.ts'
import { EnvironmentSchema, GROUPS } from '../schemas/config.ts'
import { OidcOptionsSchema } from '../schemas/oidc.ts'
import { OptionsSchema } from '../schemas/options.ts'
import { ATTENTION_CODES, NEXT_CODES } from '../schemas/status.ts'
import { listBlocks, listDocs, readDoc } from './helpers/docs.ts'
import { parseTable } from './helpers/table.ts'

const ROOT = join(import.meta.dirname, '..')

const text = readDoc('docs/access.md')
const rows = parseTable(text, 'operation', 'route').map(([operation = '', route = '', who = '', scope = '', others = '', tokens = '', personal = '']) => {
  const [method = '', path = ''] = route.split(' ')
  return { operation, method, path, who, scope, others, tokens, personal }
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
    return createApiAdmission(DEFAULT_ROLE_NAMES, row, row)(caller, { method, params } as unknown as FastifyRequest)
  } catch {
    return null
  }
}

t.test('who may do what: the rows are the access table', async (t) => {
  t.same(rows.map(({ operation }) => operation).sort(), Object.keys(ACCESS).sort())
  for (const { operation, who, scope, personal } of rows) {
    const { any = false, owner = false, roles = [], scope: needed, personal: may } = ACCESS[operation] as AccessRow
    t.equal(personal, typeof may === 'string' ? may : 'plain', `${operation}: personal`)
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
      const rest = ALL.filter((one) => one !== missing && one !== missing.replace(/(read|support)$/, 'write'))
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
  await app.register(identity, { database: 'sqlite::memory:', personalTokens: { maxDays: 1 } })
  const { paths } = (await app.inject('/openapi.json')).json()
  const served = Object.entries<Record<string, { operationId: string }>>(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId }]) => [operationId, `${method.toUpperCase()} ${path}`]))
    .filter(([operationId = '']) => Object.hasOwn(ACCESS, operationId))
  t.same(rows.map(({ operation, method, path }) => [operation, `${method} /api/v1${path}`]).sort(), served.sort())
})

t.test('the fields that a personal access token may not send are listed', async (t) => {
  const listed = parseTable(text, 'operation', 'fields').map(([operation = '', fields = '']) => {
    const parts = fields.split(';').map((part) => part.trim())
    return [operation, parts.flatMap((part) => {
      const [names = '', of] = part.split(' of ')
      return names.split(', ').map((name) => of === undefined ? name : `${of}.${name}`)
    }).sort()]
  })
  const rows = Object.entries(ACCESS).flatMap(([operation, { personal }]) => typeof personal === 'object' && personal.plain.length > 0 ? [[operation, [...personal.plain].sort()]] : [])
  t.same(Object.fromEntries(listed), Object.fromEntries(rows))
})

t.test('the scopes of the API are listed, with who adds them', async (t) => {
  const listed = parseTable(text, 'scope', 'what it lets an app do')
  t.same(listed.map(([scope = '', , who]) => [scope, who]), ALL.map((scope) => [scope, ADMIN_SCOPES.has(scope) ? 'an administrator' : 'any user']))
})

type Properties = Record<string, { default?: unknown, description?: string }>

/** A default as a table shows it. */
function writeDefault (value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** A text without code marks, and with the paths of the pages that it links. */
const toPlain = (text = '') => text.replaceAll('`', '').replaceAll(/\[([\w-]+\.md)\]\(\1\)/g, 'docs/$1')

t.test('the tables of options are their schemas', async (t) => {
  const tables: [path: string, properties: Properties][] = [
    ['docs/configuration.md', OptionsSchema.properties],
    ['docs/oidc.md', OidcOptionsSchema.properties],
    ['docs/bridge.md', BridgeOptionsSchema.properties]
  ]
  for (const [path, properties] of tables) {
    const rows = parseTable(readDoc(path), 'option', 'default').map(([name, fallback, meaning]) => [name, fallback, toPlain(meaning)])
    t.same(rows, Object.entries(properties).map(([name, schema]) => [name, writeDefault(schema.default), toPlain(schema.description)]), path)
  }
})

t.test('the tables of environment variables are their schema', async (t) => {
  const write = (value: unknown) => (typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value ?? ''))
  const [, ...sections] = readDoc('docs/configuration.md').split('## Environment variables')[1]!.split('\n## ')[0]!.split('\n### ')
  t.same(sections.map((section) => section.split('\n')[0]), Object.keys(GROUPS))
  for (const [index, [group, variables]] of Object.entries<Properties>(GROUPS).entries()) {
    const expected = Object.entries(variables).map(([name, schema]) => [name, write(schema.default), toPlain(schema.description)])
    t.same(parseTable(sections[index]!, 'variable', 'default'), expected, group)
  }
})

t.test('every page names variables that there are', async (t) => {
  for (const page of listDocs().filter((path) => path !== 'CHANGELOG.md')) {
    for (const [name] of readDoc(page).matchAll(/\bIDENTITY_[A-Z_]*[A-Z]/g)) t.ok(name in EnvironmentSchema.properties || isServiceLink(name, 'tcp://'), `${page}: ${name}`)
  }
})

t.test('the table of errors is the table of error kinds', async (t) => {
  t.same(parseTable(readDoc('docs/api.md'), 'code', 'status', 'when'), Object.entries(ERRORS).map(([code, { status, when }]) => [code, String(status), when]))
})

t.test('the table of limits is that of the schemas', async (t) => {
  t.same(parseTable(readDoc('docs/api.md'), 'limit', 'value', 'of').map(([name, value]) => [name, value]), Object.entries(LIMITS).map(([name, value]) => [name, String(value)]))
})

t.test('the table of commands is the command line', async (t) => {
  const expected = Object.entries(COMMANDS).flatMap(([name, { summary, flags }]) => [
    [name, '', toPlain(summary)],
    ...Object.entries<Flag>(flags).map(([flag, { value, text, required, operand }]) =>
      ['', `${operand === true ? `[--${flag}]` : `--${flag}`}${value === undefined ? '' : ` ${value}`}`, `${toPlain(text)}${required === true ? ' Required.' : ''}`])
  ])
  t.same(parseTable(readDoc('docs/command-line.md'), 'command', 'flag', 'meaning'), expected)
  t.same(Object.keys(COMMON), ['json', 'help'], 'the flags of every command')
})

/** Splits a line as a shell does, for the syntax of the pages. */
function splitLine (line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, bare]) => single ?? double ?? bare ?? '')
}

t.test('every command line on a page is one that parses', async (t) => {
  let count = 0
  for (const page of listDocs()) {
    const lines = listBlocks(page).filter(({ language }) => language === 'sh')
      .flatMap(({ text }) => text.replaceAll(/\\\n\s*/g, '').replaceAll(/<[^>]*>/g, 'x').split('\n'))
    for (const line of lines) {
      const [, rest] = /(?:npm run -s cli --|fastify-identity) (.*)$/.exec(line) ?? []
      if (rest === undefined) continue
      const words = splitLine(rest)
      const length = [3, 2].find((length) => Object.hasOwn(COMMANDS, words.slice(0, length).join(' '))) ?? 1
      const command = COMMANDS[words.slice(0, length).join(' ')]
      count++
      if (command === undefined) t.fail(`${page}: ${line}`)
      else t.doesNotThrow(() => parseFlags(command.flags, words.slice(length)), `${page}: ${line}`)
    }
  }
  t.ok(count > 10, `${count} command lines`)
})

t.test('every line of the log to alert on is one that the service writes', async (t) => {
  const source = globSync(['*.ts', 'cli/**/*.ts', 'lib/**/*.ts', 'plugins/*.ts', 'routes/*.ts'], { cwd: ROOT })
    .map((path) => readFileSync(join(ROOT, path), 'utf8')).join('\n')
  const rows = parseTable(readDoc('docs/operations.md'), 'level', '`msg` contains')
  t.ok(rows.length > 15)
  for (const [, message = ''] of rows) t.ok(source.includes(message), message)
})

t.test('the rooms of the architecture are the folders that there are', async (t) => {
  const listed = new Set(parseTable(readDoc('docs/architecture.md'), 'folder', 'contents').flatMap(([cell = '']) => cell.split(', ')))
  const folders = globSync(['schemas', 'lib/*/', 'plugins', 'routes', 'cli', 'cli/*/', 'testing', 'test', 'bench', 'docs', 'examples'], { cwd: ROOT })
    .map((path) => `${path.replace(/\/$/, '')}/`)
  for (const folder of folders) t.ok(listed.has(folder), folder)
  for (const one of listed) if (!one.includes('*')) t.equal(globSync(one.replace(/\/$/, ''), { cwd: ROOT }).length, 1, `${one} exists`)
})

t.test('every type of event has its row', async (t) => {
  const rows = parseTable(readDoc('docs/events.md'), 'type', 'when').flatMap(([cell = '']) => cell.split(', '))
  t.same(rows.sort(), Object.keys(EVENT_TYPES).sort())
})

t.test('every collection has its row', async (t) => {
  const rows = parseTable(readDoc('docs/storage.md'), 'collection', 'a document is').flatMap(([cell = '']) => cell.split(', '))
  t.same(rows.sort(), COLLECTIONS.map(({ name }) => name).sort())
})

t.test('the status of the service: each code has its row', async (t) => {
  const page = readDoc('docs/operations.md')
  const listCodes = (heading: string) => parseTable(page, 'code', heading).flatMap(([codes = '']) => codes.split(', '))
  t.strictSame(listCodes('what it means'), [...ATTENTION_CODES])
  t.strictSame(listCodes('what to set up').sort(), [...NEXT_CODES].sort())
})
