import type { Provider } from 'oidc-provider'
import type { SignLogout } from '../logout/attempt.ts'
import { createToken } from '../crypto/random-token.ts'
import { toInternals } from './context.ts'

/** The `events` claim of a logout token (OpenID Connect Back-Channel Logout 1.0, 2.4). */
const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }

/** Signs logout tokens as oidc-provider does: like the client's ID tokens, with `typ` logout+jwt, valid for two minutes. */
export function createLogoutSigner (provider: Provider): SignLogout {
  const { IdToken } = toInternals(provider)
  return async ({ client_id, user_id, sid }) => {
    const client = await provider.Client.find(client_id)
    const uri = client?.backchannelLogoutUri
    if (client === undefined || uri === undefined) return null
    const token = new IdToken({ sub: user_id }, { client })
    token.mask = { sub: null }
    token.set('events', EVENTS)
    token.set('jti', createToken())
    if (sid !== undefined) token.set('sid', sid)
    return { uri, token: await token.issue({ use: 'logout' }) }
  }
}
