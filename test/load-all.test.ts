import { globSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')

/** These do something when they are loaded: their own tests start them. */
const PROGRAMS = /^(server|cli)\.ts$|-(worker|thread|process)\.ts$|^testing\/serve\.ts$/

// A file that no test loads would not show in the coverage.
t.test('every module loads by itself', async (t) => {
  const files = globSync(['*.ts', '{schemas,lib,plugins,routes,testing,cli}/**/*.ts'], { cwd: ROOT }).filter((file) => !PROGRAMS.test(file))
  t.ok(files.length > 20)
  for (const file of files) await t.resolves(import(join(ROOT, file)), file)
})
