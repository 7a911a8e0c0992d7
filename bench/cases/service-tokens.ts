import { BOTH, type Case, type Server } from '../bench.ts'
import { CLIENTS, clientAt, range } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { admin, tokenInfoLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import { FILL } from './tokeninfo.ts'

export const SIGN_IN = 'tokens of sign-ins'
export const SERVICE = 'service tokens'

/** Service tokens of each confidential client. */
const EACH = 4

/** The confidential clients are every second one. */
const INDEXES = range(CLIENTS / 2 * EACH, (index) => 2 * index)

async function createTokens ({ child }: Server): Promise<string[]> {
  const { port } = await child.ready
  const tokens: string[] = []
  for (const index of INDEXES) {
    const reply = await fetch(`http://127.0.0.1:${port}/api/v1/client/${clientAt(index % CLIENTS).clientId}/token`, {
      method: 'POST',
      headers: { ...admin, 'content-type': 'application/json' },
      body: JSON.stringify({ data: { name: 'SCIM', scopes: ['orders:read'] } })
    })
    if (!reply.ok) throw new Error(`a client got no service token: ${reply.status}`)
    tokens.push((await reply.json() as { data: { token: string } }).data.token)
  }
  return tokens
}

/** A look-up of a service token, whose last use is noted, and one of a token of a sign-in. */
export default {
  name: 'service-tokens',
  title: 'Whose token is this: 2,000 service tokens, and 2,000 tokens of sign-ins',
  notes: ['fastify-identity on SQLite, on one core; one process answers about both.'],
  ...BOTH,
  compared: [...BOTH.compared, 'cpu'],
  baseline: SIGN_IN,
  servers: async (bench) => [{ label: SIGN_IN, file: 'identity.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` } }],
  scenario: async (bench, servers) => {
    const server = servers.get(SIGN_IN)!
    const requests = (await createTokens(server)).map((token) => toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(token) }))
    const proofs = INDEXES.map((index) => clientAt(index % CLIENTS).clientId)
    const signIn = await bench.aim(server, tokenInfoLoad(INDEXES))
    const service = await bench.aim(server, { requests, proofs })
    return [
      { label: SIGN_IN, measure: () => bench.measureByBoth(signIn) },
      { label: SERVICE, measure: () => bench.measureByBoth(service) }
    ]
  }
} satisfies Case
