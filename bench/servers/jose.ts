import Fastify from 'fastify'
import { SignJWT, generateKeyPair, generateSecret, jwtVerify } from 'jose'
import { TOKENS, tokenInfoAt } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { tokenInfoSchema } from './answers.ts'
import { readOptions, serve } from './serve.ts'

// A JWT with the whole answer in it, verified by jose. Nothing is looked up, so nothing can be revoked.

const { algorithm } = readOptions<{ algorithm: 'HS256' | 'RS256' }>()

const secret = algorithm === 'HS256' ? await generateSecret('HS256') : undefined
const { privateKey, publicKey } = secret === undefined ? await generateKeyPair('RS256') : { privateKey: secret, publicKey: secret }

const requests: string[] = []
const proofs: string[] = []
for (let index = 0; index < TOKENS; index++) {
  const { user_id, ...rest } = tokenInfoAt(index)
  const token = await new SignJWT(rest).setProtectedHeader({ alg: algorithm }).setSubject(user_id).setIssuer('bench').setExpirationTime('1d').sign(privateKey)
  requests.push(toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(token) }))
  proofs.push(rest.account)
}

const app = Fastify()
app.get('/api/v1/auth/tokeninfo', { schema: tokenInfoSchema }, async (request, reply) => {
  const { payload } = await jwtVerify(request.headers.authorization!.slice(7), publicKey, { issuer: 'bench', algorithms: [algorithm] })
  const { sub: user_id, account, name, roles, client_id, scopes } = payload
  reply.header('cache-control', 'no-store')
  return { data: { user_id, account, name, roles, client_id, scopes } }
})

await serve(app, { load: { requests, proofs } })
