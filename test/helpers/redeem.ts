import { IdentityError } from '../../lib/errors.ts'
import { ACCESS_TTL, type Tokens } from '../../lib/tokens/tokens.ts'
import { createToken, hashToken } from '../../lib/crypto/random-token.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import type { Minted, TestKit } from '../../testing/index.ts'

/** The answer of the token endpoint to a refresh token. */
export interface Redeemed { status: number, body: { error?: string, access_token?: string, refresh_token?: string } }

/** The answer to a refresh token that is unknown, expired or revoked, or whose client does not exist. */
export const REFUSED = { body: { error: /^invalid_(grant|client)$/ } }

/** Redeems a minted refresh token at the token endpoint, with the client's secret if it has one. */
export async function redeem ({ app, inject }: TestKit, { client_id }: Pick<Minted, 'client_id'>, refresh_token: string | undefined): Promise<Redeemed> {
  const client = await app.identity.clients.require(client_id, { user_id: '', isAdmin: true }).catch(() => undefined)
  const reply = await inject({
    method: 'POST',
    url: '/api/v1/auth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refresh_token ?? '',
      client_id,
      ...(client?.clientSecret !== undefined && { client_secret: client.clientSecret })
    }).toString()
  })
  return { status: reply.statusCode, body: reply.json() }
}

/**
 * Rotates a refresh token without HTTP, by the same calls in the same order as the token endpoint.
 * @throws ErrUnknown when the token is refused
 */
export async function rotate (tokens: Tokens, token: string): Promise<{ access_token: string, expires_in: number, refresh_token: string }> {
  const refused = new IdentityError('ErrUnknown', 'the refresh token is refused')
  const found = await tokens.find<TokenRecord>('refresh_tokens', hashToken(token))
  const grant_id = found?.record.grant_id
  if (found === null || grant_id === undefined) throw refused
  if (tokens.isSpent(found, 0)) {
    await tokens.endGrant(grant_id)
    throw refused
  }
  const known = await tokens.rotate(found, 0)
  if (known === null) throw refused
  const [access_token, refresh_token] = [createToken(), createToken()]
  if (!await tokens.issueUnder('refresh_tokens', { token: refresh_token, ttl: 2 * ACCESS_TTL }, grant_id, { known })) throw refused
  if (!await tokens.issueUnder('access_tokens', { token: access_token, ttl: ACCESS_TTL }, grant_id, { known })) throw refused
  return { access_token, expires_in: ACCESS_TTL, refresh_token }
}
