import { generateKeyPairSync } from 'node:crypto'
import jwt from '@fastify/jwt'
import Fastify from 'fastify'
import { type tokenInfoAt as describe, TOKENS, tokenInfoAt } from '../fixture.ts'
import { bearer, toRaw } from '../http.ts'
import { tokenInfoSchema } from './answers.ts'
import { readOptions, serve } from './serve.ts'

// A JWT verified by @fastify/jwt, without its cache of verified tokens.

const { algorithm } = readOptions<{ algorithm: 'HS256' | 'RS256' }>()

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' }
})

const app = Fastify()
await app.register(jwt, {
  secret: algorithm === 'HS256' ? 'a secret of more than thirty-two characters' : { private: privateKey, public: publicKey },
  sign: { algorithm, expiresIn: '1d', iss: 'bench' },
  verify: { algorithms: [algorithm], allowedIss: 'bench' }
})
app.get('/api/v1/auth/tokeninfo', { schema: tokenInfoSchema }, async (request, reply) => {
  const { user_id, account, name, roles, client_id, scopes } = await request.jwtVerify<ReturnType<typeof describe>>()
  reply.header('cache-control', 'no-store')
  return { data: { user_id, account, name, roles, client_id, scopes } }
})
await app.ready()

const requests = Array.from({ length: TOKENS }, (_, index) => (
  toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(app.jwt.sign(tokenInfoAt(index))) })
))
const proofs = Array.from({ length: TOKENS }, (_, index) => tokenInfoAt(index).account)
await serve(app, { load: { requests, proofs } })
