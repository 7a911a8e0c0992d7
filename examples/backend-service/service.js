// A program that acts without a user's sign-in: the client credentials grant. Its token is the client's own.
import * as openid from 'openid-client'

const { ISSUER = 'http://127.0.0.1:3000', CLIENT_ID, CLIENT_SECRET } = process.env
if (!CLIENT_ID || !CLIENT_SECRET) throw new Error('CLIENT_ID and CLIENT_SECRET are not set: see README.md beside this file')

const issuer = new URL(ISSUER)
const config = await openid.discovery(issuer, CLIENT_ID, CLIENT_SECRET, undefined, {
  // Plain http is for trying it out only.
  execute: issuer.protocol === 'http:' ? [openid.allowInsecureRequests] : []
})

let cached

/** The cached token; a new one if there is none or it is about to expire. */
async function getToken () {
  if (cached === undefined || cached.expires < Date.now() + 10_000) {
    const { access_token: token, expires_in: seconds } = await openid.clientCredentialsGrant(config, { scope: 'users:read' })
    cached = { token, expires: Date.now() + seconds * 1000 }
  }
  return cached.token
}

/** Calls an API. If the token was revoked, it tries once more with a new one. */
async function call (path) {
  const send = async () => await openid.fetchProtectedResource(config, await getToken(), new URL(path, issuer), 'GET')
  try {
    return await (await send()).json()
  } catch (error) {
    if (!(error instanceof openid.WWWAuthenticateChallengeError) || error.status !== 401) throw error
    cached = undefined
    return await (await send()).json()
  }
}

console.log(JSON.stringify({
  me: (await call('/api/v1/auth/tokeninfo')).data,
  users: (await call('/api/v1/user/count')).data.count
}, null, 2))
