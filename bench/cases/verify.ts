import { BOTH, type Case } from '../bench.ts'
import { ALGORITHMS } from './jwt.ts'

type Algorithm = typeof ALGORITHMS[number]

export const joseRow = (algorithm: Algorithm) => `jose alone, ${algorithm}`
export const remoteRow = (algorithm: Algorithm) => `remoteAuth, ${algorithm}`
export const firstRow = (algorithm: Algorithm) => `remoteAuth, each token for the first time, ${algorithm}`

/** JWT access tokens that an API verifies without asking. */
export default {
  name: 'verify',
  title: 'JWT access tokens verified by the API itself: 10,000 tokens in rotation',
  notes: ['Each server on one core. All compare type, algorithm, issuer, audience, end and scope. jose alone has the key; remoteAuth finds it by its id among those of the issuer.'],
  ...BOTH,
  compared: [...BOTH.compared, 'cpu'],
  baseline: joseRow('ES256'),
  servers: () => ALGORITHMS.flatMap((algorithm) => [
    { label: joseRow(algorithm), file: 'verify.ts', options: { algorithm, by: 'jose' } },
    { label: remoteRow(algorithm), file: 'verify.ts', options: { algorithm, by: 'remoteAuth' } },
    { label: firstRow(algorithm), file: 'verify.ts', options: { algorithm, by: 'remoteAuth', cacheSize: 1 } }
  ]),
  scenario: async (bench, servers) => {
    const subjects = []
    for (const algorithm of ALGORITHMS) {
      for (const label of [joseRow(algorithm), remoteRow(algorithm), firstRow(algorithm)]) {
        const target = await bench.aim(servers.get(label)!)
        subjects.push({ label, baseline: joseRow(algorithm), measure: () => bench.measureByBoth(target) })
      }
    }
    return subjects
  }
} satisfies Case
