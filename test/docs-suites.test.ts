import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { listBlocks } from './helpers/docs.ts'
import { isSuite, listPrograms, writeProgram } from './helpers/programs.ts'

const ROOT = join(import.meta.dirname, '..')

/** Runs a program. Types are stripped once for all that are run. */
const run = async (file: string, args: string[], cwd: string) =>
  await promisify(execFile)(file, args, { cwd, env: { ...process.env, NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/docs') } })

t.test('the suites on the pages run', async (t) => {
  const suites = listPrograms().filter(isSuite)
  t.equal(suites.length, 2, 'node:test and tap')
  for (const block of suites) {
    const { dir, file } = writeProgram(t, block)
    await t.resolves(run(process.execPath, [file], dir), block.text.split('\n', 1)[0] ?? '')
  }
})

const hasPytest = spawnSync('python3', ['-c', 'import pytest']).status === 0

t.test('the suite in Python runs', { skip: !hasPytest && 'there is no pytest' }, async (t) => {
  const [text = ''] = listBlocks('docs/testing.md').filter(({ language }) => language === 'python').map(({ text }) => text)
  const dir = t.testdir({ 'test_users.py': text.replace("'npx', 'fastify-identity'", `'${process.execPath}', '${join(ROOT, 'cli.ts')}'`) })
  const { stdout } = await run('python3', ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'test_users.py'], dir)
  t.match(stdout, '1 passed')
})
