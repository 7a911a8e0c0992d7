import { fileURLToPath } from 'node:url'
import { CORES_USED, LOOP, P50, P99, type Case } from '../bench.ts'
import type { Child } from '../child.ts'
import type { Receiver } from '../driver/receiver.ts'
import { TOKENS, clientAt, range, userAt } from '../fixture.ts'
import type { ReceiverCalls } from '../servers/receivers.ts'
import { PASSWORD, copyDatabase } from '../seed.ts'
import type { Ready, Sample, ServerCalls } from '../types.ts'
import { FILL } from './tokeninfo.ts'

const AT_ONCE = 4

/** Minimum seconds of a row: longer than the timeout of a call to a receiver. */
const LEAST = 17

export const QUIET = 'nobody is told'
export const RECEIVERS: Receiver[] = ['hangs', 'is down', 'answers 503']

export const label = (receiver: Receiver) => `the receiver ${receiver}`

type Service = Child<ServerCalls & ReceiverCalls, Ready>

/** Sign-ins while the receivers of webhooks and logout tokens fail. */
export default {
  name: 'receivers',
  title: `Sign-ins, ${AT_ONCE} at once, while receivers of webhooks and logout tokens fail`,
  notes: [
    'The authorization code flow on two cores, without the hash of the password, which would hide a disturbance. Ten users a second are signed out. In all rows but the first ten webhooks are sent all events, and the client is told of each sign-out.',
    `A row takes ${LEAST} seconds at least, because a call may take 15.`
  ],
  columns: [P50, P99, { metric: 'rate', title: 'sign-ins/s', digits: 0 }, { metric: 'attempts', title: 'attempts at webhooks', digits: 0 }, { metric: 'waiting', title: 'logouts that wait', digits: 0 }, LOOP, CORES_USED],
  compared: ['p50', 'p99'],
  baseline: QUIET,
  servers: async (bench) => [{
    label: QUIET,
    file: 'receivers.ts',
    options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` },
    cores: 2,
    flags: ['--import', fileURLToPath(new URL('../servers/no-hash.ts', import.meta.url))]
  }],
  scenario: async (bench, servers) => {
    const server = servers.get(QUIET)!
    const service = server.child as unknown as Service
    const { port } = await service.ready
    const accounts = range(TOKENS, (index) => userAt(index).account)
    const seconds = Math.max(bench.settings.seconds, LEAST)

    const measure = (): Promise<Sample> => bench.measureTimes(server, () => (
      bench.driver.call('signIns', { port, client: clientAt(0), accounts, password: PASSWORD, concurrency: AT_ONCE, seconds })))

    return [{ label: QUIET, measure }, ...RECEIVERS.map((receiver) => ({
      label: label(receiver),
      async measure (): Promise<Sample> {
        await service.call('tell', { port: await bench.disturber.call('receive', { receiver }) })
        const sample = await measure()
        const counts = await service.call('tellNobody', null)
        await bench.disturber.call('stopReceiver', null)
        return { ...sample, ...counts }
      }
    }))]
  }
} satisfies Case
