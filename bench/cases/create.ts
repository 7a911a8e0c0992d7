import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RATES, type Case } from '../bench.ts'
import { createLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import type { Subject } from '../types.ts'
import { FILL } from './tokeninfo.ts'

export const ONE_EACH = 'Fastify, a transaction with its own sync each'
export const IDENTITY = 'fastify-identity, SQLite'
const ALONE = 'fastify-identity, SQLite, one after the other'
const LIMIT = 'Fastify, nothing stored: the upper limit'
const ONE_EACH_DIRECT = 'a transaction with its own sync each, without HTTP'
const IDENTITY_DIRECT = 'fastify-identity, SQLite, without HTTP'
const CONNECTIONS = 64

/** Each user is on the disk before the answer. */
export default {
  name: 'create',
  title: `Durable user creation, ${CONNECTIONS} at once`,
  notes: [
    'Each server on two cores, since the service writes in a thread. Hashing is left out: a stub replaces lib/users/passwords.ts. One after the other, the service needs a sync for each user too.',
    'The possible gain depends on the cost of a sync on the disk of TMPDIR; where a sync is fast, on the cost of a request. The upper limit parses the same requests and stores nothing. Without HTTP, the server creates users by function calls.'
  ],
  columns: RATES,
  compared: ['rate'],
  baseline: ONE_EACH,
  servers: async (bench) => [
    { label: ONE_EACH, file: 'one-sync-each.ts', options: { file: join(bench.directory, 'one-sync-each.db') }, cores: 2 },
    { label: LIMIT, file: 'one-sync-each.ts', cores: 2 },
    {
      label: IDENTITY,
      file: 'identity.ts',
      options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` },
      cores: 2,
      flags: ['--import', fileURLToPath(new URL('../servers/no-hash.ts', import.meta.url))]
    }
  ],
  scenario: async (bench, servers) => {
    const subjects: Subject[] = []
    for (const [label, server] of servers) {
      const target = await bench.aim(server, createLoad())
      subjects.push({ label, measure: () => bench.measure(target, { connections: CONNECTIONS }) })
      if (label === IDENTITY) subjects.push({ label: ALONE, measure: () => bench.measure(target, { connections: 1 }) })
    }
    for (const [label, of] of [[ONE_EACH_DIRECT, ONE_EACH], [IDENTITY_DIRECT, IDENTITY]] as const) {
      const { child } = servers.get(of)!
      subjects.push({ label, baseline: ONE_EACH_DIRECT, measure: () => child.call('repeat', { concurrency: CONNECTIONS, seconds: bench.settings.seconds }) })
    }
    return subjects
  }
} satisfies Case
