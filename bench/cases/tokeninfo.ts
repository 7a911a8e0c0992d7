import { join } from 'node:path'
import { RATES, type Case } from '../bench.ts'
import { CLIENTS, TOKENS } from '../fixture.ts'
import { tokenInfoLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import { readStartFlags } from '../start.ts'

export const FILL = { users: TOKENS, clients: CLIENTS, tokens: TOKENS }
export const BARE = 'bare Fastify route'
export const IDENTITY = 'fastify-identity, SQLite'

/** Whose token is this: the question of every request of every backend. */
export default {
  name: 'tokeninfo',
  title: 'Whose token is this: 10,000 tokens in rotation',
  notes: ['Each server on one core. The bare route answers the same without looking at the token. Where it is said to log, a line goes to /dev/null for each request.'],
  columns: RATES,
  metric: 'rate',
  baseline: BARE,
  servers: async (bench) => {
    const file = (name: string) => join(bench.directory, name)
    return [
      { label: BARE, file: 'bare.ts' },
      { label: IDENTITY, file: 'identity.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` } },
      { label: 'JWT HS256, @fastify/jwt', file: 'fastify-jwt.ts', options: { algorithm: 'HS256' } },
      { label: 'JWT RS256, @fastify/jwt', file: 'fastify-jwt.ts', options: { algorithm: 'RS256' } },
      { label: 'JWT HS256, jose', file: 'jose.ts', options: { algorithm: 'HS256' } },
      { label: 'JWT RS256, jose', file: 'jose.ts', options: { algorithm: 'RS256' } },
      { label: '@node-oauth/oauth2-server, a Map', file: 'oauth2-server.ts' },
      { label: 'Fastify, three SQLite reads by hand', file: 'three-reads.ts', options: { file: file('three-reads.db') } },
      { label: 'oidc-provider introspection, a Map', file: 'oidc-provider.ts' },
      { label: 'better-auth get-session, node:sqlite', file: 'better-auth.ts', options: { file: file('better-auth.db') } },
      { label: 'bare Fastify route that logs', file: 'bare.ts', options: { logger: true }, quiet: true },
      { label: 'fastify-identity as npm start, logs', file: 'service.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` }, flags: readStartFlags(), quiet: true }
    ]
  },
  scenario: async (bench, servers) => {
    const load = tokenInfoLoad()
    const own = new Map([
      [BARE, tokenInfoLoad(undefined, false)],
      ['bare Fastify route that logs', tokenInfoLoad(undefined, false)],
      [IDENTITY, load],
      ['fastify-identity as npm start, logs', load]
    ])
    const subjects = []
    for (const [label, server] of servers) {
      const target = await bench.aim(server, own.get(label))
      subjects.push({
        label,
        ...(label.endsWith('npm start, logs') && { baseline: 'bare Fastify route that logs' }),
        measure: () => bench.measure(target)
      })
    }
    return subjects
  }
} satisfies Case
