/** Finds the test files of a file or folder, of the code or of `test/`. */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

const IMPORT = /(?:from|import)\s*\(?\s*'(\.[^']+)'/g
const exclude = ['**/node_modules']
const isTest = (file: string) => file.endsWith('.test.ts')

/** The tests at the same place in `test/`. Those of a route are also in `test/spec/`. */
function findMirror (path: string): string[] {
  const name = path.replace(/\/$/, '').replace(/\.\w+$/, '')
  const place = /^test(\/|$)/.test(name) ? name : join('test', name)
  const places = [place, place.replace(/^test\/routes\//, 'test/spec/')]
  return globSync(places.flatMap((at) => [`${at}.test.ts`, `${at}-*.test.ts`, `${at}/**/*.test.ts`]), { exclude })
}

let imports: Map<string, Set<string>> | undefined

/** What each file in `test/` imports. */
function readImports (): Map<string, Set<string>> {
  imports ??= new Map(globSync('test/**/*.ts', { exclude }).map((file) => {
    const specifiers = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, specifier = '']) => specifier)
    return [file, new Set(specifiers.map((specifier) => join(dirname(file), specifier)))]
  }))
  return imports
}

/** The tests that import a file. Those that reach it through a helper count only for a helper: most helpers reach all of the code. */
function findImporters (file: string): string[] {
  const isHelper = file.startsWith('test/')
  const found = new Set([file])
  for (const imported of found) {
    for (const [importer, all] of readImports()) if (all.has(imported) && (isHelper || isTest(importer))) found.add(importer)
  }
  return [...found].filter(isTest)
}

/** The tests of a file or folder. A file that has none of its own gets those of its folder. */
export function selectTests (path: string): string[] {
  if (isTest(path)) return [path]
  if (statSync(path).isDirectory()) return findMirror(path)
  const tests = [...new Set([...findMirror(path), ...findImporters(path)])]
  const folder = dirname(path)
  return tests.length > 0 || folder === '.' ? tests : findMirror(folder)
}

/** The files that differ from a commit, also those that git does not know yet. */
export function listChanged (commit: string): string[] {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter((line) => line !== '')
  return [...git('diff', '--name-only', '--diff-filter=d', commit), ...git('ls-files', '--others', '--exclude-standard')]
}
