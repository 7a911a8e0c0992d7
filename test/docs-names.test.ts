import { Linter } from 'eslint'
import t from 'tap'
import { listBlocks, listDocs } from './helpers/docs.ts'

// A block that uses a name which neither it nor an earlier one on its page defines cannot be tried by anybody.

/** What a reader has already: their app with the plugin, their test, their handler, the settings of their client, and what runs the code. */
const READER = ['app', 'identity', 't', 'startIdentity', 'handler', 'ISSUER', 'CLIENT_ID', 'CLIENT_SECRET', 'currentUrl', 'redirect_uri', 'code_challenge', 'location', 'sessionStorage', 'ngx']

const linter = new Linter()
const toGlobals = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 'readonly' as const]))
const GLOBALS = toGlobals([...Object.getOwnPropertyNames(globalThis), ...READER])

/** The names that a block declares at its top. */
function listDeclared (text: string): string[] {
  const declarations = text.matchAll(/^(?:export )?(?:import|const|let|async function|function|class) (?:\{([^}]*)\}|\* as (\w+)|(\w+))/gm)
  return [...declarations].flatMap(([, names, space, name]) => names?.split(',').map((one) => one.trim().split(/ as |: /).at(-1)!) ?? [space ?? name!])
}

/** Members of an object, as a page shows options. */
const isOptions = (text: string): boolean => /^(?:\w+:|\{)/.test(text)

/** Problems of a block: names that it does not know, and what is no JavaScript. */
function check (text: string, known: readonly string[]): string[] {
  const globals = { ...GLOBALS, ...toGlobals(known) }
  return linter.verify(isOptions(text) ? `(${text.startsWith('{') ? text : `{ ${text} }`})` : text, {
    languageOptions: { sourceType: 'module', ecmaVersion: 'latest', globals }, rules: { 'no-undef': 'error' }
  }).map(({ message }) => message)
}

t.test('the check finds a name that nothing defines', async (t) => {
  t.strictSame(check('const kit = await startIdentity({ t, app: buildApp() })\n', []), ["'buildApp' is not defined."])
  t.strictSame(check('const kit = await startIdentity({ t, app: buildApp() })\n', listDeclared('async function buildApp () {}\n')), [])
  t.strictSame(listDeclared("import fastify, { a } from 'b'\nimport { c as d } from 'e'\nimport * as f from 'g'\nconst { h, i: j } = {}\n"), ['fastify', 'd', 'f', 'h', 'j'])
})

for (const page of listDocs().filter((page) => page !== 'CONTRIBUTING.md')) {
  const blocks = listBlocks(page).filter(({ language }) => language === 'js' || language === 'ts')
  if (blocks.length === 0) continue
  t.test(page, async (t) => {
    const known: string[] = []
    for (const { text } of blocks) {
      t.strictSame(check(text, known), [], text.split('\n', 1)[0]!)
      known.push(...listDeclared(text))
    }
  })
}
