// A program that acts without a user at a browser: the client credentials grant. Its token acts for the client's owner.
import * as openid from 'openid-client'

const { ISSUER = 'http://127.0.0.1:3000', CLIENT_ID, CLIENT_SECRET } = process.env
if (!CLIENT_ID || !CLIENT_SECRET) throw new Error('CLIENT_ID and CLIENT_SECRET are not set: see README.md beside this file')

const issuer = new URL(ISSUER)
const config = await openid.discovery(issuer, CLIENT_ID, CLIENT_SECRET, undefined, {
  // Without TLS only while you try it out.
  execute: issuer.protocol === 'http:' ? [openid.allowInsecureRequests] : []
})

let kept

/** One token for many calls: a new one when there is none, or the old one is about to expire. */
async function getToken () {
  if (kept === undefined || kept.expires < Date.now() + 10_000) {
    const { access_token: token, expires_in: seconds } = await openid.clientCredentialsGrant(config)
    kept = { token, expires: Date.now() + seconds * 1000 }
  }
  return kept.token
}

/** Calls an API; a token that was ended in the meantime is replaced once. */
async function call (path) {
  const send = async () => await openid.fetchProtectedResource(config, await getToken(), new URL(path, issuer), 'GET')
  try {
    return await (await send()).json()
  } catch (error) {
    if (!(error instanceof openid.WWWAuthenticateChallengeError) || error.status !== 401) throw error
    kept = undefined
    return await (await send()).json()
  }
}

console.log(JSON.stringify({
  me: (await call('/api/v1/auth/tokeninfo')).data,
  clients: (await call('/api/v1/client/count')).data.count
}, null, 2))
