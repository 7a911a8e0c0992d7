// oidc-client-ts in a page that signs out at the service and revokes its tokens before. The server sends the page and the library, and takes no
// part in the sign-in.
import { createRequire } from 'node:module'
import express from 'express'

const { ISSUER, CLIENT_ID, ORIGIN, SCOPE } = process.env

const page = `<!doctype html><title>oidc-client-ts</title><link rel="icon" href="data:,"><pre></pre>
<script src="/library.js"></script>
<script type="module">
const users = new oidc.UserManager({
  authority: '${ISSUER}',
  client_id: '${CLIENT_ID}',
  redirect_uri: '${ORIGIN}/callback',
  post_logout_redirect_uri: '${ORIGIN}/signed-out',
  revokeTokensOnSignout: true,
  scope: '${SCOPE}'
})
// A public client may ask about its own tokens.
const isActive = async (token) => (await (await fetch('${ISSUER}/api/v1/auth/introspect', {
  method: 'POST', body: new URLSearchParams({ token, client_id: '${CLIENT_ID}' })
})).json()).active
const check = async ({ access_token, refresh_token }) => ({ access: await isActive(access_token), refresh: await isActive(refresh_token) })
const steps = {
  '/login': async () => await users.signinRedirect(),
  '/callback': async () => {
    const { access_token, refresh_token } = await users.signinRedirectCallback()
    const before = await check({ access_token, refresh_token })
    sessionStorage.setItem('tokens', JSON.stringify({ access_token, refresh_token, before }))
    await users.signoutRedirect()
  },
  '/signed-out': async () => {
    await users.signoutRedirectCallback()
    const { before, ...tokens } = JSON.parse(sessionStorage.getItem('tokens'))
    const isJwt = tokens.access_token.includes('.')
    return { isJwt, before, after: await check(tokens), user: await users.getUser() }
  }
}
const shown = await steps[location.pathname]().catch((error) => ({ error: String(error) }))
if (shown !== undefined) document.querySelector('pre').textContent = JSON.stringify(shown)
</script>`

const app = express()
app.get('/library.js', (_request, response) => response.sendFile(createRequire(import.meta.url).resolve('oidc-client-ts').replace(/dist.*/, 'dist/browser/oidc-client-ts.js')))
app.get(['/login', '/callback', '/signed-out'], (_request, response) => response.send(page))
app.listen(new URL(ORIGIN).port, '127.0.0.1')
