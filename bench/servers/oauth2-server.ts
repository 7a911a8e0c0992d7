import OAuth2Server from '@node-oauth/oauth2-server'
import Fastify from 'fastify'
import { CLIENTS, TOKENS, clientAt, tokenAt, tokenInfoAt } from '../fixture.ts'
import { issueLoad, tokenInfoLoad } from '../loads.ts'
import { tokenInfoSchema } from './answers.ts'
import { readOptions, serve } from './serve.ts'

// @node-oauth/oauth2-server with a Map as its store: nothing survives the process.

const { issue = false } = readOptions<{ issue?: boolean }>()

const far = new Date('2036-01-01')
const tokens = new Map<string, OAuth2Server.Token>()
for (let index = 0; index < TOKENS; index++) {
  const { client_id, scopes, ...user } = tokenInfoAt(index)
  tokens.set(tokenAt(index), {
    accessToken: tokenAt(index), accessTokenExpiresAt: far, scope: scopes, client: { id: client_id, grants: ['password'] }, user
  })
}

const clients = new Map(Array.from({ length: CLIENTS }, (_, index) => {
  const { clientId, secret } = clientAt(index)
  return [clientId, { secret, client: { id: clientId, grants: ['client_credentials'] } }]
}))

const server = new OAuth2Server({
  model: {
    getClient: async (id: string, secret: string) => {
      const found = clients.get(id)
      return found !== undefined && found.secret === secret ? found.client : null
    },
    getUserFromClient: async (client: OAuth2Server.Client) => ({ id: client.id }),
    validateScope: async () => [],
    saveToken: async (token: OAuth2Server.Token, client: OAuth2Server.Client, user: OAuth2Server.User) => {
      const saved = { ...token, client, user }
      tokens.set(token.accessToken, saved)
      return saved
    },
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

app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => {
  done(null, Object.fromEntries(new URLSearchParams(body as string)))
})
app.post('/token', async (request, reply) => {
  const response = new OAuth2Server.Response({ headers: {} } as never)
  await server.token(new OAuth2Server.Request({ headers: request.headers, method: request.method, query: request.query, body: request.body } as never), response)
  reply.headers(response.headers as Record<string, string>)
  return response.body
})

await serve(app, issue ? { load: issueLoad({ path: '/token' }) } : { load: tokenInfoLoad() })
