/**
 * Removes the declarations from dist that no export of the package reaches. Those of private modules are useless, and some
 * name packages that are not dependencies, such as the types of oidc-provider.
 */
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, string | { types: string }> }
const IMPORT = /(?:from|import|module)\s*\(?\s*['"](\.[^'"]+)['"]/g

const reached = new Set<string>()
function reach (file: string): void {
  if (reached.has(file)) return
  reached.add(file)
  for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
    const imported = join(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'))
    if (existsSync(imported)) reach(imported)
  }
}

for (const entry of Object.values(exports)) if (typeof entry === 'object') reach(join(root, entry.types))
for (const file of globSync('dist/**/*.d.ts', { cwd: root })) {
  if (!reached.has(join(root, file))) rmSync(join(root, file))
}
