import { setTimeout as wait } from 'node:timers/promises'
import type { Case } from '../bench.ts'
import type { Child } from '../child.ts'
import { clientAt } from '../fixture.ts'
import { introspectionLoad, issueLoad, patchLoad, redeemLoad, tokenInfoLoad, userLoad } from '../loads.ts'
import { prepareRequests, signInPeople } from '../people.ts'
import type { Fill } from '../seed.ts'
import type { CommandCalls } from '../servers/commands.ts'
import { toQuantile } from '../stats.ts'
import type { Load, Ready, ServerCalls, Subject } from '../types.ts'
import { fillDatabase } from './mongodb.ts'

export const INTROSPECTION = 'introspection'
export const CLIENT_TOKEN = "a client's token"
export const REFRESH = 'a refresh'
export const CHANGE = 'a change of a user'
export const AT_REST = 'at rest, in a second'
/** Seconds. */
const AFTER = 1.5
export const AFTER_CHANGE = `in the ${AFTER} s after one change`

const SERVER = 'fastify-identity'
const FILL: Fill = { users: 100, clients: 100, tokens: 100, grants: true }

/** Requests of a row, and how many of them in a second: each is answered before the next. */
const REQUESTS = 9
const RATE = 4

/** Seconds after which nothing of an event is left to do, and those at rest. */
const QUIET = 10
const REST = 10

/** What the service asks of a MongoDB-compatible server. */
export default {
  name: 'commands',
  title: 'Commands to a MongoDB-compatible server',
  notes: [
    `Counted by the monitoring of the driver, for ${REQUESTS} requests one by one, of which the median is shown. Latencies are commands of which each waited for the one before.`,
    'Mails and webhooks are on. The last two rows count what no request waits for.'
  ],
  columns: [{ metric: 'commands', title: 'commands', digits: 1 }, { metric: 'latencies', title: 'latencies', digits: 0 }],
  compared: [],
  baseline: SERVER,
  servers: async (bench) => {
    const database = await fillDatabase(bench, 'commands', FILL)
    return database === undefined ? [] : [{ label: SERVER, file: 'commands.ts', options: { database }, cores: 2 }]
  },
  scenario: async (bench, servers) => {
    const server = servers.get(SERVER)
    if (server === undefined) return []
    const service = server.child as unknown as Child<ServerCalls & CommandCalls, Ready>
    const people = await signInPeople((await service.ready).port)

    async function send (load: Load, count: number): Promise<void> {
      const target = await bench.aim(server!, { ...load, requests: load.requests.slice(0, count), once: true }, false)
      await service.call('readRequests', null)
      await bench.driver.call('run', { target: target.id, connections: 1, rate: RATE, seconds: 60 })
    }

    const subject = (label: string, create: () => Load | Promise<Load>): Subject => ({
      label,
      measure: async () => {
        await send(await create(), REQUESTS)
        const counts = await service.call('readRequests', null)
        return { commands: toQuantile(counts.map(({ commands }) => commands), 0.5), latencies: toQuantile(counts.map(({ latencies }) => latencies), 0.5) }
      }
    })

    const { clientId: id, secret } = clientAt(0)
    return [
      subject('tokeninfo', tokenInfoLoad),
      subject(INTROSPECTION, () => introspectionLoad('/api/v1/auth/introspect', { id, secret: secret! })),
      subject('a user read', userLoad),
      subject(CLIENT_TOKEN, issueLoad),
      subject(REFRESH, async () => redeemLoad(await prepareRequests(people, REQUESTS, 'requestRefreshToken'))),
      subject('a code redeemed', async () => redeemLoad(await prepareRequests(people, REQUESTS, 'requestCode'))),
      subject(CHANGE, patchLoad),
      {
        label: AT_REST,
        measure: async () => {
          await wait(QUIET * 1000)
          return { commands: await service.call('count', { since: 'now', milliseconds: REST * 1000 }) / REST }
        }
      },
      {
        label: AFTER_CHANGE,
        measure: async () => {
          await send(patchLoad(), 1)
          return { commands: await service.call('count', { since: 'answer', milliseconds: AFTER * 1000 }) }
        }
      }
    ]
  }
} satisfies Case
