import type { Case, Server } from '../bench.ts'
import type { Child } from '../child.ts'
import { TOKENS, clientAt, range, userAt } from '../fixture.ts'
import { PASSWORD, copyDatabase } from '../seed.ts'
import { spread } from '../stats.ts'
import type { Ready } from '../types.ts'
import { FILL } from './tokeninfo.ts'

const ALONE = 'bcryptjs alone, one thread'
const IDENTITY = 'fastify-identity, SQLite'
const AT_ONCE = 4

type Bcrypt = Child<{ compare: (params: { seconds: number }) => Promise<number> }, Ready>

/** Users sign in. */
export default {
  name: 'login',
  title: `Logins by the authorization code flow, ${AT_ONCE} at once`,
  notes: ['bcrypt cost 12; each server on two cores. On two cores the service hashes in one thread.'],
  columns: [{ metric: 'rate', title: 'logins/s', digits: 2 }, { metric: 'p50', title: 'p50 ms', digits: 0 }, { metric: 'cpu', title: 'server CPU ms/login', digits: 1 }],
  compared: ['rate'],
  baseline: ALONE,
  servers: async (bench) => [
    { label: ALONE, file: 'bcrypt.ts', cores: 2 },
    { label: IDENTITY, file: 'identity.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` }, cores: 2 }
  ],
  scenario: async (bench, servers) => {
    const { seconds } = bench.settings
    const alone = servers.get(ALONE)!.child as unknown as Bcrypt
    const server: Server = servers.get(IDENTITY)!
    const { port } = await server.child.ready
    const accounts = range(TOKENS, (index) => userAt(index).account)
    return [
      { label: ALONE, measure: async () => ({ rate: await alone.call('compare', { seconds }) }) },
      {
        label: IDENTITY,
        measure: async () => {
          const before = await server.usage()
          const start = performance.now()
          const times = await bench.driver.call('signIns', { port, client: clientAt(0), accounts, password: PASSWORD, concurrency: AT_ONCE, seconds })
          const elapsed = performance.now() - start
          const after = await server.usage()
          return { rate: times.length / elapsed * 1000, p50: spread(times).median, cpu: (after.cpu - before.cpu) / 1000 / times.length }
        }
      }
    ]
  }
} satisfies Case
