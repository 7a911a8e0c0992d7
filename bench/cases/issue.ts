import { RATES, type Case } from '../bench.ts'
import { issueLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import { FILL } from './tokeninfo.ts'

const PROVIDER = 'oidc-provider, a Map'

/** Clients request their own tokens. */
export default {
  name: 'issue',
  title: 'Token issue: client credentials',
  notes: ['Each server on two cores. A token of the service is on the disk before the answer; those of the others are in memory only.'],
  columns: RATES,
  compared: ['rate'],
  baseline: PROVIDER,
  servers: async (bench) => [
    { label: PROVIDER, file: 'oidc-provider.ts', options: { issue: true }, cores: 2 },
    { label: 'fastify-identity, SQLite', file: 'identity.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` }, cores: 2 },
    { label: '@node-oauth/oauth2-server, a Map', file: 'oauth2-server.ts', options: { issue: true }, cores: 2 }
  ],
  scenario: async (bench, servers) => {
    const subjects = []
    for (const [label, server] of servers) {
      const target = await bench.aim(server, label.startsWith('fastify-identity') ? issueLoad() : undefined)
      subjects.push({ label, measure: () => bench.measure(target) })
    }
    return subjects
  }
} satisfies Case
