/** Runs tap as `npm test` does, and names the slowest files of a long run. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPool, dropPool } from './databases.ts'
import { listSlowest } from './slowest.ts'

const root = join(import.meta.dirname, '..')

/** Test files that run at a time, without `--jobs`. A file that waits for a child or a server leaves its processor to the other. */
const JOBS = Math.max(2, availableParallelism() - 1)

const OUTPUT = '--output-file='

/** @returns tap's exit code */
export async function runTap (args: string[]): Promise<number> {
  const given = args.find((argument) => argument.startsWith(OUTPUT))?.slice(OUTPUT.length)
  const output = given ?? join(tmpdir(), `identity-tests-${process.pid}.tap`)
  // Without a terminal tap prints TAP, and twice when it also writes a file.
  const reports = given === undefined && process.stdout.isTTY ? [`${OUTPUT}${output}`] : []
  const folder = createPool()
  const tap = spawn(process.execPath, [join(root, 'node_modules/.bin/tap'), `--jobs=${JOBS}`, ...reports, ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tests'), TEST_DATABASES: folder }
  })
  // tap ends its tests first.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tap.kill(signal))
  const [code] = await once(tap, 'exit') as [number | null]
  if (existsSync(output)) for (const line of listSlowest(output)) console.log(line)
  if (given === undefined) rmSync(output, { force: true })
  await dropPool(folder, process.env.MONGODB_URL)
  return code ?? 1
}
