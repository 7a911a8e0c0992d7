import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { type Case, RATES } from '../bench.ts'
import { CLIENTS, clientAt, range } from '../fixture.ts'
import { toRaw } from '../http.ts'
import { admin, issueLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import type { Load } from '../types.ts'
import { FILL } from './tokeninfo.ts'

const SECRET = 'by a secret'
const KEY = 'by a key (private_key_jwt, ES256)'

/** More than a round can use: an assertion is good once. */
const ASSERTIONS_A_SECOND = 4_000

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function createAssertion (client_id: string, aud: string): string {
  const iat = Math.floor(Date.now() / 1000)
  const text = `${encode({ alg: 'ES256' })}.${encode({ iss: client_id, sub: client_id, aud, jti: randomUUID(), iat, exp: iat + 60 })}`
  return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** Clients request their own tokens, each with an assertion of its own. */
function keyLoad (issuer: string, count: number): Load {
  return {
    requests: range(count, (index) => toRaw({
      method: 'POST',
      path: '/api/v1/auth/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: String(new URLSearchParams({
        grant_type: 'client_credentials',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: createAssertion(clientAt(2 * index % CLIENTS).clientId, issuer)
      }))
    })),
    volatile: true
  }
}

/** Gives every confidential client the key. */
async function addKeys (port: number): Promise<void> {
  for (let index = 0; index < CLIENTS; index += 2) {
    const { status } = await fetch(`http://127.0.0.1:${port}/api/v1/client/${clientAt(index).clientId}`, {
      method: 'PATCH',
      headers: { ...admin, 'content-type': 'application/json' },
      body: JSON.stringify({ data: { tokenAuth: 'private_key_jwt', jwks: { keys: [publicKey.export({ format: 'jwk' })] } } })
    })
    if (status !== 204) throw new Error(`a client got no key: ${status}`)
  }
}

/** Token requests that a key authenticates, against those that a secret does. */
export default {
  name: 'assertions',
  title: 'Token issue: client credentials, authenticated by a key and by a secret',
  notes: ['Each server on two cores. A use of an assertion is on the disk before its token is. Assertions are signed before each measurement.'],
  columns: RATES,
  compared: ['rate', 'cpu'],
  baseline: SECRET,
  servers: async (bench) => {
    const database = async () => `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}`
    return [
      { label: SECRET, file: 'identity.ts', options: { database: await database() }, cores: 2 },
      { label: KEY, file: 'identity.ts', options: { database: await database() }, cores: 2 }
    ]
  },
  scenario: async (bench, servers) => {
    const [bySecret, byKey] = [servers.get(SECRET)!, servers.get(KEY)!]
    const { port } = await byKey.child.ready
    await addKeys(port)
    const { issuer } = await (await fetch(`http://127.0.0.1:${port}/.well-known/openid-configuration`)).json() as { issuer: string }
    const secrets = await bench.aim(bySecret, issueLoad())
    const count = Math.ceil(bench.settings.seconds * ASSERTIONS_A_SECOND)
    return [
      { label: SECRET, measure: () => bench.measure(secrets) },
      { label: KEY, measure: async () => await bench.measure(await bench.aim(byKey, keyLoad(issuer, count), false)) }
    ]
  }
} satisfies Case
