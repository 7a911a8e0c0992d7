import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { type Block, listBlocks, listDocs } from './helpers/docs.ts'

const ROOT = join(import.meta.dirname, '..')
const { MONGODB_URL } = process.env

const run = promisify(execFile)
const toUrl = (path: string) => pathToFileURL(join(ROOT, path)).href

/** The sources of what the package exports. */
const EXPORTS: Record<string, string> = {
  'fastify-identity': 'index.ts',
  'fastify-identity/bridge': 'routes/bridge.ts',
  'fastify-identity/remote': 'plugins/remote.ts',
  'fastify-identity/testing': 'testing/index.ts'
}

/** What must hold at the end of the program that contains a text. */
const CHECKS: [text: string, check: string][] = [
  ['app.identity.protect(', `
    const mint = createMint(app.identity)
    const { headers } = await mint({ user: 'ann' })
    const orders = await mint({ user: 'ann', client: 'shop', resource, scopes: ['orders:read'] })
    const ask = async (url, headers) => (await app.inject({ url, headers })).json()
    assert.equal((await ask('/me', headers)).account, 'ann')
    assert.deepEqual(await ask('/orders', orders.headers), { orders: [], of: 'ann' })
    assert.equal((await ask('/orders', headers)).statusCode, 401)`],
  ['app.identity.bootstrap()', `
    const headers = { authorization: 'Bearer ' + access_token }
    assert.equal((await app.inject({ url: '/api/v1/user', headers })).json().data.account, 'ann')`],
  ["mint({ roles: ['admin'] })", 'assert.equal(response.statusCode, 200)']
]

/** Whole programs: the other blocks are parts of one. */
const programs = listDocs().flatMap(listBlocks)
  .filter(({ language, text }) => language === 'js' && /^import .* from 'fastify-identity/m.test(text))

/** The program on our sources, with free ports and a database of its own, which checks its outcome and closes what it opened. */
function complete ({ text }: Block, database: string): string {
  const source = text
    .replaceAll(/from '(fastify-identity[^']*)'/g, (_match, name: string) => `from '${toUrl(EXPORTS[name] ?? name)}'`)
    .replaceAll(/port: \d+/g, 'port: 0')
    .replaceAll('db.example.com/identity', `db.example.com/${database}`)
  return [
    "import assert from 'node:assert/strict'",
    `import { createMint } from '${toUrl('testing/index.ts')}'`,
    source,
    ...CHECKS.filter(([part]) => text.includes(part)).map(([, check]) => check),
    text.includes('MongoClient') ? `const client = new MongoClient(url)\nawait client.db('${database}').dropDatabase()\nawait client.close()` : '',
    /^const app/m.test(text) ? 'await app.close()' : '',
    /^const kit/m.test(text) ? 'await kit.close()' : ''
  ].join('\n')
}

t.test('the programs on the pages run', async (t) => {
  t.ok(programs.length >= 8, `${programs.length} programs`)
  const home = process.cwd()
  t.teardown(() => process.chdir(home))
  for (const [index, block] of programs.entries()) {
    const skip = block.text.includes('MongoClient') && MONGODB_URL === undefined && 'MONGODB_URL is not set'
    await t.test(`${block.page}, program ${index}`, { skip }, async (t) => {
      const dir = mkdtempSync(join(tmpdir(), 'fastify-identity-docs-'))
      t.teardown(() => rmSync(dir, { recursive: true, force: true }))
      symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
      const file = join(dir, 'main.mjs')
      writeFileSync(file, complete(block, `docs-${randomUUID()}`))
      process.chdir(dir)
      // Those that print something would disturb this test's own output.
      const isAlone = /node:test|'tap'|process\.stdout/.test(block.text)
      await t.resolves(isAlone ? run(process.execPath, [file], { cwd: dir }) : import(pathToFileURL(file).href))
      process.chdir(home)
    })
  }
})

const hasPytest = spawnSync('python3', ['-c', 'import pytest']).status === 0

t.test('the suite in Python runs', { skip: !hasPytest && 'there is no pytest' }, async (t) => {
  const [text = ''] = listBlocks('docs/testing.md').filter(({ language }) => language === 'python').map(({ text }) => text)
  const dir = t.testdir({ 'test_users.py': text.replace("'npx', 'fastify-identity'", `'${process.execPath}', '${join(ROOT, 'cli.ts')}'`) })
  const { stdout } = await run('python3', ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'test_users.py'], { cwd: dir })
  t.match(stdout, '1 passed')
})
