import { join } from 'node:path'
import { BOTH, type Case } from '../bench.ts'
import { CLIENTS, TOKENS } from '../fixture.ts'
import { tokenInfoLoad } from '../loads.ts'
import { type Fill, copyDatabase } from '../seed.ts'
import { describeService } from '../service.ts'

export const FILL: Fill = { users: TOKENS, clients: CLIENTS, tokens: TOKENS, grants: true }
export const BARE = 'bare Fastify route'
export const IDENTITY = 'fastify-identity, SQLite'
export const SERVICE = 'fastify-identity as npm start, LOG_LEVEL=warn'
const LOGGING_BARE = 'bare Fastify route, one log line per request'
const LOGGING_SERVICE = 'fastify-identity as npm start, one log line per request'

/** The look-up that every request to a backend needs: whose token is this? */
export default {
  name: 'tokeninfo',
  title: 'Whose token is this: 10,000 tokens in rotation',
  notes: ['Each server on one core. The bare route answers the same without looking at the token. Logs go to /dev/null.'],
  ...BOTH,
  baseline: BARE,
  servers: async (bench) => {
    const file = (name: string) => join(bench.directory, name)
    const database = async () => `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}`
    return [
      { label: BARE, file: 'bare.ts' },
      { label: IDENTITY, file: 'identity.ts', options: { database: await database() } },
      describeService(SERVICE, await database(), 'warn'),
      { label: 'JWT HS256, @fastify/jwt', file: 'fastify-jwt.ts', options: { algorithm: 'HS256' } },
      { label: 'JWT RS256, @fastify/jwt', file: 'fastify-jwt.ts', options: { algorithm: 'RS256' } },
      { label: 'JWT HS256, jose', file: 'jose.ts', options: { algorithm: 'HS256' } },
      { label: 'JWT RS256, jose', file: 'jose.ts', options: { algorithm: 'RS256' } },
      { label: '@node-oauth/oauth2-server, a Map', file: 'oauth2-server.ts' },
      { label: 'Fastify, three SQLite reads by hand', file: 'three-reads.ts', options: { file: file('three-reads.db') } },
      { label: 'oidc-provider introspection, a Map', file: 'oidc-provider.ts' },
      { label: 'better-auth get-session, node:sqlite', file: 'better-auth.ts', options: { file: file('better-auth.db') } },
      { label: LOGGING_BARE, file: 'bare.ts', options: { logger: true }, quiet: true },
      describeService(LOGGING_SERVICE, await database(), 'info')
    ]
  },
  scenario: async (bench, servers) => {
    const load = tokenInfoLoad()
    const unproven = tokenInfoLoad(undefined, false)
    const loads = new Map([[BARE, unproven], [LOGGING_BARE, unproven], [IDENTITY, load], [SERVICE, load], [LOGGING_SERVICE, load]])
    const subjects = []
    for (const [label, server] of servers) {
      const target = await bench.aim(server, loads.get(label))
      subjects.push({ label, ...(label === LOGGING_SERVICE && { baseline: LOGGING_BARE }), measure: () => bench.measureByBoth(target) })
    }
    return subjects
  }
} satisfies Case
