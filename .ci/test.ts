/**
 * Runs tests with tap:
 *
 *     npm test                                  all
 *     npm test -- lib/users routes/user.ts      those of these files and folders, of the code or of `test/`
 *     npm run test:changed [-- COMMIT]          those of the files that differ from HEAD, or from another commit
 *
 * All other arguments are tap's.
 */
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import './fixtures.ts'
import { runTap } from './run-tap.ts'
import { listChanged, selectTests } from './select-tests.ts'

const root = join(import.meta.dirname, '..')

function end (code: number, message: string): never {
  console.error(message)
  process.exit(code)
}

/** Replaces each path among the arguments by its test files. */
function expand (args: string[]): string[] {
  return args.flatMap((arg) => {
    if (arg.startsWith('-') || !existsSync(arg)) return [arg]
    const tests = selectTests(relative(root, arg) || '.')
    return tests.length > 0 ? tests : end(1, `${arg} has no tests`)
  })
}

/** The test files of what differs from the commit that the first argument names, and the other arguments. */
function expandChanged (args: string[]): string[] {
  const [commit = 'HEAD', ...rest] = args[0]?.startsWith('-') === false ? args : ['HEAD', ...args]
  const tests = new Set(listChanged(commit).flatMap(selectTests))
  return tests.size > 0 ? [...tests, ...rest] : end(0, `nothing that has tests differs from ${commit}`)
}

const [first, ...others] = process.argv.slice(2)
const args = first === 'changed' ? expandChanged(others) : expand(process.argv.slice(2))
process.exitCode = await runTap(args)
