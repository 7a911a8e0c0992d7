import type { Case } from '../bench.ts'
import type { Child } from '../child.ts'
import { TOKENS, clientAt, range, userAt } from '../fixture.ts'
import { COST, PASSWORD, copyDatabase } from '../seed.ts'
import type { HashCalls } from '../servers/hash.ts'
import type { Ready, ServerCalls } from '../types.ts'
import { FILL } from './tokeninfo.ts'

const HASH = 'the bare hash'
const IDENTITY = 'fastify-identity, SQLite'
const AT_ONCE = 4

/** Users sign in. */
export default {
  name: 'login',
  title: `Logins by the authorization code flow, ${AT_ONCE} at once, beside the bare hash`,
  notes: [`bcrypt cost ${COST}; each server on two cores, with one thread that hashes. The bare hash is the service's own comparison in the same thread.`],
  columns: [
    { metric: 'rate', title: 'logins/s', digits: 2 }, { metric: 'p50', title: 'p50 ms', digits: 0 },
    { metric: 'cpu', title: 'server CPU us/login', digits: 0, isCost: true }, { metric: 'main', title: 'its main thread', digits: 0, isCost: true }
  ],
  compared: ['rate', 'cpu'],
  baseline: HASH,
  servers: async (bench) => [
    { label: HASH, file: 'hash.ts', cores: 2 },
    { label: IDENTITY, file: 'identity.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` }, cores: 2 }
  ],
  scenario: async (bench, servers) => {
    const { seconds } = bench.settings
    const [hash, identity] = [servers.get(HASH)!, servers.get(IDENTITY)!]
    const hashing = hash.child as unknown as Child<ServerCalls & HashCalls, Ready>
    const { port } = await identity.child.ready
    const accounts = range(TOKENS, (index) => userAt(index).account)
    return [
      { label: HASH, measure: () => bench.measureTimes(hash, () => hashing.call('compare', { seconds, concurrency: AT_ONCE })) },
      {
        label: IDENTITY,
        measure: () => bench.measureTimes(identity, () => (
          bench.driver.call('signIns', { port, client: clientAt(0), accounts, password: PASSWORD, concurrency: AT_ONCE, seconds })))
      }
    ]
  }
} satisfies Case
