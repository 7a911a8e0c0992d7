import { BOTH, type Case } from '../bench.ts'
import { clientAt } from '../fixture.ts'
import { introspectionLoad, tokenInfoLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import { describeService } from '../service.ts'
import { FILL } from './tokeninfo.ts'

export const PROVIDER = 'oidc-provider, a Map'
export const IDENTITY = 'fastify-identity, SQLite'
export const SERVICE = 'fastify-identity as npm start, LOG_LEVEL=warn'
export const BARE = 'bare Fastify route, a posted form'
const toTokeninfo = (label: string) => `tokeninfo, ${label}`
export const TOKENINFO = toTokeninfo(IDENTITY)
export const TOKENINFO_SERVICE = toTokeninfo(SERVICE)

/** A resource server looks up tokens by the standard (RFC 7662). */
export default {
  name: 'introspection',
  title: 'Token introspection (RFC 7662): 10,000 tokens of 1,000 clients in rotation',
  notes: ['Each server on one core. A confidential client authenticates by HTTP Basic in each request, and asks about the tokens of all clients. Each token belongs to a grant.'],
  ...BOTH,
  baseline: PROVIDER,
  servers: async (bench) => {
    const database = async () => `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}`
    return [
      { label: BARE, file: 'bare.ts' },
      { label: PROVIDER, file: 'oidc-provider.ts' },
      { label: IDENTITY, file: 'identity.ts', options: { database: await database() } },
      describeService(SERVICE, await database(), 'warn')
    ]
  },
  scenario: async (bench, servers) => {
    const { clientId: id, secret } = clientAt(0)
    const load = introspectionLoad('/api/v1/auth/introspect', { id, secret: secret! })
    const subjects = []
    const { proofs: _, ...unproven } = load
    for (const [label, server] of servers) {
      const target = await bench.aim(server, label === PROVIDER ? undefined : label === BARE ? unproven : load)
      subjects.push({ label, measure: () => bench.measureByBoth(target) })
      if (label !== IDENTITY && label !== SERVICE) continue
      const info = await bench.aim(server, tokenInfoLoad())
      subjects.push({ label: toTokeninfo(label), measure: () => bench.measureByBoth(info) })
    }
    return subjects
  }
} satisfies Case
