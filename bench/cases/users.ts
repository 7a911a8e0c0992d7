import { join } from 'node:path'
import { RATES, type Case, type Server } from '../bench.ts'
import { TOKENS } from '../fixture.ts'
import { pageLoad, patchLoad, profileLoad, userLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import type { Load, Subject } from '../types.ts'
import { FILL } from './tokeninfo.ts'

const PEER = 'better-auth, node:sqlite'
export const BARE_USER = 'bare: get a user'
export const USER = 'fastify-identity: get a user'

/** Single users and pages of users. */
export default {
  name: 'users',
  title: 'Users: get, patch, and pages of 100 of 10,000',
  notes: ['Each server on one core. A patch of the service is on the disk before the answer; the bare route only parses the body.'],
  columns: RATES,
  compared: ['rate', 'cpu'],
  baseline: BARE_USER,
  servers: async (bench) => [
    { label: 'bare', file: 'bare.ts' },
    { label: 'fastify-identity', file: 'identity.ts', options: { database: `sqlite:${await copyDatabase({ ...FILL, clients: TOKENS }, bench.directory, bench.log)}` } },
    { label: 'fastify-identity, patched', file: 'identity.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` } },
    { label: PEER, file: 'better-auth.ts', options: { file: join(bench.directory, 'better-auth-list.db'), list: true } }
  ],
  scenario: async (bench, servers) => {
    const subjects: Subject[] = []
    const add = async (name: string, what: string, load?: Load, baseline?: string) => {
      const server: Server = servers.get(name)!
      const target = await bench.aim(server, load)
      subjects.push({ label: `${name}: ${what}`, ...(baseline !== undefined && { baseline }), measure: () => bench.measure(target) })
    }
    // The bare route gives every request the same answer.
    const unproven = ({ proofs: _, ...load }: Load): Load => load
    await add('bare', 'get a user', unproven(userLoad()))
    await add('fastify-identity', 'get a user', userLoad())
    await add('fastify-identity', 'get the own profile', profileLoad())
    await add('bare', 'page of 100 users', pageLoad('/api/v1/user/list', TOKENS), 'bare: page of 100 users')
    await add('fastify-identity', 'page of 100 users', pageLoad('/api/v1/user/list', TOKENS), 'bare: page of 100 users')
    await add('fastify-identity', 'page of 100 clients', pageLoad('/api/v1/client/list', TOKENS), 'bare: page of 100 users')
    await add(PEER, 'page of 100 users', undefined, 'bare: page of 100 users')
    await add('bare', 'patch a user', patchLoad(), 'bare: patch a user')
    // A server of its own: the rows above check that users do not change.
    await add('fastify-identity, patched', 'patch a user', patchLoad(), 'bare: patch a user')
    return subjects
  }
} satisfies Case
