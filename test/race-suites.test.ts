import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { startCommand } from './helpers/process.ts'

// A suite of races must notice when its store calls are no longer scheduled, as after a refactoring that reads by another road. So each
// one runs with a scheduler that lets every call proceed at once, and must find too few orders.

t.setTimeout(600_000)

const ROOT = join(import.meta.dirname, '..')

/** Suites that run at a time. */
const AT_ONCE = 2

/** What `exhaust` says, and a suite that counts its orders itself. */
const TOO_FEW = /not ok .*\b\d+ orders?( tried)?, and at least \d+ expected/

const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')).map((name) => join(import.meta.dirname, name))
const sources = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]))

/** The files of `test/` that a file names: by an import, or by the URL of a thread. */
const listNamed = (file: string): string[] =>
  [...sources.get(file)!.matchAll(/'(\.{1,2}\/[^']*\.ts)'/g)].map(([, path]) => join(dirname(file), path!)).filter((named) => sources.has(named))

/** Whether a file creates a scheduler, or names one that does. */
function schedules (file: string, seen = new Set<string>()): boolean {
  if (seen.has(file)) return false
  seen.add(file)
  return sources.get(file)!.includes('new Scheduler()') || listNamed(file).some((named) => schedules(named, seen))
}

const suites = files.filter((file) => file.endsWith('.test.ts') && file !== import.meta.filename && schedules(file)).map((file) => relative(ROOT, file)).sort()

t.test('a new suite is found by its import, also when it runs its races in a thread or by a helper', async (t) => {
  for (const suite of ['test/spec/races.test.ts', 'test/spec/scope-races.test.ts', 'test/lib/clients/secret-races.test.ts', 'test/people/interleavings.test.ts']) {
    t.ok(suites.includes(suite), suite)
  }
})

t.test('each suite of races fails when its store calls are not scheduled', { jobs: AT_ONCE }, (t) => {
  for (const suite of suites) {
    t.test(suite, { buffered: true }, async (t) => {
      const { seen } = startCommand(t, process.execPath, { args: [suite], env: { BYPASS_SCHEDULER: 'yes' } })
      t.match(await seen(TOO_FEW), TOO_FEW)
    })
  }
  t.end()
})
