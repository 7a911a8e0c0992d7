/** `npm test`: runs tap with these arguments, and names the slowest files of a long run. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPool, dropPool } from './databases.ts'
import { listSlowest } from './slowest.ts'

const root = join(import.meta.dirname, '..')
const given = process.argv.slice(2)

/** Test files that run at a time, without `--jobs`. A file that waits for a child or a server leaves its processor to the other. */
const JOBS = Math.max(2, availableParallelism() - 1)

const OUTPUT = '--output-file='
const own = join(tmpdir(), `identity-tests-${process.pid}.tap`)
const output = given.find((argument) => argument.startsWith(OUTPUT))?.slice(OUTPUT.length) ?? own
const folder = createPool()

// What interrupts the run interrupts tap too, and this process ends after it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
const tap = spawn(process.execPath, [join(root, 'node_modules/.bin/tap'), `--jobs=${JOBS}`, ...output === own ? [OUTPUT + own] : [], ...given], {
  stdio: 'inherit',
  env: { ...process.env, NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tests'), TEST_DATABASES: folder }
})
const [code] = await once(tap, 'exit') as [number | null]
if (existsSync(output)) for (const line of listSlowest(output)) console.log(line)
rmSync(own, { force: true })
await dropPool(folder, process.env.MONGODB_URL)
process.exitCode = code ?? 1
