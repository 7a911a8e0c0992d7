import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Case } from '../bench.ts'
import { tokenAt } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { SECRET_KEY, copyDatabase } from '../seed.ts'
import { readStartFlags, timeStart } from '../start.ts'
import type { Subject } from '../types.ts'
import { FILL } from './tokeninfo.ts'

export const BARE = 'bare Fastify app'
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

/** From the start of a process to its first answer, on an existing database. */
export default {
  name: 'start',
  title: 'Start of a process to its first answer, on an existing database',
  notes: ['A new process each time, on two cores. The first answer is a 200 of tokeninfo.'],
  columns: [{ metric: 'milliseconds', title: 'ms', digits: 0 }, { metric: 'rss', title: 'MiB at the first answer', digits: 0 }],
  compared: ['milliseconds'],
  baseline: BARE,
  servers: () => [],
  scenario: async (bench) => {
    build()
    const request = toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(tokenAt(1)) })
    const env = {
      NODE_ENV: 'production',
      DATABASE_URL: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}`,
      IDENTITY_SECRET_KEY: SECRET_KEY
    }
    const subject = (label: string, args: string[]): Subject => ({
      label,
      measure: async () => {
        const { milliseconds, rss } = await timeStart(args, env, request)
        return { milliseconds, rss: rss / 2 ** 20 }
      }
    })
    return [
      subject(BARE, [pathOf('servers/start-bare.ts')]),
      subject('fastify-identity embedded, from sources', [pathOf('servers/start-embedded.ts')]),
      subject(SERVICE, [...readStartFlags(), pathOf('../server.ts')]),
      subject('fastify-identity, built as the package is', [...readStartFlags(), pathOf('node_modules/.cache/identity/server.js')])
    ]
  }
} satisfies Case
