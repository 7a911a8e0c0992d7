import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Bench, Case } from '../bench.ts'
import { tokenAt } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { SECRET_KEY, copyDatabase } from '../seed.ts'
import { readStartFlags, timeStart } from '../start.ts'
import type { Subject } from '../types.ts'
import { FILL } from './tokeninfo.ts'

export const BARE = 'bare Fastify app'
export const CACHED = 'bare Fastify app with a compile cache'
export const SERVICE = 'fastify-identity as npm start'
const pathOf = (file: string) => fileURLToPath(new URL(`../${file}`, import.meta.url))

/** Builds the service as for the package. */
function build (): void {
  const directory = pathOf('node_modules/.cache/identity')
  rmSync(directory, { recursive: true, force: true })
  const compiler = pathOf('../node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', pathOf('../tsconfig.build.json'), '--outDir', directory, '--declaration', 'false'])
  if (!existsSync(`${directory}/server.js`)) throw new Error(`the package cannot be built: ${stdout}`)
}

/** The package of a file, the room of ours, or Node's own modules. */
function toGroup (url: string): string {
  if (!url.startsWith('file:')) return 'node:'
  const inside = fileURLToPath(url).slice(pathOf('..').length)
  const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(inside) ?? []
  return name ?? /^(lib\/[^/]+|[^/]+)\//.exec(inside)?.[0] ?? 'entry points'
}

/** The modules that a start of the service loads, by package and room: their number, and KiB of their source. */
async function listGroups (directory: string, env: Record<string, string>, request: string): Promise<string[][]> {
  const list = join(directory, 'modules')
  await timeStart(['--import', pathOf('../test/helpers/list-modules.ts'), pathOf('../server.ts')], { ...env, LOADED_MODULES: list }, request)
  const groups = Map.groupBy(readFileSync(list, 'utf8').split('\n'), toGroup)
  const lines = [...groups].map(([name, urls]) => {
    const bytes = urls.reduce((sum, url) => sum + (url.startsWith('file:') ? statSync(new URL(url)).size : 0), 0)
    return { name, count: urls.length, bytes }
  })
  lines.sort((a, b) => b.count - a.count)
  const total = { name: 'all', count: lines.reduce((sum, { count }) => sum + count, 0), bytes: lines.reduce((sum, { bytes }) => sum + bytes, 0) }
  return [['modules that `npm start` loads', 'number', 'KiB'], ...[total, ...lines].map(({ name, count, bytes }) => [name, String(count), (bytes / 1024).toFixed(0)])]
}

async function prepare (bench: Bench): Promise<{ env: Record<string, string>, request: string }> {
  const database = `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}`
  return {
    env: { NODE_ENV: 'production', DATABASE_URL: database, IDENTITY_SECRET_KEY: SECRET_KEY },
    request: toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(tokenAt(1)) })
  }
}

/** From the start of a process to its first answer, on an existing database. */
export default {
  name: 'start',
  title: 'Start of a process to its first answer, on an existing database',
  notes: ['A new process each time, on two cores. The first answer is a 200 of tokeninfo.'],
  columns: [{ metric: 'milliseconds', title: 'ms', digits: 0 }, { metric: 'cpu', title: 'CPU ms', digits: 0, isCost: true }, { metric: 'rss', title: 'MiB at the first answer', digits: 0 }],
  compared: ['milliseconds', 'cpu'],
  baseline: BARE,
  servers: () => [],
  scenario: async (bench) => {
    build()
    const { env, request } = await prepare(bench)
    // As `npm start` sets it. Without it Node strips the types of the entry point anew each time.
    const compiled = { NODE_COMPILE_CACHE: join(bench.directory, 'compiled') }
    const subject = (label: string, args: string[], more: Record<string, string> = compiled): Subject => ({
      label,
      measure: async () => {
        const { rss, ...times } = await timeStart(args, { ...env, ...more }, request)
        return { ...times, rss: rss / 2 ** 20 }
      }
    })
    return [
      subject(BARE, [pathOf('servers/start-bare.ts')], {}),
      subject(CACHED, [pathOf('servers/start-bare.ts')]),
      subject('fastify-identity embedded, from sources', [pathOf('servers/start-embedded.ts')]),
      subject(SERVICE, [...readStartFlags(), pathOf('../server.ts')]),
      subject('fastify-identity, built as the package is', [...readStartFlags(), pathOf('node_modules/.cache/identity/server.js')])
    ]
  },
  async listDetails (bench) {
    const { env, request } = await prepare(bench)
    return await listGroups(bench.directory, env, request)
  }
} satisfies Case
