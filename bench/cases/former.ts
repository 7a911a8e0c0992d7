import { join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { BOTH, type Case } from '../bench.ts'
import { clientAt, tokenAt } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { introspectionLoad, tokenInfoLoad } from '../loads.ts'
import { SECRET_KEY, copyDatabase } from '../seed.ts'
import { describeService } from '../service.ts'
import { readStartFlags, timeStart } from '../start.ts'
import type { Subject } from '../types.ts'
import { FILL } from './tokeninfo.ts'

const FORMER = 'former'
const PRESENT = 'present'

/** Milliseconds for which a process is left alone before its memory is read. */
const REST = 60_000

/** Another checkout of this project, with its dependencies. */
const checkout = process.env.BENCH_FORMER && resolve(process.env.BENCH_FORMER)

/** A database as the other checkout fills it: it may not know the present form. */
async function copyFormer (directory: string, log: (text: string) => void): Promise<string> {
  const seed = await import(pathToFileURL(join(checkout!, 'bench/seed.ts')).href) as { copyDatabase: typeof copyDatabase }
  return await seed.copyDatabase(FILL, directory, log)
}

/** The service of another checkout and of this one, asked the same. */
export const former = {
  name: 'former',
  title: 'The service of another checkout and of this one: 10,000 tokens in rotation',
  notes: ['Each server on one core, as npm start with LOG_LEVEL=warn.'],
  ...BOTH,
  baseline: FORMER,
  servers: async (bench) => checkout
    ? [
        { ...describeService(FORMER, `sqlite:${await copyFormer(bench.directory, bench.log)}`, 'warn'), file: relative(fileURLToPath(new URL('../servers', import.meta.url)), join(checkout, 'server.ts')) },
        describeService(PRESENT, `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}`, 'warn')
      ]
    : [],
  scenario: async (bench, servers) => {
    const { clientId: id, secret } = clientAt(0)
    const loads = { tokeninfo: tokenInfoLoad(), introspection: introspectionLoad('/api/v1/auth/introspect', { id, secret: secret! }) }
    const subjects: Subject[] = []
    for (const [name, load] of Object.entries(loads)) {
      for (const [label, server] of servers) {
        const target = await bench.aim(server, load)
        subjects.push({ label: `${name}, ${label}`, baseline: `${name}, ${FORMER}`, measure: () => bench.measureByBoth(target) })
      }
    }
    return subjects
  }
} satisfies Case

/** A process of another checkout and of this one, without any option: its start, and what it needs at rest. */
export const formerStart = {
  name: 'former-start',
  title: 'Start to the first answer, and memory after a minute at rest, of another checkout and of this one',
  notes: ['A second start, from the compile cache, on two cores and an existing database. Every feature that an option turns on is off.'],
  columns: [{ metric: 'milliseconds', title: 'ms', digits: 0 }, { metric: 'rss', title: 'MiB at rest', digits: 1 }],
  compared: ['milliseconds', 'rss'],
  baseline: FORMER,
  servers: () => [],
  scenario: async (bench) => {
    if (!checkout) return []
    const request = toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(tokenAt(1)) })
    const subject = (label: string, server: string, database: string): Subject => {
      const env = { NODE_ENV: 'production', DATABASE_URL: `sqlite:${database}`, IDENTITY_SECRET_KEY: SECRET_KEY }
      const args = [...readStartFlags(), server]
      return {
        label,
        measure: async () => {
          await timeStart(args, env, request)
          const { milliseconds, rss } = await timeStart(args, env, request, REST)
          return { milliseconds, rss: rss / 2 ** 20 }
        }
      }
    }
    return [
      subject(FORMER, join(checkout, 'server.ts'), await copyFormer(bench.directory, bench.log)),
      subject(PRESENT, fileURLToPath(new URL('../../server.ts', import.meta.url)), await copyDatabase(FILL, bench.directory, bench.log))
    ]
  }
} satisfies Case
