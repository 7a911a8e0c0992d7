/* global location, history */
// A single-page app that signs its users in without a server: the code flow with PKCE, with a public client. The access token is
// kept in memory only. After a reload the app signs in again. The browser is still signed in at the service, so no password is needed.
import * as oauth from '/oauth4webapi.js'

const { issuer: address, clientId } = await (await fetch('/config.json')).json()
const issuer = new URL(address)
const client = { client_id: clientId }
const redirectUri = `${location.origin}/`
// Plain http is for trying it out only.
const options = { [oauth.allowInsecureRequests]: issuer.protocol === 'http:' }
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options))

const show = (text) => { document.getElementById('status').textContent = text }
const button = (id, onclick) => Object.assign(document.getElementById(id), { onclick, hidden: false })

async function signIn () {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  sessionStorage.setItem('sign-in', JSON.stringify({ verifier, state }))
  const url = new URL(server.authorization_endpoint)
  url.search = new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid profile',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256'
  })
  location.assign(url)
}

/** Exchanges the code in the URL for tokens, if there is one. */
async function finishSignIn () {
  const here = new URL(location.href)
  const pending = JSON.parse(sessionStorage.getItem('sign-in'))
  if (pending === null || !here.searchParams.has('state')) return undefined
  sessionStorage.removeItem('sign-in')
  history.replaceState(null, '', '/')
  const params = oauth.validateAuthResponse(server, client, here, pending.state)
  const response = await oauth.authorizationCodeGrantRequest(
    server, client, oauth.None(), params, redirectUri, pending.verifier, options)
  return await oauth.processAuthorizationCodeResponse(server, client, response)
}

async function signOut (tokens) {
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, oauth.None(), tokens.access_token, options))
  const url = new URL(server.end_session_endpoint)
  url.search = new URLSearchParams({ id_token_hint: tokens.id_token, post_logout_redirect_uri: redirectUri })
  location.assign(url)
}

try {
  const tokens = await finishSignIn()
  if (tokens === undefined) {
    show('You are not signed in.')
    button('sign-in', signIn)
  } else {
    const { sub } = oauth.getValidatedIdTokenClaims(tokens)
    const user = await oauth.processUserInfoResponse(server, client, sub,
      await oauth.userInfoRequest(server, client, tokens.access_token, options))
    show(`Signed in as ${user.preferred_username}`)
    const info = await oauth.protectedResourceRequest(
      tokens.access_token, 'GET', new URL('/api/v1/auth/tokeninfo', issuer), undefined, undefined, options)
    document.getElementById('info').textContent = JSON.stringify(await info.json(), null, 2)
    button('sign-out', () => signOut(tokens))
  }
} catch (error) {
  show(error.error === 'access_denied' ? 'You did not sign in.' : `Signing in failed: ${error.message}`)
  button('sign-in', signIn)
}
