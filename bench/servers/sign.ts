import { createPrivateKey } from 'node:crypto'
import Fastify from 'fastify'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import { clientAt } from '../fixture.ts'
import { toRaw } from '../http.ts'
import { readOptions, serve } from './serve.ts'

// The signature of an access token, and nothing else.

const { algorithm } = readOptions<{ algorithm?: 'ES256' | 'RS256' }>()

/** As the service holds its keys. */
async function createKey (alg: string) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return createPrivateKey({ key: { ...await exportJWK(privateKey) }, format: 'jwk' })
}

const key = algorithm === undefined ? undefined : await createKey(algorithm)
const { clientId } = clientAt(0)

const app = Fastify()
app.get('/', async () => {
  const claims = { client_id: clientId, scope: 'orders:read', jti: 'x'.repeat(22) }
  if (key === undefined) return { access_token: JSON.stringify(claims) }
  const access_token = await new SignJWT(claims).setProtectedHeader({ alg: algorithm!, kid: 'bench', typ: 'at+jwt' })
    .setIssuer('https://id.example').setSubject(clientId).setAudience('https://orders.example').setIssuedAt().setExpirationTime('10m').sign(key)
  return { access_token }
})

await serve(app, { load: { requests: [toRaw({ path: '/' })], volatile: true } })
