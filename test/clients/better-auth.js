// better-auth in an Express app. It reads the claims of the ID token if there is an email among them.
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'
import { genericOAuth } from 'better-auth/plugins'
import express from 'express'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, ORIGIN } = process.env

const auth = betterAuth({
  baseURL: ORIGIN,
  secret: 'signs the cookie of this test: 32 characters',
  database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
  user: { additionalFields: { roles: { type: 'string[]', required: false } } },
  plugins: [genericOAuth({
    config: [{
      providerId: 'identity',
      discoveryUrl: `${ISSUER}/.well-known/openid-configuration`,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      scopes: ['openid', 'profile', 'email', 'roles'],
      mapProfileToUser: ({ roles }) => ({ roles })
    }]
  })]
})

const app = express()
app.get('/login', async (_request, response) => {
  const { headers, response: { url } } = await auth.api.signInSocial({ body: { provider: 'identity', callbackURL: '/result' }, returnHeaders: true })
  response.set('set-cookie', headers.getSetCookie()).redirect(url)
})
app.all('/api/auth/{*path}', toNodeHandler(auth))
app.get('/result', async (request, response) => response.json(await auth.api.getSession({ headers: fromNodeHeaders(request.headers) })))
app.listen(new URL(ORIGIN).port, '127.0.0.1')
