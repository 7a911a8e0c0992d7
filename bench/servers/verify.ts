import Fastify from 'fastify'
import { SignJWT, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { remoteAuth } from '../../plugins/remote.ts'
import { TOKENS, clientAt, userAt } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { readOptions, serve } from './serve.ts'

// An API that verifies JWT access tokens (RFC 9068) by itself: by remoteAuth, or by jose alone.

interface Options {
  algorithm: 'ES256' | 'RS256'
  by: 'jose' | 'remoteAuth'
  /** Tokens that remoteAuth knows again. Absent: its default. */
  cacheSize?: number
}

const { algorithm, by, cacheSize } = readOptions<Options>()
const audience = 'https://orders.example'

const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })

/** The metadata and the key, which are read once. */
async function startIssuer (): Promise<string> {
  const app = Fastify()
  const getIssuer = () => app.listeningOrigin
  app.get('/.well-known/openid-configuration', () => ({ issuer: getIssuer(), jwks_uri: `${getIssuer()}/jwks`, tokeninfo_endpoint: `${getIssuer()}/tokeninfo` }))
  app.get('/jwks', async () => ({ keys: [{ ...await exportJWK(publicKey), kid: 'bench', alg: algorithm, use: 'sig' }] }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  return getIssuer()
}

const issuer = await startIssuer()

async function sign (index: number): Promise<string> {
  const { user_id } = userAt(index)
  const { clientId: client_id } = clientAt(index)
  return await new SignJWT({ client_id, scope: 'orders:read', jti: String(index).padStart(22, '0'), acr: '1', amr: ['pwd'] })
    .setProtectedHeader({ alg: algorithm, kid: 'bench', typ: 'at+jwt' })
    .setIssuer(issuer).setSubject(user_id).setAudience(audience).setIssuedAt().setExpirationTime('1d')
    .sign(privateKey)
}

const requests: string[] = []
const proofs: string[] = []
for (let index = 0; index < TOKENS; index++) {
  requests.push(toRaw({ path: '/orders', headers: bearer(await sign(index)) }))
  proofs.push(userAt(index).user_id)
}

const app = Fastify()
const schema = { response: { 200: { type: 'object', properties: { user_id: { type: 'string' } } } } }
if (by === 'remoteAuth') {
  await app.register(remoteAuth, { issuer, jwtResources: [{ id: audience, tokenAlg: algorithm }], ...(cacheSize !== undefined && { cacheSize }) })
  app.get('/orders', { schema, onRequest: app.identity.guard({ audience, scopes: ['orders:read'] }) }, async ({ caller }) => ({ user_id: caller.user.user_id }))
} else {
  app.get('/orders', { schema }, async (request) => {
    const { payload } = await jwtVerify(request.headers.authorization!.slice(7), publicKey, { issuer, audience, typ: 'at+jwt', algorithms: [algorithm] })
    if (!String(payload.scope).split(' ').includes('orders:read')) throw new Error('the scope is missing')
    return { user_id: payload.sub }
  })
}

await serve(app, { load: { requests, proofs } })
