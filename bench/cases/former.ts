import { join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { findFreePort } from '../../test/helpers/port.ts'
import { type Bench, BOTH, type Case, RATES, type Server, type Target } from '../bench.ts'
import { clientAt, tokenAt } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { introspectionLoad, issueLoad, patchLoad, redeemLoad, tokenInfoLoad, userLoad } from '../loads.ts'
import { PLAIN, WITH_ID_TOKEN, prepareRequests, signInPeople } from '../people.ts'
import { SECRET_KEY, copyDatabase } from '../seed.ts'
import { describeService } from '../service.ts'
import { readStartFlags, timeStart } from '../start.ts'
import type { Load, ServerSpec, Subject } from '../types.ts'
import { FILL } from './tokeninfo.ts'

const FORMER = 'former'
const PRESENT = 'present'

export const CLIENT_TOKEN = "a client's token"
export const REFRESH = 'a refresh'
export const CODE = 'a code redeemed'
export const CHANGE = 'patch a user'
export const presentRow = (what: string): string => `${what}, ${PRESENT}`
export const formerRow = (what: string): string => `${what}, ${FORMER}`

/** Milliseconds for which a process is left alone before its memory is read. */
const REST = 60_000

/** Another checkout of this project, with its dependencies. */
const checkout = process.env.BENCH_FORMER && resolve(process.env.BENCH_FORMER)

/** A database as the other checkout fills it: it may not know the present form. */
async function copyFormer (directory: string, log: (text: string) => void): Promise<string> {
  const seed = await import(pathToFileURL(join(checkout!, 'bench/seed.ts')).href) as { copyDatabase: typeof copyDatabase }
  return await seed.copyDatabase(FILL, directory, log)
}

/** As npm start. People can sign in there as often as the measurement needs. */
async function describe (label: string, database: string): Promise<ServerSpec> {
  const { env, ...rest } = describeService(label, `sqlite:${database}`, 'warn', await findFreePort())
  return { ...rest, env: { ...env, IDENTITY_SIGN_IN_LIMIT: 'off' } }
}

/** Loads by name. One of requests that are good for one use is made before each measurement. */
type Loads = Record<string, Load | (() => Promise<Load>)>

async function aim (bench: Bench, server: Server, load: Loads[string]): Promise<() => Promise<Target>> {
  if (typeof load === 'function') return async () => await bench.aim(server, await load(), false)
  const target = await bench.aim(server, load)
  return async () => target
}

/** The service of another checkout and of this one, asked the same. */
const compare = (name: string, title: string, byWrk: boolean, createLoads: (bench: Bench, port: number) => Loads | Promise<Loads>) => ({
  name,
  title: `The service of another checkout and of this one: ${title}`,
  notes: ['Each server on one core, as npm start with LOG_LEVEL=warn and without a limit on sign-ins.'],
  ...(byWrk ? BOTH : { columns: RATES, compared: ['rate', 'cpu'] }),
  baseline: FORMER,
  servers: async (bench) => checkout
    ? [
        { ...await describe(FORMER, await copyFormer(bench.directory, bench.log)), file: relative(fileURLToPath(new URL('../servers', import.meta.url)), join(checkout, 'server.ts')) },
        await describe(PRESENT, await copyDatabase(FILL, bench.directory, bench.log))
      ]
    : [],
  scenario: async (bench, servers) => {
    const subjects: Subject[][] = []
    for (const [label, server] of servers) {
      const { port } = await server.child.ready
      for (const [index, [name, load]] of Object.entries(await createLoads(bench, port)).entries()) {
        const getTarget = await aim(bench, server, load)
        const measure = async () => byWrk ? await bench.measureByBoth(await getTarget()) : await bench.measure(await getTarget())
        subjects[index] = [...subjects[index] ?? [], { label: `${name}, ${label}`, baseline: formerRow(name), measure }]
      }
    }
    // Rows that are compared stand one after the other.
    return subjects.flat()
  }
}) satisfies Case

export const former = compare('former', '10,000 tokens in rotation', true, () => {
  const { clientId: id, secret } = clientAt(0)
  return {
    tokeninfo: tokenInfoLoad(),
    introspection: introspectionLoad('/api/v1/auth/introspect', { id, secret: secret! }),
    'get a user': userLoad()
  }
})

/** Requests in a second of a measurement. */
const REDEEMED = 300

/** Apart from the reads, which check that no answer changes. */
export const formerWrites = compare('former-writes', 'what is on the disk before the answer', false, async ({ settings: { seconds } }, port) => {
  const people = await signInPeople(port)
  const prepare = (what: Parameters<typeof prepareRequests>[2], scope: string) => async () => redeemLoad(await prepareRequests(people, REDEEMED * seconds, what, scope))
  return {
    [CLIENT_TOKEN]: issueLoad(),
    [REFRESH]: prepare('requestRefreshToken', PLAIN),
    [`${REFRESH} with an ID token`]: prepare('requestRefreshToken', WITH_ID_TOKEN),
    [CODE]: prepare('requestCode', PLAIN),
    [`${CODE} with an ID token`]: prepare('requestCode', WITH_ID_TOKEN),
    [CHANGE]: patchLoad()
  }
})

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
