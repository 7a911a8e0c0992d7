import { CORES_USED, DRIVER, LOOP, P50, P99, RATE, type Bench, type Case, type Server, type Target } from '../bench.ts'
import { CLIENTS, TOKENS, clientAt, range, userAt } from '../fixture.ts'
import { CONSOLE, admin, consoleLoad, forgotLoad, tokenInfoLoad } from '../loads.ts'
import { PASSWORD, copyDatabase } from '../seed.ts'
import type { RunOptions, Sample, Subject } from '../types.ts'
import { post, readField, send } from '../visitor.ts'

/** Requests per second in the paced rows: about a tenth of what a core can answer. */
const PACE = 2_000

export const CORES = ['one core', 'two cores'] as const
export type Pace = 'at full rate' | `at ${number}/s`
export const label = (what: string, cores: string, pace: string) => `${what}, ${cores}, ${pace}`
export const QUIET = 'quiet'
export const LOGINS = (count: number) => `${count} logins in flight`
export const EXPORT = 'NDJSON exports of 100,000 clients, one after the other'
export const OPERATORS = '20 operators, each with a page of the console a second'
export const FORGOTTEN = 200
export const FORGETTING = `${FORGOTTEN} forgotten passwords a second`
export const FULL_RATE: Pace = 'at full rate'
export const PACED: Pace = `at ${PACE}/s`

/** Starts load during a measurement. The result stops it, and resolves to the number of logins, exports or requested mails. */
type Disturbance = (server: Server) => Promise<() => Promise<number>>

/** Signs the administrator in to the console. @returns the cookie */
async function enterConsole (origin: string): Promise<string> {
  const path = '/account/sign-in?next=console'
  const form = await send(origin + path)
  const fields = { account: userAt(0).account, password: PASSWORD, xsrf: readField(form.text, 'xsrf') }
  const { cookies } = await post(origin, path, form.cookies.join('; '), fields)
  const entered = await send(origin + CONSOLE, { headers: { cookie: cookies.join('; ') } })
  const cookie = entered.cookies.find((one) => one.startsWith('identity_console='))
  if (entered.status !== 200 || cookie === undefined) throw new Error(`the console answered ${entered.status}`)
  return cookie
}

function disturbances (bench: Bench): Map<string, Disturbance> {
  const logins = (concurrency: number): Disturbance => async (server) => {
    const { port } = await server.child.ready
    const accounts = range(TOKENS, (index) => userAt(index).account)
    const run = bench.disturber.call('signIns', { port, client: clientAt(0), accounts, password: PASSWORD, concurrency })
    return async () => {
      await bench.disturber.call('stop', null)
      return (await run).length
    }
  }
  const exporting: Disturbance = async (server) => {
    const { port } = await server.child.ready
    const headers = { ...admin, accept: 'application/x-ndjson' }
    const run = bench.disturber.call('downloads', { port, path: '/api/v1/client/list?limit=0', headers })
    return async () => {
      await bench.disturber.call('stop', null)
      return await run
    }
  }
  const forgetting: Disturbance = async (server) => await bench.disturb(server, forgotLoad(), FORGOTTEN)
  const operating: Disturbance = async (server) => {
    const { port } = await server.child.ready
    return await bench.disturb(server, consoleLoad(await enterConsole(`http://127.0.0.1:${port}`)), 20)
  }
  return new Map([[QUIET, async () => async () => 0], [LOGINS(4), logins(4)], [LOGINS(8), logins(8)], [EXPORT, exporting], [OPERATORS, operating], [FORGETTING, forgetting]])
}

async function measureDisturbed (bench: Bench, target: Target, disturb: Disturbance, options: Partial<RunOptions>): Promise<Sample> {
  const start = performance.now()
  const stop = await disturb(target.server)
  const sample = await bench.measure(target, options)
  const count = await stop()
  return { ...sample, beside: count / (performance.now() - start) * 1000 }
}

/** The latency of tokeninfo while the service has other work. */
export default {
  name: 'disturbed',
  title: 'Whose token is this, beside logins, exports and forgotten passwords',
  notes: [
    'fastify-identity on SQLite, bcrypt cost 12. A login is the whole authorization code flow. The disturbance comes from a second process on the driver\'s core.',
    `At full rate each of 50 connections sends its next request when it has an answer. At ${PACE}/s requests are sent on schedule, and a late start counts as latency.`,
    'Each forgotten password is another user\'s, whose mail is written, stored and handed over to a function that does nothing.'
  ],
  columns: [P99, P50, RATE, { metric: 'beside', title: 'logins, exports or mails/s', digits: 1 }, LOOP, CORES_USED, DRIVER],
  compared: ['p99'],
  baseline: label(QUIET, CORES[1], FULL_RATE),
  servers: async (bench) => {
    const fill = { users: TOKENS, clients: 100 * CLIENTS, tokens: TOKENS }
    const options = async () => ({ mails: true, console: { path: CONSOLE }, database: `sqlite:${await copyDatabase(fill, bench.directory, bench.log)}` })
    return [
      { label: CORES[0], file: 'identity.ts', options: await options(), cores: 1 },
      { label: CORES[1], file: 'identity.ts', options: await options(), cores: 2 }
    ]
  },
  scenario: async (bench, servers) => {
    const subjects: Subject[] = []
    const kinds = disturbances(bench)
    for (const [cores, server] of servers) {
      const target = await bench.aim(server, tokenInfoLoad(undefined, false))
      const paces: [Pace, Partial<RunOptions>][] = [[FULL_RATE, {}]]
      if (cores === CORES[1]) paces.push([PACED, { rate: PACE }])
      for (const [pace, options] of paces) {
        for (const [what, disturb] of kinds) {
          subjects.push({
            label: label(what, cores, pace), baseline: label(QUIET, cores, pace), measure: () => measureDisturbed(bench, target, disturb, options)
          })
        }
      }
    }
    return subjects
  }
} satisfies Case
