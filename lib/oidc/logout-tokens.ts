import type { Client, Provider } from 'oidc-provider'
import type { SignLogout } from '../logout/attempt.ts'
import { createToken } from '../crypto/random-token.ts'

/** The `events` claim of a logout token (OpenID Connect Back-Channel Logout 1.0, 2.4). */
const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }

interface LogoutToken {
  mask: object
  set (claim: string, value: unknown): void
  issue (options: { use: 'logout' }): Promise<string>
}

type LogoutTokens = new (claims: { sub: string }, options: { client: Client }) => LogoutToken

/** Signs logout tokens as oidc-provider does: like the client's ID tokens, with `typ` logout+jwt, valid for two minutes. */
export function createLogoutSigner (provider: Provider): SignLogout {
  const Token = (provider as unknown as { IdToken: LogoutTokens }).IdToken
  return async ({ client_id, user_id, sid }) => {
    const client = await provider.Client.find(client_id)
    const uri = client?.backchannelLogoutUri
    if (client === undefined || uri === undefined) return null
    const token = new Token({ sub: user_id }, { client })
    token.mask = { sub: null }
    token.set('events', EVENTS)
    token.set('jti', createToken())
    if (sid !== undefined) token.set('sid', sid)
    return { uri, token: await token.issue({ use: 'logout' }) }
  }
}
