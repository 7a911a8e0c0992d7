// A terminal program that signs its user in: the device flow (RFC 8628). The browser may be on another machine.
import * as openid from 'openid-client'

const { ISSUER = 'http://127.0.0.1:3000', CLIENT_ID } = process.env
if (!CLIENT_ID) throw new Error('CLIENT_ID is not set: see README.md beside this file')

const issuer = new URL(ISSUER)
const config = await openid.discovery(issuer, CLIENT_ID, undefined, openid.None(), {
  // Plain http is for trying it out only.
  execute: issuer.protocol === 'http:' ? [openid.allowInsecureRequests] : []
})

const device = await openid.initiateDeviceAuthorization(config, { scope: 'openid offline_access' })
console.log(`Open ${device.verification_uri} and enter ${device.user_code}`)
console.log(`or open ${device.verification_uri_complete}`)

let tokens
try {
  tokens = await openid.pollDeviceAuthorizationGrant(config, device)
} catch (error) {
  console.error(error.error === 'access_denied' ? 'You refused the sign-in.' : `Sign-in failed: ${error.error_description ?? error.message}`)
  process.exit(1)
}

// A real program stores tokens.refresh_token where only its user can read it, and starts with it the next time.
const response = await openid.fetchProtectedResource(config, tokens.access_token, new URL('/api/v1/auth/tokeninfo', issuer), 'GET')
const { data } = await response.json()
console.log(`Signed in as ${data.account}`)

await openid.tokenRevocation(config, tokens.refresh_token)
console.log('Signed out')
