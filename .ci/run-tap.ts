/** Runs tap as `npm test` does, and names the slowest files of a long run. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createPool, dropPool } from './databases.ts'
import { listSlowest } from './slowest.ts'

const root = join(import.meta.dirname, '..')

/** Test files that run at a time, without `--jobs`: more than two processors, because tests also wait. */
const JOBS = Math.max(3, availableParallelism())

/** Seconds for a file that sets no limit of its own. With a server it runs its cases on both stores, and the server shares the processors. */
const TIMEOUT = process.env.MONGODB_URL === undefined ? 60 : 180

/** @returns tap's exit code */
export async function runTap (args: string[]): Promise<number> {
  const begun = Date.now()
  const folder = createPool()
  const tap = spawn(process.execPath, [join(root, 'node_modules/.bin/tap'), `--jobs=${JOBS}`, `--timeout=${TIMEOUT}`, ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tests'), TEST_DATABASES: folder }
  })
  // tap ends its tests first.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tap.kill(signal))
  const [code] = await once(tap, 'exit') as [number | null]
  for (const line of listSlowest(begun)) console.log(line)
  await dropPool(folder, process.env.MONGODB_URL)
  return code ?? 1
}
