// oidc-client-ts in a page. The server sends the page and the library, and takes no part in the sign-in.
import { createRequire } from 'node:module'
import express from 'express'

const { ISSUER, CLIENT_ID, ORIGIN } = process.env

const page = `<!doctype html><title>oidc-client-ts</title><link rel="icon" href="data:,"><pre></pre>
<script src="/library.js"></script>
<script type="module">
const users = new oidc.UserManager({
  authority: '${ISSUER}',
  client_id: '${CLIENT_ID}',
  redirect_uri: '${ORIGIN}/callback',
  scope: 'openid profile email offline_access'
})
const askUserinfo = async ({ access_token }) => (await fetch('${ISSUER}/api/v1/auth/userinfo', { headers: { authorization: 'Bearer ' + access_token } })).status
const run = async () => {
  const user = await users.signinRedirectCallback()
  const fresh = await users.signinSilent()
  const before = await askUserinfo(fresh)
  await users.revokeTokens()
  return { profile: user.profile, refreshed: fresh.access_token !== user.access_token, before, after: await askUserinfo(fresh) }
}
if (location.pathname === '/login') await users.signinRedirect()
else document.querySelector('pre').textContent = JSON.stringify(await run().catch((error) => ({ error: String(error) })))
</script>`

const app = express()
app.get('/library.js', (_request, response) => response.sendFile(createRequire(import.meta.url).resolve('oidc-client-ts').replace(/dist.*/, 'dist/browser/oidc-client-ts.js')))
app.get(['/login', '/callback'], (_request, response) => response.send(page))
app.listen(new URL(ORIGIN).port, '127.0.0.1')
