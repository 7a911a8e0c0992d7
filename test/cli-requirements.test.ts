import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'

const root = join(import.meta.dirname, '..')
const { engines, dependencies, devDependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Runs the command after a module that changes what it finds. */
function run (module: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', `data:text/javascript,${encodeURIComponent(module)}`, join(root, 'cli.ts'), ...args], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

const pretend = (version: string) => run(`Object.defineProperty(process.versions, 'node', { value: '${version}' })`, '--version')

t.test('the command says in one sentence that Node is too old', async (t) => {
  for (const version of ['12.22.12', '20.20.2', '22.19.0', '24.6.0']) {
    t.strictSame(pretend(version), { status: 1, stdout: '', stderr: `fastify-identity: needs Node 24.7 or later, and this is Node ${version}\n` })
  }
  for (const version of ['24.7.0', '26.0.0']) t.match(pretend(version), { status: 0, stderr: '' })
  t.equal(engines.node, '>=24.7', 'the same as in package.json')
})

t.test('the command says in one sentence that Fastify is missing', async (t) => {
  const hide = `import { registerHooks } from 'node:module'
    registerHooks({ resolve (name, context, next) { if (name === 'fastify') throw new Error('hidden'); return next(name, context) } })`
  t.strictSame(run(hide, 'user', 'list'), { status: 1, stdout: '', stderr: 'fastify-identity: Fastify is not installed beside this package: run `npm install fastify@5`\n' })
})

t.test('old releases of Node can read the file that checks them', async (t) => {
  const { outputText } = ts.transpileModule(readFileSync(join(root, 'cli.ts'), 'utf8'), { compilerOptions: { target: ts.ScriptTarget.ES2024, module: ts.ModuleKind.NodeNext, verbatimModuleSyntax: true, removeComments: true }, fileName: 'cli.mts' })
  t.notMatch(outputText, /^\s*import\s+[^(]/m, 'it imports nothing before the check')
  t.notMatch(outputText, /\bawait\b|\?\?|\?\.|\|\|=|#\w+ ?[(=]/, 'and has no later syntax')
})

t.test('Fastify is a peer dependency and nothing else', async (t) => {
  t.match(peerDependencies, { fastify: /^\^5\.\d+\.\d+$/ })
  // As a development dependency, `npm ci --omit=dev` would leave it out of a checkout in production.
  t.notOk('fastify' in dependencies)
  t.notOk('fastify' in devDependencies)
  t.match(readFileSync(join(root, 'docs/embedding.md'), 'utf8'), `Fastify ${peerDependencies.fastify.slice(1)} or later`)
})
