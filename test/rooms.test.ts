import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { ESLint } from 'eslint'
import ts from 'typescript'
import { readDoc } from './helpers/docs.ts'
import { parseTable } from './helpers/table.ts'

// The files do not exist, so they have no types.
const TYPED = ['no-floating-promises', 'no-misused-promises', 'no-unnecessary-type-assertion']
const eslint = new ESLint({
  overrideConfig: [{ languageOptions: { parserOptions: { project: null } }, rules: Object.fromEntries(TYPED.map((rule) => [`@typescript-eslint/${rule}`, 'off'])) }]
})

/** The imports that the linter refuses in a file. */
async function refuse (filePath: string, specifier: string): Promise<string[]> {
  const [result] = await eslint.lintText(`import '${specifier}'\n`, { filePath })
  return result!.messages.filter(({ ruleId }) => ruleId === 'no-restricted-imports').map(({ message }) => message.replace(/^.* by a pattern\. /, ''))
}

const LATER = /does not import from .*, which comes after it in ROOMS/

const FORBIDDEN: [file: string, specifier: string, message: RegExp][] = [
  ['lib/users/x.ts', '../accounts/context.ts', LATER],
  ['lib/tokens/x.ts', '../ways/ways.ts', LATER],
  ['lib/sign-in/steps/x.ts', '../../pages/../oidc/index.ts', LATER],
  ['lib/store/sqlite/x.ts', '../../lists/reads.ts', LATER],
  ['lib/events/x.ts', '../change-record.ts', LATER],
  ['lib/oidc/x.ts', '../identity.ts', LATER],
  ['lib/maintenance/x.ts', '../store/sqlite/schema.ts', /An engine is imported by lib\/store\/ only/],
  ['cli/process/x.ts', '../../lib/store/sqlite/schema.ts', /An engine is imported by lib\/store\/ only/],
  ['lib/x.ts', './users/users.ts', /A shared word does not import from users/],
  ['lib/x.ts', './store/index.ts', /A shared word does not import from store/],
  ['lib/x.ts', './identity.ts', /A shared word does not import from identity\.ts/],
  ['lib/users/x.ts', '../../plugins/auth.ts', /imports flow schemas <- lib <- plugins/],
  ['schemas/x.ts', '../lib/errors.ts', /imports flow schemas <- lib <- plugins/],
  ['plugins/x.ts', '../routes/index.ts', /imports flow schemas <- lib <- plugins/],
  ['lib/tokens/x.ts', 'fastify', /know no Fastify/],
  ['lib/browsers/x.ts', 'oidc-provider', /Only lib\/oidc\/ imports oidc-provider/],
  ['routes/x.ts', 'oidc-provider', /Only lib\/oidc\/ imports oidc-provider/]
]

const ALLOWED: [file: string, specifier: string][] = [
  ['lib/accounts/x.ts', '../users/users.ts'],
  ['lib/pages/account/x.ts', '../../events/own.ts'],
  ['lib/store/x.ts', './sqlite/schema.ts'],
  ['lib/users/x.ts', '../errors.ts'],
  ['lib/x.ts', './store/port.ts'],
  ['lib/x.ts', './errors.ts'],
  ['lib/identity.ts', './oidc/index.ts'],
  ['lib/oidc/x.ts', 'oidc-provider']
]

t.test('the linter refuses an import against the order of the rooms', async (t) => {
  for (const [file, specifier, message] of FORBIDDEN) {
    const [refusal, ...others] = await refuse(file, specifier)
    t.match(refusal, message, `${file} imports ${specifier}`)
    t.strictSame(others, [])
  }
})

t.test('the linter refuses to read records outside lib/', async (t) => {
  for (const filePath of ['plugins/x.ts', 'routes/account/x.ts', 'cli/x.ts', 'server.ts']) {
    const [result] = await eslint.lintText("export const find = (store) => store.collection('users')\n", { filePath })
    t.match(result!.messages.map(({ ruleId }) => ruleId), ['no-restricted-syntax'], filePath)
  }
})

t.test('the linter accepts an import of an earlier room, of a shared word and of the port of the store', async (t) => {
  for (const [file, specifier] of ALLOWED) t.strictSame(await refuse(file, specifier), [], `${file} imports ${specifier}`)
})

t.test('the table of rooms has the order that the linter holds', async (t) => {
  const { ROOMS } = await import(new URL('../eslint.config.js', import.meta.url).href) as { ROOMS: string[] }
  const rows = parseTable(readDoc('docs/architecture.md'), 'folder', 'contents').map(([cell = '']) => cell).filter((cell) => /^lib\/.*\/$/.test(cell))
  t.strictSame(rows, ROOMS.filter((room) => !room.endsWith('.ts')).map((room) => `lib/${room}/`))
})

const PRODUCT = ['{lib,plugins,routes,cli,schemas,testing}/**/*.ts', '*.ts', '.ci/*.ts', 'test/**/*.ts']

/** The files that a file imports, also for their types alone. */
function listImports (root: string, file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'), true, true)
  return importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith('.')).map((name) => join(dirname(file), name))
}

/** The first circle of imports: each file of it imports the next one. */
function findCircle (imports: Map<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>()
  function follow (file: string, path: readonly string[]): string[] | undefined {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    done.add(file)
    for (const imported of imports.get(file) ?? []) {
      const circle = follow(imported, [...path, file])
      if (circle !== undefined) return circle
    }
  }
  for (const file of imports.keys()) {
    const circle = follow(file, [])
    if (circle !== undefined) return circle
  }
}

t.test('no files import each other in a circle', async (t) => {
  t.strictSame(findCircle(new Map([['a', ['b', 'c']], ['b', ['c']], ['c', ['d']], ['d', ['b']]])), ['b', 'c', 'd', 'b'])
  const root = join(import.meta.dirname, '..')
  const files = globSync(PRODUCT, { cwd: root })
  t.ok(files.length > 1000)
  t.equal(findCircle(new Map(files.map((file) => [file, listImports(root, file)]))), undefined)
})

/** What is opened at another place than that of its room, and why. */
const ELSEWHERE: Record<string, string> = {
  openSealedStore: 'it opens the store, with what migrates and measures it',
  createNotices: 'a mail is part of a change where any process sends mails, which the room of mails knows',
  createAuthorizations: 'logout tokens are accepted early, for the clients that only the room of oidc-provider can name in a session',
  createPasswords: 'recovery codes are hashed as slowly as passwords, in the same queue',
  openDocuments: 'clients from documents are removed and disabled by the service of clients',
  openFormer: 'people and links ask the former system, which takes people in by the rules of imports',
  openRelay: 'it publishes what all rooms have recorded, to what they do then'
}

/** Functions that read options, and make no service. */
const READERS = ['createUpstreamPolicy', 'createCounter', 'createAuthorityCheck']

/** The rooms of the functions that `openRooms` calls to open services, in the order of the calls. */
function listOpenings (): { name: string, room: string }[] {
  const source = ts.createSourceFile('identity.ts', readDoc('lib/identity.ts'), ts.ScriptTarget.Latest, true)
  const rooms = new Map<string, string>()
  const found: { name: string, room: string }[] = []
  const toRoom = (specifier: string) => specifier.slice('./'.length).split('/')[0]!
  function readImport (node: ts.ImportDeclaration): void {
    const named = node.importClause?.namedBindings
    if (named === undefined || !ts.isNamedImports(named)) return
    for (const { name } of named.elements) rooms.set(name.text, toRoom((node.moduleSpecifier as ts.StringLiteral).text))
  }
  function visit (node: ts.Node): void {
    ts.forEachChild(node, visit)
    if (!ts.isCallExpression(node)) return
    const { expression } = node
    const name = ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText(source)
    if (!/^(create|open)[A-Z]/.test(name) || READERS.includes(name)) return
    const lazy = /import\('([^']+)'\)/.exec(expression.getText(source))?.[1]
    const room = lazy === undefined ? rooms.get(name) : toRoom(lazy)
    if (room !== undefined) found.push({ name, room })
  }
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) readImport(statement)
    if (ts.isFunctionDeclaration(statement) && statement.name?.text === 'openRooms') visit(statement)
  }
  return found
}

t.test('the rooms are opened in the order of the table', async (t) => {
  const { ROOMS } = await import(new URL('../eslint.config.js', import.meta.url).href) as { ROOMS: string[] }
  const openings = listOpenings()
  t.ok(openings.length > 30, 'openings are found')
  const inOrder = openings.filter(({ name }) => ELSEWHERE[name] === undefined)
  t.strictSame(inOrder.filter(({ room }) => !ROOMS.includes(room)), [], 'a service belongs to a room')
  t.strictSame(inOrder, inOrder.toSorted((one, other) => ROOMS.indexOf(one.room) - ROOMS.indexOf(other.room)))
  for (const name of Object.keys(ELSEWHERE)) {
    const position = openings.findIndex((one) => one.name === name)
    const others = openings.map(({ room }) => ROOMS.indexOf(room))
    const own = others[position]!
    t.ok(others.slice(0, position).some((other) => other > own) || others.slice(position + 1).some((other) => other < own), `${name} is opened elsewhere`)
  }
})
