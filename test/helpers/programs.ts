import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { type Block, listBlocks, listDocs } from './docs.ts'

const ROOT = join(import.meta.dirname, '../..')

const toUrl = (path: string) => pathToFileURL(join(ROOT, path)).href

/** The sources of the package's exports. */
const EXPORTS: Record<string, string> = {
  'fastify-identity': 'index.ts',
  'fastify-identity/bridge': 'routes/bridge.ts',
  'fastify-identity/remote': 'plugins/remote.ts',
  'fastify-identity/testing': 'testing/index.ts'
}

/** The complete programs on the pages, but for suites of vitest, which is no dependency. Other blocks are fragments. */
export function listPrograms (): Block[] {
  const isProgram = (text: string) => /^import .* from 'fastify-identity/m.test(text) && !text.includes("from 'vitest'")
  return listDocs().flatMap(listBlocks).filter(({ language, text }) => language === 'js' && isProgram(text))
}

/** Whether the program is a test suite, which needs a process of its own. */
export function isSuite ({ text }: Block): boolean {
  return /^import .* from '(node:test|tap)'/m.test(text)
}

/**
 * Writes a program to a new folder, on our sources, with free ports, cheap hashes and a database of its own. The program closes
 * everything that it opened. It does not print, which would disturb the test's own output.
 * @param check code that runs at its end
 */
export function writeProgram (t: Test, { text }: Block, check = ''): { dir: string, file: string } {
  const database = `docs-${randomUUID()}`
  const dir = mkdtempSync(join(tmpdir(), 'fastify-identity-docs-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  const file = join(dir, 'main.mjs')
  const program = text
    .replaceAll(/from '(fastify-identity[^']*)'/g, (_match, name: string) => `from '${toUrl(EXPORTS[name] ?? name)}'`)
    .replaceAll(/port: \d+/g, 'port: 0')
    .replaceAll('register(identity, {', 'register(identity, { bcryptCost: 4,')
    .replaceAll('db.example.com/identity', `db.example.com/${database}`)
    .replaceAll('process.stdout.write', 'String')
  writeFileSync(file, [
    "import assert from 'node:assert/strict'",
    `import { createMint } from '${toUrl('testing/index.ts')}'`,
    program,
    check,
    text.includes('MongoClient') ? `const client = new MongoClient(url)\nawait client.db('${database}').dropDatabase()\nawait client.close()` : '',
    /^const app/m.test(text) ? 'await app.close()' : '',
    /^const kit/m.test(text) ? 'await kit.close()' : ''
  ].join('\n'))
  return { dir, file }
}
