import { type Bench, type Case, RATES, type Server } from '../bench.ts'
import { CLIENTS, clientAt } from '../fixture.ts'
import { admin, issueLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import type { Sample, Subject } from '../types.ts'
import { FILL } from './tokeninfo.ts'

export const ALGORITHMS = ['ES256', 'RS256'] as const
type Algorithm = typeof ALGORITHMS[number]

const SCOPE = 'orders:read'

const OPAQUE = 'opaque tokens'
const BARE = 'a bare route'
export const jwtRow = (algorithm: Algorithm) => `JWTs, ${algorithm}`
export const sumRow = (algorithm: Algorithm) => `opaque tokens, and the signature by jose, ${algorithm}`
const signatureOf = (algorithm: Algorithm) => `the signature, ${algorithm}`

/** Declares a resource, and gives its scope to the confidential clients. Plain users may, so that the clients keep their secrets. */
async function declare ({ child }: Server, fields: object): Promise<void> {
  const { port } = await child.ready
  const call = async (method: string, path: string, data: object) => {
    const { ok, status } = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
      method, headers: { ...admin, 'content-type': 'application/json' }, body: JSON.stringify({ data })
    })
    if (!ok) throw new Error(`${method} ${path} answered ${status}`)
  }
  await call('POST', 'resource', { id: 'https://orders.example', name: 'Orders', scopes: { [SCOPE]: 'See orders' }, selfService: [SCOPE], ...fields })
  for (let index = 0; index < CLIENTS; index += 2) await call('PATCH', `client/${clientAt(index).clientId}`, { scopes: [SCOPE] })
}

/** What an opaque token costs, and what a route that signs costs more than one that does not. */
async function addCosts (opaque: () => Promise<Sample>, signing: () => Promise<Sample>, bare: () => Promise<Sample>): Promise<Sample> {
  const [token, signed, unsigned] = [await opaque(), await signing(), await bare()]
  const add = (metric: string) => token[metric]! + signed[metric]! - unsigned[metric]!
  return { cpu: add('cpu'), main: add('main') }
}

/** Clients request their own tokens for a resource: opaque ones, and JWTs (RFC 9068). */
export default {
  name: 'jwt',
  title: 'Token issue for a resource: client credentials, as opaque tokens and as JWTs',
  notes: ['Each server on two cores. A token is on the disk before the answer. The cost of a signature is that of a route that signs by jose, less that of one that does not.'],
  columns: RATES,
  compared: ['rate', 'cpu'],
  baseline: OPAQUE,
  servers: async (bench) => {
    const identity = async (label: string) => (
      { label, file: 'identity.ts', options: { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` }, cores: 2 as const })
    return [
      await identity(OPAQUE),
      ...await Promise.all(ALGORITHMS.map(async (algorithm) => await identity(jwtRow(algorithm)))),
      ...ALGORITHMS.map((algorithm) => ({ label: signatureOf(algorithm), file: 'sign.ts', options: { algorithm }, cores: 2 as const })),
      { label: BARE, file: 'sign.ts', options: {}, cores: 2 as const }
    ]
  },
  scenario: async (bench: Bench, servers) => {
    const load = issueLoad({ scope: SCOPE })
    const aim = async (label: string, own: boolean) => {
      const target = await bench.aim(servers.get(label)!, own ? undefined : load)
      return async () => await bench.measure(target)
    }
    await declare(servers.get(OPAQUE)!, {})
    const [opaque, bare] = [await aim(OPAQUE, false), await aim(BARE, true)]
    const subjects: Subject[] = [{ label: OPAQUE, measure: opaque }]
    for (const algorithm of ALGORITHMS) {
      await declare(servers.get(jwtRow(algorithm))!, { tokenFormat: 'jwt', tokenAlg: algorithm })
      const signing = await aim(signatureOf(algorithm), true)
      subjects.push({ label: jwtRow(algorithm), measure: await aim(jwtRow(algorithm), false) }, { label: sumRow(algorithm), measure: async () => await addCosts(opaque, signing, bare) })
    }
    return subjects
  }
} satisfies Case
