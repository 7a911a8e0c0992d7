import t from 'tap'
import { ESLint } from 'eslint'
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

t.test('the linter accepts an import of an earlier room, of a shared word and of the port of the store', async (t) => {
  for (const [file, specifier] of ALLOWED) t.strictSame(await refuse(file, specifier), [], `${file} imports ${specifier}`)
})

t.test('the table of rooms has the order that the linter holds', async (t) => {
  const { ROOMS } = await import(new URL('../eslint.config.js', import.meta.url).href) as { ROOMS: string[] }
  const rows = parseTable(readDoc('docs/architecture.md'), 'folder', 'contents').map(([cell = '']) => cell).filter((cell) => /^lib\/.*\/$/.test(cell))
  t.strictSame(rows, ROOMS.filter((room) => !room.endsWith('.ts')).map((room) => `lib/${room}/`))
})
