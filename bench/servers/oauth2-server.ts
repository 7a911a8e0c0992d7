import OAuth2Server from '@node-oauth/oauth2-server'
import Fastify from 'fastify'
import { TOKENS, tokenAt, tokenInfoAt } from '../fixture.ts'
import { tokenInfoLoad } from '../loads.ts'
import { tokenInfoSchema } from './answers.ts'
import { serve } from './serve.ts'

// @node-oauth/oauth2-server with a Map behind it: no store at all, and nothing that survives the process.

const far = new Date('2036-01-01')
const tokens = new Map<string, OAuth2Server.Token>()
for (let index = 0; index < TOKENS; index++) {
  const { client_id, scopes, ...user } = tokenInfoAt(index)
  tokens.set(tokenAt(index), {
    accessToken: tokenAt(index), accessTokenExpiresAt: far, scope: scopes, client: { id: client_id, grants: ['password'] }, user
  })
}

const server = new OAuth2Server({
  model: {
    getAccessToken: async (token: string) => tokens.get(token) ?? null,
    verifyScope: async () => true
  } as unknown as OAuth2Server.ServerOptions['model']
})

const app = Fastify()
app.get('/api/v1/auth/tokeninfo', { schema: tokenInfoSchema }, async (request, reply) => {
  const { user, client, scope } = await server.authenticate(
    new OAuth2Server.Request({ headers: request.headers, method: request.method, query: request.query } as never),
    new OAuth2Server.Response({ headers: {} } as never)
  )
  reply.header('cache-control', 'no-store')
  return { data: { ...user, client_id: client.id, scopes: scope } }
})

await serve(app, { load: tokenInfoLoad() })
