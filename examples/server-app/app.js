// A web app that signs its users in: the code flow with PKCE. Tokens stay on the server; the browser has a cookie.
import { randomBytes } from 'node:crypto'
import Fastify from 'fastify'
import * as openid from 'openid-client'

const { ISSUER = 'http://127.0.0.1:3000', CLIENT_ID, CLIENT_SECRET, PORT = '8081' } = process.env
if (!CLIENT_ID || !CLIENT_SECRET) throw new Error('CLIENT_ID and CLIENT_SECRET are not set: see README.md beside this file')

const issuer = new URL(ISSUER)
const config = await openid.discovery(issuer, CLIENT_ID, CLIENT_SECRET, undefined, {
  // Plain http is for trying it out only.
  execute: issuer.protocol === 'http:' ? [openid.allowInsecureRequests] : []
})

// A real app stores sessions outside the process, and lets them expire.
const sessions = new Map()
const COOKIE = 'server_app'
const readCookie = (request) => new RegExp(`(?:^|; )${COOKIE}=([\\w-]+)`).exec(request.headers.cookie ?? '')?.[1]
const escape = (text) => String(text).replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)

function startSession (reply, session) {
  const id = randomBytes(32).toString('base64url')
  sessions.set(id, session)
  reply.header('set-cookie', `${COOKIE}=${id}; Path=/; HttpOnly; SameSite=Lax${origin().startsWith('https:') ? '; Secure' : ''}`)
}

/** The session's access token, refreshed if it is about to expire. */
async function getToken (session) {
  if (session.expires < Date.now() + 10_000) storeTokens(session, await openid.refreshTokenGrant(config, session.refreshToken))
  return session.token
}

function storeTokens (session, tokens) {
  session.token = tokens.access_token
  session.refreshToken = tokens.refresh_token ?? session.refreshToken
  session.idToken = tokens.id_token ?? session.idToken
  session.expires = Date.now() + tokens.expires_in * 1000
  return session
}

const app = Fastify()
// The app's origin as browsers see it; behind a proxy, the proxy's.
const origin = () => process.env.ORIGIN ?? `http://127.0.0.1:${app.server.address().port}`
// The sign-out button sends an empty form.
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (request, body, done) => done(null, body))

app.get('/', async (request, reply) => {
  reply.type('text/html; charset=utf-8')
  const session = sessions.get(readCookie(request))
  const page = (body) => `<!DOCTYPE html><html lang="en"><title>Server app</title><link rel="icon" href="data:,"><main><h1>Server app</h1>${body}</main></html>`
  if (session?.token === undefined) return page('<p><a href="/sign-in">Sign in</a></p>')
  // Any API that accepts the token can be called like this.
  const url = new URL('/api/v1/auth/tokeninfo', issuer)
  const response = await openid.fetchProtectedResource(config, await getToken(session), url, 'GET')
  return page(`<p>Signed in as <strong>${escape(session.account)}</strong></p><pre>${escape(JSON.stringify(await response.json(), null, 2))}</pre>
    <form method="post" action="/sign-out"><button>Sign out</button></form>`)
})

app.get('/sign-in', async (request, reply) => {
  const verifier = openid.randomPKCECodeVerifier()
  const session = { verifier, state: openid.randomState(), nonce: openid.randomNonce() }
  startSession(reply, session)
  return reply.redirect(openid.buildAuthorizationUrl(config, {
    redirect_uri: `${origin()}/callback`,
    scope: 'openid profile offline_access',
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state: session.state,
    nonce: session.nonce
  }).href)
})

app.get('/callback', async (request, reply) => {
  const id = readCookie(request)
  const { verifier, state, nonce } = sessions.get(id) ?? {}
  // No sign-in is pending: the callback came from an old tab or a foreign link.
  if (verifier === undefined) return reply.redirect('/')
  sessions.delete(id)
  if (request.query.error === 'access_denied') return reply.redirect('/')
  const tokens = await openid.authorizationCodeGrant(config, new URL(request.url, origin()), {
    pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true
  })
  // A new session id prevents session fixation.
  const user = await openid.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)
  startSession(reply, storeTokens({ account: user.preferred_username }, tokens))
  return reply.redirect('/')
})

app.post('/sign-out', async (request, reply) => {
  const id = readCookie(request)
  const session = sessions.get(id)
  sessions.delete(id)
  if (session?.token === undefined) return reply.redirect('/', 303)
  await openid.tokenRevocation(config, session.refreshToken)
  return reply.redirect(openid.buildEndSessionUrl(config, { id_token_hint: session.idToken, post_logout_redirect_uri: `${origin()}/` }).href, 303)
})

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`Server app: ${origin()}`)
