// Auth.js in an Express app. It reads the claims of the ID token only.
import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, ORIGIN } = process.env

const config = {
  secret: 'signs the cookie of this test',
  trustHost: true,
  providers: [{
    id: 'identity',
    name: 'Identity',
    type: 'oidc',
    issuer: ISSUER,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    authorization: { params: { scope: 'openid profile email roles' } }
  }],
  callbacks: {
    jwt: ({ token, profile }) => ({ ...token, ...(profile && { id: profile.sub, roles: profile.roles }) }),
    session: ({ session, token }) => ({ ...session, user: { ...session.user, id: token.id, roles: token.roles } })
  }
}

const app = express()
app.get('/login', (_request, response) => response.redirect('/auth/signin?callbackUrl=/result'))
app.use('/auth', ExpressAuth(config))
app.get('/result', async (request, response) => response.json(await getSession(request, config)))
app.listen(new URL(ORIGIN).port, '127.0.0.1')
